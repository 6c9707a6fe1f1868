/* What only 32-bit programs meet: three ways into the kernel, thread-local segments, instructions that 64-bit mode lacks. */
#ifndef __x86_64__
#define _GNU_SOURCE
#include "selfcheck.h"

#include <asm/ldt.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096u

static sigjmp_buf back;
static volatile int trap;

static void jump(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    trap = (int)((ucontext_t *)context)->uc_mcontext.gregs[REG_TRAPNO];
    siglongjmp(back, 1);
}

/* Six arguments, of which EBP holds the last; every register but EAX comes back. */
static long by_int80(long number, const long a[6])
{
    long frame[7] = { number, a[0], a[1], a[2], a[3], a[4], a[5] }, *at = frame, result;
    long kept = 0;
    __asm__ volatile("push %%ebp\n\tpush %%ebx\n\tmov %[at], %%eax\n\t"
                     "mov 4(%%eax), %%ebx\n\tmov 8(%%eax), %%ecx\n\tmov 12(%%eax), %%edx\n\tmov 16(%%eax), %%esi\n\t"
                     "mov 20(%%eax), %%edi\n\tmov 24(%%eax), %%ebp\n\tpush %%eax\n\tmov (%%eax), %%eax\n\tint $0x80\n\t"
                     "mov %%eax, (%%esp)\n\txor %%eax, %%eax\n\t"
                     "add %%ebx, %%eax\n\tadd %%ecx, %%eax\n\tadd %%edx, %%eax\n\tadd %%esi, %%eax\n\tadd %%edi, %%eax\n\t"
                     "add %%ebp, %%eax\n\tmov %%eax, %%ecx\n\tpop %%eax\n\tpop %%ebx\n\tpop %%ebp"
                     : "=&a"(result), "=&c"(kept), [at] "+d"(at) : : "esi", "edi", "cc", "memory");
    return kept == a[0] + a[1] + a[2] + a[3] + a[4] + a[5] ? result : -9999;
}

/* The same by the vDSO, which picks SYSENTER, SYSCALL or INT 0x80 by the processor. */
static long by_vdso(long number, const long a[6])
{
    unsigned long entry = getauxval(AT_SYSINFO);
    if (!entry)
        return by_int80(number, a);
    long frame[8] = { number, a[0], a[1], a[2], a[3], a[4], a[5], (long)entry }, *at = frame, result;
    long kept = 0;
    __asm__ volatile("push %%ebp\n\tpush %%ebx\n\tmov %[at], %%eax\n\t"
                     "mov 4(%%eax), %%ebx\n\tmov 8(%%eax), %%ecx\n\tmov 12(%%eax), %%edx\n\tmov 16(%%eax), %%esi\n\t"
                     "mov 20(%%eax), %%edi\n\tmov 24(%%eax), %%ebp\n\tpush %%eax\n\tpush 28(%%eax)\n\tmov (%%eax), %%eax\n\t"
                     "call *(%%esp)\n\tadd $4, %%esp\n\t"
                     "mov %%eax, (%%esp)\n\txor %%eax, %%eax\n\t"
                     "add %%ebx, %%eax\n\tadd %%ecx, %%eax\n\tadd %%edx, %%eax\n\tadd %%esi, %%eax\n\tadd %%edi, %%eax\n\t"
                     "add %%ebp, %%eax\n\tmov %%eax, %%ecx\n\tpop %%eax\n\tpop %%ebx\n\tpop %%ebp"
                     : "=&a"(result), "=&c"(kept), [at] "+d"(at) : : "esi", "edi", "cc", "memory");
    return kept == a[0] + a[1] + a[2] + a[3] + a[4] + a[5] ? result : -9999;
}

static const char *check_entry(long (*enter)(long, const long[6]))
{
    static const long none[6];
    EXPECT(enter(SYS_getpid, none) == getpid());
    EXPECT(enter(100000, none) == -ENOSYS);
    const long bad[6] = { -1 };
    EXPECT(enter(SYS_close, bad) == -EBADF);
    const long map[6] = { 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 };
    volatile uint32_t *memory = (uint32_t *)enter(SYS_mmap2, map);
    EXPECT((uintptr_t)memory < (uintptr_t)-4096 && memory[0] == 0);
    memory[0] = 5;
    const long unmap[6] = { (long)memory, PAGE };
    EXPECT(enter(SYS_munmap, unmap) == 0);
    for (unsigned i = 0; i < 2000; i++)
        EXPECT(enter(SYS_getppid, none) == getppid());
    return NULL;
}

const char *check_int80(void) { return check_entry(by_int80); }
const char *check_vdso(void) { return check_entry(by_vdso); }

static __thread uint32_t own = 77;

static void *thread_body(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    if (own != 77)
        return "a thread-local variable to start with its own value";
    own = me;
    for (unsigned i = 0; i < 2000; i++) {
        by_int80(SYS_sched_yield, (const long[6]){ 0 });
        if (own != me)
            return "a thread-local variable to keep its value over a yield";
    }
    return NULL;
}

const char *check_thread_area(void)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        EXPECT(pthread_create(&threads[i], NULL, thread_body, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        EXPECT(pthread_join(threads[i], &wrong) == 0);
        if (wrong)
            return wrong;
    }
    uint32_t block[4] = { 11, 22, 33, 44 }, value;
    struct user_desc d = { .entry_number = (unsigned)-1, .base_addr = (uint32_t)(uintptr_t)block, .limit = sizeof block - 1,
                           .seg_32bit = 1, .useable = 1 };
    struct sigaction action = { .sa_sigaction = jump, .sa_flags = SA_SIGINFO };
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0);
    EXPECT(syscall(SYS_set_thread_area, &d) == 0 && d.entry_number != (unsigned)-1);
    __asm__ volatile("mov %w1, %%fs\n\tmovl %%fs:8, %0" : "=r"(value) : "r"(d.entry_number << 3 | 3) : "memory");
    EXPECT(value == 33);
    trap = -1;
    if (!sigsetjmp(back, 1)) /* four bytes, of which the last is beyond the limit */
        __asm__ volatile("movl %%fs:13, %0" : "=r"(value) : : "memory");
    EXPECT(trap == 13);
    __asm__ volatile("mov %w0, %%fs" : : "r"(0));
    return NULL;
}

#define FAULTS(expected_trap, statement)                              \
    do {                                                              \
        trap = -1;                                                    \
        if (!sigsetjmp(back, 1))                                      \
            statement;                                                \
        EXPECT(trap == (expected_trap));                              \
    } while (0)

const char *check_legacy(void)
{
    struct sigaction action = { .sa_sigaction = jump, .sa_flags = SA_SIGINFO };
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGILL, &action, NULL) == 0);
    EXPECT(sigaction(SIGFPE, &action, NULL) == 0);
    uint16_t ax;
    __asm__("mov $0x79, %%al\n\tadd $0x35, %%al\n\tdaa" : "=a"(ax) : : "cc");
    EXPECT((ax & 0xff) == 0x14);
    __asm__("mov $0x35, %%al\n\tsub $0x47, %%al\n\tdas" : "=a"(ax) : : "cc");
    EXPECT((ax & 0xff) == 0x88);
    __asm__("mov $0x0108, %%ax\n\tadd $9, %%al\n\taaa" : "=a"(ax) : : "cc");
    EXPECT(ax == 0x0207);
    __asm__("mov $0x0204, %%ax\n\tsub $9, %%al\n\taas" : "=a"(ax) : : "cc");
    EXPECT(ax == 0x0105);
    __asm__("mov $0x0063, %%ax\n\taam" : "=a"(ax) : : "cc");
    EXPECT(ax == 0x0909);
    __asm__("mov $0x0705, %%ax\n\taad" : "=a"(ax) : : "cc");
    EXPECT(ax == 0x004b);
    uint32_t a = 0xa0a0a0a0, c = 0xc0c0c0c0; /* PUSHA's order: what is stored at 24 and 28 is popped to ECX and EAX */
    __asm__ volatile("pusha\n\tmov 24(%%esp), %%eax\n\txchg %%eax, 28(%%esp)\n\tmov %%eax, 24(%%esp)\n\tmovl $0, 12(%%esp)\n\tpopa"
                     : "+a"(a), "+c"(c) : : "memory"); /* the stored ESP (12) is not popped */
    EXPECT(a == 0xc0c0c0c0 && c == 0xa0a0a0a0);
    volatile int32_t bounds[2] = { -3, 12 };
    __asm__ volatile("boundl %0, %1" : : "r"(-3), "m"(bounds));
    FAULTS(5, __asm__ volatile("boundl %0, %1" : : "r"(13), "m"(bounds)));
    __asm__ volatile("test %%eax, %%eax\n\tinto" : : : "cc");
    FAULTS(4, __asm__ volatile("movb $0x7f, %%al\n\tadd $1, %%al\n\tinto" : : : "eax", "cc"));
    FAULTS(6, __asm__ volatile(".byte 0x8d, 0xc0")); /* LEA of a register */
    FAULTS(13, __asm__ volatile("int $0x20"));
    struct { uint32_t offset; uint16_t selector; } __attribute__((packed)) far = { 0x1234, 0 };
    __asm__ volatile("mov %%ds, %0" : "=r"(far.selector));
    uint32_t offset;
    uint16_t fs;
    __asm__ volatile("lfsl %2, %0\n\tmov %%fs, %1" : "=&r"(offset), "=&r"(fs) : "m"(far));
    EXPECT(offset == 0x1234 && fs == far.selector);
    __asm__ volatile("lesl %2, %0\n\tmov %%es, %1" : "=&r"(offset), "=&r"(fs) : "m"(far)); /* the selector it had */
    EXPECT(offset == 0x1234 && fs == far.selector);
    __asm__ volatile("mov %w0, %%fs" : : "r"(0));
    static const uint8_t table[256] = { [200] = 123 };
    __asm__("xlatb" : "=a"(ax) : "0"(200), "b"(table));
    EXPECT((ax & 0xff) == 123);
    uint16_t adjusted = 0x10;
    unsigned char changed;
    __asm__("arpl %2, %0\n\tsetz %1" : "+r"(adjusted), "=q"(changed) : "r"((uint16_t)3) : "cc");
    EXPECT(changed && adjusted == 0x13);
    /* 16-bit addresses wrap at 64 KiB: the null page, which nobody may map. */
    FAULTS(14, __asm__ volatile("addr16 movb 0x10(%%bx), %%al" : : "b"(0xfff8) : "eax"));
    return NULL;
}
#endif
