// SPDX-License-Identifier: MIT
// The clocks of the host: the one that measures, and the one that tells the time.
#ifndef GSWBENCH_CLOCK_H
#define GSWBENCH_CLOCK_H

double clock_seconds(void);         // since some moment; never goes back
double clock_wall_seconds(void);    // since 1970; may be set by whoever keeps the machine

// One moment by both clocks.
struct clock_moment {
    double seconds, wall_seconds;
};

// A thread that loses its processor between the two readings would have them disagree: they are taken again until they
// are of one moment.
struct clock_moment clock_moment(void);

#endif
