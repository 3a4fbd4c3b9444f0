// SPDX-License-Identifier: MIT
// Order statistics of step times. The confidence interval of the median needs no distribution: the number of values
// below the true median is binomial with p = 1/2, so two ranks of the sorted values bracket it with known probability.
#include "gswbench/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"

enum {
    INTERVAL_COUNT_MIN   = 6,
    PERCENTILE_COUNT_MIN = 20,
    DRIFT_COUNT_MIN      = 10,
    DRIFT_COUNT_MAX      = 1024,    // longer series are thinned: the pairs grow with the square
    BLOCKS               = 8,
};

const char *const statistics_change_names[] = {[CHANGE_SAME]      = "same",
                                               [CHANGE_FASTER]    = "faster",
                                               [CHANGE_SLOWER]    = "slower",
                                               [CHANGE_AMBIGUOUS] = "ambiguous",
                                               [CHANGE_COUNT]     = NULL};

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

// Of sorted values; count >= 1.
static double median_of(const double *sorted, int64_t count)
{
    return count % 2 == 1 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

// The largest r for which the r-th smallest and r-th largest value enclose the median with at least 95 %: the
// binomial's lower tail, P(fewer than r of count below the median), stays within 2.5 %.
static int64_t interval_rank(int64_t count)
{
    double  log_term = -(double)count * log(2.0);    // of P(k values below); logs, since 0.5^count underflows
    double  tail     = 0;
    int64_t rank     = 0;
    for (int64_t k = 0; k < count; k++) {
        tail += exp(log_term);
        if (tail > 0.025) {
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

// Theil-Sen: the median of the slopes of all pairs.
static double slope_of(const double *values, int64_t count)
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
    free(slopes);
    return slope;
}

// Sorted copy of the values; the caller frees.
static double *sort(const double *values, int64_t count)
{
    double *sorted = memory_allocate((size_t)count * sizeof(*sorted));
    memcpy(sorted, values, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare);
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

// Steps near each other are alike, so that single steps say too little about how far a median may be off; medians of
// blocks show what wanders from block to block. Fewer values than blocks are a block each.
static double wander_of(const double *values, int64_t count, double median)
{
    double  deviations[BLOCKS];
    int64_t blocks = count < BLOCKS ? count : BLOCKS;
    for (int64_t block = 0; block < blocks; block++) {
        int64_t first     = block * count / blocks;
        int64_t length    = (block + 1) * count / blocks - first;
        double *sorted    = sort(values + first, length);
        deviations[block] = fabs(median_of(sorted, length) - median);
        free(sorted);
    }
    qsort(deviations, (size_t)blocks, sizeof(*deviations), compare);
    return median_of(deviations, blocks) / median;
}

void statistics_flag_outliers(const double *values, int64_t count, bool *flags)
{
    if (count == 0) {
        return;
    }
    double *sorted = sort(values, count);
    double  median = median_of(sorted, count);
    for (int64_t i = 0; i < count; i++) {
        sorted[i] = fabs(values[i] - median);
    }
    qsort(sorted, (size_t)count, sizeof(*sorted), compare);
    double deviation = median_of(sorted, count);
    free(sorted);
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
                                      .wander    = NAN};
    if (count == 0) {
        return;
    }
    double *sorted = sort(values, count);
    double  sum    = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
    }
    statistics->mean     = sum / (double)count;
    statistics->median   = median_of(sorted, count);
    statistics->minimum  = sorted[0];
    statistics->maximum  = sorted[count - 1];
    statistics->wander   = wander_of(values, count, statistics->median);
    statistics->outliers = count_outliers(values, count);
    if (count >= INTERVAL_COUNT_MIN) {
        int64_t rank     = interval_rank(count);
        statistics->low  = sorted[rank - 1];
        statistics->high = sorted[count - rank];
    }
    if (count >= PERCENTILE_COUNT_MIN) {
        statistics->p05 = nearest_rank(sorted, count, 5);
        statistics->p95 = nearest_rank(sorted, count, 95);
    }
    if (count >= 2) {
        statistics->variation = standard_deviation(values, count, statistics->mean) / statistics->mean;
    }
    if (count >= DRIFT_COUNT_MIN) {
        statistics->drift = slope_of(values, count) / statistics->median;
    }
    free(sorted);
}

void statistics_compare(struct statistics_change *change, const struct statistics *first,
                        const struct statistics *second, double threshold)
{
    double noise    = 3 * fmax(first->wander, second->wander);
    double margin   = fmax(threshold, noise);
    double relative = second->median / first->median - 1;
    *change         = (struct statistics_change){.speedup  = first->median / second->median,
                                                 .low      = first->low / second->high,
                                                 .high     = first->high / second->low,
                                                 .relative = relative,
                                                 .margin   = margin,
                                                 .verdict  = CHANGE_AMBIGUOUS};
    if (relative > margin && change->high < 1) {
        change->verdict = CHANGE_SLOWER;
    } else if (relative < -margin && change->low > 1) {
        change->verdict = CHANGE_FASTER;
    } else if (noise <= threshold && 1 / change->low <= 1 + threshold && 1 / change->high >= 1 - threshold) {
        change->verdict = CHANGE_SAME;
    }
}
