// SPDX-License-Identifier: MIT
// All that outlives a step: copies and hashes of it, in the host's memory.
#ifndef GSWBENCH_VALIDATE_STATE_H
#define GSWBENCH_VALIDATE_STATE_H

#include "gswbench/plan.h"
#include "gswbench/step.h"

// What it holds of the storages whose bit is set: 1 << STORAGE_WEIGHT | ...
struct state {
    const struct plan *plan;
    struct step       *step;
    uint32_t           storages;
    char              *data[STORAGE_COUNT];    // NULL: not held, or nothing in it
};

enum {
    STATE_LASTING = 1 << STORAGE_WEIGHT | 1 << STORAGE_GRADIENT | 1 << STORAGE_OPTIMIZER | 1 << STORAGE_RESULT,
    STATE_RESULT  = 1 << STORAGE_RESULT,    // FP8's scales among them, which a step changes whatever comes out of it
};

// Fails (EXIT_MEMORY) where the host has no room; close frees what there is.
status state_open(struct state *state, const struct plan *plan, struct step *step, uint32_t storages);
void   state_save(const struct state *state);
void   state_restore(const struct state *state);
void   state_close(struct state *state);

// Of each tensor of these storages that is no part of another: hashes[plan->tensor_count], 0 for the others.
void state_hash(const struct plan *plan, const struct step *step, uint64_t *hashes);

#endif
