// SPDX-License-Identifier: MIT
// Proves a whole job before it runs: every distinct rank's plan, what its ranks exchange, and that they all reach the
// end. One rank's plan alone is plan_verify's.
#ifndef GSWBENCH_VERIFY_H
#define GSWBENCH_VERIFY_H

#include <stdint.h>

#include "gswbench/plan.h"
#include "gswbench/status.h"

// Reads before writes, unordered accesses to the same bytes, values overwritten while still needed, ops that wait for
// later ones: of one rank's plan. The error names rank, op and tensor of the first finding; findings counts them all.
status plan_verify(const struct plan *plan, int32_t *findings);

// Where the plans of a job's ranks come from. The same rank's plan is asked for again to name its ops in a finding.
struct job_plans {
    status (*build)(const void *state, int64_t rank, struct plan *plan);    // as plan_build; plan_free follows
    const void *state;
};

// What was looked at. Ranks that stand for others differ from them only in where they are.
struct job_proof {
    int64_t world;
    int64_t built;        // ranks whose plans were made and verified, and compared with those that stand for them
    int64_t distinct;     // ranks that stand for all others
    int64_t ops;          // of the distinct ranks
    int64_t transfers;    // of the distinct ranks
    double  flops;        // of all ranks, in a step
    int32_t findings;
    // Of the built ranks, that with the largest sum of storages:
    int64_t largest_rank, largest_bytes;
    int64_t largest_storage_bytes[STORAGE_COUNT];
    int32_t largest_ops;
    int64_t largest_quantized_bytes;
};

// A failure names rank, op and tag of each finding, as many as fit. What is proven:
// - plan_verify passes on each built rank, groups have the same members on all of theirs, operands fit transfers;
// - in each group, on each lane, all members issue the same collectives in the same order: kind, elements, format,
// root;
// - sends pair with receives, in order within (group, sender, receiver, lane pair, channel), elements and format alike;
// - lanes as queues, all ranks reach the end, even if a send ends only when its receive has begun. So what a rank sends
//   another on a lane is received in that order, whatever the channels: a communicator may leave channels out.
// All plans are compared up to 8 ranks or 2^20 ops of all ranks; of a larger job every stage's, and on the first and
// last stage along each other axis the first, second and last rank's: where these agree, the ranks between are taken to
// agree too.
status job_verify_plans(const struct job_plans *plans, struct job_proof *proof);

#endif
