/* Copies of 8 MiB: string instruction, 64-bit moves, 128-bit moves. The "alias" variants put the buffers 4096 pages
 * apart, where source and destination share an entry of any direct-mapped table of up to 4096 pages; the others add 37 pages. */
#ifdef __x86_64__
#include "workload.h"

#include <emmintrin.h>
#include <sys/mman.h>

#define BUFFER (8u << 20)
#define ALIAS (4096u * 4096u)
#define PAGE 4096u

enum method { REP_MOVSQ, MOVE_64, MOVE_128 };

static void copy_once(enum method how, uint64_t *to, const uint64_t *from, size_t bytes)
{
    size_t words = bytes / 8;
    switch (how) {
    case REP_MOVSQ:
        __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
        break;
    case MOVE_64:
        for (size_t i = 0; i < words; i += 4) {
            uint64_t a, b;
            __asm__ volatile("mov (%[s]), %[a]\n\tmov 8(%[s]), %[b]\n\tmov %[a], (%[d])\n\tmov %[b], 8(%[d])\n\t"
                             "mov 16(%[s]), %[a]\n\tmov 24(%[s]), %[b]\n\tmov %[a], 16(%[d])\n\tmov %[b], 24(%[d])"
                             : [a] "=&r"(a), [b] "=&r"(b) : [s] "r"(from + i), [d] "r"(to + i) : "memory");
        }
        break;
    case MOVE_128:
        for (size_t i = 0; i < words; i += 4) {
            __m128i a = _mm_load_si128((const __m128i *)(from + i));
            __m128i b = _mm_load_si128((const __m128i *)(from + i + 2));
            _mm_store_si128((__m128i *)(to + i), a);
            _mm_store_si128((__m128i *)(to + i + 2), b);
        }
        break;
    }
    __asm__ volatile("" : : "r"(to) : "memory");
}

static uint64_t copy_all(enum method how, uint64_t kib, size_t distance)
{
    size_t area = distance + BUFFER, left = (size_t)kib * 1024;
    char *memory = pages(area);
    uint64_t *from = (uint64_t *)memory, *to = (uint64_t *)(memory + distance), sum = kib;
    for (size_t i = 0; i < BUFFER / 8; i += 8)
        from[i] = i * 0x9e3779b97f4a7c15u;
    for (uint64_t round = 0; left; round++) {
        size_t now = left < BUFFER ? left : BUFFER;
        from[round % (BUFFER / 8)] = round;
        copy_once(how, to, from, now);
        sum = mix(sum, to[round % (now / 8)]);
        left -= now;
    }
    for (size_t i = 0; i < BUFFER / 8; i += PAGE / 8)
        sum = mix(sum, to[i]);
    munmap(memory, area);
    return sum;
}

uint64_t repmovs(uint64_t kib) { return copy_all(REP_MOVSQ, kib, ALIAS + 37 * PAGE); }
uint64_t repmovs_alias(uint64_t kib) { return copy_all(REP_MOVSQ, kib, ALIAS); }
uint64_t copy64(uint64_t kib) { return copy_all(MOVE_64, kib, ALIAS + 37 * PAGE); }
uint64_t copy64_alias(uint64_t kib) { return copy_all(MOVE_64, kib, ALIAS); }
uint64_t copysse(uint64_t kib) { return copy_all(MOVE_128, kib, ALIAS + 37 * PAGE); }
uint64_t copysse_alias(uint64_t kib) { return copy_all(MOVE_128, kib, ALIAS); }
#endif
