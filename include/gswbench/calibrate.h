// SPDX-License-Identifier: MIT
// Measures the ops of a job on the machine at hand: ops that compute within the job's own step, each transfer by
// itself, in a step that does little else.
#ifndef GSWBENCH_CALIBRATE_H
#define GSWBENCH_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/backend.h"
#include "gswbench/benchmark.h"
#include "gswbench/comm.h"
#include "gswbench/hardware.h"
#include "gswbench/json.h"
#include "gswbench/measured.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/run.h"

// An op that stands for all ops with its key.
struct distinct_op {
    struct op_key key;
    struct op     op;
    enum format   format[OP_OPERANDS];
    int64_t       elements[OP_OPERANDS];    // 0: absent
    uint32_t      axes;                     // of a transfer's group
    int64_t       count;                    // of them in the plans of all stages

    struct quantity seconds;                      // the median of the slowest rank
    double          delay_seconds, contention;    // of a transfer, while all ranks compute; on cores only
};

struct distinct_ops {
    struct distinct_op *ops;    // [count]
    int32_t             count;
};

// distinct.c: the distinct ops of all stages of a job, and how many bytes a rank's step works on at most.
status calibrate_collect(struct distinct_ops *list, const struct plan_request *request, int64_t *bytes);
void   calibrate_free(struct distinct_ops *list);

struct calibrate_setup {
    const struct plan_request *request;    // of the job
    const struct run_config   *run;        // seed and data
    struct backend            *backend;
    struct comm               *comm;
    int64_t                    cores, core_ranks;    // cores that rank 0 computes on, ranks that share them
    bool                       has_cores;            // this rank measures compute ops: each of its threads has a core
    int64_t                    working_bytes;        // repeats alternate between operands that fill so many
    int                        steps;                // of the job
    int                        passes;               // over all transfers
    double                     round_seconds;        // an op is repeated for so long, three times a pass
};

// measure.c: measures all of these ops, those that compute first. Collective; every rank has the same, unless one
// fails. A rank's steps go without transfers, at the same time as those of the others.
status calibrate_steps(struct distinct_ops *list, const struct calibrate_setup *setup);
status calibrate_transfers(struct distinct_ops *list, const struct calibrate_setup *setup);

// hardware.c: measures the values of [hardware], except what a data sheet knows better. Collective.
status calibrate_hardware(struct hardware_config *hardware, const struct distinct_ops *list,
                          const struct calibrate_setup *setup);

// Who has measured, and for what.
struct calibration_origin {
    char    version[64], time[32];    // UTC
    char    config[128], precision[8], layout[256];
    char    host[64], device[512], communicator[16], library[64];
    int64_t ranks, nodes, cores, core_ranks;    // so many ranks share so many cores
};

// profile.c: a hardware profile that predictions read; its origin is a comment.
void calibrate_write(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                     const struct distinct_ops *list);

// json.c: the same for programs; false where the file cannot be written.
bool calibrate_write_json(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                          const struct distinct_ops *list);
extern const struct json_field calibrate_fields[];

// One rank of a calibration, of a struct calibration: from its place to the profile, which rank 0 writes.
struct calibration {
    struct benchmark benchmark;
    const char      *output;    // the profile's path
    bool             json;      // printed beside it
};
launch_rank calibrate_rank;

#endif
