// SPDX-License-Identifier: MIT
// Timeline of the traced step: activation memory on rank 0, and the pipeline actions of each stage.
#ifndef GSWBENCH_RESULT_COURSE_H
#define GSWBENCH_RESULT_COURSE_H

#include <stdint.h>

#include "gswbench/plan.h"

struct result;

// Maximum of activation memory on rank 0 from this time to the next; the step is cut into RESULT_MOMENTS equal parts.
enum { RESULT_MOMENTS = 128 };
struct result_moment {
    double  seconds;
    int64_t bytes;
};

// A pipeline action: one phase of one microbatch and chunk, or a stage's reductions and optimizer (chunk and microbatch
// -1).
struct result_turn {
    int64_t stage;
    char    phase[16];
    int64_t chunk, microbatch;
    double  begin, end;    // seconds
};

// plan is rank 0's; times has an entry for each op.
void result_set_moments(struct result *result, const struct plan *plan, const struct op_time *times);

// Returns the number of pipeline actions of the plan's stage, in order. With more than RESULT_TURNS, the step is cut
// into RESULT_TURNS equal parts, and each has the action at its middle.
enum { RESULT_TURNS = 256 };
int64_t result_find_turns(struct result_turn turns[RESULT_TURNS], const struct plan *plan, const struct op_time *times);
void    result_add_turns(struct result *result, const struct result_turn *turns, int64_t count);

#endif
