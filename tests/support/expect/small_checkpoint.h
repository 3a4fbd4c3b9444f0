// SPDX-License-Identifier: MIT
// A plan with a few weights, and a new folder for them.
#pragma once

#include "folder.h"
#include "gswbench/plan.h"

// Setup of each test; remove_folder is its teardown. It does not create the folder itself.
void make_base(void);

extern char weights_folder[64];
const char *in_folder(const char *name);

// Tests run in separate processes, so they may change the non-const objects.
extern struct tensor     small_tensors[2];
extern struct weight     small_weights[2];
extern struct plan_unit  small_unit;
extern const struct plan small_plan;
