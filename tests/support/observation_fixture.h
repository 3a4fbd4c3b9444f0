// SPDX-License-Identifier: MIT
// Adds observations of healthy devices to a synthetic result.
#pragma once

#include "gswbench/result.h"

// Gives the result that many ranks, two per host, each with an H100 observed for 40 samples: SM clock 1755 MHz, 690 W
// of 700, 18 NVLinks, 8000 J. Rank r has PCI bus r + 1.
void fixture_observe(struct result *result, int64_t ranks);
