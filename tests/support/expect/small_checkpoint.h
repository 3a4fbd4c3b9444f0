// SPDX-License-Identifier: MIT
// A plan with a few weights, and a new folder for checkpoints of them.
#pragma once

#include "folder.h"
#include "gswbench/plan.h"

// Set-up of each test; remove_folder is the teardown. Creates the folder of the test, but not weights_folder in it.
void make_base(void);

extern char weights_folder[64];
const char *in_folder(const char *name);

// Each test runs in its own process, so it may change the objects that are not const.
extern struct tensor     small_tensors[2];
extern struct weight     small_weights[2];
extern struct plan_unit  small_unit;
extern const struct plan small_plan;
