/* Clocks that go forward on every processor, and timers that fire, neither early nor never. */
#define _GNU_SOURCE
#include "selfcheck.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static atomic_uint_fast64_t latest;

/* Each thread must read no less than any thread has read before. */
static void *read_clock(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        uint_fast64_t before = atomic_load(&latest);
        uint64_t now = read_ns(CLOCK_MONOTONIC);
        if (now < before)
            return "CLOCK_MONOTONIC not to go backwards between threads";
        while (before < now && !atomic_compare_exchange_weak(&latest, &before, now))
            ;
    }
    return NULL;
}

const char *check_clocks(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        EXPECT(pthread_create(&threads[i], NULL, read_clock, NULL) == 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        EXPECT(pthread_join(threads[i], &wrong) == 0);
        if (wrong)
            return wrong;
    }
    uint64_t raw = read_ns(CLOCK_MONOTONIC_RAW), boot = read_ns(CLOCK_BOOTTIME), mono = read_ns(CLOCK_MONOTONIC);
    EXPECT(raw && mono + 1000000000u >= boot); /* the sum: a young machine is less than a second old */
    EXPECT(read_ns(CLOCK_REALTIME) > 1000000000u * (uint64_t)365 * 24 * 3600); /* the RTC was read: after 1971 */
    return NULL;
}

static volatile sig_atomic_t ticks;
static void tick(int signal) { (void)signal; ticks++; }

const char *check_timers(void)
{
    struct timespec ms5 = { 0, 5000000 };
    uint64_t start = read_ns(CLOCK_MONOTONIC);
    EXPECT(nanosleep(&ms5, NULL) == 0);
    EXPECT(read_ns(CLOCK_MONOTONIC) - start >= 5000000);

    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    struct itimerspec every2ms = { { 0, 2000000 }, { 0, 2000000 } };
    EXPECT(signal(SIGUSR1, tick) != SIG_ERR && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    start = read_ns(CLOCK_MONOTONIC);
    EXPECT(timer_settime(timer, 0, &every2ms, NULL) == 0);
    while (ticks < 5) /* busy: the interrupt must break in */
        EXPECT(read_ns(CLOCK_MONOTONIC) - start < 20000000000u);
    EXPECT(read_ns(CLOCK_MONOTONIC) - start >= 10000000);
    timer_delete(timer);

    int file = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec once = { { 0, 0 }, { 0, 3000000 } };
    uint64_t expirations = 0;
    EXPECT(file >= 0);
    start = read_ns(CLOCK_MONOTONIC);
    EXPECT(timerfd_settime(file, 0, &once, NULL) == 0);
    EXPECT(read(file, &expirations, sizeof expirations) == sizeof expirations && expirations == 1);
    EXPECT(read_ns(CLOCK_MONOTONIC) - start >= 3000000);
    return NULL;
}
