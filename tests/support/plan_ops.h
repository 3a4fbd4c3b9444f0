// SPDX-License-Identifier: MIT
// Finds and counts ops of a plan by role, kind and phase.
#pragma once

#include "gswbench/plan.h"

enum { ANY = -2 };    // layer, microbatch or phase; -1: ops that have none

// The first op with that role in that layer and microbatch; the program ends if there is none.
int32_t find_op(const struct plan *plan, const char *role, int layer, int microbatch);

int count_ops(const struct plan *plan, enum op_kind kind, int phase);

// The roles of one phase on one layer, comma-separated. The next call overwrites the text.
char *list_roles(const struct plan *plan, int phase, int layer);
