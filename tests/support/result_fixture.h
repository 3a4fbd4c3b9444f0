// SPDX-License-Identifier: MIT
// A made-up run of 64 ranks whose figures are those of a published table.
#ifndef GSWBENCH_RESULT_FIXTURE_H
#define GSWBENCH_RESULT_FIXTURE_H

#include "gswbench/result.h"

void fixture_open(struct result *result);

// Texts that break out of JSON, CSV, HTML or a terminal where they are not made safe.
void fixture_poison(struct result *result);

#endif
