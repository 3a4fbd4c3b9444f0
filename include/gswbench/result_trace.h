// SPDX-License-Identifier: MIT
// Where a step goes: the one that was traced, and the one that is expected.
#ifndef GSWBENCH_RESULT_TRACE_H
#define GSWBENCH_RESULT_TRACE_H

#include <stdint.h>

#include "gswbench/waterfall.h"

// Ops of one kind and phase in the traced step.
struct result_op_time {
    char    kind[24], phase[16];
    int64_t count;
    double  seconds;    // from begin to end, one op after the other
    double  flops;      // that they execute
    double  bytes;      // that they read and write; of a transfer, its elements'
};

// Transfers that are alike, in the traced step and alone.
struct result_transfer_time {
    char    kind[24], axes[24], format[8];
    int64_t elements, group_size, count;
    double  bytes, seconds, moving_seconds;      // of one; medians: as ranks see it, and from when the last had come
    double  alone_seconds, predicted_seconds;    // with nothing beside it; by the job's [hardware]
    double  bandwidth, alone_bandwidth;          // bytes a second on the bus
    int64_t late_rank;                           // of the group that waits longest, who comes last most often; -1: none
    double  late_share, wait_seconds;            // in which share of them; how much longer the first one waits
    char    algorithm[32], protocol[16];         // as the library calls them; "": it does not say
    int64_t channels;                            // 0: it does not say
};

// A step that is not among the measured ones, on the rank that computes longest.
struct result_trace {
    char    source[16];      // "measured", "emulated", "predicted"; "": no step was traced, and the rest is NaN or 0
    char    timed_by[16];    // "cupti", "events", "clock": the host's; "": no op was
    int64_t lost_records;    // by CUPTI, on all ranks: ops may have taken longer
    int64_t rank;
    double  step_seconds;    // of the slowest rank: what the parts add up to
    struct waterfall waterfall;
};

// What a step should take, by a prediction of this program on this machine.
struct result_expectation {
    char             profile[112];              // of [hardware], by which it is predicted; "": there is none
    char             reason[128];               // why there is none
    double           step_seconds, percent;     // percent: give or take, a standard deviation
    double           measured_share;            // of what computes, priced by what was measured on such a machine
    double           peak, memory_bandwidth;    // of the profile, in the run's precision; NaN: not known
    struct waterfall waterfall;
};

#endif
