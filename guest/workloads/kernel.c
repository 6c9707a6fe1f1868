/* What the kernel does for a process: page faults, system calls, processes, pipes. */
#define _GNU_SOURCE
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define CHUNK_PAGES 4096u

uint64_t pagefault(uint64_t count)
{
    uint64_t sum = 0;
    while (count) {
        uint64_t now = count < CHUNK_PAGES ? count : CHUNK_PAGES;
        volatile char *memory = mmap(NULL, now * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            fail("mmap");
        madvise((void *)memory, now * PAGE, MADV_NOHUGEPAGE); /* one fault a page, whatever the machine's default */
        for (uint64_t i = 0; i < now; i++) {
            sum = mix(sum, (uint64_t)memory[i * PAGE] + i);
            memory[i * PAGE] = 1;
        }
        munmap((void *)memory, now * PAGE);
        count -= now;
    }
    return sum;
}

uint64_t syscall_getppid(uint64_t calls)
{
    long parent = syscall(SYS_getppid);
    uint64_t same = 0;
    for (uint64_t i = 0; i < calls; i++)
        same += syscall(SYS_getppid) == parent;
    return same;
}

uint64_t forkexec(uint64_t processes)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < processes; i++) {
        char code[8];
        int status;
        snprintf(code, sizeof code, "%d", (int)(i % 100));
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (!child) {
            execl("/proc/self/exe", "workload", "--exit", code, (char *)NULL);
            _exit(127);
        }
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
            fail("waitpid");
        sum = mix(sum, (uint64_t)WEXITSTATUS(status));
    }
    return sum;
}

static void pass(int from, int to, uint64_t *sum)
{
    uint64_t token;
    if (read(from, &token, sizeof token) != sizeof token)
        fail("read from the ring");
    token++;
    *sum = mix(*sum, token);
    if (write(to, &token, sizeof token) != sizeof token)
        fail("write to the ring");
}

/* Process k reads pipe k and writes pipe k+1; one token goes round, counting its hops. */
static uint64_t ring(uint64_t processes, uint64_t hops)
{
    int pipes[8][2];
    uint64_t rounds = (hops + processes - 1) / processes, sum = 0, token = 0;
    for (uint64_t i = 0; i < processes; i++)
        if (pipe(pipes[i]))
            fail("pipe");
    for (uint64_t i = 1; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (!child) {
            for (uint64_t round = 0; round < rounds; round++)
                pass(pipes[i][0], pipes[(i + 1) % processes][1], &sum);
            _exit(0);
        }
    }
    if (write(pipes[0][1], &token, sizeof token) != sizeof token)
        fail("write to the ring");
    for (uint64_t round = 0; round < rounds; round++)
        pass(pipes[0][0], pipes[1 % processes][1], &sum);
    if (read(pipes[0][0], &token, sizeof token) != sizeof token)
        fail("read from the ring");
    for (uint64_t i = 1; i < processes; i++) {
        int status;
        if (wait(&status) < 0 || status)
            fail("a process of the ring");
    }
    for (uint64_t i = 0; i < processes; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    return mix(sum, token);
}

uint64_t ring2(uint64_t hops) { return ring(2, hops); }
uint64_t ring8(uint64_t hops) { return ring(8, hops); }
