// SPDX-License-Identifier: MIT
// Synthetic tokens and initial weights: functions of (seed, stream, index) alone, so the parallel layout does not
// matter.
#pragma once

#include <stdint.h>

#include "gswbench/plan.h"
#include "gswbench/run.h"
#include "gswbench/step.h"

struct data_source {
    enum data_kind kind;
    uint64_t       seed;
    int64_t        vocab, sequence;
};

// The sequence + 1 tokens of a sample, numbered over the run: step * global_batch + position in the batch.
void data_sample(const struct data_source *source, int64_t sample, int32_t *tokens);

// Fills the plan's token and target tensors for a step (0-based), and its hyperparameters.
void data_fill(struct step *step, const struct plan *plan, enum data_kind kind, uint64_t seed, int64_t step_index);

// Initial values of elements first .. first + count - 1 of a weight part, row-major in the full tensor.
void data_weight_values(const struct weight_part *part, uint64_t seed, int64_t first, int64_t count, float *values);

// Initializes weights, masters, moments and the RoPE table before the first step. Collective, since a group may agree
// on the scales of stored weights.
void data_initialise(struct step *step, const struct plan *plan, uint64_t seed);

// Initializes state that no checkpoint has: the RoPE table and the first FP8 scales.
void data_initialise_state(struct step *step, const struct plan *plan);
