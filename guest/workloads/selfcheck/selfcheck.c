/* Runs every check in a process of its own, so that one that dies is named and the next one still runs. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include "../workload.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIME_LIMIT_S 120

static const struct { const char *name; const char *(*run)(void); } checks[] = {
    { "integer", check_integer },
    { "strings", check_strings },
    { "sse", check_sse },
    { "x87", check_x87 },
    { "float_text", check_float_text },
    { "float_traps", check_float_traps },
    { "segv", check_segv },
    { "sigaltstack", check_sigaltstack },
    { "divide", check_divide },
    { "illegal", check_illegal },
    { "single_step", check_single_step },
    { "fork_wait", check_fork_wait },
    { "pipes", check_pipes },
    { "cow", check_cow },
    { "mprotect", check_mprotect },
    { "shared_memory", check_shared_memory },
    { "code_rewrite", check_code_rewrite },
    { "code_cross_thread", check_code_cross_thread },
    { "mutex", check_mutex },
    { "condvar", check_condvar },
    { "atomics", check_atomics },
    { "thread_float", check_thread_float },
    { "clocks", check_clocks },
    { "timers", check_timers },
    { "ptrace", check_ptrace },
    { "watchpoint", check_watchpoint },
    { "data_segments", check_data_segments },
#ifdef __x86_64__
    { "code_32", check_code_32 },
    { "keys", check_keys },
    { "addresses", check_addresses },
#else
    { "code_16", check_code_16 },
    { "code_64", check_code_64 },
    { "int80", check_int80 },
    { "vdso", check_vdso },
    { "thread_area", check_thread_area },
    { "legacy", check_legacy },
#endif
};
#define CHECKS (sizeof checks / sizeof checks[0])

int selfcheck(void)
{
    unsigned failed = 0;
    for (size_t i = 0; i < CHECKS; i++) {
        int status;
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (!child) {
            alarm(TIME_LIMIT_S);
            const char *wrong = checks[i].run();
            if (wrong)
                printf("SELFCHECK failed check=%s: expected %s\n", checks[i].name, wrong);
            _exit(wrong ? 1 : 0);
        }
        if (waitpid(child, &status, 0) != child)
            fail("waitpid");
        if (WIFSIGNALED(status))
            printf("SELFCHECK failed check=%s: died of signal %d (%s)\n", checks[i].name, WTERMSIG(status), strsignal(WTERMSIG(status)));
        else if (!WEXITSTATUS(status))
            printf("CHECK %s ok\n", checks[i].name);
        failed += status != 0;
    }
    if (failed)
        printf("SELFCHECK failed checks=%u of %zu\n", failed, CHECKS);
    else
        printf("SELFCHECK ok checks=%zu\n", CHECKS);
    return failed ? 1 : 0;
}
