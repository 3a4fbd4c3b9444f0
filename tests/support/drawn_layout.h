// SPDX-License-Identifier: MIT
// Draws random layouts and models from everything that plans support.
#pragma once

#include "training.h"

enum { DRAWN_RANKS_MAX = 16 };

// Returns the first draw of this seed for which a plan can be built.
struct training drawn_layout(uint64_t seed);
// The same with linears in FP8 or FP4. Router biases decide the choice of experts, so that rounding does not change it.
struct training drawn_low_precision(uint64_t seed);

struct plan_sections drawn_layout_sections(const struct training *training);
bool                 drawn_layout_is_planned(const struct training *training);    // returns whether a plan can be built
