/* Calls and returns, nothing else: recursive Fibonacci. */
#include "workload.h"

__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls", "no-inline"))) static uint64_t recurse(unsigned n, uint64_t *calls)
{
    ++*calls;
    if (n < 2)
        return n;
    uint64_t left = recurse(n - 1, calls);
    return left + recurse(n - 2, calls);
}

/* The largest n that takes no more than this many calls (2 fib(n+1) - 1 of them), at least 1. */
uint64_t fib(uint64_t wanted_calls)
{
    uint64_t a = 1, b = 1, calls = 0; /* fib(n), fib(n+1) for n = 1 */
    unsigned n = 1;
    while (2 * (a + b) - 1 <= wanted_calls) {
        uint64_t next = a + b;
        a = b;
        b = next;
        n++;
    }
    uint64_t value = recurse(n, &calls);
    return mix(value, calls);
}
