// SPDX-License-Identifier: MIT
// The optimizer of a step, proven with a part of what it began with.
#ifndef GSWBENCH_VALIDATE_OPTIMIZER_H
#define GSWBENCH_VALIDATE_OPTIMIZER_H

#include "gswbench/validate.h"

struct sample {
    char   *data;     // of the host; NULL: nothing is kept
    int64_t bytes;    // of it
    int64_t turn;     // how often a part was taken: each time it begins elsewhere
};

// What AdamW reads and changes, in bytes; and how much of it is kept: all of it up to most, else as much of each AdamW.
int64_t sample_state_bytes(const struct plan *plan);
int64_t sample_bytes(const struct plan *plan, int64_t most);

// Keeps a part of masters, weights and moments before a step.
void sample_take(struct sample *sample, const struct validation_setup *setup);
void sample_close(struct sample *sample, const struct validation_setup *setup);

// After the step: runs AdamW on what was kept, with the step's own gradients, elsewhere. Returns the first op that has
// written other bits; -1: none has. Elements: that were compared.
int32_t sample_compare(struct sample *sample, const struct validation_setup *setup, int64_t *elements);

#endif
