// SPDX-License-Identifier: MIT
// Synthetic tokens and initial weights, independent of the layout: a value depends on (seed, stream, index) alone.
#ifndef GSWBENCH_DATA_H
#define GSWBENCH_DATA_H

#include <stdint.h>

#include "gswbench/plan.h"
#include "gswbench/run.h"
#include "gswbench/step.h"

// What samples are drawn from.
struct data_source {
    enum data_kind kind;
    uint64_t       seed;
    int64_t        vocab, sequence;
};

// The sequence + 1 tokens of one sample. sample counts over the run: step * global_batch + place in the batch.
void data_sample(const struct data_source *source, int64_t sample, int32_t *tokens);

// Fills the plan's token and target tensors for a step (0-based), and its hyperparameters.
void data_fill(struct step *step, const struct plan *plan, enum data_kind kind, uint64_t seed, int64_t step_index);

// Initial values of elements first .. first + count - 1 (of the whole tensor, row-major) of a weight part.
void data_weight_values(const struct weight_part *part, uint64_t seed, int64_t first, int64_t count, float *values);

// Fills weights, masters, moments and the rope table before the first step. Called by all ranks, since those of a group
// may agree on how weights are stored.
void data_initialise(struct step *step, const struct plan *plan, uint64_t seed);

// What of it no checkpoint has: the rope table, and scales as they are before a first step.
void data_initialise_state(struct step *step, const struct plan *plan);

#endif
