// SPDX-License-Identifier: MIT
// Measures the times of a job's ops on this machine, for predictions. Compute ops are timed in the job's own step, and
// each communication op in a microbenchmark that repeats it.
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

// A distinct op of the job. Ops with the same key, that is kind, shape and formats, are listed once.
struct distinct_op {
    struct op_key key;
    struct op     op;
    enum format   format[OP_OPERANDS];
    int64_t       elements[OP_OPERANDS];    // 0: absent
    uint32_t      axes;                     // mesh axes of the op's group; communication ops only
    int64_t       count;                    // number of ops with this key in the plans of all stages together

    struct quantity seconds;          // median time on the slowest rank
    double          delay_seconds;    // CPU ranks: seconds by which compute on the same cores delays a communication op
    double          contention;       // CPU ranks: seconds of compute lost per second of overlapping communication
};

struct distinct_ops {
    struct distinct_op *ops;    // [count]
    int32_t             count;
};

// Lists the distinct ops of every pipeline stage of the job. bytes: memory of the largest plan.
status calibrate_collect(struct distinct_ops *list, const struct plan_request *request, int64_t *bytes);
void   calibrate_free(struct distinct_ops *list);

// The job, the machine, and the amount of measurement.
struct calibrate_setup {
    const struct plan_request *request;    // the job
    const struct run_config   *run;        // only seed and data are used
    struct backend            *backend;
    struct comm               *comm;
    int64_t                    cores, core_ranks;    // cores of this rank, and ranks that share them
    bool                       has_cores;            // CPU ranks: times compute ops; no lower rank uses its cores
    int64_t                    working_bytes;    // bytes of operands through which repeats cycle, to miss the caches
    int                        steps;            // number of measured steps of the job
    int                        passes;           // number of passes over all microbenchmarks
    double                     round_seconds;    // duration of one round of a microbenchmark; a pass has 3 rounds
};

// A microbenchmark is a step that repeats one op. To measure a communication op, it runs compute ops between the
// repeats.
struct microbenchmark {
    int32_t repeats;    // set by the caller: repeats of the op per step
    // Set by the caller: number of compute ops before each communication op, which overlap with the previous
    // communication op. 0: one compute op, which waits for the previous communication op, so that nothing overlaps.
    int32_t computes;

    struct plan     plan;
    struct assembly assembly;    // builds the plan
    int32_t         group;       // index of the communication op's group in the plan
    struct step    *step;        // NULL: not open
};

// microbenchmark_open builds and opens the step that repeats the op `distinct`. between: the compute op that runs
// between two communication ops; NULL if `distinct` is a compute op. microbenchmark_open_alone repeats the compute op
// `between`, always on the same operands. Operands hold normally distributed numbers. Collective. Zero bench before the
// call; close it even after an error.
status microbenchmark_open(struct microbenchmark *bench, const struct distinct_op *distinct,
                           const struct distinct_op *between, const struct calibrate_setup *setup);
status microbenchmark_open_alone(struct microbenchmark *bench, const struct distinct_op *between,
                                 const struct calibrate_setup *setup);
void   microbenchmark_close(struct microbenchmark *bench);

// Runs the step. Returns the seconds per repeat, timed on the device if there is one.
double microbenchmark_run(const struct microbenchmark *bench);

// Adds an op that is in no plan of the job, such as a GEMM of another size. Operand sizes follow from its shape and
// formats. The list has each op once; the caller frees it with calibrate_free.
void distinct_add_probe(struct distinct_ops *list, struct op op, const enum format *formats, int operands);

// calibrate_steps measures the compute ops of the list: all ranks run steps of the job at the same time, without
// communication. calibrate_communications measures the communication ops. Collective; all ranks get the same values.
status calibrate_steps(struct distinct_ops *list, const struct calibrate_setup *setup);
status calibrate_communications(struct distinct_ops *list, const struct calibrate_setup *setup);

// Measures values of [hardware] that data sheets do not have, such as efficiencies and latencies. Collective.
status calibrate_hardware(struct hardware_config *hardware, const struct distinct_ops *list,
                          const struct calibrate_setup *setup);

// Where and for which job a calibration was measured. The written profile starts with it, as a comment.
struct calibration_origin {
    char    version[64], time[32];    // time in UTC
    char    config[128], precision[8], layout[256];
    char    host[64], device[512], communicator[16], library[64];
    int64_t ranks, nodes, cores, core_ranks;    // core_ranks: ranks that share the cores
};

// Writes a hardware profile, the input of predictions: [hardware] and the times of the list's ops.
void calibrate_write(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                     const struct distinct_ops *list);

// Writes the hardware profile as JSON. Returns false if the file cannot be written.
bool calibrate_write_json(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                          const struct distinct_ops *list);
extern const struct json_field calibrate_fields[];

// A calibration and its options. calibrate_rank runs one rank of it; rank 0 writes the profile.
struct calibration {
    struct benchmark benchmark;
    const char      *output;    // path of the profile to write
    bool             json;      // also print the profile as JSON
};
launch_rank calibrate_rank;
