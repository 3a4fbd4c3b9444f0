// SPDX-License-Identifier: MIT
// Adds observations of healthy devices to a synthetic result.
#pragma once

#include "gswbench/result.h"

// Gives the result this number of ranks, two per host. Each has an H100 that was observed in 40 samples: SM clock 1755
// MHz, 690 of 700 W, 18 NVLinks, 8000 J. Rank r has PCI bus r + 1.
void fixture_observe(struct result *result, int64_t ranks);
