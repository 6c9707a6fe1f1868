/* Code that changes, string instructions, integer arithmetic. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

static unsigned char *code_page(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

static void put_return(unsigned char *at, uint32_t value)
{
    at[0] = 0xb8; /* mov $value, %eax; ret */
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

const char *check_code_rewrite(void)
{
    unsigned char *code = code_page();
    EXPECT(code);
    uint32_t (*call)(void) = (uint32_t (*)(void))(uintptr_t)code;
    for (uint32_t i = 0; i < 2000; i++) {
        put_return(code, i * 77);
        EXPECT(call() == i * 77);
    }
    /* An instruction that changes the one right behind it, in the same straight line:
     * movb $0x22, 1(%rip over itself) ; mov $0x11, %al -> becomes mov $0x22, %al ; movzbl %al, %eax ; ret */
    static const unsigned char self[] = { 0xc6, 0x05, 0x01, 0, 0, 0, 0x22, 0xb0, 0x11, 0x0f, 0xb6, 0xc0, 0xc3 };
    memcpy(code + 64, self, sizeof self);
#ifndef __x86_64__
    uint32_t immediate = (uint32_t)(uintptr_t)(code + 64 + 8); /* the address, where 64-bit code has a distance */
    memcpy(code + 64 + 2, &immediate, sizeof immediate);
#endif
    uint32_t (*modify)(void) = (uint32_t (*)(void))(uintptr_t)(code + 64);
    EXPECT(modify() == 0x22);
    code[64 + 8] = 0x33;
    code[64 + 6] = 0x44;
    EXPECT(modify() == 0x44);
    /* The same bytes through another address: code that is data elsewhere, across a page boundary. */
    unsigned char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(two != MAP_FAILED);
    uint32_t (*crossing)(void) = (uint32_t (*)(void))(uintptr_t)(two + PAGE - 3);
    for (uint32_t i = 0; i < 100; i++) {
        put_return(two + PAGE - 3, i << 24 | i);
        EXPECT(crossing() == (i << 24 | i));
    }
    return NULL;
}

static atomic_uint published, stop;
static unsigned char *shared_code;

static void *writer(void *arg)
{
    (void)arg;
    for (uint32_t i = 1; i <= 200; i++) {
        while (atomic_load(&stop) != i - 1)
            __builtin_ia32_pause();
        put_return(shared_code, i * 5);
        atomic_store(&published, i);
    }
    return NULL;
}

/* Cross-modifying code as the manual asks for it: write, publish, serialise (CPUID), run. */
const char *check_code_cross_thread(void)
{
    pthread_t thread;
    shared_code = code_page();
    EXPECT(shared_code && pthread_create(&thread, NULL, writer, NULL) == 0);
    uint32_t (*call)(void) = (uint32_t (*)(void))(uintptr_t)shared_code;
    for (uint32_t i = 1; i <= 200; i++) {
        while (atomic_load(&published) != i)
            __builtin_ia32_pause();
        uint32_t a = 0, b, c = 0, d;
        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
        EXPECT(call() == i * 5);
        atomic_store(&stop, i);
    }
    EXPECT(pthread_join(thread, NULL) == 0);
    return NULL;
}

const char *check_strings(void)
{
    static unsigned char from[3 * PAGE], to[3 * PAGE];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 7 + (i >> 8));
    for (size_t shift = 0; shift < 24; shift += 5) { /* unaligned, over page boundaries */
        void *d = to + shift, *s = from + 2 * shift;
        size_t n = 2 * PAGE + shift;
        memset(to, 0, sizeof to);
        __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
        EXPECT(n == 0 && d == to + shift + 2 * PAGE + shift && !memcmp(to + shift, from + 2 * shift, 2 * PAGE + shift));
        EXPECT(to[2 * PAGE + 2 * shift] == 0);
    }
    /* Overlap by one byte repeats the byte. */
    unsigned char row[64] = { 9 };
    void *d = row + 1, *s = row;
    size_t n = 40;
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
    EXPECT(row[40] == 9 && row[41] == 0);
    /* Backwards. */
    d = row + 63, s = row + 40, n = 8;
    __asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
    EXPECT(row[63] == 9 && row[56] == 9 && row[55] == 0 && d == row + 55);
    /* Fill, scan, compare. */
    uint64_t pattern = 0x0102030405060708u;
    d = to, n = 100;
#ifdef __x86_64__
    __asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(pattern) : "memory");
#else
    for (unsigned at = 0; at < 800; at += 8)
        memcpy(to + at, &pattern, 8);
    uint32_t word = (uint32_t)pattern;
    d = to, n = 1;
    __asm__ volatile("rep stosl" : "+D"(d), "+c"(n) : "a"(word) : "memory");
#endif
    EXPECT(!memcmp(to, &pattern, 8) && !memcmp(to + 792, &pattern, 8));
    to[500] = 0;
    d = to, n = 800;
    __asm__ volatile("xor %%eax, %%eax\n\trepne scasb" : "+D"(d), "+c"(n) : : "eax", "cc", "memory");
    EXPECT(d == to + 501 && n == 299);
    memcpy(to + PAGE, to, 800);
    to[PAGE + 640] ^= 1;
    d = to, s = to + PAGE, n = 800;
    __asm__ volatile("repe cmpsb" : "+D"(d), "+S"(s), "+c"(n) : : "cc", "memory");
    EXPECT(n == 800 - 641);
    return NULL;
}

const char *check_integer(void)
{
    volatile uint64_t a = 0xfedcba9876543210u, b = 0x0123456789abcdefu;
    uint64_t low, flags, carry;
#ifdef __x86_64__
    unsigned __int128 product = (unsigned __int128)a * b;
    EXPECT((uint64_t)product == 0x2236d88fe5618cf0u && (uint64_t)(product >> 64) == 0x0121fa00ad77d742u);
    EXPECT((uint64_t)(product / (b | 1)) == a);
    __asm__("add %2, %1\n\tpushfq\n\tpop %0" : "=r"(flags), "=r"(low) : "r"((uint64_t)1), "1"(UINT64_MAX) : "cc");
    EXPECT(low == 0 && (flags & 0x8d5) == 0x55); /* CF, PF, AF, ZF; not SF, OF */
    __asm__("sub %2, %1\n\tpushfq\n\tpop %0" : "=r"(flags), "=r"(low) : "r"((uint64_t)1), "1"((uint64_t)INT64_MIN) : "cc");
    EXPECT(low == INT64_MAX && (flags & 0x8d5) == 0x814); /* OF, AF, PF */
    __asm__("stc\n\trcl $1, %0\n\tsbb %1, %1" : "=r"(low), "=r"(carry) : "0"((uint64_t)1 << 63) : "cc");
    EXPECT(low == 1 && carry == UINT64_MAX);
    uint64_t found;
    __asm__("bsr %1, %0" : "=r"(found) : "r"(b) : "cc");
    EXPECT(found == 56);
    __asm__("bsf %1, %0" : "=r"(found) : "r"(a) : "cc");
    EXPECT(found == 4);
#else
    EXPECT(a * b == 0x2236d88fe5618cf0u && a / b == 0xe0 && a % b == a - 0xe0 * b);
    uint32_t eflags, half, borrow;
    __asm__("add %2, %1\n\tpushf\n\tpop %0" : "=r"(eflags), "=r"(half) : "r"(1), "1"(UINT32_MAX) : "cc");
    EXPECT(half == 0 && (eflags & 0x8d5) == 0x55); /* CF, PF, AF, ZF; not SF, OF */
    __asm__("sub %2, %1\n\tpushf\n\tpop %0" : "=r"(eflags), "=r"(half) : "r"(1), "1"(INT32_MIN) : "cc");
    EXPECT(half == INT32_MAX && (eflags & 0x8d5) == 0x814); /* OF, AF, PF */
    __asm__("stc\n\trcl $1, %0\n\tsbb %1, %1" : "=r"(half), "=r"(borrow) : "0"(1u << 31) : "cc");
    EXPECT(half == 1 && borrow == UINT32_MAX);
    (void)low, (void)flags, (void)carry;
#endif
    uint32_t word[4] = { 0, 0, 0, 0 }; /* BT with a register reaches beyond the operand */
    __asm__("btsl %1, %0" : "+m"(word) : "r"(100) : "cc", "memory");
    EXPECT(word[3] == 1u << 4);
    EXPECT(__builtin_bswap64(a) == 0x1032547698badcfeu);
    volatile int64_t negative = -7;
    EXPECT(negative / 2 == -3 && negative % 2 == -1 && negative >> 1 == -4);
    return NULL;
}
