// SPDX-License-Identifier: MIT
// Healthy devices of a made-up result's ranks.
#ifndef GSWBENCH_TESTS_OBSERVATION_FIXTURE_H
#define GSWBENCH_TESTS_OBSERVATION_FIXTURE_H

#include "gswbench/result.h"

// Gives the result that many ranks, two on a host, each with an H100 that was observed for 40 samples: SM clock 1755
// MHz, 690 W of 700, 18 NVLinks, 8000 J. Rank r's PCI bus is r + 1.
void fixture_observe(struct result *result, int64_t ranks);

#endif
