// SPDX-License-Identifier: MIT
// Computes order statistics of step times. The confidence interval of the median assumes no distribution: the number of
// values below the true median is binomial with p = 1/2, so two ranks of the sorted values bracket it. Values must be
// independent; autocorrelated series get a wider interval.
#include "gswbench/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"

enum {
    INTERVAL_COUNT_MIN   = 6,
    PERCENTILE_COUNT_MIN = 20,
    DRIFT_COUNT_MIN      = 10,
    DRIFT_COUNT_MAX      = 1024,    // longer series are thinned, because the number of pairs is quadratic
    BLOCKS               = 8,       // blocks of consecutive steps in wander_of
    SHORT_COUNT_MAX      = 29,      // longest series for which swing_of ignores minimum and maximum
    NEIGHBOURS           = 3,       // in a long series, swing_of compares medians of this many steps
};

// Quantiles of the normal distribution, and its standard deviation divided by its median absolute deviation.
static const double two_sided_95 = 1.96, two_sided_99 = 2.576, deviations_per_median = 1.4826;

// Values are clipped to this number of standard deviations from the median.
static const double clipped_at = 3;

// Upper limit of an estimated autocorrelation: at 1 the error would be infinite.
static const double correlation_max = 0.98;

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

// Returns the median of sorted values; count >= 1.
static double median_of(const double *sorted, int64_t count)
{
    return count % 2 == 1 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

// Returns the largest r for which the r-th smallest value exceeds the true median with a probability of at most
// `chance`; 0 if there is none. The r-th value exceeds the median if fewer than r of the `count` values are below it.
// So the probability is the lower tail of the binomial distribution.
static int64_t interval_rank(int64_t count, double chance)
{
    double  log_term = -(double)count * log(2.0);    // log P(k values below); logs, since 0.5^count underflows
    double  tail     = 0;
    int64_t rank     = 0;
    for (int64_t k = 0; k < count; k++) {
        tail += exp(log_term);
        if (tail > chance) {
            break;
        }
        rank = k + 1;
        log_term += log((double)(count - k) / (double)(k + 1));
    }
    return rank;
}

static double nearest_rank(const double *sorted, int64_t count, int64_t percent)
{
    return sorted[(percent * count + 99) / 100 - 1];
}

static double standard_deviation(const double *values, int64_t count, double mean)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += (values[i] - mean) * (values[i] - mean);
    }
    return sqrt(sum / (double)(count - 1));
}

// Returns the end nearest to 0 of the 99 % confidence interval of the Theil-Sen slope (Sen 1968), or 0 if the interval
// contains 0. The ends of the interval are two of the sorted slopes. Kendall's variance of the number of rising pairs
// determines which two.
static double minimum_of(const double *slopes, int64_t pairs, int64_t points)
{
    double  n     = (double)points;
    int64_t reach = (int64_t)ceil(two_sided_99 * sqrt(n * (n - 1) * (2 * n + 5) / 18));
    int64_t rank  = (pairs - reach) / 2;
    if (rank < 1) {
        return 0;
    }
    return slopes[rank - 1] > 0 ? slopes[rank - 1] : fmin(0, slopes[pairs - rank]);
}

// Returns the Theil-Sen slope, the median of the slopes between pairs of values. *lowest: the end of its 99 %
// confidence interval that is nearest to 0, or 0 if the interval contains 0.
static double slope_of(const double *values, int64_t count, double *lowest)
{
    int64_t stride = (count + DRIFT_COUNT_MAX - 1) / DRIFT_COUNT_MAX;
    int64_t points = (count + stride - 1) / stride;
    double *slopes = memory_allocate((size_t)(points * (points - 1) / 2) * sizeof(*slopes));
    int64_t pairs  = 0;
    for (int64_t i = 0; i < count; i += stride) {
        for (int64_t j = i + stride; j < count; j += stride) {
            slopes[pairs++] = (values[j] - values[i]) / (double)(j - i);
        }
    }
    qsort(slopes, (size_t)pairs, sizeof(*slopes), compare);
    double slope = median_of(slopes, pairs);
    *lowest      = minimum_of(slopes, pairs, points);
    free(slopes);
    return slope;
}

void statistics_sort(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
}

// Returns a sorted copy; the caller frees it.
static double *sort(const double *values, int64_t count)
{
    double *sorted = memory_allocate((size_t)count * sizeof(*sorted));
    memcpy(sorted, values, (size_t)count * sizeof(*sorted));
    statistics_sort(sorted, count);
    return sorted;
}

double statistics_median(const double *values, int64_t count)
{
    if (count == 0) {
        return NAN;
    }
    double *sorted = sort(values, count);
    double  median = median_of(sorted, count);
    free(sorted);
    return median;
}

double statistics_deviation(const double *values, int64_t count, double center)
{
    double *distances = memory_allocate((size_t)count * sizeof(*distances));
    for (int64_t i = 0; i < count; i++) {
        distances[i] = fabs(values[i] - center);
    }
    double deviation = statistics_median(distances, count);
    free(distances);
    return deviation;
}

double statistics_lower_median(const double *values, int64_t count)
{
    double *sorted = sort(values, count);
    double  median = sorted[(count - 1) / 2];
    free(sorted);
    return median;
}

double statistics_minimum_median(const double *values, int64_t count, double chance)
{
    int64_t rank   = interval_rank(count, chance);
    double *sorted = sort(values, count);
    double  lowest = rank > 0 ? sorted[rank - 1] : NAN;
    free(sorted);
    return lowest;
}

// Splits the series into blocks of consecutive steps, and takes the median of each block. Returns the median distance
// of these medians from the overall median, divided by it. Blocks show slow changes that single steps do not.
static double wander_of(const double *values, int64_t count, double median)
{
    double  medians[BLOCKS];
    int64_t blocks = count < BLOCKS ? count : BLOCKS;
    for (int64_t block = 0; block < blocks; block++) {
        int64_t first  = block * count / blocks;
        medians[block] = statistics_median(values + first, (block + 1) * count / blocks - first);
    }
    return statistics_deviation(medians, blocks, median) / median;
}

// Returns a copy clipped to three standard deviations from the median, so one slow step does not dominate. The caller
// frees it.
static double *clip(const double *values, int64_t count, double median)
{
    double *clipped = memory_allocate((size_t)count * sizeof(*clipped));
    double  far     = clipped_at * deviations_per_median * statistics_deviation(values, count, median);
    for (int64_t i = 0; i < count; i++) {
        clipped[i] = fmin(fmax(values[i], median - far), median + far);
    }
    return clipped;
}

// Returns the largest plausible lag-1 autocorrelation of `count` values whose sample autocorrelation is c. The sample
// value of a short series is too low by about (1 + 3 c) / count (Kendall 1954); another 8 / count is a safety margin.
static double plausible_correlation(double c, int64_t count)
{
    return fmax(0, fmin(correlation_max, c + (9 + 3 * c) / (double)count));
}

// Returns the lag-1 autocorrelation that widens a confidence interval. c: the sample autocorrelation. Returns 0 if c is
// at most its standard error, 1 / sqrt(count); else adds this error and the bias of short series to c.
static double significant_correlation(double c, int64_t count)
{
    double uncertainty = 1 / sqrt((double)count);
    return c > uncertainty ? fmin(correlation_max, c + (1 + 3 * c) / (double)count + uncertainty) : 0;
}

// Sums over a clipped series. squares: squared deviations from the mean. products: products of two successive
// deviations. steps: squared differences of two successive values.
struct moments {
    double squares, products, steps;
};

static struct moments moments_of(const double *values, int64_t count, double median)
{
    double        *clipped = clip(values, count, median), mean = 0;
    struct moments sums = {0};
    for (int64_t i = 0; i < count; i++) {
        mean += clipped[i] / (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        sums.squares += (clipped[i] - mean) * (clipped[i] - mean);
        sums.products += i > 0 ? (clipped[i] - mean) * (clipped[i - 1] - mean) : 0;
        sums.steps += i > 0 ? (clipped[i] - clipped[i - 1]) * (clipped[i] - clipped[i - 1]) : 0;
    }
    free(clipped);
    return sums;
}

// Returns the relative standard error of the median of an AR(1) series with coefficient r. Its square is pi / 2 times
// the variance of the mean. A short sample of a slowly changing series varies less than the series itself. So the
// variance is also estimated from successive differences, and the larger estimate counts. The error is at most the
// standard deviation of a single value.
static double error_of(const struct moments *sums, int64_t count, double median, double r)
{
    double n        = (double)count;
    double variance = fmax(sums->squares, r > 0 ? sums->steps / (2 * (1 - r)) : 0) / (n - 1);
    double inflated = (1 + r) / (1 - r) - 2 * r * (1 - pow(r, n)) / (n * (1 - r) * (1 - r));
    return sqrt(variance * fmin(1, acos(0) * inflated / n)) / median;
}

// Returns the highest over the lowest sustained level, minus 1. One slow step is no level: a short series ignores its
// minimum and maximum. In a longer one, a level is the median of three successive steps, and the swing is 0 unless
// steps are correlated.
static double swing_of(const double *values, const double *sorted, int64_t count, bool is_correlated)
{
    double low = sorted[1], high = sorted[count - 2];
    if (count > SHORT_COUNT_MAX) {
        low = high = sorted[count / 2];
        for (int64_t i = 0; is_correlated && i + NEIGHBOURS <= count; i++) {
            const double *x      = &values[i];
            double        middle = fmax(fmin(x[0], x[1]), fmin(fmax(x[0], x[1]), x[2]));
            low                  = fmin(low, middle);
            high                 = fmax(high, middle);
        }
    }
    return high / low - 1;
}

void statistics_flag_outliers(const double *values, int64_t count, bool *flags)
{
    double median = statistics_median(values, count), deviation = statistics_deviation(values, count, median);
    for (int64_t i = 0; i < count; i++) {
        flags[i] = fabs(values[i] - median) > 14.826 * deviation;
    }
}

static int64_t count_outliers(const double *values, int64_t count)
{
    bool   *flags    = memory_allocate((size_t)count * sizeof(*flags));
    int64_t outliers = 0;
    statistics_flag_outliers(values, count, flags);
    for (int64_t i = 0; i < count; i++) {
        outliers += flags[i];
    }
    free(flags);
    return outliers;
}

// Computes the median's relative error and 95 % confidence interval. If the values are correlated, the interval reaches
// at least 1.96 standard errors from the median. sorted: the values in ascending order.
static void bracket(struct statistics *statistics, const double *values, const double *sorted, int64_t count)
{
    double median = median_of(sorted, count), correlation = 0, reach = 1;
    if (count >= 2) {
        struct moments sums     = moments_of(values, count, median);
        double         rounding = 1e-12 * median;
        bool           varies   = sums.squares > (double)count * rounding * rounding;
        double         c        = varies ? sums.products / sums.squares : 0;
        correlation             = significant_correlation(c, count);
        reach                   = correlation > 0 ? 1 + two_sided_95 * error_of(&sums, count, median, correlation) : 1;
        statistics->error       = error_of(&sums, count, median, plausible_correlation(c, count));
    }
    statistics->median = median;
    statistics->swing  = count > NEIGHBOURS ? swing_of(values, sorted, count, correlation > 0) : NAN;
    if (count >= INTERVAL_COUNT_MIN) {
        int64_t rank     = interval_rank(count, 0.025);
        statistics->low  = fmin(sorted[rank - 1], median / reach);
        statistics->high = fmax(sorted[count - rank], median * reach);
    }
}

double statistics_half_width(const double *values, int64_t count)
{
    struct statistics statistics;
    if (count < INTERVAL_COUNT_MIN) {
        return NAN;
    }
    double *sorted = sort(values, count);
    bracket(&statistics, values, sorted, count);
    free(sorted);
    return fmax(statistics.high - statistics.median, statistics.median - statistics.low) / statistics.median;
}

void statistics_compute(struct statistics *statistics, const double *values, int64_t count)
{
    *statistics = (struct statistics){.count     = count,
                                      .median    = NAN,
                                      .mean      = NAN,
                                      .minimum   = NAN,
                                      .maximum   = NAN,
                                      .low       = NAN,
                                      .high      = NAN,
                                      .p05       = NAN,
                                      .p95       = NAN,
                                      .variation = NAN,
                                      .drift     = NAN,
                                      .trend     = NAN,
                                      .wander    = NAN,
                                      .swing     = NAN,
                                      .error     = NAN};
    if (count == 0) {
        return;
    }
    double *sorted = sort(values, count);
    double  sum    = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
    }
    bracket(statistics, values, sorted, count);
    statistics->mean     = sum / (double)count;
    statistics->minimum  = sorted[0];
    statistics->maximum  = sorted[count - 1];
    statistics->wander   = wander_of(values, count, statistics->median);
    statistics->outliers = count_outliers(values, count);
    if (count >= PERCENTILE_COUNT_MIN) {
        statistics->p05 = nearest_rank(sorted, count, 5);
        statistics->p95 = nearest_rank(sorted, count, 95);
    }
    if (count >= 2) {
        statistics->variation = standard_deviation(values, count, statistics->mean) / statistics->mean;
    }
    if (count >= DRIFT_COUNT_MIN) {
        double lowest;
        statistics->drift = slope_of(values, count, &lowest) / statistics->median;
        statistics->trend = lowest * (double)(count - 1) / statistics->median;
    }
    free(sorted);
}

// Two medians differ if their distance exceeds this number of standard errors.
static const double errors_apart = 3.5;

const char *const statistics_change_names[] = {[CHANGE_SAME]      = "same",
                                               [CHANGE_FASTER]    = "faster",
                                               [CHANGE_SLOWER]    = "slower",
                                               [CHANGE_AMBIGUOUS] = "ambiguous",
                                               [CHANGE_COUNT]     = NULL};

// The spread comes from the logs of MLPerf Training v3.1 to v5.1 that have the time of every step: 119 runs of 35
// systems with 64 to 10,752 GPUs. None of them has steps shorter than 0.485 s.
struct step_spread statistics_public_spread(int64_t gpus, double step_seconds)
{
    static const struct {
        double             seconds_max;
        int64_t            gpus_max;
        struct step_spread spread;
    } rows[] = {
        {0.485, INT64_MAX, {NAN, NAN}},     {1.0, INT64_MAX, {1.0389, 1.0926}},      {INFINITY, 512, {1.0060, 1.0104}},
        {INFINITY, 2048, {1.0067, 1.0260}}, {INFINITY, INT64_MAX, {1.0285, 1.1076}},
    };
    int row = 0;
    while (step_seconds >= rows[row].seconds_max || gpus > rows[row].gpus_max) {
        row++;
    }
    return rows[row].spread;
}

// The margin is the maximum of the threshold, the noise and the swing. The verdict is faster or slower if the change
// exceeds the margin and the interval of the speedup excludes 1. It is "same" if the noise and the whole interval are
// within the threshold, else ambiguous.
void statistics_compare(struct statistics_change *change, const struct statistics *first,
                        const struct statistics *second, double threshold)
{
    int64_t count    = first->count < second->count ? first->count : second->count;
    double  errors   = errors_apart * hypot(first->error, second->error);
    double  noise    = fmax(3 * fmax(first->wander, second->wander), errors);
    double  swing    = fmax(first->swing, second->swing);
    double  margin   = fmax(threshold, fmax(noise, swing));
    double  relative = second->median / first->median - 1;
    *change          = (struct statistics_change){.speedup  = first->median / second->median,
                                                  .low      = first->low / second->high,
                                                  .high     = first->high / second->low,
                                                  .relative = relative,
                                                  .margin   = margin,
                                                  .swings   = margin > fmax(threshold, noise),
                                                  .is_short = count < CHANGE_COUNT_MIN,
                                                  .verdict  = CHANGE_AMBIGUOUS};
    if (change->is_short) {
        return;
    }
    if (relative > margin && change->high < 1) {
        change->verdict = CHANGE_SLOWER;
    } else if (relative < 1 / (1 + margin) - 1 && change->low > 1) {
        change->verdict = CHANGE_FASTER;
    } else if (noise <= threshold && 1 / change->low <= 1 + threshold && 1 / change->high >= 1 - threshold) {
        change->verdict = CHANGE_SAME;
    }
}
