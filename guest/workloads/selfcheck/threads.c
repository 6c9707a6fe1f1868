/* Threads: futex mutexes and condition variables, atomic counters, register state across context switches. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define THREADS 4
#define TURNS 5000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static volatile uint64_t guarded;
static atomic_int inside;
static atomic_uint_fast64_t total;
static struct { uint64_t low, high; } wide __attribute__((aligned(16)));

static const char *run_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        EXPECT(pthread_join(threads[i], &wrong) == 0);
        if (wrong)
            return wrong;
    }
    return NULL;
}

static void *mutex_body(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&lock);
        int alone = atomic_fetch_add(&inside, 1) == 0;
        guarded = guarded + 1;
        if (i % 64 == 0)
            sched_yield();
        atomic_fetch_sub(&inside, 1);
        pthread_mutex_unlock(&lock);
        if (!alone)
            return "one thread at a time inside the mutex";
    }
    return NULL;
}

const char *check_mutex(void)
{
    const char *wrong = run_threads(mutex_body);
    if (wrong)
        return wrong;
    EXPECT(guarded == (uint64_t)THREADS * TURNS);
    return NULL;
}

/* Threads take turns in a fixed order. */
static void *condvar_body(void *arg)
{
    uint64_t me = (uintptr_t)arg;
    for (uint64_t i = 0; i < 500; i++) {
        pthread_mutex_lock(&lock);
        while (guarded % THREADS != me)
            pthread_cond_wait(&changed, &lock);
        uint64_t turn = guarded / THREADS;
        guarded = guarded + 1;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        if (turn != i)
            return "turns in order";
    }
    return NULL;
}

const char *check_condvar(void)
{
    const char *wrong = run_threads(condvar_body);
    if (wrong)
        return wrong;
    EXPECT(guarded == (uint64_t)THREADS * 500);
    return NULL;
}

#ifdef __x86_64__
/* 128 bits by CMPXCHG16B. */
static void add_wide(uint64_t value)
{
    uint64_t low = wide.low, high = wide.high;
    for (unsigned char done = 0; !done;) {
        uint64_t new_low = low + value, new_high = high + (new_low < low) + value;
        __asm__ volatile("lock cmpxchg16b %1\n\tsetz %0"
                         : "=q"(done), "+m"(wide), "+a"(low), "+d"(high)
                         : "b"(new_low), "c"(new_high) : "cc", "memory");
    }
}

#else
/* 64 bits by CMPXCHG8B. */
static void add_wide(uint64_t value)
{
    uint64_t seen = wide.low;
    for (unsigned char done = 0; !done;) {
        uint64_t new = seen + value;
        __asm__ volatile("lock cmpxchg8b %1\n\tsetz %0"
                         : "=q"(done), "+m"(wide.low), "+A"(seen)
                         : "b"((uint32_t)new), "c"((uint32_t)(new >> 32)) : "cc", "memory");
    }
}
#endif

static void *atomics_body(void *arg)
{
    static atomic_uint_fast64_t compared;
    static _Atomic uint8_t narrow;
    (void)arg;
    for (uint64_t i = 0; i < TURNS; i++) {
        atomic_fetch_add(&total, i);
        uint_fast64_t seen = atomic_load(&compared);
        while (!atomic_compare_exchange_weak(&compared, &seen, seen + 1))
            ;
        atomic_fetch_xor(&narrow, 0x5a);
        add_wide(UINT64_MAX / 3);
    }
    return NULL;
}

const char *check_atomics(void)
{
    const char *wrong = run_threads(atomics_body);
    if (wrong)
        return wrong;
    EXPECT(total == (uint64_t)THREADS * TURNS * (TURNS - 1) / 2);
#ifdef __x86_64__
    unsigned __int128 sum = 0, step = ((unsigned __int128)(UINT64_MAX / 3) << 64) + UINT64_MAX / 3;
    for (int i = 0; i < THREADS * TURNS; i++)
        sum += step;
    EXPECT(wide.low == (uint64_t)sum && wide.high == (uint64_t)(sum >> 64));
#else
    EXPECT(wide.low == (uint64_t)THREADS * TURNS * (UINT64_MAX / 3));
#endif
    return NULL;
}

#ifdef __x86_64__
#define VECTOR "xmm9"
#define SYSTEM_CALL "syscall"
#define CLOBBERED "rcx", "r11"
#else
#define VECTOR "xmm5"
#define SYSTEM_CALL "int $0x80"
#define CLOBBERED "cc"
#endif

/* Vector and x87 registers must survive a switch to another thread that uses them: hold a value in both over a system
 * call that yields. */
static void *float_body(void *arg)
{
    double me = (double)(uintptr_t)arg + 0.5;
    for (int i = 0; i < 2000; i++) {
        double vector = 0;
        long double stack = 0;
        long result = SYS_sched_yield;
        __asm__ volatile("movsd %[me], %%" VECTOR "\n\t"
                         "fldl %[me]\n\t"
                         "fadd %%st(0), %%st(0)\n\t"
                         SYSTEM_CALL "\n\t"
                         "fstpt %[stack]\n\t"
                         "movsd %%" VECTOR ", %[vector]"
                         : [vector] "=m"(vector), [stack] "=m"(stack), "+a"(result)
                         : [me] "m"(me) : CLOBBERED, VECTOR, "st", "memory");
        if (vector != me)
            return VECTOR " to keep its value over a yield";
        if (stack != 2 * (long double)me)
            return "st(0) to keep its value over a yield";
    }
    return NULL;
}

const char *check_thread_float(void)
{
    return run_threads(float_body);
}
