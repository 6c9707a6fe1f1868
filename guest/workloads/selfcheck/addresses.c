/* How wide linear addresses are: 48 bits, or 57 where the kernel uses five levels of page tables. */
#define _GNU_SOURCE
#include "selfcheck.h"

#ifdef __x86_64__

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

static sigjmp_buf back;
static siginfo_t fault;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    fault = *info;
    siglongjmp(back, 1);
}

/* Whether a read faults; `fault` says how. */
static int read_faults(uint64_t address)
{
    if (sigsetjmp(back, 1))
        return 1;
    (void)*(volatile uint64_t *)address;
    return 0;
}

/* Whether /proc/cpuinfo has the flag: Linux takes it out where it does not use five levels. */
static int cpuinfo_has(const char *flag)
{
    static char line[8192];
    int found = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file)
        return 0;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags", 5))
            continue;
        for (char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n"))
            found |= !strcmp(word, flag);
    }
    fclose(file);
    return found;
}

/* Maps a page at each power of two that user space may have, and finds in each what it stored there. Beyond, where
   addresses are not canonical, an access is a general-protection fault, which has no address, and not a page fault. */
const char *check_addresses(void)
{
    int wide = cpuinfo_has("la57");
    unsigned bits = wide ? 57 : 48;
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0);
    EXPECT(sigaction(SIGBUS, &action, NULL) == 0);
    for (unsigned bit = 40; bit < bits - 1; bit++) {
        uint64_t address = 1ull << bit;
        EXPECT(read_faults(address) && fault.si_code == SEGV_MAPERR && (uint64_t)fault.si_addr == address);
        EXPECT((uint64_t)mmap((void *)address, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == address);
        *(uint64_t *)address = ~address;
    }
    for (unsigned bit = 40; bit < bits - 1; bit++)
        EXPECT(*(uint64_t *)(1ull << bit) == ~(1ull << bit));
    for (unsigned bit = bits - 1; bit < 64; bit++)
        EXPECT(read_faults(1ull << bit) && fault.si_code == SI_KERNEL && !fault.si_addr);
    EXPECT((uint64_t)mmap((void *)(1ull << (bits - 1)), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) >> (bits - 1) == 0);
    printf("ADDRESSES bits=%u\n", bits);
    return NULL;
}

#endif
