/* The runner: workload [-s SCALE] NAME[,NAME...] | selfcheck | --list
 * For each name a line "BEGIN name", so that a host may time the serial console, and then exactly one line
 * "BENCH name=... ns=... checksum=... ops=...", where ns is by the clock of the machine that runs it. */
#define _GNU_SOURCE
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Sizes at scale 100: one to a few hundred million instructions, a second or two for an interpreter. */
static const struct workload table[] = {
    { "intmix", "lists, small matrices, a state machine, CRC", 700, intmix },
    { "sha256", "SHA-256 of a stream, KiB", 6144, sha256_stream },
    { "indirect", "threaded dispatch through a jump table", 30000000, indirect },
    { "fib", "recursive calls and returns", 29860703, fib },
    { "fpmix", "SSE2 double precision: bodies, matrices, roots", 6000, fpmix },
    { "tlbchase", "dependent loads over 64 MiB", 4000000, tlbchase },
#ifdef __x86_64__
    { "repmovs", "rep movsq, KiB", 131072, repmovs },
    { "repmovs_alias", "the same, buffers 4096 pages apart", 131072, repmovs_alias },
    { "copy64", "64-bit loads and stores, KiB", 131072, copy64 },
    { "copy64_alias", "the same, buffers 4096 pages apart", 131072, copy64_alias },
    { "copysse", "128-bit loads and stores, KiB", 131072, copysse },
    { "copysse_alias", "the same, buffers 4096 pages apart", 131072, copysse_alias },
#endif
    { "pagefault", "first touch of anonymous pages", 32768, pagefault },
    { "syscall", "getppid", 500000, syscall_getppid },
    { "forkexec", "fork, exec and wait", 250, forkexec },
    { "ring2", "a token through pipes, 2 processes, hops", 40000, ring2 },
    { "ring8", "a token through pipes, 8 processes, hops", 40000, ring8 },
    { "clock", "clock_gettime(CLOCK_MONOTONIC)", 2000000, clock_reads },
    { "rdtsc", "RDTSC", 5000000, rdtsc_reads },
    { "sleep", "nanosleep of 1 ms", 200, sleep_1ms },
};
#define WORKLOADS (sizeof table / sizeof table[0])

void fail(const char *message)
{
    fprintf(stderr, "workload: %s: %s\n", message, strerror(errno));
    exit(1);
}

void *pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    return memory;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t))
        fail("clock_gettime");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const struct workload *find(const char *name)
{
    for (size_t i = 0; i < WORKLOADS; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

static int list(void)
{
    for (size_t i = 0; i < WORKLOADS; i++)
        printf("%-14s %-50s %10llu\n", table[i].name, table[i].what, (unsigned long long)table[i].ops);
    printf("%-14s %s\n", "selfcheck", "threads, signals, processes, memory, floating point: checks its own results");
    return 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: workload [-s SCALE] NAME[,NAME...] | --list     (SCALE in percent, 100 by default)\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t scale = 100;
    int at = 1;

    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list();
    if (argc == 3 && !strcmp(argv[1], "--exit")) /* the other half of forkexec */
        _exit(atoi(argv[2]));
    if (argc >= 3 && !strcmp(argv[1], "-s")) {
        char *end;
        scale = strtoull(argv[2], &end, 10);
        if (*end || !scale || scale > 100000)
            return usage();
        at = 3;
    }
    if (argc != at + 1)
        return usage();

    setvbuf(stdout, NULL, _IONBF, 0); /* forks must not inherit output, and a host reads the time of each line */
    for (char *rest = argv[at], *name; (name = strsep(&rest, ",")) != NULL;) {
        if (!strcmp(name, "selfcheck")) {
            int status = selfcheck();
            if (status)
                return status;
            continue;
        }
        const struct workload *w = find(name);
        if (!w) {
            fprintf(stderr, "workload: '%s' is none of the names that --list shows\n", name);
            return 2;
        }
        uint64_t ops = (w->ops * scale + 99) / 100;
        char line[160];
        int length = snprintf(line, sizeof line, "BEGIN %s\n", name);
        if (write(1, line, (size_t)length) != length)
            return 1;
        uint64_t start = now_ns();
        uint64_t checksum = w->run(ops);
        uint64_t ns = now_ns() - start;
        length = snprintf(line, sizeof line, "BENCH name=%s ns=%llu checksum=%016llx ops=%llu\n", name,
                          (unsigned long long)ns, (unsigned long long)checksum, (unsigned long long)ops);
        if (write(1, line, (size_t)length) != length)
            return 1;
    }
    return 0;
}
