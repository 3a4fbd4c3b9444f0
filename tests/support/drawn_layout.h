// SPDX-License-Identifier: MIT
// Draws trainings with random layouts from everything that the plan supports.
#pragma once

#include "training.h"

enum { DRAWN_RANKS_MAX = 16 };

// The first attempt of the seed whose plan can be built.
struct training drawn_layout(uint64_t seed);

struct plan_sections drawn_layout_sections(const struct training *training);
bool                 drawn_layout_is_planned(const struct training *training);    // whether a plan can be built
