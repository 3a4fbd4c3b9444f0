// SPDX-License-Identifier: MIT
// Emulates a job on one device: executes the plans of single ranks, one per pipeline stage, without communication, and
// simulates the job with the measured op times.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/benchmark.h"
#include "gswbench/config.h"
#include "gswbench/measured.h"
#include "gswbench/plan_build.h"
#include "gswbench/status.h"

// Pipeline stages to execute. The first rank of a stage represents it.
enum emulate_stages {
    EMULATE_DISTINCT,    // stages with a compute op that no earlier stage has
    EMULATE_ALL,
    EMULATE_FIRST
};

struct emulation {
    // Inputs.
    const struct plan_request *request;    // the job
    struct backend            *backend;
    const struct run_config   *run;    // seed and data
    enum emulate_stages        stages;
    int64_t                    repeats;    // measured steps per stage, after one warm-up step

    // Outputs.
    struct measured_op *measured;    // median time of each executed op over the steps
    int64_t             measured_count;
    int64_t             stage_count, executed;    // stages of the job; stages executed
    int64_t             allocated_bytes;          // maximum over the executed stages
    bool                has_failed;               // a loss or gradient norm was NaN or infinite
};

// Executes the stages. Fails, naming the stage, if its plan does not fit the device or the backend lacks an op.
status emulate(struct emulation *emulation);
void   emulate_free(struct emulation *emulation);

// Adds an op that was measured elsewhere, such as a collective.
void emulate_add(struct emulation *emulation, const struct measured_op *op);

// Lists the median time of each distinct op (op_key) that was executed or added. The caller frees it with
// measured_free.
void emulate_list(const struct emulation *emulation, struct measured_ops *list);

// Executes `repeats` steps of each stage, then simulates the job with the measured times and writes the result.
status emulate_job(const struct benchmark *benchmark, enum emulate_stages stages, int64_t repeats);
