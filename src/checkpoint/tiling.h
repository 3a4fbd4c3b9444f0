// SPDX-License-Identifier: MIT
// Whether slices tile their tensor.
#ifndef GSWBENCH_CHECKPOINT_TILING_H
#define GSWBENCH_CHECKPOINT_TILING_H

#include "catalogue.h"

enum tiling { TILING_WHOLE, TILING_OVERLAP, TILING_HOLE };

// The slices are sorted by row and column. wrong: the slice that overlaps one before it. Takes n log n.
enum tiling tiling_find(const struct stored_tensor *tensor, const struct stored **wrong);

#endif
