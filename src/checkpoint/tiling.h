// SPDX-License-Identifier: MIT
// Checks that slices tile their tensor.
#pragma once

#include "catalogue.h"

enum tiling { TILING_WHOLE, TILING_OVERLAP, TILING_HOLE };

// Slices are sorted by row and column. wrong: a slice that overlaps an earlier one. O(n log n).
enum tiling tiling_find(const struct stored_tensor *tensor, const struct stored **wrong);
