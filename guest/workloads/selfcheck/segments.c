/* Segments of the local descriptor table: bases, limits, kinds, and code of another width. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include <asm/ldt.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096u
/* In the LDT, for user mode. */
#define SELECTOR(entry) ((entry) << 3 | 7)

/* The segment register that the C library does not use. */
#ifdef __x86_64__
#define FREE "gs"
#else
#define FREE "fs"
#endif

enum kind { DATA, EXPAND_DOWN, CODE };

static sigjmp_buf back;
static volatile int trap, signal_seen;
static volatile uint64_t error;

static void jump(int signal, siginfo_t *info, void *context)
{
    (void)info;
    signal_seen = signal;
    trap = (int)((ucontext_t *)context)->uc_mcontext.gregs[REG_TRAPNO];
    error = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR];
    siglongjmp(back, 1);
}

static int set_entry(unsigned entry, enum kind kind, uint32_t base, uint32_t limit, unsigned wide, unsigned absent)
{
    struct user_desc d = { .entry_number = entry, .base_addr = base, .limit = limit, .seg_32bit = wide,
                           .contents = (unsigned)kind, .seg_not_present = absent, .useable = 1 };
    return (int)syscall(SYS_modify_ldt, 0x11, &d, sizeof d);
}

static uint8_t byte_of(unsigned selector, uint32_t offset)
{
    uint8_t value;
    __asm__ volatile("mov %w1, %%" FREE "\n\tmovb %%" FREE ":(%2), %0"
                     : "=q"(value) : "r"(selector), "r"((uintptr_t)offset) : "memory");
    return value;
}

#define FAULTS(expected_trap, expression)                             \
    do {                                                              \
        trap = -1;                                                    \
        if (!sigsetjmp(back, 1))                                      \
            (void)(expression);                                       \
        EXPECT(trap == (expected_trap) && #expression[0]);            \
    } while (0)

static uint8_t *low_page(int protection)
{
    uint8_t *page = mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

static const char *catch_faults(void)
{
    struct sigaction action = { .sa_sigaction = jump, .sa_flags = SA_SIGINFO };
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
    EXPECT(sigaction(SIGILL, &action, NULL) == 0 && sigaction(SIGTRAP, &action, NULL) == 0);
    return NULL;
}

const char *check_data_segments(void)
{
    const char *wrong = catch_faults();
    if (wrong)
        return wrong;
    uint8_t *page = low_page(PROT_READ | PROT_WRITE);
    EXPECT(page);
    for (unsigned i = 0; i < PAGE; i++)
        page[i] = (uint8_t)(i ^ i >> 8);
    EXPECT(set_entry(0, DATA, (uint32_t)(uintptr_t)page, 0x7ff, 1, 0) == 0);
    EXPECT(byte_of(SELECTOR(0u), 0) == page[0] && byte_of(SELECTOR(0u), 0x7ff) == page[0x7ff]);
    uint32_t limit = 0, rights = 0;
    unsigned char known;
    __asm__("lsl %2, %0\n\tsetz %1" : "=r"(limit), "=q"(known) : "r"(SELECTOR(0u)) : "cc");
    EXPECT(known && limit == 0x7ff);
    __asm__("lar %2, %0\n\tsetz %1" : "=r"(rights), "=q"(known) : "r"(SELECTOR(0u)) : "cc");
    EXPECT(known && (rights & 0xfe00) == 0xf200); /* present, DPL 3, data, writable */
    __asm__("verw %w1\n\tsetz %0" : "=q"(known) : "r"(SELECTOR(0u)) : "cc");
    EXPECT(known);
    __asm__("lsl %2, %0\n\tsetz %1" : "+r"(limit), "=q"(known) : "r"(SELECTOR(9u)) : "cc");
    EXPECT(!known && limit == 0x7ff); /* an empty entry: no answer, and no change */
    EXPECT(set_entry(1, DATA, (uint32_t)(uintptr_t)page, 0x7ff, 1, 1) == 0);
    FAULTS(11, byte_of(SELECTOR(1u), 0)); /* #NP */
    EXPECT(signal_seen == SIGBUS && error == SELECTOR(1u) - 3);
    FAULTS(13, byte_of(SELECTOR(5000u), 0)); /* beyond the table */
    EXPECT(error == SELECTOR(5000u) - 3);
    FAULTS(13, byte_of(8, 0)); /* the kernel's */
#ifndef __x86_64__
    /* Limits count outside of 64-bit mode. */
    FAULTS(13, byte_of(SELECTOR(0u), 0x800));
    EXPECT(error == 0);
    FAULTS(13, byte_of(SELECTOR(0u), UINT32_MAX));
    FAULTS(13, byte_of(0, 0)); /* null may be loaded, not used */
    EXPECT(set_entry(2, EXPAND_DOWN, (uint32_t)(uintptr_t)page, 0x7ff, 1, 0) == 0);
    EXPECT(byte_of(SELECTOR(2u), 0x800) == page[0x800]);
    FAULTS(13, byte_of(SELECTOR(2u), 0x7ff));
    if (set_entry(3, EXPAND_DOWN, (uint32_t)(uintptr_t)page, 0x7ff, 0, 0) == 0) { /* up to 64 KiB only */
        EXPECT(byte_of(SELECTOR(3u), 0xfff) == page[0xfff]);
        FAULTS(13, byte_of(SELECTOR(3u), 0x10000));
    } else {
        EXPECT(errno == EINVAL); /* a kernel without 16-bit segments: Debian's cloud kernel */
    }
#endif
    return NULL;
}

#ifndef __x86_64__
static uint32_t call_far(uint32_t selector, uint32_t offset, uint32_t argument)
{
    struct { uint32_t offset; uint16_t selector; } __attribute__((packed)) target = { offset, (uint16_t)selector };
    __asm__ volatile("lcall *%1" : "+a"(argument) : "m"(target) : "ecx", "edx", "cc", "memory");
    return argument;
}

/* 16-bit code: the same bytes mean something else, offsets wrap at 64 KiB, the stack stays 32 bits wide. */
const char *check_code_16(void)
{
    const char *wrong = catch_faults();
    if (wrong)
        return wrong;
    uint8_t *page = low_page(PROT_READ | PROT_WRITE | PROT_EXEC);
    EXPECT(page);
    static const uint8_t code[] = {
        0xb8, 0x34, 0x12,             /* 0: mov $0x1234, %ax: the upper half stays */
        0x66, 0x05, 1, 0, 1, 0,       /* 3: add $0x10001, %eax */
        0xe8, 0x02, 0x00,             /* 9: call 14: pushes two bytes */
        0x66, 0xcb,                   /* 12: lretl */
        0x40,                         /* 14: inc %ax */
        0xc3,                         /* 15: ret */
    };
    memcpy(page, code, sizeof code);
    if (set_entry(4, CODE, (uint32_t)(uintptr_t)page, 0xfff, 0, 0)) {
        EXPECT(errno == EINVAL); /* a kernel without 16-bit segments: Debian's cloud kernel */
        return NULL;
    }
    EXPECT(call_far(SELECTOR(4u), 0, 0xabcd0000) == 0xabce1236);
    memset(page + 0xff0, 0x90, 16); /* nops up to the limit, and one more */
    FAULTS(13, call_far(SELECTOR(4u), 0xff0, 0));
    FAULTS(13, call_far(SELECTOR(4u), 0x1000, 0)); /* a target beyond the limit */
    FAULTS(13, call_far(SELECTOR(9u), 0, 0));      /* an empty entry */
    return NULL;
}

/* 64-bit code in a 32-bit process: only a 64-bit kernel has the segment for it. */
const char *check_code_64(void)
{
    struct utsname name;
    EXPECT(uname(&name) == 0);
    if (strcmp(name.machine, "x86_64"))
        return NULL;
    uint8_t *page = low_page(PROT_READ | PROT_WRITE | PROT_EXEC);
    EXPECT(page);
    static const uint8_t code[] = {
        0x48, 0xb8, 8, 7, 6, 5, 4, 3, 2, 1, /* movabs $0x0102030405060708, %rax */
        0x48, 0xc1, 0xe8, 0x20,             /* shr $32, %rax */
        0xcb,                               /* lretl: back to 32-bit code */
    };
    memcpy(page, code, sizeof code);
    EXPECT(call_far(0x33, (uint32_t)(uintptr_t)page, 0) == 0x01020304);
    return NULL;
}
#else
/* 32-bit code in a 64-bit process, by a far call and a far return, with a stack below 4 GiB. */
const char *check_code_32(void)
{
    uint8_t *page = low_page(PROT_READ | PROT_WRITE | PROT_EXEC), *stack = low_page(PROT_READ | PROT_WRITE);
    EXPECT(page && stack);
    static const uint8_t code[] = {
        0x40,                                     /* inc %eax: a prefix in 64-bit mode */
        0x60, 0x31, 0xc0, 0x61,                   /* pusha; xor %eax, %eax; popa */
        0x05, 0, 0, 0, 0x80,                      /* add $0x80000000, %eax */
        0xb1, 0x9a, 0x86, 0xc8, 0x27, 0x86, 0xc8, /* %al: daa of 0x9a is 0x00; back */
        0xcb,                                     /* lretl */
    };
    memcpy(page, code, sizeof code);
    struct { uint32_t offset; uint16_t selector; } __attribute__((packed)) target = { (uint32_t)(uintptr_t)page, 0x23 };
    uint64_t value = UINT64_C(0xffffffff00000041), top = (uintptr_t)stack + PAGE, count = 0;
    /* 32-bit code keeps no upper halves: what must last is in R12 and R13. */
    __asm__ volatile("mov %%rsp, %%r12\n\tmov %%rbp, %%r13\n\tmov %[top], %%rsp\n\tlcall *(%[target])\n\t"
                     "mov %%r12, %%rsp\n\tmov %%r13, %%rbp"
                     : "+a"(value), "+c"(count) : [top] "r"(top), [target] "r"(&target)
                     : "rbx", "rdx", "rsi", "rdi", "r12", "r13", "cc", "memory");
    EXPECT((uint32_t)value == 0x80000042u && (uint8_t)count == 0x00);
    return NULL;
}
#endif
