// SPDX-License-Identifier: MIT
// What judging devices, groups and links shares.
#ifndef GSWBENCH_PREFLIGHT_JUDGE_H
#define GSWBENCH_PREFLIGHT_JUDGE_H

#include "gswbench/preflight.h"

// What values of this class are compared with; sorts them. NaN of none.
double judge_like(const struct preflight_class *value_class, double *values, int64_t count);
// By how much longer than its like this one takes.
double                    judge_percent(const struct preflight_class *value_class, double like, double value);
struct preflight_outlier *judge_add(struct preflight_report *report, const struct preflight_class *value_class,
                                    enum preflight_blame blame, double percent);

#endif
