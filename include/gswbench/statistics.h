// SPDX-License-Identifier: MIT
// Statistics of a series of step times. Robust by order statistics; nothing is ever dropped.
#ifndef GSWBENCH_STATISTICS_H
#define GSWBENCH_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

// Values that need more samples than there are, are NaN.
struct statistics {
    int64_t count;
    double  median, mean, minimum, maximum;
    double  low, high;    // 95 % confidence interval of the median, order statistics; n >= 6
    double  p05, p95;     // nearest rank; n >= 20
    double  variation;    // deviation / mean; n >= 2
    double  drift;        // Theil-Sen slope per step over the median; n >= 10
    int64_t outliers;     // |x - median| > 14.826 * median absolute deviation
};

void statistics_compute(struct statistics *statistics, const double *values, int64_t count);

// Marks outliers; flags is [count].
void statistics_flag_outliers(const double *values, int64_t count, bool *flags);

#endif
