// SPDX-License-Identifier: MIT
// Compares the training of a layout with the training on one rank: losses, gradient norms, and final weights.
#pragma once

#include "training.h"

// Relative tolerances. The tolerance of weights is relative to the norm of a tensor.
struct closeness {
    double loss, norm, weights;
};

// Returns a training of a tiny model with this number of sequences per step. Both rows have the form of layouts.h;
// options in `layout` override those in `model`.
struct training training_of(const char *model, const char *layout, int64_t sequences, int steps);

// Expects that the plan is refused with exit code 3 and a text that contains `remedy`.
void expect_refusal(const char *model, const char *layout, int64_t sequences, const char *remedy);

// Expects that the plan of every rank passes gswbench's check.
void expect_proof(const struct training *training, const char *name);

void expect_near(float value, float expected, double tolerance, const char *what);

// Runs both trainings and compares them.
void expect_same_training(struct training *many, struct training *one, const struct closeness *closeness,
                          const char *layout);

// Returns the training with the same model and batch on one rank. `alone` is layout_alone or layout_alone_in_turn.
struct training on_one_rank(const struct training *many, void (*alone)(struct tiny *tiny));

// Compares a training with one rank, which sums FP32 or BF16 numbers in another order.
void expect_as_one_rank(struct training *many, void (*alone)(struct tiny *tiny), const char *layout);

// Runs `many` and compares its losses with the losses of `one`, which has already run.
void expect_losses(struct training *many, const struct training *one, double tolerance, const char *layout);
