// SPDX-License-Identifier: MIT
// What happens in the course of the traced step: what memory is used, and which turn each pipeline stage takes.
#ifndef GSWBENCH_RESULT_COURSE_H
#define GSWBENCH_RESULT_COURSE_H

#include <stdint.h>

#include "gswbench/plan.h"

struct result;

// The most that activations of rank 0 take from that moment to the next, of as many as the step is cut into.
enum { RESULT_MOMENTS = 128 };
struct result_moment {
    double  seconds;
    int64_t bytes;
};

// A stage computes one microbatch of one chunk in one phase, or its share of the optimizer: chunk and microbatch -1.
struct result_turn {
    int64_t stage;
    char    phase[16];
    int64_t chunk, microbatch;
    double  begin, end;    // seconds
};

// Of rank 0's plan, whose ops ran at those times.
void result_set_moments(struct result *result, const struct plan *plan, const struct op_time *times);

// The turns of the plan's stage, which follow each other. A stage that takes more than RESULT_TURNS of them has one for
// each of as many equal parts of its time: what it does in the middle of that.
enum { RESULT_TURNS = 256 };
int64_t result_find_turns(struct result_turn turns[RESULT_TURNS], const struct plan *plan, const struct op_time *times);
void    result_add_turns(struct result *result, const struct result_turn *turns, int64_t count);

#endif
