/* A check is a function that returns NULL, or what is wrong. */
#ifndef SELFCHECK_H
#define SELFCHECK_H

#include <stddef.h>
#include <stdint.h>

#define CHECK_TEXT2(line) #line
#define CHECK_TEXT(line) CHECK_TEXT2(line)
/* Leave the check with the condition that does not hold. */
#define EXPECT(condition)                                                          \
    do {                                                                           \
        if (!(condition))                                                          \
            return #condition " (" __FILE__ ":" CHECK_TEXT(__LINE__) ")";          \
    } while (0)

const char *check_mutex(void);
const char *check_condvar(void);
const char *check_atomics(void);
const char *check_thread_float(void);
const char *check_segv(void);
const char *check_sigaltstack(void);
const char *check_divide(void);
const char *check_illegal(void);
const char *check_single_step(void);
const char *check_fork_wait(void);
const char *check_pipes(void);
const char *check_cow(void);
const char *check_mprotect(void);
const char *check_shared_memory(void);
const char *check_sse(void);
const char *check_x87(void);
const char *check_float_text(void);
const char *check_float_traps(void);
const char *check_code_rewrite(void);
const char *check_code_cross_thread(void);
const char *check_strings(void);
const char *check_integer(void);
const char *check_clocks(void);
const char *check_timers(void);
const char *check_ptrace(void);
const char *check_watchpoint(void);
const char *check_data_segments(void);
const char *check_addresses(void);
const char *check_code_16(void);
const char *check_code_32(void);
const char *check_code_64(void);
const char *check_int80(void);
const char *check_vdso(void);
const char *check_thread_area(void);
const char *check_legacy(void);
const char *check_keys(void);

#endif
