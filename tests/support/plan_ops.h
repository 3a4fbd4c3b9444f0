// SPDX-License-Identifier: MIT
// Finds and counts ops of a plan by role, kind and phase.
#pragma once

#include "gswbench/plan.h"

enum { ANY = -2 };    // any layer, microbatch or phase; -1: ops that have none

// Returns the first op with this role in this layer and microbatch. The program ends if there is none.
int32_t find_op(const struct plan *plan, const char *role, int layer, int microbatch);

int count_ops(const struct plan *plan, enum op_kind kind, int phase);

// Returns the roles of the ops of a phase in a layer, comma-separated. The next call overwrites the text.
char *list_roles(const struct plan *plan, int phase, int layer);
