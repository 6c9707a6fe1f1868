/* Protection keys of user pages, where the processor and the kernel have them. */
#define _GNU_SOURCE
#include "selfcheck.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static volatile int code, key_of_fault, hits;
static sigjmp_buf back;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    hits++;
    code = info->si_code;
    key_of_fault = (int)info->si_pkey;
    siglongjmp(back, 1);
}

static void on_signal(int signal)
{
    (void)signal;
    hits++;
}

static int has_flag(const char *flag)
{
    static char text[16384];
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file)
        return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    char *end = strstr(text, "\nbugs");
    if (end)
        *end = 0;
    for (char *at = text; (at = strstr(at, flag)); at++)
        if (at[-1] == ' ' && (at[strlen(flag)] == ' ' || !at[strlen(flag)]))
            return 1;
    return 0;
}

const char *check_keys(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c & 1u << 4)) /* OSPKE */
        return NULL;
    EXPECT(has_flag("pku") && has_flag("ospke"));
    volatile char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(page != MAP_FAILED);
    page[5] = 1;
    int key = pkey_alloc(0, 0);
    EXPECT(key > 0 && pkey_mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE, key) == 0);
    page[5] = 2;

    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0);
    EXPECT(pkey_set(key, PKEY_DISABLE_WRITE) == 0);
    if (!sigsetjmp(back, 1))
        page[5] = 3;
    /* The kernel gave the handler an initial PKRU, and the jump kept it. */
    EXPECT(pkey_set(key, PKEY_DISABLE_WRITE) == 0);
    EXPECT(hits == 1 && code == SEGV_PKUERR && key_of_fault == key && page[5] == 2);
    EXPECT(pkey_set(key, PKEY_DISABLE_ACCESS) == 0);
    if (!sigsetjmp(back, 1))
        (void)page[5];
    EXPECT(hits == 2 && code == SEGV_PKUERR && key_of_fault == key);
    EXPECT(pkey_set(key, 0) == 0);
    page[5] = 4;

    /* A return from a signal and a switch of tasks bring it back. */
    EXPECT(signal(SIGUSR1, on_signal) != SIG_ERR);
    EXPECT(pkey_set(key, PKEY_DISABLE_WRITE) == 0);
    raise(SIGUSR1);
    EXPECT(hits == 3 && pkey_get(key) == PKEY_DISABLE_WRITE);
    int status;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        int inherited = pkey_get(key);
        pkey_set(key, 0);
        page[5] = 6;
        _exit(inherited == PKEY_DISABLE_WRITE ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(pkey_get(key) == PKEY_DISABLE_WRITE && page[5] == 4);
    EXPECT(pkey_free(key) == 0);
    puts("protection keys: there and checked");
    fflush(stdout);
    return NULL;
}
#endif
