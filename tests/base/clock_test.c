// SPDX-License-Identifier: MIT
// Tests that clock_moment reads the monotonic and the wall clock at the same moment, even if the thread is preempted
// between the two readings.
#define _GNU_SOURCE    // declares syscall
#include "gswbench/clock.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const double AHEAD = 1.7e9, READING = 1e-7, LOST = 0.02;

// Replaces the system's clocks while `plays` is set. A reading takes 0.1 us, or 20 ms if the thread is preempted.
static struct {
    bool   plays;
    double now;
    int    readings, lost[2];    // lost: first and last reading during which the thread is preempted
} play;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!play.plays) {
        return (int)syscall(SYS_clock_gettime, clock, time);
    }
    bool loses = play.readings >= play.lost[0] && play.readings <= play.lost[1];
    play.readings++;
    play.now += loses ? LOST : READING;
    double seconds = play.now + (clock == CLOCK_REALTIME ? AHEAD : 0);
    *time          = (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    return 0;
}

// Returns the error of the wall clock relative to the monotonic clock if the thread is preempted in readings from..to.
static double disagreement(int from, int to)
{
    play.plays    = true;
    play.now      = 100;
    play.readings = 0;
    play.lost[0]  = from;
    play.lost[1]  = to;

    struct clock_moment moment = clock_moment();
    play.plays                 = false;
    return fabs(moment.wall_seconds - moment.seconds - AHEAD);
}

Test(clock, reads_both_clocks_at_one_moment_whichever_reading_loses_the_processor)
{
    for (int from = 0; from < 6; from++) {
        for (int to = from; to < 12; to++) {
            cr_expect(disagreement(from, to) < 1e-6, "readings %d to %d: %g s", from, to, disagreement(from, to));
        }
    }
}

Test(clock, takes_the_closest_readings_where_all_are_far_apart)
{
    cr_expect(disagreement(0, 1 << 30) < 1.01 * LOST);
}
