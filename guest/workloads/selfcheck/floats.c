/* Floating point: SSE2, x87, text conversions, status flags and traps. Expected values follow from IEEE 754. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include <emmintrin.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bits(double value)
{
    uint64_t raw;
    memcpy(&raw, &value, sizeof raw);
    return raw;
}

const char *check_sse(void)
{
    volatile double one = 1, three = 3, tenth = 0.1, two = 2, huge = 1e308, tiny = 0x1p-1074, zero = 0;
    EXPECT(bits(one / three) == 0x3fd5555555555555u);
    EXPECT(bits(tenth + tenth + tenth) == 0x3fd3333333333334u);
    EXPECT(bits(__builtin_sqrt(two)) == 0x3ff6a09e667f3bcdu);
    EXPECT(bits(huge * two * two) == 0x7ff0000000000000u);
    EXPECT(bits(tiny / two) == 0 && bits(tiny * three) == 3);
    EXPECT(bits(-zero) == 0x8000000000000000u);
    volatile double nan = zero / zero;
    EXPECT(nan != nan && !(nan < one) && !(nan >= one));

    volatile float f = 16777217.0f;
    EXPECT(f == 16777216.0f);
    EXPECT((int32_t)(float)-2.75 == -2 && _mm_cvtsd_si32(_mm_set_sd(2.5)) == 2 && _mm_cvtsd_si32(_mm_set_sd(3.5)) == 4);
#ifdef __x86_64__
    EXPECT(_mm_cvttsd_si64(_mm_set_sd(huge)) == INT64_MIN);
#endif
    EXPECT(_mm_cvttsd_si32(_mm_set_sd(huge)) == INT32_MIN);

    __m128i a = _mm_set_epi16(-32768, 32767, 1, -1, 100, -100, 7, 8), b = _mm_set_epi16(-1, 1, 2, -2, 30000, -30000, 7, 9);
    int16_t lane[8];
    _mm_storeu_si128((__m128i *)lane, _mm_adds_epi16(a, b));
    EXPECT(lane[7] == -32768 && lane[6] == 32767 && lane[5] == 3 && lane[3] == 30100 && lane[0] == 17);
    EXPECT(_mm_movemask_epi8(_mm_cmpeq_epi16(a, b)) == 0xc);
    int32_t sums[4];
    _mm_storeu_si128((__m128i *)sums, _mm_madd_epi16(a, b));
    EXPECT(sums[3] == 32768 + 32767 && sums[0] == 49 + 72);
    int32_t shuffled[4];
    _mm_storeu_si128((__m128i *)shuffled, _mm_shuffle_epi32(_mm_set_epi32(3, 2, 1, 0), 0x1b));
    EXPECT(shuffled[0] == 3 && shuffled[3] == 0);

    fesetround(FE_UPWARD);
    volatile double up = one / three;
    fesetround(FE_TOWARDZERO);
    volatile double down = one / three;
    fesetround(FE_TONEAREST);
    EXPECT(bits(up) == 0x3fd5555555555556u && bits(down) == 0x3fd5555555555555u);
    return NULL;
}

static uint64_t mantissa(long double value)
{
    uint64_t raw[2] = { 0, 0 };
    memcpy(raw, &value, 10);
    return raw[0];
}

const char *check_x87(void)
{
    volatile long double one = 1, three = 3, two = 2;
    EXPECT(mantissa(one / three) == 0xaaaaaaaaaaaaaaabu);
    long double root, pi, part, whole;
    __asm__("fsqrt" : "=t"(root) : "0"(two));
    EXPECT(mantissa(root) == 0xb504f333f9de6484u);
    __asm__("fldpi" : "=t"(pi));
    EXPECT(mantissa(pi) == 0xc90fdaa22168c235u);
    __asm__("fprem" : "=t"(part) : "0"((long double)17.5), "u"((long double)5));
    EXPECT(part == 2.5L);
    __asm__("frndint" : "=t"(whole) : "0"((long double)-2.5));
    EXPECT(whole == -2.0L);
    __asm__("fscale" : "=t"(whole) : "0"(three), "u"((long double)10));
    EXPECT(whole == 3072.0L);
    int64_t integer;
    __asm__ volatile("fistpll %0" : "=m"(integer) : "t"((long double)9007199254740993.0L) : "st");
    EXPECT(integer == 9007199254740993);
    volatile uint64_t big = UINT64_MAX;
    EXPECT((long double)big == 18446744073709551615.0L && (uint64_t)(long double)big == UINT64_MAX);
    uint16_t below, equal; /* FCOM's answer is C0, C3 in the status word */
    __asm__ volatile("fld1\n\tfldz\n\tfcompp\n\tfnstsw %0" : "=a"(below) : : "st", "st(1)");
    __asm__ volatile("fldz\n\tfldz\n\tfcompp\n\tfnstsw %0" : "=a"(equal) : : "st", "st(1)");
    EXPECT((below & 0x4500) == 0x0100 && (equal & 0x4500) == 0x4000);
    uint16_t control = 0x027f, old; /* 53 bits of precision: the quotient's last 11 bits are zero */
    long double narrow;
    double divisor = 3;
    __asm__ volatile("fnstcw %0" : "=m"(old));
    EXPECT(old == 0x037f);
    __asm__ volatile("fldcw %1\n\tfld1\n\tfdivl %2\n\tfstpt %0\n\tfldcw %3"
                     : "=m"(narrow) : "m"(control), "m"(divisor), "m"(old) : "st");
    EXPECT(mantissa(narrow) == 0xaaaaaaaaaaaaa800u);
    return NULL;
}

const char *check_float_text(void)
{
    char text[128];
    snprintf(text, sizeof text, "%.17g %.3f %e %a %g", 0.1, 2.0 / 3, 123456.789, 1.0 / 3, 1e300 * 1e10);
    EXPECT(!strcmp(text, "0.10000000000000001 0.667 1.234568e+05 0x1.5555555555555p-2 inf"));
    snprintf(text, sizeof text, "%.20Lg %.0f", 1.0L / 3, 0x1p100);
    EXPECT(!strcmp(text, "0.33333333333333333334 1267650600228229401496703205376"));
    EXPECT(bits(strtod("0.1", NULL)) == 0x3fb999999999999au);
    EXPECT(bits(strtod("2.2250738585072011e-308", NULL)) == 0x000fffffffffffffu);
    EXPECT(bits(strtod("1.7976931348623157e308", NULL)) == 0x7fefffffffffffffu);
    EXPECT(bits(strtod("9007199254740993", NULL)) == bits(9007199254740992.0));
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 300; i++) { /* 17 digits name a double */
        double value, again;
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        memcpy(&value, &seed, sizeof value);
        if (value != value)
            continue;
        snprintf(text, sizeof text, "%.17g", value);
        again = strtod(text, NULL);
        EXPECT(bits(again) == bits(value));
    }
    return NULL;
}

static sigjmp_buf back;
static volatile int seen_code;
static void caught(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    seen_code = info->si_code;
    siglongjmp(back, 1);
}

/* Sticky flags, then unmasked exceptions: #XM from SSE at once, #MF from x87 at the next waiting instruction. */
const char *check_float_traps(void)
{
    volatile double one = 1, zero = 0, three = 3, result;
    volatile long double long_one = 1, long_zero = 0, long_result;
    feclearexcept(FE_ALL_EXCEPT);
    result = one / three;
    EXPECT(fetestexcept(FE_ALL_EXCEPT) == FE_INEXACT);
    result = one / zero;
    EXPECT(fetestexcept(FE_DIVBYZERO | FE_INVALID) == FE_DIVBYZERO);

    struct sigaction action = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO };
    EXPECT(sigaction(SIGFPE, &action, NULL) == 0);
    feclearexcept(FE_ALL_EXCEPT);
    if (!sigsetjmp(back, 1)) {
        feenableexcept(FE_DIVBYZERO);
        result = one / zero;
        seen_code = -1;
    }
    fedisableexcept(FE_ALL_EXCEPT);
    EXPECT(seen_code == FPE_FLTDIV);

    feclearexcept(FE_ALL_EXCEPT);
    if (!sigsetjmp(back, 1)) {
        feenableexcept(FE_INVALID);
        long_result = long_zero / long_zero;
        __asm__ volatile("fwait");
        seen_code = -1;
    }
    fedisableexcept(FE_ALL_EXCEPT);
    EXPECT(seen_code == FPE_FLTINV);
    (void)result, (void)long_one, (void)long_result;
    return NULL;
}
