// SPDX-License-Identifier: MIT
// Time breakdown of the traced step and of the expected step.
#ifndef GSWBENCH_RESULT_TRACE_H
#define GSWBENCH_RESULT_TRACE_H

#include <stdint.h>

#include "gswbench/waterfall.h"

// Ops of one kind and phase in the traced step.
struct result_op_time {
    char    kind[24], phase[16];
    int64_t count;
    double  seconds;    // executed
    double  flops;      // read and written; for a transfer, its payload
    double  bytes;      // that they read and write; of a transfer, its elements'
};

// Transfers of one kind, size, type, group and lane, in the traced step and in isolation.
struct result_transfer_time {
    char    kind[24], axes[24], format[8];
    int64_t elements, group_size, count;
    double  bytes, seconds,
        moving_seconds;    // medians of one transfer: as a rank sees it, and after the last rank has arrived
    double  alone_seconds, predicted_seconds;    // in isolation; by the cost model with the job's [hardware]
    double  bandwidth, alone_bandwidth;          // bus bandwidth, bytes/s
    int64_t late_rank;                   // rank that arrives last most often, in the group that waits longest; -1: none
    double  late_share, wait_seconds;    // share of transfers in which it is last; extra wait of the first rank
    char    algorithm[32], protocol[16];    // as NCCL names them; "": not reported
    int64_t channels;                       // 0: not reported
};

// The traced step, which is not a measured one, on the rank that computes longest.
struct result_trace {
    char    source[16];      // "measured", "emulated", "predicted"; "": no trace, and the other fields are NaN or 0
    char    timed_by[16];    // "cupti", "events", "clock" (host clock); "": ops were not timed
    int64_t lost_records;    // records that CUPTI dropped, over all ranks: op times are then lower bounds
    int64_t rank;
    double  step_seconds;    // of the slowest rank; the waterfall parts add up to it
    struct waterfall waterfall;
};

// Predicted step time of this program on this machine.
struct result_expectation {
    char             profile[112];              // [hardware] profile of the prediction; "": none
    char             reason[128];               // why there is no prediction
    double           step_seconds, percent;     // percent: one standard deviation
    double           measured_share;            // share of compute time whose cost was measured on such a machine
    double           peak, memory_bandwidth;    // of the profile, for the run's precision; NaN: unknown
    struct waterfall waterfall;
};

#endif
