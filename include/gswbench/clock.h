// SPDX-License-Identifier: MIT
// Reads the host clocks: a monotonic one for measuring, and the wall clock. Also counts the CPU cores of this process.
#pragma once

#include <pthread.h>
#include <stdbool.h>

double clock_seconds(void);         // monotonic, from an arbitrary origin
double clock_wall_seconds(void);    // since the Unix epoch; jumps if the clock is set

// Initialises a condition variable for clock_wait. clock_wait returns true when the condition is signalled, and false
// when the monotonic clock reaches `until`.
void clock_open_condition(pthread_cond_t *condition);
bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double until);

// Sleeps until the monotonic clock shows this time, also if signals arrive.
void clock_sleep_until(double until);

// The same instant on both clocks, in seconds.
struct clock_moment {
    double seconds, wall_seconds;
};

// Reads both clocks. Repeats if the thread was preempted between the two reads.
struct clock_moment clock_moment(void);

// Returns the number of cores in this process's affinity mask; at least 1.
int cores_usable(void);
