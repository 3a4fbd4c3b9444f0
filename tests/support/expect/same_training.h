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

// All ranks of the layout are verified, without findings.
void expect_proof(const char *model, const char *layout, int64_t sequences);

void expect_near(float value, float expected, double tolerance, const char *what);

// Runs both and compares them.
void expect_same_training(struct training *many, struct training *one, const struct closeness *closeness,
                          const char *layout);
