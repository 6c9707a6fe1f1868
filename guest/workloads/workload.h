/* What a workload is: a function of its size alone, whose checksum is the same on every correct machine. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

struct workload {
    const char *name;
    const char *what;
    uint64_t ops;                          /* operations at scale 100 */
    uint64_t (*run)(uint64_t ops);         /* returns the checksum; ends the process on an error */
};

uint64_t intmix(uint64_t rounds);
uint64_t sha256_stream(uint64_t kib);
uint64_t indirect(uint64_t dispatches);
uint64_t fib(uint64_t calls);
uint64_t fpmix(uint64_t rounds);
uint64_t tlbchase(uint64_t steps);
uint64_t repmovs(uint64_t kib);
uint64_t repmovs_alias(uint64_t kib);
uint64_t copy64(uint64_t kib);
uint64_t copy64_alias(uint64_t kib);
uint64_t copysse(uint64_t kib);
uint64_t copysse_alias(uint64_t kib);
uint64_t pagefault(uint64_t pages);
uint64_t syscall_getppid(uint64_t calls);
uint64_t forkexec(uint64_t processes);
uint64_t ring2(uint64_t hops);
uint64_t ring8(uint64_t hops);
uint64_t clock_reads(uint64_t reads);
uint64_t rdtsc_reads(uint64_t reads);
uint64_t sleep_1ms(uint64_t sleeps);

int selfcheck(void);                       /* 0, or the exit status of the process */

/* Print "workload: MESSAGE: errno" and end with status 1. */
_Noreturn void fail(const char *message);

/* Memory of whole pages, zero, already faulted in. */
void *pages(size_t bytes);

/* One step of a multiplicative mix; good enough to make a checksum depend on order. */
static inline uint64_t mix(uint64_t state, uint64_t value)
{
    state ^= value;
    state *= 0x9e3779b97f4a7c15u;
    return state ^ (state >> 29);
}

/* xorshift64: inputs that are the same everywhere. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

#endif
