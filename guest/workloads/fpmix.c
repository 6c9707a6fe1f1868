/* Double precision on SSE2, scalar and packed: gravitating bodies, a matrix product, roots and divisions. Every
 * operation used is correctly rounded by IEEE 754, so the checksum is exact. */
#include "workload.h"

#include <math.h>
#include <string.h>

#define BODIES 8
#define DIM 16

struct body { double x[3], v[3], mass; };

static uint64_t bits(double value)
{
    uint64_t raw;
    memcpy(&raw, &value, sizeof raw);
    return raw;
}

static void step(struct body *bodies, double dt)
{
    for (int i = 0; i < BODIES; i++)
        for (int j = i + 1; j < BODIES; j++) {
            double d[3], square = 0.015625;
            for (int k = 0; k < 3; k++) {
                d[k] = bodies[i].x[k] - bodies[j].x[k];
                square += d[k] * d[k];
            }
            double pull = dt / (square * __builtin_sqrt(square));
            for (int k = 0; k < 3; k++) {
                bodies[i].v[k] -= d[k] * bodies[j].mass * pull;
                bodies[j].v[k] += d[k] * bodies[i].mass * pull;
            }
        }
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++)
            bodies[i].x[k] += dt * bodies[i].v[k];
}

static double product(const double a[DIM][DIM], const double b[DIM][DIM], double out[DIM][DIM])
{
    double trace = 0;
    for (int i = 0; i < DIM; i++) {
        for (int j = 0; j < DIM; j += 2) {
            typedef double pair __attribute__((vector_size(16)));
            pair sum = { 0, 0 };
            for (int k = 0; k < DIM; k++) {
                pair right, left = { a[i][k], a[i][k] };
                memcpy(&right, &b[k][j], sizeof right);
                sum += left * right;
            }
            memcpy(&out[i][j], &sum, sizeof sum);
        }
        trace += out[i][i];
    }
    return trace;
}

uint64_t fpmix(uint64_t rounds)
{
    struct body bodies[BODIES];
    static double a[DIM][DIM], b[DIM][DIM], c[DIM][DIM];
    uint64_t seed = 0x666c6f6174u, sum = 0;
    for (int i = 0; i < BODIES; i++) {
        for (int k = 0; k < 3; k++) {
            bodies[i].x[k] = (double)(int64_t)(next_random(&seed) >> 40) * 0x1p-20;
            bodies[i].v[k] = 0;
        }
        bodies[i].mass = 1 + i * 0.25;
    }
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            a[i][j] = (double)(next_random(&seed) >> 50) * 0x1p-18;
            b[i][j] = (double)(next_random(&seed) >> 50) * 0x1p-18;
        }
    for (uint64_t round = 0; round < rounds; round++) {
        for (int i = 0; i < 8; i++)
            step(bodies, 0.0009765625);
        double trace = product(a, b, c);
        a[round % DIM][(round / DIM) % DIM] = 0.5 / (1 + __builtin_sqrt(trace * trace + (double)(round & 7)));
        sum = mix(sum, bits(trace));
        sum = mix(sum, bits(bodies[round % BODIES].x[0]));
    }
    return sum;
}
