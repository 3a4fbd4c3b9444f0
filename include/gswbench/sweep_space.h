// SPDX-License-Identifier: MIT
// The layouts of a job that a sweep goes through.
#ifndef GSWBENCH_SWEEP_SPACE_H
#define GSWBENCH_SWEEP_SPACE_H

#include "gswbench/job.h"
#include "gswbench/sweep.h"

struct sweep_list {
    struct plan_request *layouts;    // the caller frees
    int64_t              count;
};

// The legal layouts of the job at the ranks of its mesh, in a fixed order; its own is one of them, if it has one.
void sweep_list(struct sweep_list *list, const struct job *job);

// Where none of them fits: which one needs the least memory, and what would help: more ranks, another machine. One
// line.
void sweep_advise(char *text, size_t bytes, const struct job *job, const struct machine *machine);

#endif
