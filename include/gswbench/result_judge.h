// SPDX-License-Identifier: MIT
// How a result is judged: what is wrong, what cannot be trusted, and whether the machine passes.
#ifndef GSWBENCH_RESULT_JUDGE_H
#define GSWBENCH_RESULT_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/result_parts.h"

struct result;

// Whether it is one step that no job has done, which has neither a course nor a loss: an emulation, a prediction.
bool result_is_simulated(const struct result *result);
bool result_is_predicted(const struct result *result);
// Whether the run was shown to be right. Otherwise its figures are kept apart, and no text shows them as its result.
bool result_is_right(const struct result *result);
// Whether figures may be shown and compared: those of such a run, and those of a simulation, which are marked as such.
bool result_is_shown(const struct result *result);
// Whether figures are compared without being asked to (--force): VALID runs and simulations.
bool result_is_clean(const struct result *result);

// How far a run's times can be trusted, by the limits of quality_check.c: deviation over mean; share of the step time
// that changes over the run; threads a core; share of a host's processors that others took.
enum quality { QUALITY_VARIATION, QUALITY_DRIFT, QUALITY_SHARING, QUALITY_FOREIGN, QUALITY_COUNT };
// Adds a note that begins with these words where the value is above the first limit; above the second the result is
// DEGRADED. NaN is above none.
void result_judge(struct result *result, enum quality quality, double value, int64_t rank, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// No device executes more than its peak: a step is INVALID when it is shorter than what it executes takes at the peak.
void result_check_peak(struct result *result);

// Derives the figures and judges steps, replicas, allocations and clocks; exit_code follows from the verdict.
void result_check(struct result *result);

// acceptance.c: the verdict on the machine and its reason, of what is expected and of the judged run.
void result_accept(struct result *result);
int  result_acceptance_code(enum acceptance verdict);

#endif
