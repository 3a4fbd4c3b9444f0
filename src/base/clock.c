// SPDX-License-Identifier: MIT
// Reads the host clocks, and counts the usable CPU cores.
#define _GNU_SOURCE    // sched_getaffinity
#include "gswbench/clock.h"

#include <math.h>
#include <sched.h>
#include <time.h>

enum { READINGS = 1000 };
static const double MOMENT_SECONDS = 1e-5;    // a longer reading was probably interrupted, and is repeated

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
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}
