// SPDX-License-Identifier: MIT
// Trainings of layouts drawn at random from all that the plan supports.
#ifndef GSWBENCH_TESTS_DRAWN_LAYOUT_H
#define GSWBENCH_TESTS_DRAWN_LAYOUT_H

#include "training.h"

enum { DRAWN_NAME_BYTES = 384, DRAWN_RANKS_MAX = 16 };

// The first attempt of the seed whose plan can be built.
struct training drawn_layout(uint64_t seed);

// The same global batch and model on one rank.
struct training drawn_layout_alone(const struct training *training);

struct plan_sections drawn_layout_sections(const struct training *training);

const char *drawn_layout_name(const struct training *training, uint64_t seed, char name[DRAWN_NAME_BYTES]);

#endif
