// SPDX-License-Identifier: MIT
// Reads the host clocks, and counts the usable CPU cores.
#define _GNU_SOURCE    // sched_getaffinity
#include "gswbench/clock.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <time.h>

enum { READINGS = 1000 };                     // maximum attempts to read both clocks at once
static const double MOMENT_SECONDS = 1e-5;    // an attempt that takes longer is repeated

static double read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double clock_seconds(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double clock_wall_seconds(void)
{
    return read_clock(CLOCK_REALTIME);
}

void clock_open_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static struct timespec timespec_of(double seconds)
{
    return (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
}

bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double until)
{
    const struct timespec time = timespec_of(until);
    return pthread_cond_timedwait(condition, mutex, &time) == 0;
}

void clock_sleep_until(double until)
{
    const struct timespec time = timespec_of(until);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

struct clock_moment clock_moment(void)
{
    struct clock_moment moment  = {0};
    double              closest = INFINITY;
    for (int i = 0; i < READINGS && closest > MOMENT_SECONDS; i++) {
        double before = clock_seconds(), wall = clock_wall_seconds(), passed = clock_seconds() - before;
        if (passed < closest) {
            closest = passed;
            moment  = (struct clock_moment){before + passed / 2, wall};
        }
    }
    return moment;
}

int cores_usable(void)
{
    cpu_set_t cores[16];    // one set holds 1,024 CPUs, and the call fails if the kernel supports more
    return sched_getaffinity(0, sizeof(cores), cores) == 0 ? CPU_COUNT_S(sizeof(cores), cores) : 1;
}
