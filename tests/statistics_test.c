// SPDX-License-Identifier: MIT
// Statistics of step times against values worked out by hand.
#include "gswbench/statistics.h"

#include <criterion/criterion.h>
#include <math.h>

enum { COUNT_MAX = 3000 };

// 1, 2, ..., count in a scrambled order (7919 is coprime to every count used here), so that position and rank differ.
static void fill(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)((i * 7919) % count + 1);
    }
}

Test(statistics, brackets_the_median_by_binomial_ranks)
{
    static const struct {
        int64_t count;
        double  low, high;
    } cases[] = {{6, 1, 6},    {8, 1, 8},    {9, 2, 8},     {10, 2, 9},      {20, 6, 15},      {30, 10, 21},
                 {40, 14, 27}, {50, 18, 33}, {100, 40, 61}, {500, 228, 273}, {2000, 956, 1045}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double values[COUNT_MAX];
        fill(values, cases[i].count);

        struct statistics statistics;
        statistics_compute(&statistics, values, cases[i].count);

        cr_expect(statistics.low == cases[i].low && statistics.high == cases[i].high, "n = %d: [%g %g]",
                  (int)cases[i].count, statistics.low, statistics.high);
    }
}

Test(statistics, describes_forty_values)
{
    double values[40];
    fill(values, 40);

    struct statistics statistics;
    statistics_compute(&statistics, values, 40);

    cr_expect(statistics.count == 40);
    cr_expect(statistics.median == 20.5);
    cr_expect(statistics.mean == 20.5);
    cr_expect(statistics.minimum == 1);
    cr_expect(statistics.maximum == 40);
    cr_expect(statistics.p05 == 2);
    cr_expect(statistics.p95 == 38);
    cr_expect(fabs(statistics.variation - 0.57027) < 1e-5, "%.7f", statistics.variation);    // sqrt(1640 / 12) / 20.5
    cr_expect(statistics.outliers == 0);
}

Test(statistics, leaves_out_what_few_samples_cannot_say)
{
    double            values[] = {3, 1, 2, 5, 4};
    struct statistics one, five, none;

    statistics_compute(&none, values, 0);
    statistics_compute(&one, values, 1);
    statistics_compute(&five, values, 5);

    cr_expect(none.count == 0 && isnan(none.median) && isnan(none.mean));
    cr_expect(one.median == 3 && isnan(one.variation) && isnan(one.low));
    cr_expect(five.median == 3 && isnan(five.low) && isnan(five.high) && isnan(five.p95) && isnan(five.drift));
    cr_expect(fabs(five.variation - 0.527046) < 1e-6);
}

Test(statistics, needs_twenty_values_for_a_95th_percentile)
{
    double values[30];
    fill(values, 30);
    struct statistics nineteen, twenty, thirty;

    statistics_compute(&nineteen, values, 19);
    statistics_compute(&thirty, values, 30);
    fill(values, 20);
    statistics_compute(&twenty, values, 20);

    cr_expect(isnan(nineteen.p95));
    cr_expect(twenty.p95 == 19 && twenty.p05 == 1);
    cr_expect(thirty.p95 == 29 && thirty.p05 == 2);
}

Test(statistics, flags_outliers_and_drops_none)
{
    double values[] = {10.0, 10.1, 9.9, 10.2, 9.8, 10.0, 20.0, 10.1, 11.49};    // median 10.1, deviation 0.1
    bool   flags[9];

    statistics_flag_outliers(values, 9, flags);
    struct statistics statistics;
    statistics_compute(&statistics, values, 9);

    cr_expect(flags[6] && !flags[8] && !flags[0]);
    cr_expect(statistics.outliers == 1);
    cr_expect(statistics.maximum == 20.0);
}

Test(statistics, sees_drift_through_an_outlier)
{
    double values[21];
    for (int i = 0; i < 21; i++) {
        values[i] = 10.0 + 0.1 * i;
    }
    values[3] = 100;

    struct statistics statistics;
    statistics_compute(&statistics, values, 21);

    cr_expect(fabs(statistics.median - 11.1) < 1e-12);
    cr_expect(fabs(statistics.drift - 0.1 / 11.1) < 1e-12, "%.17g", statistics.drift);
}

Test(statistics, measures_the_drift_of_long_series_per_step)
{
    static double values[COUNT_MAX];
    for (int i = 0; i < COUNT_MAX; i++) {
        values[i] = 1.0 + 0.001 * i;
    }

    struct statistics statistics;
    statistics_compute(&statistics, values, COUNT_MAX);

    cr_expect(fabs(statistics.drift * statistics.median - 0.001) < 1e-12);
}
