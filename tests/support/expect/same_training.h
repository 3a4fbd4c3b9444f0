// SPDX-License-Identifier: MIT
// Compares the training of a layout with one rank: losses, gradient norms, and final weights.
#pragma once

#include "training.h"

// Relative tolerances; weights: of a tensor's norm.
struct closeness {
    double loss, norm, weights;
};

// A training of a tiny model with that many sequences per step. Both rows are in the form of layouts.h; the second one
// overrides the first.
struct training training_of(const char *model, const char *layout, int64_t sequences, int steps);

// The plan is refused with exit code 3 and a text that contains remedy.
void expect_refusal(const char *model, const char *layout, int64_t sequences, const char *remedy);

// All of its ranks are verified, without findings.
void expect_proof(const struct training *training, const char *name);

void expect_near(float value, float expected, double tolerance, const char *what);

// Runs both and compares them.
void expect_same_training(struct training *many, struct training *one, const struct closeness *closeness,
                          const char *layout);

// The same model and batch on one rank. alone: layout_alone or layout_alone_in_turn.
struct training on_one_rank(const struct training *many, void (*alone)(struct tiny *tiny));

// Compares it with one rank. Sums are in another order, of FP32 or of BF16 numbers.
void expect_as_one_rank(struct training *many, void (*alone)(struct tiny *tiny), const char *layout);

// Runs many and compares its losses with those of one, which has run.
void expect_losses(struct training *many, const struct training *one, double tolerance, const char *layout);
