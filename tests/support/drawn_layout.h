// SPDX-License-Identifier: MIT
// Draws random layouts and models from everything that plans support.
#pragma once

#include "training.h"

enum { DRAWN_RANKS_MAX = 16 };

// Returns the first draw of this seed for which a plan can be built.
struct training drawn_layout(uint64_t seed);
// Returns such a draw with linears in FP8 or FP4. Router biases select the experts of each token, so that rounding
// cannot.
struct training drawn_low_precision(uint64_t seed);

struct plan_sections drawn_layout_sections(const struct training *training);
bool                 drawn_layout_is_planned(const struct training *training);    // returns whether a plan can be built
