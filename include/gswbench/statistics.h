// SPDX-License-Identifier: MIT
// Statistics of a series of step times. Robust by order statistics; nothing is ever dropped.
#ifndef GSWBENCH_STATISTICS_H
#define GSWBENCH_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

// A value that needs more steps than there are is NaN.
struct statistics {
    int64_t count;
    double  median, mean, minimum, maximum;
    double  low,
        high;    // 95 % confidence interval of the median: order statistics, wider where steps are alike; n >= 6
    double  p05, p95;     // nearest rank; n >= 20
    double  variation;    // deviation / mean; n >= 2
    double  drift;        // Theil-Sen slope per step over the median; n >= 10
    double  trend;        // of the drift over the whole series, what its 99 % interval leaves beyond doubt; n >= 10
    double  wander;       // median absolute deviation of the medians of 8 successive blocks over the median; n >= 1
    double  swing;        // how far levels at which steps stay are apart, over the lower; n >= 4
    double  error;        // standard error of the median over it, with the likeness of successive steps; n >= 2
    int64_t outliers;     // |x - median| > 14.826 * median absolute deviation
};

void statistics_compute(struct statistics *statistics, const double *values, int64_t count);

// Of the 95 % interval, the longer side over the median. NaN below six values.
double statistics_half_width(const double *values, int64_t count);

// NaN of none.
double statistics_median(const double *values, int64_t count);
// The lower of two middle values; count >= 1.
double statistics_lower_median(const double *values, int64_t count);
// What the true median of values that do not depend on each other lies below with no more than that chance: an order
// statistic. NaN where there are too few of them.
double statistics_least_median(const double *values, int64_t count, double chance);

// Marks outliers; flags is [count].
void statistics_flag_outliers(const double *values, int64_t count, bool *flags);

// How a second series of step times compares with a first. docs/method.md has the rule.
enum change_verdict { CHANGE_SAME, CHANGE_FASTER, CHANGE_SLOWER, CHANGE_AMBIGUOUS, CHANGE_COUNT };
extern const char *const statistics_change_names[];    // "same", ...; ends with NULL

struct statistics_change {
    double  speedup;      // the first median over the second
    double  low, high;    // what the intervals of both medians leave open
    double  relative;     // of the medians: second / first - 1
    double  margin;       // the smallest change that counts: the threshold, or more where the series wander or swing
    bool    swings;       // the margin is the swing of one series
    bool    is_short;     // fewer than CHANGE_COUNT_MIN values in one series
    int64_t verdict;      // enum change_verdict
};

// With fewer steps in one series the verdict is CHANGE_AMBIGUOUS.
enum { CHANGE_COUNT_MIN = 11 };

void statistics_compare(struct statistics_change *change, const struct statistics *first,
                        const struct statistics *second, double threshold);

#endif
