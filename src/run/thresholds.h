// SPDX-License-Identifier: MIT
// What a user demands of one run.
#ifndef GSWBENCH_RUN_THRESHOLDS_H
#define GSWBENCH_RUN_THRESHOLDS_H

#include <stdio.h>

#include "gswbench/result.h"
#include "gswbench/run.h"
#include "gswbench/status.h"

// Whether run.fail_below and fail_above can be read.
status thresholds_check(const struct run_config *run);

// Prints a line for each; returns EXIT_VALID, EXIT_GATE where one is missed, else EXIT_UNDECIDED where one cannot be
// told. A run that is not VALID decides nothing unless is_forced.
int thresholds_judge(const struct result *result, const struct run_config *run, bool is_forced, FILE *file);

#endif
