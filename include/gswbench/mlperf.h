// SPDX-License-Identifier: MIT
// Reads the log of a run of MLPerf Training: lines of ":::MLLOG {json}", with any text before and between them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/output.h"
#include "gswbench/status.h"

// An MLPerf benchmark with a model that gswbench has.
struct mlperf_benchmark {
    const char *name;           // NULL ends the list
    int64_t     sequence;       // sequence length, for logs that do not state it
    const char *settings[3];    // options of the model, as overrides of --mlperf; NULL: no more
};
extern const struct mlperf_benchmark mlperf_benchmarks[];

// Figures of one log. Some lines of the log have a time and the number of samples so far. An interval is the time
// between two of these lines: one step or more.
struct mlperf_log {
    char    path[OUTPUT_PATH_BYTES];
    char    benchmark[64], submitter[128], platform[128], status[32];
    int64_t accelerators, batch, sequence, accumulation;    // 0: not stated
    int64_t intervals;
    int64_t steps;                // steps of the whole run
    int64_t steps_each;           // steps in the median interval
    bool    has_evaluations;      // step times include evaluations: the log does not say when these start
    double  step_seconds;         // median over the intervals of the time per step
    double  spread;               // 95th percentile of the time per step / median; NaN below 20 intervals
    int64_t slow_phases;          // groups of successive intervals with a time per step over 1.05 times the median
    int64_t slow_after_starts;    // slow phases that follow the start of the run or an evaluation
    int64_t slow_steps;           // steps in slow phases
    double  slow_seconds;         // time of slow phases beyond the median step time
    double  run_seconds;          // from run_start to run_stop
};

// Reads one log, in bounded memory. Errors name path and line.
status mlperf_read(struct mlperf_log *log, const char *path);

// Returns the benchmark with this name; NULL: gswbench does not have it.
const struct mlperf_benchmark *mlperf_find_benchmark(const char *name);
