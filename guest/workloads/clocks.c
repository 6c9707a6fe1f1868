/* Reading clocks and sleeping. The checksum counts the readings that did not go backwards: all of them. */
#define _GNU_SOURCE
#include "workload.h"

#include <time.h>
#include <x86intrin.h>

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_reads(uint64_t reads)
{
    uint64_t good = 0, last = monotonic_ns();
    for (uint64_t i = 0; i < reads; i++) {
        uint64_t now = monotonic_ns();
        good += now >= last;
        last = now;
    }
    return good;
}

uint64_t rdtsc_reads(uint64_t reads)
{
    uint64_t good = 0, last = __rdtsc();
    for (uint64_t i = 0; i < reads; i++) {
        uint64_t now = __rdtsc();
        good += now >= last;
        last = now;
    }
    return good;
}

uint64_t sleep_1ms(uint64_t sleeps)
{
    uint64_t good = 0;
    for (uint64_t i = 0; i < sleeps; i++) {
        struct timespec length = { 0, 1000000 };
        uint64_t start = monotonic_ns();
        nanosleep(&length, NULL);
        good += monotonic_ns() - start >= 1000000;
    }
    return good;
}
