// SPDX-License-Identifier: MIT
// One device stands for a job: it executes the plan of one rank after the other, without their transfers, and what each
// op took replaces its price in the simulation of the job.
#ifndef GSWBENCH_EMULATE_H
#define GSWBENCH_EMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/benchmark.h"
#include "gswbench/measured.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/run.h"
#include "gswbench/status.h"

// Which pipeline stages are executed, each by its first rank.
enum emulate_stages {
    EMULATE_DISTINCT,    // those with an op that no stage before them has
    EMULATE_ALL,
    EMULATE_FIRST
};

struct emulation {
    // Set by the caller.
    const struct plan_request *request;    // of the job
    struct backend            *backend;
    const struct run_config   *run;    // seed and data
    enum emulate_stages        stages;
    int64_t                    repeats;    // steps of each rank that are measured, after one that is not

    // Filled.
    struct measured_op *measured;    // an op of an executed plan each, its median over the steps
    int64_t             measured_count, measured_room;
    int64_t             stage_count, executed;    // of the job; stages
    int64_t             allocated_bytes;          // by the stage that took most
    bool                has_failed;               // a gradient norm or a loss was not finite
};

// Executes the stages. Fails, with the stage, when its plan does not fit the device or the backend lacks an op.
status emulate(struct emulation *emulation);
void   emulate_free(struct emulation *emulation);

// Adds an op that was measured elsewhere: a transfer.
void emulate_add(struct emulation *emulation, const struct measured_op *op);

// The median over all ops of a key, for each key that was executed or added; the caller frees it.
void emulate_list(const struct emulation *emulation, struct measured_ops *list);

// Executes the stages, each so many times, simulates the job with what they took, and writes its result.
status emulate_job(const struct benchmark *benchmark, enum emulate_stages stages, int64_t repeats);

#endif
