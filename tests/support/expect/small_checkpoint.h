// SPDX-License-Identifier: MIT
// A plan of a few weights, and a new folder that they can be written to.
#ifndef GSWBENCH_TESTS_SMALL_CHECKPOINT_H
#define GSWBENCH_TESTS_SMALL_CHECKPOINT_H

#include "gswbench/plan.h"

// Before and after each test. The folder itself is not made.
void make_base(void);
void remove_base(void);

extern char weights_folder[64];
const char *in_folder(const char *name);

// A test may change what is not const: each test is a process of its own.
extern struct tensor     small_tensors[2];
extern struct weight     small_weights[2];
extern struct plan_unit  small_unit;
extern const struct plan small_plan;

#endif
