// SPDX-License-Identifier: MIT
// Tests step time statistics against values computed by hand.
#include "gswbench/statistics.h"

#include <criterion/criterion.h>
#include <math.h>

enum { COUNT_MAX = 3000 };

// Fills in 1, n, 2, n - 1, ... for n = count. So the values are not sorted, and neighbours are uncorrelated.
static void fill(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)(i % 2 == 0 ? i / 2 + 1 : count - i / 2);
    }
}

static struct statistics compute(const double *values, int64_t count)
{
    struct statistics statistics;
    statistics_compute(&statistics, values, count);
    return statistics;
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

        struct statistics statistics = compute(values, cases[i].count);

        cr_expect(statistics.low == cases[i].low && statistics.high == cases[i].high, "n = %d: [%g %g]",
                  (int)cases[i].count, statistics.low, statistics.high);
    }
}

Test(statistics, knows_how_wide_the_interval_is)
{
    double values[40];
    fill(values, 40);
    cr_expect_eq(statistics_half_width(values, 40), 6.5 / 20.5);    // the interval is 14 to 27, the median 20.5
    values[0] = 0.5;
    values[1] = 90;
    cr_expect_eq(statistics_half_width(values, 40), 6.5 / 20.5);
    cr_expect(isnan(statistics_half_width(values, 5)));

    double lopsided[] = {10, 11, 12, 13, 14, 24};
    cr_expect_eq(statistics_half_width(lopsided, 6), 11.5 / 12.5);
}

// Values that only rise are strongly autocorrelated, so the error of their median is large. The interval's lower end
// must still be positive.
Test(statistics, takes_no_time_below_zero_for_possible)
{
    double values[40];
    for (int i = 0; i < 40; i++) {
        values[i] = i + 1;
    }
    struct statistics statistics = compute(values, 40);

    double reach = 1 + 1.96 * statistics.error;
    cr_expect_gt(reach, 2);
    cr_expect_float_eq(statistics.low, 20.5 / reach, 1e-12, "%g", statistics.low);
    cr_expect_float_eq(statistics.high, 20.5 * reach, 1e-12, "%g", statistics.high);
}

Test(statistics, describes_forty_values)
{
    double values[40];
    fill(values, 40);

    struct statistics statistics = compute(values, 40);

    cr_expect(statistics.count == 40);
    cr_expect(statistics.median == 20.5);
    cr_expect(statistics.mean == 20.5);
    cr_expect(statistics.minimum == 1);
    cr_expect(statistics.maximum == 40);
    cr_expect(statistics.p05 == 2);
    cr_expect(statistics.p95 == 38);
    // The sample standard deviation of 1 to 40 is sqrt(1640 / 12), and their mean is 20.5.
    cr_expect(fabs(statistics.variation - 0.57027) < 1e-5, "%.7f", statistics.variation);
    cr_expect(statistics.outliers == 0);
}

Test(statistics, leaves_out_what_few_samples_cannot_say)
{
    double values[] = {3, 1, 2, 5, 4};

    struct statistics none = compute(values, 0);
    struct statistics one  = compute(values, 1);
    struct statistics five = compute(values, 5);

    cr_expect(none.count == 0 && isnan(none.median) && isnan(none.mean));
    cr_expect(one.median == 3 && isnan(one.variation) && isnan(one.low));
    cr_expect(five.median == 3 && isnan(five.low) && isnan(five.high) && isnan(five.p95) && isnan(five.drift));
    cr_expect(fabs(five.variation - 0.527046) < 1e-6);
}

Test(statistics, needs_twenty_values_for_a_95th_percentile)
{
    double values[30];
    fill(values, 30);

    struct statistics nineteen = compute(values, 19);
    struct statistics thirty   = compute(values, 30);
    fill(values, 20);
    struct statistics twenty = compute(values, 20);

    cr_expect(isnan(nineteen.p95));
    cr_expect(twenty.p95 == 19 && twenty.p05 == 1);
    cr_expect(thirty.p95 == 29 && thirty.p05 == 2);
}

Test(statistics, flags_outliers_and_drops_none)
{
    // The median is 10.1, and the median absolute deviation 0.1.
    double values[] = {10.0, 10.1, 9.9, 10.2, 9.8, 10.0, 20.0, 10.1, 11.49};
    bool   flags[9];

    statistics_flag_outliers(values, 9, flags);
    struct statistics statistics = compute(values, 9);

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

    struct statistics statistics = compute(values, 21);

    cr_expect(fabs(statistics.median - 11.1) < 1e-12);
    cr_expect(fabs(statistics.drift - 0.1 / 11.1) < 1e-12, "%.17g", statistics.drift);
}

// Ten values have 45 slopes between two of them. Without a trend, Kendall's S (rising minus falling pairs) has a
// standard deviation of sqrt(10 * 9 * 25 / 18) = 11.2. The 99 % interval is 2.576 times that, 29. It therefore excludes
// the (45 - 29) / 2 - 1 = 7 smallest and the 7 largest slopes.
Test(statistics, knows_what_of_a_drift_is_beyond_doubt)
{
    double rising[10] = {10, 10.9, 12, 13.1, 14, 15, 16.1, 17, 17.9, 19}, falling[10], odd[10], short_one[9];
    for (int i = 0; i < 10; i++) {
        falling[i] = 29 - rising[i];
        odd[i]     = i % 2 == 0 ? 10 : 10.5;
    }
    for (int i = 0; i < 9; i++) {
        short_one[i] = 10 + i;
    }
    struct statistics up   = compute(rising, 10);
    struct statistics down = compute(falling, 10);
    struct statistics flat = compute(odd, 10);
    struct statistics none = compute(short_one, 9);

    // The lower end of the interval is the eighth smallest slope. The trend is that slope over all nine steps, relative
    // to the median.
    cr_expect_float_eq(up.trend, 9 * 0.9666666666666667 / 14.5, 1e-12, "%.17g", up.trend * 14.5 / 9);
    cr_expect_float_eq(down.trend, -9 * 0.9666666666666667 / 14.5, 1e-12, "%.17g", down.trend * 14.5 / 9);
    cr_expect_eq(flat.trend, 0.0);
    cr_expect(isnan(none.trend));
}

Test(statistics, measures_the_drift_of_long_series_per_step)
{
    static double values[COUNT_MAX];
    for (int i = 0; i < COUNT_MAX; i++) {
        values[i] = 1.0 + 0.001 * i;
    }

    struct statistics statistics = compute(values, COUNT_MAX);

    cr_expect(fabs(statistics.drift * statistics.median - 0.001) < 1e-12);
}

Test(statistics, sees_what_wanders_from_block_to_block)
{
    // These are eight blocks of two values. The medians of the blocks are 10, 11, 10, 11, 10, 11, 14, 10, so their
    // distances from the median 10 are 0, 1, 0, 1, 0, 1, 4, 0, and the median distance is 0.5.
    double values[] = {10, 10, 11, 11, 10, 10, 11, 11, 10, 10, 11, 11, 14, 14, 10, 10};
    double few[]    = {10, 13, 11};

    struct statistics blocks  = compute(values, 16);
    struct statistics singles = compute(few, 3);

    cr_expect(blocks.median == 10.5);
    cr_expect(blocks.wander == 0.5 / 10.5, "%.17g", blocks.wander);
    cr_expect(singles.wander == 1.0 / 11);
}

static int64_t verdict_of(const double *first, const double *second, int64_t count, double threshold)
{
    struct statistics        a = compute(first, count), b = compute(second, count);
    struct statistics_change change;
    statistics_compare(&change, &a, &b, threshold);
    return change.verdict;
}

Test(statistics, is_not_misled_by_odd_series)
{
    double even[40], slow[40], drifting[40], bimodal[40], outlier[40];
    for (int i = 0; i < 40; i++) {
        even[i]     = 10 + 0.001 * (i * 7 % 40);
        slow[i]     = even[i] * 1.03;
        drifting[i] = even[i] * (1 + 0.002 * i);
        bimodal[i]  = even[i] * (i / 3 % 2 == 0 ? 1 : 1.1);
        outlier[i]  = i == 20 ? 100 : even[i];
    }

    cr_expect_eq(verdict_of(even, slow, 40, 0.01), CHANGE_SLOWER);
    cr_expect_eq(verdict_of(slow, even, 40, 0.01), CHANGE_FASTER);
    cr_expect_eq(verdict_of(even, slow, 40, 0.05), CHANGE_SAME);
    cr_expect_eq(verdict_of(even, drifting, 40, 0.01), CHANGE_AMBIGUOUS);
    cr_expect_eq(verdict_of(even, bimodal, 40, 0.01), CHANGE_AMBIGUOUS);
    cr_expect_eq(verdict_of(even, outlier, 40, 0.01), CHANGE_SAME);
    cr_expect_eq(verdict_of(even, slow, 2, 0.01), CHANGE_AMBIGUOUS);
    cr_expect_eq(verdict_of(even, slow, 1, 0.01), CHANGE_AMBIGUOUS);
}

Test(statistics, tells_how_much_faster)
{
    double                   first[]  = {8, 8, 8.1, 7.9, 8, 8, 8, 8, 8.1, 7.9, 8};
    double                   second[] = {4, 4, 4, 4, 4, 4.2, 4, 4, 4, 4, 4.2};
    struct statistics        a = compute(first, 11), b = compute(second, 11);
    struct statistics_change change;

    statistics_compare(&change, &a, &b, 0.3);

    cr_expect(change.speedup == 2 && change.relative == -0.5);
    cr_expect(change.low == 7.9 / 4.2 && change.high == 8.1 / 4, "%g %g", change.low, change.high);
    cr_expect(change.margin == 0.3);
    cr_expect_eq(change.verdict, CHANGE_FASTER);

    a.count = 10;
    statistics_compare(&change, &a, &b, 0.3);
    cr_expect_eq(change.verdict, CHANGE_AMBIGUOUS);
}

// With eight values, each block is one step, and lies 1.5 from the median 11.5. The noise limit is three times that,
// since the errors of both medians are smaller.
Test(statistics, counts_no_change_that_a_run_shows_from_block_to_block)
{
    double                   swinging[] = {10, 13, 10, 13, 10, 13, 10, 13};
    struct statistics        statistics = compute(swinging, 8);
    struct statistics_change change;

    statistics_compare(&change, &statistics, &statistics, 0.01);

    cr_expect_lt(3.5 * sqrt(2) * statistics.error, 0.31);
    cr_expect_float_eq(change.margin, 3 * 1.5 / 11.5, 1e-12, "%g", change.margin);
}

// Expects the spread of step times (95th percentile over median) in public runs with this number of GPUs and this step
// time, for a typical and for the worst system. Steps between half a second and a second vary more than longer ones. No
// public run has a step below 0.485 s, so the spread is NaN there.
Test(statistics, knows_how_much_public_steps_vary)
{
    static const struct {
        int64_t gpus;
        double  seconds, typical, largest;
    } cases[] = {{8, 7, 1.0060, 1.0104},     {512, 1, 1.0060, 1.0104},   {513, 1, 1.0067, 1.0260},
                 {2048, 7, 1.0067, 1.0260},  {2049, 7, 1.0285, 1.1076},  {100000, 7, 1.0285, 1.1076},
                 {8, 0.999, 1.0389, 1.0926}, {8, 0.485, 1.0389, 1.0926}, {10752, 0.9, 1.0389, 1.0926}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct step_spread spread = statistics_public_spread(cases[i].gpus, cases[i].seconds);
        cr_expect(spread.typical == cases[i].typical && spread.largest == cases[i].largest, "case %zu", i);
    }
    cr_expect(isnan(statistics_public_spread(8, 0.484).largest));
    cr_expect(isnan(statistics_public_spread(8, NAN).largest));
}
