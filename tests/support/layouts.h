// SPDX-License-Identifier: MIT
// Layouts in words, for tables of them: "dp 2; tp 4; zero 1; recompute full". A row sets options of [parallel],
// [train], [model] and [precision] by their keys, and is its own name.
#ifndef GSWBENCH_TESTS_LAYOUTS_H
#define GSWBENCH_TESTS_LAYOUTS_H

#include "tiny.h"

enum { LAYOUT_NAME_BYTES = 1024 };

// Sets what the row names, and leaves the rest. Returns the ranks.
int layout_apply(struct tiny *tiny, const char *row);

// Deals so many sequences to the ranks and microbatches that there are.
void layout_deal(struct tiny *tiny, int64_t sequences);

// The same model and global batch on one rank: in one microbatch, or in microbatches that are as large as they were.
void layout_alone(struct tiny *tiny);
void layout_alone_in_turn(struct tiny *tiny);

// The row that makes these options of those of tiny_init.
const char *layout_name(const struct tiny *tiny, char name[LAYOUT_NAME_BYTES]);

#endif
