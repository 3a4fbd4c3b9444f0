// SPDX-License-Identifier: MIT
// Builds a job of tiny plans in which one op is mutated, for tests of verification.
#pragma once

#include "gswbench/verify.h"
#include "plan_ops.h"
#include "tiny.h"

enum { FAULTY_NONE = -1, FAULTY_ALL = -2 };

typedef void plant_fn(struct plan *plan, int32_t op);

struct faulty {
    struct tiny tiny;
    int64_t     world, rank;    // rank with the mutated plan, or FAULTY_NONE, FAULTY_ALL
    plant_fn   *plant;
    const char *role;    // role of the mutated op, or ANY
    int         layer, microbatch;
};

// Returns the job of a row of options (layouts.h), without mutation.
struct faulty faulty_of(const char *row);

status faulty_verify(const struct faulty *faulty, struct job_proof *proof);
