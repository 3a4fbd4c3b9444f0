// SPDX-License-Identifier: MIT
// Measures the ops of a job on this machine, for predictions. Compute ops are timed in the job's own step, each
// communication op by a microbenchmark that repeats it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/assembly.h"
#include "gswbench/backend.h"
#include "gswbench/benchmark.h"
#include "gswbench/comm.h"
#include "gswbench/config.h"
#include "gswbench/hardware.h"
#include "gswbench/json.h"
#include "gswbench/measured.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

// An op that represents all ops with the same key.
struct distinct_op {
    struct op_key key;
    struct op     op;
    enum format   format[OP_OPERANDS];
    int64_t       elements[OP_OPERANDS];    // 0: absent
    uint32_t      axes;                     // of the group; communication ops only
    int64_t       count;                    // occurrences in the plans of the stages

    struct quantity seconds;          // median on the slowest rank
    double          delay_seconds;    // CPU ranks: how much later communication ends next to compute
    double          contention;       // CPU ranks: seconds of compute lost per second of overlapped communication
};

struct distinct_ops {
    struct distinct_op *ops;    // [count]
    int32_t             count;
};

// Collects the distinct ops of the job's pipeline stages. bytes: memory of the largest plan.
status calibrate_collect(struct distinct_ops *list, const struct plan_request *request, int64_t *bytes);
void   calibrate_free(struct distinct_ops *list);

struct calibrate_setup {
    const struct plan_request *request;    // the job
    const struct run_config   *run;        // seed and data
    struct backend            *backend;
    struct comm               *comm;
    int64_t                    cores, core_ranks;    // cores that rank 0 computes on; ranks that share them
    bool                       has_cores;            // CPU: each thread of this rank has a core of its own
    int64_t                    working_bytes;        // repeats cycle through so much memory, to miss the caches
    int                        steps;                // measured steps of the job
    int                        passes;               // how often each communication op is measured
    double                     round_seconds;        // length of a round of a microbenchmark; a pass has 3 rounds
};

// A microbenchmark: a step that repeats one op. For a communication op, compute ops run between the repeats.
struct microbenchmark {
    int32_t repeats;    // input: repeats of the op per step
    // Input: number of compute ops before each communication op. They overlap with the previous communication op. 0:
    // one compute op before each, which waits for the previous communication op, so nothing overlaps.
    int32_t computes;

    struct plan     plan;
    struct assembly assembly;    // of the plan
    int32_t         group;       // group of the communication op in the plan
    struct step    *step;        // NULL: not open
};

// microbenchmark_open repeats the op `distinct`. between: the compute op between two communication ops, or NULL if
// `distinct` is a compute op. microbenchmark_open_alone repeats the compute op `between`, always on the same operands.
// Operands hold normally distributed numbers. Collective. Zero bench before the call; close it even after an error.
status microbenchmark_open(struct microbenchmark *bench, const struct distinct_op *distinct,
                           const struct distinct_op *between, const struct calibrate_setup *setup);
status microbenchmark_open_alone(struct microbenchmark *bench, const struct distinct_op *between,
                                 const struct calibrate_setup *setup);
void   microbenchmark_close(struct microbenchmark *bench);

// Runs the step. Returns seconds per repeat, by the device's clock if there is one.
double microbenchmark_run(const struct microbenchmark *bench);

// Adds an op that is in no plan, such as a GEMM of another size, given its shape and operand formats. Operand sizes
// follow from the shape. The list keeps each op once; the caller frees it with calibrate_free.
void distinct_add_probe(struct distinct_ops *list, struct op op, const enum format *formats, int operands);

// calibrate_steps measures the compute ops of the list, in steps that all ranks run at the same time without
// communication. calibrate_communications measures its communication ops. Collective; all ranks get the same values.
status calibrate_steps(struct distinct_ops *list, const struct calibrate_setup *setup);
status calibrate_communications(struct distinct_ops *list, const struct calibrate_setup *setup);

// Measures the values of [hardware] that data sheets do not give, such as efficiencies and latencies. Collective.
status calibrate_hardware(struct hardware_config *hardware, const struct distinct_ops *list,
                          const struct calibrate_setup *setup);

// Where a calibration was measured, for the head of its profile.
struct calibration_origin {
    char    version[64], time[32];    // UTC
    char    config[128], precision[8], layout[256];
    char    host[64], device[512], communicator[16], library[64];
    int64_t ranks, nodes, cores, core_ranks;    // core_ranks ranks share the cores
};

// Writes a hardware profile for predictions, with the origin as a comment.
void calibrate_write(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                     const struct distinct_ops *list);

// Writes the same as JSON. Returns false if the file cannot be written.
bool calibrate_write_json(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                          const struct distinct_ops *list);
extern const struct json_field calibrate_fields[];

// Runs one rank of a calibration, given a struct calibration. Rank 0 writes the profile.
struct calibration {
    struct benchmark benchmark;
    const char      *output;    // path of the profile
    bool             json;      // also print JSON
};
launch_rank calibrate_rank;
