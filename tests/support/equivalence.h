// SPDX-License-Identifier: MIT
// Trains the same global batch, split over ranks and microbatches in different ways. Results must be equal up to
// rounding.
#pragma once

#include "training.h"

enum { EQUIVALENCE_STEPS = 5, EQUIVALENCE_SEQUENCES = 8 };

struct training equivalence_init(int64_t ranks, int64_t accumulation);
struct training equivalence_train(int64_t ranks, int64_t accumulation);

// Counts differences beyond relative tolerances: 1e-6 for losses, and 1e-5 for gradient norms.
int  equivalence_count_differences(const struct training *cut, const struct training *reference);
bool equivalence_same_bits(const struct training *a, const struct training *b);
