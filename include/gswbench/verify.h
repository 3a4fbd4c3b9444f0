// SPDX-License-Identifier: MIT
// Declares the verification of a job before it runs. plan_verify checks one rank's plan: its ops, memory and
// dependencies. job_verify_plans does this for every plan that it builds, and checks that the ranks' communication fits
// together and cannot deadlock. plan_account sums a plan's FLOPs, communication and bytes.
#pragma once

#include <stdint.h>

#include "gswbench/plan.h"
#include "gswbench/status.h"

// Finds reads before writes, data races, values overwritten while still needed, and dependencies on later ops. The
// error names the rank, op and tensor of the first finding; `findings` receives their number (may be NULL).
status plan_verify(const struct plan *plan, int32_t *findings);

// A function that builds the plan of a rank. It may be called again for the same rank, to name ops in a message.
struct job_plans {
    // Works like plan_build; the caller calls plan_free.
    status (*build)(const void *state, int64_t rank, struct plan *plan);
    const void *state;
};

// The verified job. A rank class is a set of ranks whose communication differs only in their coordinates. Their compute
// ops may differ.
struct job_proof {
    int64_t world;
    int64_t built;             // ranks whose plans were built, verified and compared with their class
    int64_t classes;           // number of rank classes
    int64_t ops;               // sum over the classes: ops of one rank
    int64_t communications;    // sum over the classes: communication ops of one rank
    double  flops;             // FLOPs of all ranks per step: sum for one rank of each class, times ranks per class
    int32_t findings;
    // The rank, among the built ones, with the most bytes in its storages:
    int64_t largest_rank, largest_bytes;
    int64_t largest_storage_bytes[STORAGE_COUNT];
    int32_t largest_ops;
    int64_t largest_quantized_bytes;
};

// Verifies a job. The error names rank, op and tag of each finding, as far as the text has room. Verifies that:
// - plan_verify passes on each built plan, members of a group list the same members, and operands match their
//   collectives;
// - all members of a group issue the same collectives on each stream in the same order: kind, elements, format, root;
// - sends pair with receives in order per (group, sender, receiver, stream pair, channel), with equal elements and
//   format;
// - no rank deadlocks if each stream runs its ops in order and a send blocks until its receive starts. Receives on a
//   stream therefore match the send order across channels, so a communicator may ignore channels.
//
// All plans are built and compared in jobs of up to 8 ranks or 2^20 ops (ops of rank 0 times ranks). A larger job
// compares one rank of each class. On the first and last pipeline stage it compares more ranks of a class: the second
// and the last rank along each axis of the class, and the rank with the last coordinate on all of them. All other ranks
// are assumed to communicate like the compared ranks of their class.
status job_verify_plans(const struct job_plans *plans, struct job_proof *proof);

// The following functions sum over the ops of a plan: parameters, FLOPs, communication, bytes.

// A class of communication ops: ops of a step with the same kind, axes, format and number of elements.
struct plan_communication {
    enum op_kind kind;
    uint32_t     axes;
    enum format  format;
    int64_t      elements;    // elements of one op
    int64_t      group_size;
    int64_t      count;    // number of ops per step
};
enum { PLAN_COMMUNICATIONS_MAX = 256 };

struct account {
    int64_t parameters;            // parameters of this rank's weights
    double  flops[PHASE_COUNT];    // FLOPs that the ops execute
    double  hardware_flops;        // FLOPs of all ranks per sequence, if each executes as many as this rank
    int64_t ops[OP_COUNT];
    int64_t quantized_bytes;    // bytes read and written by FP8 quantization
    struct plan_communication communications[PLAN_COMMUNICATIONS_MAX];
    int32_t                   communication_count;
    int64_t                   total_bytes;    // bytes, summed over storages
};

void    plan_account(const struct plan *plan, struct account *account);
int64_t plan_quantized_bytes(const struct plan *plan);
