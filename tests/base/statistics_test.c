// SPDX-License-Identifier: MIT
// Statistics of step times against values worked out by hand.
#include "gswbench/statistics.h"

#include <criterion/criterion.h>
#include <math.h>

#include "gswbench/random.h"

enum { COUNT_MAX = 3000 };

// 1, 2, ..., count from both ends in turn, so that position and rank differ and neighbours are not alike.
static void fill(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)(i % 2 == 0 ? i / 2 + 1 : count - i / 2);
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

// 45 pairs; without a trend, the number of those that rise has a deviation of sqrt(10 9 25 / 18), of which 2.576 are
// 29: the interval leaves out the 8 smallest and the 8 largest slopes, less one.
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
    struct statistics up, down, flat, none;
    statistics_compute(&up, rising, 10);
    statistics_compute(&down, falling, 10);
    statistics_compute(&flat, odd, 10);
    statistics_compute(&none, short_one, 9);

    // The eighth smallest of the slopes.
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

    struct statistics statistics;
    statistics_compute(&statistics, values, COUNT_MAX);

    cr_expect(fabs(statistics.drift * statistics.median - 0.001) < 1e-12);
}

Test(statistics, sees_what_wanders_from_block_to_block)
{
    // Eight blocks of two with the medians 10, 11, 10, 11, 10, 11, 14, 10: deviations from the median 10 are
    // 0, 1, 0, 1, 0, 1, 4, 0.
    double values[] = {10, 10, 11, 11, 10, 10, 11, 11, 10, 10, 11, 11, 14, 14, 10, 10};
    double few[]    = {10, 13, 11};

    struct statistics blocks, singles;
    statistics_compute(&blocks, values, 16);
    statistics_compute(&singles, few, 3);

    cr_expect(blocks.median == 10.5);
    cr_expect(blocks.wander == 0.5 / 10.5, "%.17g", blocks.wander);
    cr_expect(singles.wander == 1.0 / 11);
}

// Steps around a mean with a coefficient of variation; each keeps the share `memory` of the one before it.
struct noise {
    double mean, variation, memory;
};

static void draw(double *values, int64_t count, const struct noise *noise, uint64_t series)
{
    uint64_t key   = random_key(18, series);
    double   state = (double)random_normal(key, 0);
    for (int64_t i = 0; i < count; i++) {
        values[i] = noise->mean * (1 + noise->variation * state);
        state     = noise->memory * state +
                sqrt(1 - noise->memory * noise->memory) * (double)random_normal(key, (uint64_t)i + 1);
    }
}

enum { PAIRS = 1000 };

Test(statistics, takes_hardly_any_noise_for_a_drift)
{
    static const int64_t counts[] = {10, 20, 40};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int wrong = 0;
        for (uint64_t series = 0; series < PAIRS; series++) {
            double            values[COUNT_MAX];
            struct statistics statistics;
            draw(values, counts[i], &(struct noise){7, 0.05, 0}, series);
            statistics_compute(&statistics, values, counts[i]);
            wrong += statistics.trend != 0;
        }
        cr_expect_leq(wrong, 20, "of %d steps: %d", (int)counts[i], wrong);
    }
}

// How many of 1000 pairs, the second series slowed down, have each verdict.
static void count_verdicts(int verdicts[CHANGE_COUNT], int64_t count, struct noise noise, double slowdown)
{
    for (uint64_t pair = 0; pair < PAIRS; pair++) {
        double                   values[COUNT_MAX];
        struct statistics        first, second;
        struct statistics_change change;
        struct noise             slow = {noise.mean * (1 + slowdown), noise.variation, noise.memory};
        draw(values, count, &noise, 2 * pair);
        statistics_compute(&first, values, count);
        draw(values, count, &slow, 2 * pair + 1);
        statistics_compute(&second, values, count);

        statistics_compare(&change, &first, &second, 0.01);

        verdicts[change.verdict]++;
    }
}

// Of 20 steps that wander this slowly little can be known.
Test(statistics, calls_hardly_any_equal_pair_slower_or_faster)
{
    static const struct {
        int64_t      count;
        struct noise noise;
        int          most;
    } cases[] = {
        {40, {7, 0.005, 0}, 10},    {40, {7, 0.005, 0.5}, 10}, {40, {7, 0.005, 0.8}, 10}, {40, {7, 0.005, 0.95}, 10},
        {40, {7, 0.03, 0}, 10},     {40, {7, 0.03, 0.5}, 10},  {40, {7, 0.03, 0.8}, 10},  {40, {7, 0.03, 0.95}, 10},
        {100, {7, 0.03, 0.95}, 10}, {20, {7, 0.005, 0.5}, 10}, {19, {7, 0.005, 0.5}, 10}, {20, {7, 0.03, 0.95}, 20},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int verdicts[CHANGE_COUNT] = {0};

        count_verdicts(verdicts, cases[i].count, cases[i].noise, 0);

        int wrong = verdicts[CHANGE_SLOWER] + verdicts[CHANGE_FASTER];
        cr_expect_leq(wrong, cases[i].most, "case %zu: %d slower, %d faster", i, verdicts[CHANGE_SLOWER],
                      verdicts[CHANGE_FASTER]);
    }
}

// Where neighbours are alike, 40 steps say less.
Test(statistics, finds_a_slower_step)
{
    static const struct {
        double memory, slowdown;
        int    least;
    } cases[] = {{0, 0.02, 950}, {0, 0.05, 1000}, {0.5, 0.02, 700}, {0.5, 0.05, 950}, {0.8, 0.05, 400}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int verdicts[CHANGE_COUNT] = {0};

        count_verdicts(verdicts, 40, (struct noise){7, 0.005, cases[i].memory}, cases[i].slowdown);

        cr_expect_geq(verdicts[CHANGE_SLOWER], cases[i].least, "case %zu: %d", i, verdicts[CHANGE_SLOWER]);
    }
}

Test(statistics, calls_most_equal_pairs_of_quiet_runs_the_same)
{
    int quiet[CHANGE_COUNT] = {0}, loud[CHANGE_COUNT] = {0};

    count_verdicts(quiet, 40, (struct noise){7, 0.005, 0}, 0);
    count_verdicts(loud, 40, (struct noise){7, 0.03, 0}, 0);

    cr_expect_geq(quiet[CHANGE_SAME], 95 * PAIRS / 100, "%d", quiet[CHANGE_SAME]);
    cr_expect_eq(loud[CHANGE_SAME], 0);
}

Test(statistics, covers_the_median_as_often_as_its_interval_says)
{
    static const struct {
        double memory;
        int    least, most;
    } cases[] = {{0, 3740, 3880}, {0.5, 3740, 4000}, {0.8, 3740, 4000}, {0.95, 3740, 4000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int covered = 0;
        for (uint64_t series = 0; series < 4000; series++) {
            double            values[40];
            struct statistics statistics;
            draw(values, 40, &(struct noise){7, 0.005, cases[i].memory}, series);
            statistics_compute(&statistics, values, 40);
            covered += statistics.low <= 7 && 7 <= statistics.high;
        }

        cr_expect(covered >= cases[i].least && covered <= cases[i].most, "case %zu: %d of 4000", i, covered);
    }
}

static int64_t verdict_of(const double *first, const double *second, int64_t count, double threshold)
{
    struct statistics        a, b;
    struct statistics_change change;
    statistics_compute(&a, first, count);
    statistics_compute(&b, second, count);
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
    double                   first[] = {8, 8, 8.1, 7.9, 8, 8}, second[] = {4, 4, 4, 4, 4, 4.2};
    struct statistics        a, b;
    struct statistics_change change;
    statistics_compute(&a, first, 6);
    statistics_compute(&b, second, 6);

    statistics_compare(&change, &a, &b, 0.02);

    cr_expect(change.speedup == 2 && change.relative == -0.5);
    cr_expect(change.low == 7.9 / 4.2 && change.high == 8.1 / 4);
    cr_expect(change.margin == 0.02);
    cr_expect_eq(change.verdict, CHANGE_FASTER);
}
