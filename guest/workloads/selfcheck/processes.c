/* Processes and memory: fork, wait, pipes, copy on write, protection, shared mappings. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 64u

const char *check_fork_wait(void)
{
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t child = fork();
        EXPECT(child >= 0);
        if (!child) {
            if (i % 3 == 2)
                raise(SIGKILL);
            _exit(i);
        }
        EXPECT(waitpid(child, &status, 0) == child);
        if (i % 3 == 2)
            EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
    return NULL;
}

/* A child sends a stream longer than the pipe; every byte must arrive in order. */
const char *check_pipes(void)
{
    enum { BYTES = 300000 };
    int ends[2], status;
    EXPECT(pipe(ends) == 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        unsigned char block[777];
        close(ends[0]);
        for (uint32_t sent = 0; sent < BYTES;) {
            size_t now = BYTES - sent < sizeof block ? BYTES - sent : sizeof block;
            for (size_t i = 0; i < now; i++)
                block[i] = (unsigned char)((sent + i) * 31 >> 3);
            for (size_t at = 0; at < now;) {
                ssize_t n = write(ends[1], block + at, now - at);
                if (n <= 0)
                    _exit(1);
                at += (size_t)n;
            }
            sent += (uint32_t)now;
        }
        _exit(0);
    }
    close(ends[1]);
    unsigned char block[4000];
    uint32_t got = 0;
    for (ssize_t n; (n = read(ends[0], block, sizeof block)) > 0; got += (uint32_t)n)
        for (ssize_t i = 0; i < n; i++)
            EXPECT(block[i] == (unsigned char)((got + (uint32_t)i) * 31 >> 3));
    EXPECT(got == BYTES);
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    return NULL;
}

const char *check_cow(void)
{
    unsigned char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED);
    for (unsigned i = 0; i < PAGES; i++)
        memset(memory + i * PAGE, (int)i, PAGE);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        for (unsigned i = 0; i < PAGES; i += 2)
            memory[i * PAGE + i] = 0xee;
        for (unsigned i = 0; i < PAGES; i++)
            if (memory[i * PAGE + i] != (i % 2 ? i : 0xee) || memory[i * PAGE + PAGE - 1] != i)
                _exit(1);
        _exit(0);
    }
    int status;
    for (unsigned i = 1; i < PAGES; i += 2)
        memory[i * PAGE + 1] = 0xdd;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    for (unsigned i = 0; i < PAGES; i++) {
        EXPECT(memory[i * PAGE + 1] == (i % 2 ? 0xdd : i));
        EXPECT(memory[i * PAGE + 2] == i);
    }
    return NULL;
}

static sigjmp_buf back;
static void jump(int signal) { siglongjmp(back, signal); }

/* A stale translation would let the access through, or refuse it. */
const char *check_mprotect(void)
{
    volatile unsigned char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile unsigned faults = 0;
    EXPECT(memory != MAP_FAILED && signal(SIGSEGV, jump) != SIG_ERR);
    for (unsigned i = 0; i < PAGES; i++)
        memory[i * PAGE] = (unsigned char)i;
    for (volatile unsigned i = 0; i < PAGES; i++) {
        EXPECT(mprotect((void *)(memory + i * PAGE), PAGE, PROT_READ) == 0);
        if (sigsetjmp(back, 1))
            faults++;
        else
            memory[i * PAGE] = 0xff;
        EXPECT(memory[i * PAGE] == i);
        EXPECT(mprotect((void *)(memory + i * PAGE), PAGE, PROT_READ | PROT_WRITE) == 0);
        memory[i * PAGE] = 0xff;
        EXPECT(memory[i * PAGE] == 0xff);
    }
    EXPECT(faults == PAGES);
    /* Another page at the same address. */
    EXPECT(mmap((void *)memory, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
    EXPECT(memory[0] == 0 && memory[PAGE] == 0xff);
    return NULL;
}

/* One memory at two addresses and in two processes. */
const char *check_shared_memory(void)
{
    int file = memfd_create("selfcheck", 0), status;
    EXPECT(file >= 0 && ftruncate(file, 2 * PAGE) == 0);
    volatile uint32_t *one = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    volatile uint32_t *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT(one != MAP_FAILED && two != MAP_FAILED && one != two);
    for (uint32_t i = 0; i < 2 * PAGE / 4; i++) {
        one[i] = i * 3;
        EXPECT(two[i] == i * 3);
    }
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        for (uint32_t i = 0; i < 2 * PAGE / 4; i++)
            two[i]++;
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    for (uint32_t i = 0; i < 2 * PAGE / 4; i++)
        EXPECT(one[i] == i * 3 + 1);
    return NULL;
}
