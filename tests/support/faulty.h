// SPDX-License-Identifier: MIT
// A job of tiny plans, of which some may be damaged: for tests of what verification finds.
#ifndef GSWBENCH_TESTS_FAULTY_H
#define GSWBENCH_TESTS_FAULTY_H

#include <string.h>

#include "gswbench/verify.h"
#include "tiny.h"

enum { FAULTY_NONE = -1, FAULTY_ALL = -2, ANY = -2 };

struct faulty {
    struct tiny tiny;
    int64_t     world, rank;    // whose plan is damaged: FAULTY_NONE, FAULTY_ALL
    void (*plant)(struct plan *plan, int32_t op);
    const char *role;    // of the op that the plant is given, in that layer and microbatch, or ANY
    int         layer, microbatch;
};

// One rank; change its layout, then set the world.
static inline void faulty_init(struct faulty *faulty)
{
    *faulty = (struct faulty){.world = 1, .rank = FAULTY_NONE};
    tiny_init(&faulty->tiny);
}

// The first op with that role in that layer and microbatch.
static inline int32_t find_op(const struct plan *plan, const char *role, int layer, int microbatch)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op_tag *tag = &plan->ops[i].tag;
        if (strcmp(tag->role, role) == 0 && (layer == ANY || tag->layer == layer) &&
            (microbatch == ANY || tag->microbatch == microbatch)) {
            return i;
        }
    }
    FATAL(EXIT_INTERNAL, "rank %lld has no op %s in layer %d, microbatch %d", (long long)plan->rank, role, layer,
          microbatch);
}

static inline status faulty_build(const void *state, int64_t rank, struct plan *plan)
{
    const struct faulty *faulty  = state;
    struct plan_request  request = tiny_request(&faulty->tiny, faulty->world, rank);
    status               result  = plan_build(plan, &request);
    if (!failed(&result) && (rank == faulty->rank || faulty->rank == FAULTY_ALL)) {
        faulty->plant(plan, find_op(plan, faulty->role, faulty->layer, faulty->microbatch));
    }
    return result;
}

static inline status faulty_verify(const struct faulty *faulty, struct job_proof *proof)
{
    return job_verify_plans(&(struct job_plans){.build = faulty_build, .state = faulty}, proof);
}

#endif
