// SPDX-License-Identifier: MIT
// Verifies a job before it runs. plan_verify checks one rank's plan: its ops, memory and dependencies. job_verify_plans
// does so for every distinct rank, and checks that their communication fits together and cannot deadlock. Also sums a
// plan's FLOPs, communication and bytes.
#pragma once

#include <stdint.h>

#include "gswbench/plan.h"
#include "gswbench/status.h"

// Finds reads before writes, data races, values overwritten while still needed, and dependencies on later ops. The
// error names the rank, op and tensor of the first finding; findings counts all (may be NULL).
status plan_verify(const struct plan *plan, int32_t *findings);

// Builds the plan of a rank. A rank may be requested again, to name its ops in a message.
struct job_plans {
    // Like plan_build; the caller calls plan_free.
    status (*build)(const void *state, int64_t rank, struct plan *plan);
    const void *state;
};

// The verified job. A rank class is a set of ranks whose plans differ only in their coordinates.
struct job_proof {
    int64_t world;
    int64_t built;             // ranks whose plans were built, verified and compared with their class
    int64_t distinct;          // rank classes
    int64_t ops;               // in one rank of each class
    int64_t communications;    // in one rank of each class
    double  flops;             // per step, summed over ranks
    int32_t findings;
    // The built rank with the most storage bytes:
    int64_t largest_rank, largest_bytes;
    int64_t largest_storage_bytes[STORAGE_COUNT];
    int32_t largest_ops;
    int64_t largest_quantized_bytes;
};

// The error names rank, op and tag of each finding, as far as the text has room. Verifies that:
// - plan_verify passes on each built rank, members of a group list the same members, and operands match their
//   collectives;
// - all members of a group issue the same collectives on each stream in the same order: kind, elements, format, root;
// - sends pair with receives in order per (group, sender, receiver, stream pair, channel), with equal elements and
//   format;
// - all ranks reach the end with streams as queues, even if a send blocks until its receive starts. Receives on a
//   stream therefore match the send order across channels, so a communicator may ignore channels.
//
// All plans are compared up to 8 ranks or 2^20 ops in total. In larger jobs, every pipeline stage is compared. On the
// first and last stage, so are the first, second and last rank along each other axis. Ranks in between are assumed to
// match these.
status job_verify_plans(const struct job_plans *plans, struct job_proof *proof);

// Totals over the ops of a plan: parameters, FLOPs, communication, bytes.

// Communication ops of a step with the same kind, axes, format and number of elements.
struct plan_communication {
    enum op_kind kind;
    uint32_t     axes;
    enum format  format;
    int64_t      elements;    // per op
    int64_t      group_size;
    int64_t      count;    // per step
};
enum { PLAN_COMMUNICATIONS_MAX = 256 };

struct account {
    int64_t                   parameters;            // of this rank's weights
    double                    flops[PHASE_COUNT];    // executed
    double                    hardware_flops;        // of the mesh per sequence, if all ranks execute these FLOPs
    int64_t                   ops[OP_COUNT];
    int64_t                   quantized_bytes;    // read and written by FP8 quantization
    struct plan_communication communications[PLAN_COMMUNICATIONS_MAX];
    int32_t                   communication_count;
    int64_t                   total_bytes;    // of all storages
};

void    plan_account(const struct plan *plan, struct account *account);
int64_t plan_quantized_bytes(const struct plan *plan);
