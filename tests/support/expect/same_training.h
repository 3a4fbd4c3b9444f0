// SPDX-License-Identifier: MIT
// Whether a layout trains as one rank does: losses, gradient norms, and the weights afterwards.
#ifndef GSWBENCH_TESTS_SAME_TRAINING_H
#define GSWBENCH_TESTS_SAME_TRAINING_H

#include "training.h"

// Relative errors that are allowed; that of a tensor is by its norm.
struct closeness {
    double loss, norm, weights;
};

// A training of a tiny model of that many sequences a step: rows of layouts.h, the second on top of the first.
struct training training_of(const char *model, const char *layout, int64_t sequences, int steps);

void expect_near(float value, float expected, double tolerance, const char *what);

// Runs both.
void expect_same_training(struct training *many, struct training *one, const struct closeness *closeness,
                          const char *layout);

#endif
