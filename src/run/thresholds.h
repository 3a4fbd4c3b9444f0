// SPDX-License-Identifier: MIT
// User thresholds for one run.
#ifndef GSWBENCH_RUN_THRESHOLDS_H
#define GSWBENCH_RUN_THRESHOLDS_H

#include <stdio.h>

#include "gswbench/result.h"
#include "gswbench/run.h"
#include "gswbench/status.h"

// Checks the syntax of run.fail_below and fail_above.
status thresholds_check(const struct run_config *run);

// Prints a line per threshold. Returns EXIT_VALID, EXIT_GATE if one is missed, or EXIT_UNDECIDED if one is
// inconclusive, as all are for a run that is not VALID unless is_forced.
int thresholds_judge(const struct result *result, const struct run_config *run, bool is_forced, FILE *file);

#endif
