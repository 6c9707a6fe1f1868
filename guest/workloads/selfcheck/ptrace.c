/* What a debugger sees of another process: single steps, and the debug registers. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEBUG(n) offsetof(struct user, u_debugreg[n])
#ifdef __x86_64__
#define IP(regs) ((regs).rip)
#else
#define IP(regs) ((uintptr_t)(regs).eip)
#endif

static volatile uint32_t watched[4];

/* Four instructions, and a loop of two with five rounds. */
#define MARKED                                                                     \
    "nop\n\tmov %%eax, %%eax\n\tlea 1(%%edx), %%edx\n\tmov $5, %%ecx\n\t"          \
    "1: dec %%ecx\n\tjnz 1b\n\t"
#define MARKED_STEPS (4 + 5 * 2)

static void traced(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(1);
    __asm__ volatile("int3" : : : "memory");
    __asm__ volatile(MARKED "int3" : : : "eax", "ecx", "edx", "cc", "memory");
    _exit(42);
}

static void watched_child(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(1);
    __asm__ volatile("int3" : : : "memory");
    watched[1] = 7;
    watched[2] = watched[1] + 1;
    __asm__ volatile("int3" : : : "memory");
    _exit(42);
}

static const char *stopped_by(pid_t child, int signal)
{
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFSTOPPED(status) && WSTOPSIG(status) == signal);
    return NULL;
}

#define TRAPS(child)                                          \
    do {                                                      \
        const char *wrong_ = stopped_by(child, SIGTRAP);      \
        if (wrong_)                                           \
            return wrong_;                                    \
    } while (0)

const char *check_ptrace(void)
{
    struct user_regs_struct regs;
    int status;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child)
        traced();
    TRAPS(child); /* the first int3 */

    unsigned steps = 0;
    siginfo_t info;
    for (;; steps++) {
        EXPECT(steps < 100);
        EXPECT(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
        TRAPS(child);
        EXPECT(ptrace(PTRACE_GETREGS, child, NULL, &regs) == 0);
        errno = 0;
        long code = ptrace(PTRACE_PEEKTEXT, child, (void *)IP(regs), NULL);
        EXPECT(errno == 0);
        EXPECT(ptrace(PTRACE_GETSIGINFO, child, NULL, &info) == 0 && info.si_code == TRAP_TRACE);
        if ((code & 0xff) == 0xcc)
            break;
    }
    EXPECT(steps + 1 == MARKED_STEPS);

    EXPECT(ptrace(PTRACE_CONT, child, NULL, NULL) == 0); /* the second int3 */
    TRAPS(child);
    EXPECT(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    return NULL;
}

/* DR0 traps writes to four bytes, after the write. */
const char *check_watchpoint(void)
{
    siginfo_t info;
    int status;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child)
        watched_child();
    TRAPS(child);
    EXPECT(ptrace(PTRACE_POKEUSER, child, (void *)DEBUG(0), (void *)(uintptr_t)&watched[1]) == 0);
    EXPECT(ptrace(PTRACE_POKEUSER, child, (void *)DEBUG(7), (void *)(uintptr_t)0xd0101) == 0);
    EXPECT(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
    TRAPS(child);
    EXPECT(ptrace(PTRACE_GETSIGINFO, child, NULL, &info) == 0 && info.si_code == TRAP_HWBKPT);
    errno = 0;
    EXPECT((ptrace(PTRACE_PEEKUSER, child, (void *)DEBUG(6), NULL) & 0xf) == 1 && errno == 0);
    EXPECT((uint32_t)ptrace(PTRACE_PEEKDATA, child, (void *)(uintptr_t)&watched[1], NULL) == 7);
    EXPECT((uint32_t)ptrace(PTRACE_PEEKDATA, child, (void *)(uintptr_t)&watched[2], NULL) == 0);
    EXPECT(ptrace(PTRACE_CONT, child, NULL, NULL) == 0); /* int3: the read of watched[1] did not trap */
    TRAPS(child);
    EXPECT((uint32_t)ptrace(PTRACE_PEEKDATA, child, (void *)(uintptr_t)&watched[2], NULL) == 8);
    EXPECT(ptrace(PTRACE_POKEUSER, child, (void *)DEBUG(7), NULL) == 0);
    EXPECT(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    return NULL;
}
