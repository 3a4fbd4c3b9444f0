// SPDX-License-Identifier: MIT
// What tests/trace/fake_profiler.c took down of a run, and whether its ranges are those of the plan.
#ifndef GSWBENCH_TESTS_PROFILE_LOG_H
#define GSWBENCH_TESTS_PROFILE_LOG_H

#include "gswbench/plan.h"

// From now on the program's profiler is the fake one, which writes into a new file. Before the first range.
void profile_log_open(const char *path);

struct profile_seen {
    int64_t ops;         // ranges of ops
    double  flops;       // of their payloads
    int64_t lanes;       // threads that ran no steps themselves
    int64_t phases;      // ranges of phases
    int64_t profiles;    // of steps that a profiler collects, on any rank
    // What rank 0 did in turn: "step0 capture step1 profile( step2 )", with start and stop where the device was told.
    char story[1024];
};

// Whether ranges nest as step, phase, layer, op on each thread and end in turn; whether each says what its rank's plan
// does of its op: name, phase, layer, lane, FLOPs, bytes, group; whether no name was registered twice by a rank; and
// whether each op was issued that many times. Returns what is wrong first, "" for nothing.
struct profile_expected {
    const struct plan *plans;    // [ranks]
    int                ranks;
    int64_t            issues;
};
// Of tiny-llama with these overrides; the plans live until the next call.
struct profile_expected profile_expect(const char *overrides, int ranks, int64_t issues);
double                  profile_flops(const struct plan *plan);    // of a step, as its account has them

const char *profile_log_check(const char *path, const struct profile_expected *expected, struct profile_seen *seen);

#endif
