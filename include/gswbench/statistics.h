// SPDX-License-Identifier: MIT
// Computes robust statistics of step times, based on order statistics. No value is dropped.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Statistics of a series of `count` values. A field is NaN if count is below the field's n.
struct statistics {
    int64_t count;
    double  median, mean, minimum, maximum;
    // 95 % confidence interval of the median, from order statistics, wider for autocorrelated series; n >= 6.
    double  low, high;
    double  p05, p95;     // percentiles by nearest rank; n >= 20
    double  variation;    // standard deviation / mean; n >= 2
    double  drift;        // Theil-Sen slope per step / median; n >= 10
    double  trend;        // drift over the whole series: the value in its 99 % interval nearest to 0; n >= 10
    double  wander;       // median of |median of block - median| over 8 successive blocks, / median; n >= 1
    double  swing;        // highest / lowest level of three steps - 1; below 30 values: second highest / lowest; n >= 4
    double  error;        // relative standard error of the median, with autocorrelation; n >= 2
    int64_t outliers;     // |x - median| > 14.826 * median absolute deviation
};

void statistics_compute(struct statistics *statistics, const double *values, int64_t count);

// Returns the longer side of the median's 95 % interval, divided by the median; NaN below six values.
double statistics_half_width(const double *values, int64_t count);

void statistics_sort(double *values, int64_t count);

// Returns the median; NaN if count is 0.
double statistics_median(const double *values, int64_t count);
// Returns the median distance of the values from `center`; NaN if count is 0.
double statistics_deviation(const double *values, int64_t count, double center);
// Returns the median, or the lower of the two middle values; count >= 1.
double statistics_lower_median(const double *values, int64_t count);
// Returns a lower confidence bound: the true median is below it with a probability of at most `chance`. Assumes
// independent values; NaN if there are too few.
double statistics_minimum_median(const double *values, int64_t count, double chance);

// Marks outliers; flags is [count].
void statistics_flag_outliers(const double *values, int64_t count, bool *flags);

// The 95th percentile of a run's step times divided by their median, from MLPerf runs of about this many GPUs and this
// step time. A system's value is the median over its runs. typical: median over systems; largest: maximum over systems.
// Both are NaN if steps are shorter than in any MLPerf run. docs/logs.md has the sources.
struct step_spread {
    double typical, largest;
};
struct step_spread statistics_public_spread(int64_t gpus, double step_seconds);

// Compares a second series of step times with a first, as docs/method.md describes.
enum change_verdict { CHANGE_SAME, CHANGE_FASTER, CHANGE_SLOWER, CHANGE_AMBIGUOUS, CHANGE_COUNT };
extern const char *const statistics_change_names[];    // "same", ...; ends with NULL

struct statistics_change {
    double  speedup;      // first median / second median
    double  low, high;    // range of the speedup over the confidence intervals of both medians
    double  relative;     // second median / first median - 1
    double  margin;       // noise limit: the threshold, or more for uncertain medians or a large wander or swing
    bool    swings;       // the swing of one series sets the margin
    bool    is_short;     // one series has fewer than CHANGE_COUNT_MIN values
    int64_t verdict;      // enum change_verdict
};

// Minimum number of steps for a comparison. Shorter series give CHANGE_AMBIGUOUS.
enum { CHANGE_COUNT_MIN = 11 };

void statistics_compare(struct statistics_change *change, const struct statistics *first,
                        const struct statistics *second, double threshold);
