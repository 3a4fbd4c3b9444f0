// SPDX-License-Identifier: MIT
// Verifies a step's optimizer on a sample of its inputs.
#ifndef GSWBENCH_VALIDATE_OPTIMIZER_H
#define GSWBENCH_VALIDATE_OPTIMIZER_H

#include "gswbench/validate.h"

struct sample {
    char   *data;    // host memory; NULL: nothing saved
    int64_t bytes;
    int64_t turn;    // number of samples taken; each starts at other elements
};

// sample_state_bytes is the size of the state that AdamW reads and writes. sample_bytes is the size of the sample: all
// of it up to most, else the same share of each AdamW op.
int64_t sample_state_bytes(const struct plan *plan);
int64_t sample_bytes(const struct plan *plan, int64_t most);

// Saves a sample of master weights, weights and moments before a step.
void sample_take(struct sample *sample, const struct validation_setup *setup);
void sample_close(struct sample *sample, const struct validation_setup *setup);

// After the step, runs AdamW on the sample with the step's gradients, in other memory. Returns the first op whose
// output differs, or -1. elements: number of compared elements.
int32_t sample_compare(struct sample *sample, const struct validation_setup *setup, int64_t *elements);

#endif
