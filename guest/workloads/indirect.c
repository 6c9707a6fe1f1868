/* A byte-code interpreter with one indirect jump a step: what dispatch through a table costs. */
#include "workload.h"

#define PROGRAM 4096

uint64_t indirect(uint64_t dispatches)
{
    static const void *const labels[8] = { &&add, &&sub, &&xor, &&rol, &&mul, &&not, &&inc, &&swap };
    static uint8_t program[PROGRAM];
    uint64_t seed = 0x676c617373766973u, a = 1, b = 2, left = dispatches;
    unsigned at = 0;
    for (int i = 0; i < PROGRAM; i++)
        program[i] = (uint8_t)(next_random(&seed) >> 40 & 7);

#define NEXT                                            \
    do {                                                \
        if (!left--)                                    \
            return mix(a, b);                           \
        at = (at + 1) % PROGRAM;                        \
        goto *labels[program[at]];                      \
    } while (0)

    NEXT;
add:  a += b; NEXT;
sub:  b -= a; NEXT;
xor:  a ^= b; NEXT;
rol:  a = a << 7 | a >> 57; NEXT;
mul:  b *= 0x2545f4914f6cdd1du; NEXT;
not:  a = ~a; NEXT;
inc:  b += 3; NEXT;
swap: { uint64_t t = a; a = b; b = t; } NEXT;
}
