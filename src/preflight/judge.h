// SPDX-License-Identifier: MIT
// Shared by judging devices, groups and links.
#ifndef GSWBENCH_PREFLIGHT_JUDGE_H
#define GSWBENCH_PREFLIGHT_JUDGE_H

#include "gswbench/preflight.h"

// Reference value of the class; sorts values. NaN if there are none.
double judge_like(const struct preflight_class *value_class, double *values, int64_t count);
// By how much the value is slower than the reference, in percent.
double                    judge_percent(const struct preflight_class *value_class, double like, double value);
struct preflight_outlier *judge_add(struct preflight_report *report, const struct preflight_class *value_class,
                                    enum preflight_blame blame, double percent);

#endif
