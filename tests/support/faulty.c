// SPDX-License-Identifier: MIT
// Builds and verifies jobs with a mutated plan.
#include "faulty.h"

#include "layouts.h"

struct faulty faulty_of(const char *row)
{
    struct faulty faulty = {.tiny = tiny_of(row), .rank = FAULTY_NONE};
    faulty.world         = layout_apply(&faulty.tiny, "");
    return faulty;
}

static status faulty_build(const void *state, int64_t rank, struct plan *plan)
{
    const struct faulty *faulty  = state;
    struct plan_request  request = tiny_request(&faulty->tiny, faulty->world, rank);
    status               result  = plan_build(plan, &request);
    if (!failed(&result) && (rank == faulty->rank || faulty->rank == FAULTY_ALL)) {
        faulty->plant(plan, find_op(plan, faulty->role, faulty->layer, faulty->microbatch));
    }
    return result;
}

status faulty_verify(const struct faulty *faulty, struct job_proof *proof)
{
    return job_verify_plans(&(struct job_plans){.build = faulty_build, .state = faulty}, proof);
}
