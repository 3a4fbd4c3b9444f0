// SPDX-License-Identifier: MIT
// The layouts that a sweep considers.
#pragma once

#include "gswbench/job.h"
#include "gswbench/sweep.h"

struct sweep_list {
    struct plan_request *layouts;    // freed by the caller
    int64_t              count;
};

// Lists the legal layouts of the job for the ranks of its mesh, in a fixed order. The list contains the job's own
// layout if it has one.
void sweep_list(struct sweep_list *list, const struct job *job);

// Advises in one line if no layout fits: the layout with the least memory, and whether more ranks or another machine
// help.
void sweep_advise(char *text, size_t bytes, const struct job *job, const struct machine *machine);
