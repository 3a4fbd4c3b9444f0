// SPDX-License-Identifier: MIT
// Error rates of step time statistics on simulated series with known median and trend.
#include "gswbench/statistics.h"

#include <criterion/criterion.h>
#include <math.h>

#include "gswbench/random.h"

enum { COUNT_MAX = 500, PAIRS = 1000 };

enum shape { EVEN, DRIFTING, BIMODAL, ONE_OUTLIER };

// AR(1) noise around a mean, with a coefficient of variation and the autocorrelation `memory` at lag 1.
struct noise {
    double     mean, variation, memory;
    enum shape shape;
};

// Drift: 2 % over the series. Bimodal: two modes 5 % apart. Outlier: one step takes three times as long.
static double distort(enum shape shape, int64_t step, int64_t count, uint64_t key)
{
    switch (shape) {
    case DRIFTING:
        return 1 + 0.02 * (double)step / (double)(count - 1);
    case BIMODAL:
        return random_normal(key, (uint64_t)(COUNT_MAX + step)) > 0 ? 1.05 : 1;
    case ONE_OUTLIER:
        return step == (int64_t)(key % (uint64_t)count) ? 3 : 1;
    case EVEN:
        break;
    }
    return 1;
}

static void draw(double *values, int64_t count, const struct noise *noise, uint64_t series)
{
    uint64_t key   = random_key(18, series);
    double   state = (double)random_normal(key, 0);
    for (int64_t i = 0; i < count; i++) {
        values[i] = noise->mean * (1 + noise->variation * state) * distort(noise->shape, i, count, key);
        state     = noise->memory * state +
                sqrt(1 - noise->memory * noise->memory) * (double)random_normal(key, (uint64_t)i + 1);
    }
}

Test(statistics_noise, takes_hardly_any_noise_for_a_drift)
{
    static const int64_t counts[] = {10, 20, 40};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int wrong = 0;
        for (uint64_t series = 0; series < PAIRS; series++) {
            double            values[COUNT_MAX];
            struct statistics statistics;
            draw(values, counts[i], &(struct noise){7, 0.05, 0, EVEN}, series);
            statistics_compute(&statistics, values, counts[i]);
            wrong += statistics.trend != 0;
        }
        cr_expect_leq(wrong, 20, "of %d steps: %d", (int)counts[i], wrong);
    }
}

// Counts the verdicts of 1000 pairs whose second series is slowed down.
static void count_verdicts(int verdicts[CHANGE_COUNT], int64_t count, struct noise noise, double slowdown)
{
    for (uint64_t pair = 0; pair < PAIRS; pair++) {
        double                   values[COUNT_MAX];
        struct statistics        first, second;
        struct statistics_change change;
        struct noise             slow = {noise.mean * (1 + slowdown), noise.variation, noise.memory, noise.shape};
        draw(values, count, &noise, 2 * pair);
        statistics_compute(&first, values, count);
        draw(values, count, &slow, 2 * pair + 1);
        statistics_compute(&second, values, count);

        statistics_compare(&change, &first, &second, 0.01);

        verdicts[change.verdict]++;
    }
}

// 20 steps with such strong autocorrelation carry little information.
Test(statistics_noise, calls_hardly_any_equal_pair_slower_or_faster)
{
    static const struct {
        int64_t      count;
        struct noise noise;
        int          maximum;
    } cases[] = {
        {40, {7, 0.005, 0, EVEN}, 10},    {40, {7, 0.005, 0.5, EVEN}, 10}, {40, {7, 0.005, 0.8, EVEN}, 10},
        {40, {7, 0.005, 0.95, EVEN}, 10}, {40, {7, 0.03, 0, EVEN}, 10},    {40, {7, 0.03, 0.5, EVEN}, 10},
        {40, {7, 0.03, 0.8, EVEN}, 10},   {40, {7, 0.03, 0.95, EVEN}, 10}, {100, {7, 0.03, 0.95, EVEN}, 10},
        {20, {7, 0.005, 0.5, EVEN}, 10},  {19, {7, 0.005, 0.5, EVEN}, 10}, {20, {7, 0.03, 0.95, EVEN}, 20},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int verdicts[CHANGE_COUNT] = {0};

        count_verdicts(verdicts, cases[i].count, cases[i].noise, 0);

        int wrong = verdicts[CHANGE_SLOWER] + verdicts[CHANGE_FASTER];
        cr_expect_leq(wrong, cases[i].maximum, "case %zu: %d slower, %d faster", i, verdicts[CHANGE_SLOWER],
                      verdicts[CHANGE_FASTER]);
    }
}

// With autocorrelation, 40 steps carry less information.
Test(statistics_noise, finds_a_slower_step)
{
    static const struct {
        double     memory;
        enum shape shape;
        double     slowdown;
        int        lowest;
    } cases[] = {{0, EVEN, 0.02, 950},        {0, EVEN, 0.05, 1000},  {0.5, EVEN, 0.02, 650},
                 {0.5, EVEN, 0.05, 950},      {0.8, EVEN, 0.05, 250}, {0, ONE_OUTLIER, 0.02, 950},
                 {0, ONE_OUTLIER, 0.05, 1000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int verdicts[CHANGE_COUNT] = {0};

        count_verdicts(verdicts, 40, (struct noise){7, 0.005, cases[i].memory, cases[i].shape}, cases[i].slowdown);

        cr_expect_geq(verdicts[CHANGE_SLOWER], cases[i].lowest, "case %zu: %d", i, verdicts[CHANGE_SLOWER]);
    }
}

Test(statistics_noise, calls_hardly_any_equal_pair_of_odd_series_slower_or_faster)
{
    static const struct {
        int64_t      count;
        struct noise noise;
    } cases[] = {
        {40, {7, 0.005, 0, DRIFTING}},    {40, {7, 0.005, 0.5, DRIFTING}},    {20, {7, 0.005, 0, DRIFTING}},
        {40, {7, 0.005, 0, BIMODAL}},     {40, {7, 0.005, 0.5, BIMODAL}},     {20, {7, 0.005, 0, BIMODAL}},
        {40, {7, 0.005, 0, ONE_OUTLIER}}, {40, {7, 0.005, 0.5, ONE_OUTLIER}}, {20, {7, 0.005, 0, ONE_OUTLIER}},
        {2, {7, 0.005, 0, EVEN}},         {1, {7, 0.005, 0, EVEN}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int verdicts[CHANGE_COUNT] = {0};

        count_verdicts(verdicts, cases[i].count, cases[i].noise, 0);

        int wrong = verdicts[CHANGE_SLOWER] + verdicts[CHANGE_FASTER];
        cr_expect_leq(wrong, 10, "case %zu: %d slower, %d faster", i, verdicts[CHANGE_SLOWER], verdicts[CHANGE_FASTER]);
    }
}

Test(statistics_noise, calls_most_equal_pairs_of_quiet_runs_the_same)
{
    int quiet[CHANGE_COUNT] = {0}, loud[CHANGE_COUNT] = {0};

    count_verdicts(quiet, 40, (struct noise){7, 0.005, 0, EVEN}, 0);
    count_verdicts(loud, 40, (struct noise){7, 0.03, 0, EVEN}, 0);

    cr_expect_geq(quiet[CHANGE_SAME], 95 * PAIRS / 100, "%d", quiet[CHANGE_SAME]);
    cr_expect_eq(loud[CHANGE_SAME], 0);
}

Test(statistics_noise, covers_the_median_as_often_as_its_interval_says)
{
    static const struct {
        double memory;
        int    lowest, maximum;
    } cases[] = {{0, 3740, 3880}, {0.5, 3740, 4000}, {0.8, 3740, 4000}, {0.95, 3740, 4000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int covered = 0;
        for (uint64_t series = 0; series < 4000; series++) {
            double            values[40];
            struct statistics statistics;
            draw(values, 40, &(struct noise){7, 0.005, cases[i].memory, EVEN}, series);
            statistics_compute(&statistics, values, 40);
            covered += statistics.low <= 7 && 7 <= statistics.high;
        }

        cr_expect(covered >= cases[i].lowest && covered <= cases[i].maximum, "case %zu: %d of 4000", i, covered);
    }
}

// Stops like run.until: after at least 20 steps, once the interval is narrow enough. The stopping rule must not bias
// the median.
Test(statistics_noise, covers_the_median_where_the_interval_says_when_to_stop)
{
    enum { SERIES = 1000, MINIMUM = 20, MAXIMUM = 500 };
    static const double memories[] = {0, 0.5};
    static const int    leasts[]   = {935, 910};    // every check is another chance to stop early
    for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
        int covered = 0, ended = 0;
        for (uint64_t series = 0; series < SERIES; series++) {
            double            values[MAXIMUM];
            int64_t           count = MINIMUM;
            struct statistics statistics;
            draw(values, MAXIMUM, &(struct noise){7, 0.03, memories[i], EVEN}, series);
            while (count < MAXIMUM && statistics_half_width(values, count) > 0.02) {
                count++;
            }
            statistics_compute(&statistics, values, count);
            covered += statistics.low <= 7 && 7 <= statistics.high;
            ended += count < MAXIMUM;
        }
        cr_expect(covered >= leasts[i], "case %zu: %d of %d", i, covered, SERIES);
        cr_expect_geq(ended, 990, "case %zu: %d", i, ended);
    }
}
