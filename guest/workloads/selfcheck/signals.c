/* Exceptions as a process sees them: signal, code, address, and the state to go on with. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <ucontext.h>

#define PAGE 4096u
#ifdef __x86_64__
#define IP REG_RIP
#define BX REG_RBX
#else
#define IP REG_EIP
#define BX REG_EBX
#endif

static volatile sig_atomic_t hits;
static volatile int seen_code, seen_trap, seen_signal;
static void *volatile seen_address;
static volatile uint64_t seen_error;
static volatile uintptr_t seen_stack;
static sigjmp_buf back;

static void note(int signal, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    hits++;
    seen_signal = signal;
    seen_code = info->si_code;
    seen_address = info->si_addr;
    seen_error = (uint64_t)uc->uc_mcontext.gregs[REG_ERR];
    seen_trap = (int)uc->uc_mcontext.gregs[REG_TRAPNO];
    seen_stack = (uintptr_t)__builtin_frame_address(0);
}

static void note_and_unprotect(int signal, siginfo_t *info, void *context)
{
    note(signal, info, context);
    mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE);
}

static void note_and_jump(int signal, siginfo_t *info, void *context)
{
    note(signal, info, context);
    siglongjmp(back, 1);
}

static const char *catch(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };
    EXPECT(sigaction(signal, &action, NULL) == 0);
    hits = 0;
    return NULL;
}

#define CATCH(signal, handler, flags)                           \
    do {                                                        \
        const char *wrong_ = catch(signal, handler, flags);     \
        if (wrong_)                                             \
            return wrong_;                                      \
    } while (0)

const char *check_segv(void)
{
    volatile char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(page != MAP_FAILED);
    CATCH(SIGSEGV, note_and_unprotect, 0);
    page[123] = 7; /* faults, is repaired, is executed again */
    EXPECT(hits == 1 && page[123] == 7 && page[122] == 0);
    EXPECT(seen_address == (void *)(page + 123) && seen_code == SEGV_ACCERR);
    EXPECT(seen_trap == 14 && (seen_error & 6) == 6); /* #PF, a write from user mode */

    munmap((void *)page, PAGE);
    CATCH(SIGSEGV, note_and_jump, 0);
    if (!sigsetjmp(back, 1))
        (void)page[5];
    EXPECT(hits == 1 && seen_address == (void *)(page + 5) && seen_code == SEGV_MAPERR && (seen_error & 7) == 4);

#ifdef __x86_64__
    hits = 0; /* a non-canonical address: #GP, no address */
    if (!sigsetjmp(back, 1))
        *(volatile char *)0x8000000000000000u = 1;
    EXPECT(hits == 1 && seen_signal == SIGSEGV && seen_trap == 13 && seen_address == NULL);
#endif

    hits = 0; /* a privileged instruction */
    if (!sigsetjmp(back, 1))
        __asm__ volatile("cli");
    EXPECT(hits == 1 && seen_trap == 13);

#ifndef __x86_64__
    struct utsname name; /* Linux 6.1 for i386 lets data be executed, NX or not; 64-bit kernels do not */
    EXPECT(uname(&name) == 0);
    if (strcmp(name.machine, "x86_64"))
        return NULL;
#endif
    hits = 0; /* data is not code */
    char *data = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(data != MAP_FAILED);
    data[0] = (char)0xc3;
    if (!sigsetjmp(back, 1))
        ((void (*)(void))(uintptr_t)data)();
    EXPECT(hits == 1 && seen_address == data && seen_code == SEGV_ACCERR && (seen_error & 0x14) == 0x14);
    return NULL;
}

static __attribute__((noinline)) uint64_t overflow(uint64_t depth)
{
    volatile char block[2048];
    block[0] = (char)depth;
    uint64_t below = depth == UINT64_MAX ? 0 : overflow(depth + 1);
    return below + (uint64_t)block[0];
}

const char *check_sigaltstack(void)
{
    size_t size = 65536;
    char *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(area != MAP_FAILED);
    stack_t stack = { .ss_sp = area, .ss_size = size };
    EXPECT(sigaltstack(&stack, NULL) == 0);
    CATCH(SIGSEGV, note_and_jump, SA_ONSTACK);
    if (!sigsetjmp(back, 1))
        overflow(0); /* until the stack's guard */
    EXPECT(hits == 1 && seen_signal == SIGSEGV);
    EXPECT(seen_stack >= (uintptr_t)area && seen_stack < (uintptr_t)area + size);
    return NULL;
}

const char *check_divide(void)
{
    volatile int zero = 0, one = 1, least = (int)0x80000000, minus = -1;
    CATCH(SIGFPE, note_and_jump, 0);
    if (!sigsetjmp(back, 1))
        one = one / zero;
    EXPECT(hits == 1 && seen_code == FPE_INTDIV && seen_trap == 0);
    hits = 0; /* the quotient does not fit */
    if (!sigsetjmp(back, 1))
        __asm__ volatile("cltd\n\tidivl %1" : : "a"(least), "r"(minus) : "edx", "cc");
    EXPECT(hits == 1 && seen_signal == SIGFPE);
    return NULL;
}

static void note_and_skip_ud2(int signal, siginfo_t *info, void *context)
{
    note(signal, info, context);
    ((ucontext_t *)context)->uc_mcontext.gregs[IP] += 2;
    ((ucontext_t *)context)->uc_mcontext.gregs[BX] = 0x1234;
}

const char *check_illegal(void)
{
    uintptr_t bx = 1;
    CATCH(SIGILL, note_and_skip_ud2, 0);
    __asm__ volatile("ud2" : "+b"(bx) : : "memory");
    EXPECT(hits == 1 && seen_trap == 6 && bx == 0x1234);
    CATCH(SIGTRAP, note, 0);
    __asm__ volatile("int3" : : : "memory");
    EXPECT(hits == 1 && seen_trap == 3);
    return NULL;
}

static void count_step(int signal, siginfo_t *info, void *context)
{
    (void)context;
    hits += signal == SIGTRAP && info->si_code == TRAP_TRACE;
}

/* RFLAGS.TF traps after each instruction, and not after the one that sets it. */
const char *check_single_step(void)
{
    CATCH(SIGTRAP, count_step, 0);
#ifdef __x86_64__
    __asm__ volatile("sub $128, %%rsp\n\t" /* the red zone */
                     "pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
                     "nop\n\tnop\n\tnop\n\t"
                     "pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
                     "add $128, %%rsp" : : : "cc", "memory");
#else
    __asm__ volatile("pushf\n\torl $0x100, (%%esp)\n\tpopf\n\t"
                     "nop\n\tnop\n\tnop\n\t"
                     "pushf\n\tandl $~0x100, (%%esp)\n\tpopf" : : : "cc", "memory");
#endif
    EXPECT(hits == 6); /* nop, nop, nop, pushf, and, popf */
    return NULL;
}
