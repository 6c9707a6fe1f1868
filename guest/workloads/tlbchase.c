/* Dependent loads, one after the other, over 64 MiB in an order that no prefetcher and no TLB likes. */
#include "workload.h"

#include <sys/mman.h>

#define BYTES (64u << 20)
#define NODES 65536u /* a power of two: four nodes a page */

/* Spread over the lines of a page, so that not all nodes fall into the same cache sets. */
static size_t place(uint32_t index)
{
    return (size_t)index * (BYTES / NODES) + index % 16 * 64;
}

uint64_t tlbchase(uint64_t steps)
{
    char *memory = pages(BYTES);
    uint64_t sum = 0;
    uint32_t index = 0;
    /* A full-period congruential sequence visits every node once a cycle. */
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t next = (index * 20077u + 12345u) % NODES;
        *(void **)(memory + place(index)) = memory + place(next);
        index = next;
    }
    const char *at = memory;
    for (uint64_t i = 0; i < steps; i++)
        at = *(const char *const *)at;
    sum = mix(steps, (uint64_t)(at - memory));
    munmap(memory, BYTES);
    return sum;
}
