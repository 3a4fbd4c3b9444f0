// SPDX-License-Identifier: MIT
// Trains the same global batch, split over ranks and microbatches in different ways, and compares the results: they
// must agree up to rounding.
#pragma once

#include "training.h"

enum { EQUIVALENCE_STEPS = 5, EQUIVALENCE_SEQUENCES = 8 };

struct training equivalence_init(int64_t ranks, int64_t accumulation);
struct training equivalence_train(int64_t ranks, int64_t accumulation);

// Relative tolerances: losses 1e-6, gradient norms 1e-5.
int  equivalence_count_differences(const struct training *cut, const struct training *reference);
bool equivalence_same_bits(const struct training *a, const struct training *b);
