// SPDX-License-Identifier: MIT
// Validity checks of a result, reliability of its times, and acceptance of the machine.
#ifndef GSWBENCH_RESULT_JUDGE_H
#define GSWBENCH_RESULT_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/result_parts.h"

struct result;

// Whether the result is a simulated step (emulated or predicted), which has no training steps and no loss.
bool result_is_simulated(const struct result *result);
bool result_is_predicted(const struct result *result);
// Whether the run passed the numeric checks (VALID or DEGRADED). Other figures are stored under another key and not
// printed as the result.
bool result_is_right(const struct result *result);
// Whether figures may be shown and compared: a correct run, or a simulation, which is marked as one.
bool result_is_shown(const struct result *result);
// Whether figures are compared without --force: VALID runs and simulations.
bool result_is_clean(const struct result *result);

// Reliability criteria, with limits in quality_check.c: coefficient of variation; relative drift over the run; threads
// per core; share of a host's processors that other processes took.
enum quality { QUALITY_VARIATION, QUALITY_DRIFT, QUALITY_SHARING, QUALITY_FOREIGN, QUALITY_COUNT };
// Adds a note if value is above the first limit; above the second the result is DEGRADED. format begins the message.
// NaN is above neither.
void result_judge(struct result *result, enum quality quality, double value, int64_t rank, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// Marks the result INVALID if a step is shorter than its executed FLOPs take at the peak.
void result_check_peak(struct result *result);

// Derives the figures and checks steps, replicas, allocations and clocks. exit_code follows from the verdict.
void result_check(struct result *result);

// acceptance.c: sets the acceptance verdict and its reason from the expected step time and the judged run.
void result_accept(struct result *result);
int  result_acceptance_code(enum acceptance verdict);

#endif
