// SPDX-License-Identifier: MIT
// Reads the log of the fake profiler (tests/observe/fake_profiler.c) and compares its ranges with the plan.
#pragma once

#include "gswbench/plan.h"

// Makes the fake profiler write a new file from now on. Call this before the first range.
void profile_log_open(const char *path);

struct profile_seen {
    int64_t ops;         // ranges of ops
    double  flops;       // from their payloads
    int64_t streams;     // threads without step ranges
    int64_t phases;      // ranges of phases
    int64_t profiles;    // profiled steps, on any rank
    // Ranges of rank 0 in order, such as "step0 capture step1 profile( step2 )". Parentheses are start and stop of the
    // profiler.
    char story[1024];
};

// The expected ranges. On each thread, ranges must nest as step, phase, layer, op, and each pop must have a push. Each
// op range must have the name, phase, layer, stream, FLOPs, bytes and group of an op in the plan, and each op must be
// issued `issues` times. No rank may register a name twice. profile_log_check returns the first mismatch, or "".
struct profile_expected {
    const struct plan *plans;    // [ranks]
    int                ranks;
    int64_t            issues;
};
// Returns the expected ranges of tiny-llama with these overrides. The plans are valid until the next call.
struct profile_expected profile_expect(const char *overrides, int ranks, int64_t issues);
double                  profile_flops(const struct plan *plan);    // FLOPs of a step, as plan_account counts them

const char *profile_log_check(const char *path, const struct profile_expected *expected, struct profile_seen *seen);
