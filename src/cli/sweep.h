// SPDX-License-Identifier: MIT
// The sweep of predict: the layouts that it goes through, and what it prints.
#ifndef GSWBENCH_CLI_SWEEP_H
#define GSWBENCH_CLI_SWEEP_H

#include "gswbench/sweep.h"
#include "internal.h"

struct sweep_list {
    struct sweep_layout *layouts;    // the caller frees
    int64_t              count;
};

// sweep_space.c: the legal layouts of the job, in a fixed order.
void sweep_list(struct sweep_list *list, const struct job *job);

// sweep.c
status sweep_print(const struct config_arguments *arguments, bool json, struct text_buffer *errors);

#endif
