// SPDX-License-Identifier: MIT
// Measures how often step time statistics and comparisons of two runs are wrong. The step times are simulated, so their
// median and trend are known. GSWBENCH_PAIRS=4000 compares 4000 pairs of runs for every number of steps from 2 to 100
// and prints the tables.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/random.h"
#include "gswbench/statistics.h"

#define LENGTH(list) (int64_t)(sizeof(list) / sizeof((list)[0]))

enum { COUNT_MAX = 500, LENGTH_MAX = 100, SERIES = 1000 };

// Noise of step times. `variation` is the coefficient of variation of AR(1) noise, `memory` its autocorrelation at lag
// 1. If `gap` is set, a step has one of two speeds that differ by this share, and keeps the speed of the step before
// with probability `stay`. From the first step to the last, steps become longer by the share `drift`. With an outlier,
// one step takes three times as long.
struct noise {
    double variation, memory, gap, stay, drift;
    bool   has_outlier;
};

static double uniform(uint64_t key, int64_t index)
{
    return 0.5 * erfc(-(double)random_normal(key, (uint64_t)index) / sqrt(2));
}

// Draws step times with a median of 7 s, longer by the share `slowdown`.
static void draw(double *values, int64_t count, const struct noise *noise, double slowdown, uint64_t series)
{
    uint64_t key = random_key(19, series), mode_key = random_key(20, series);
    double   state   = (double)random_normal(key, 0);
    bool     is_high = uniform(mode_key, 0) < 0.5;
    for (int64_t i = 0; i < count; i++) {
        bool is_outlier = noise->has_outlier && i == (int64_t)(key % (uint64_t)count);
        values[i]       = 7 * (1 + slowdown) * (1 + noise->variation * state) * (1 + (is_high ? noise->gap : 0));
        values[i] *= (1 + noise->drift * (double)i / (double)count) * (is_outlier ? 3 : 1);
        state = noise->memory * state +
                sqrt(1 - noise->memory * noise->memory) * (double)random_normal(key, (uint64_t)i + 1);
        is_high = uniform(mode_key, i + 1) < noise->stay ? is_high : !is_high;
    }
}

static void measure(struct statistics *statistics, int64_t count, const struct noise *noise, double slowdown,
                    uint64_t series)
{
    double values[COUNT_MAX];
    draw(values, count, noise, slowdown, series);
    statistics_compute(statistics, values, count);
}

static int64_t asked_pairs(void)
{
    const char *asked = getenv("GSWBENCH_PAIRS");
    return asked != NULL ? strtoll(asked, NULL, 10) : 0;
}

struct verdicts {
    int64_t of[CHANGE_COUNT];
};

static struct verdicts compare_pairs(int64_t pairs, int64_t count, const struct noise *noise, double slowdown)
{
    struct verdicts verdicts = {{0}};
    for (int64_t pair = 0; pair < pairs; pair++) {
        struct statistics        first, second;
        struct statistics_change change;
        measure(&first, count, noise, 0, 2 * (uint64_t)pair);
        measure(&second, count, noise, slowdown, 2 * (uint64_t)pair + 1);
        statistics_compare(&change, &first, &second, 0.01);
        verdicts.of[change.verdict]++;
    }
    return verdicts;
}

// Compares pairs of runs with equal medians. At most 1 % may be called slower or faster. The limit adds three standard
// deviations, since the number of wrong verdicts is random.
static void expect_few_wrong(int64_t pairs, int64_t count, const struct noise *noise)
{
    struct verdicts verdicts = compare_pairs(pairs, count, noise, 0);
    double          wrong    = (double)(verdicts.of[CHANGE_SLOWER] + verdicts.of[CHANGE_FASTER]);
    cr_expect_leq(wrong, 0.01 * (double)pairs + 3 * sqrt(0.01 * (double)pairs),
                  "%d steps, variation %g, memory %g, gap %g, stay %g, drift %g: %g of %d", (int)count,
                  noise->variation, noise->memory, noise->gap, noise->stay, noise->drift, wrong, (int)pairs);
    if (asked_pairs() > 0) {
        printf("%3d equal steps, variation %g, memory %g, gap %g, stay %g, drift %g: wrong %.2f%%\n", (int)count,
               noise->variation, noise->memory, noise->gap, noise->stay, noise->drift, 100 * wrong / (double)pairs);
    }
}

// A step changes its speed after 1 / (1 - stay) steps on average. If a speed lasts longer than a third of the run, a
// run can miss the other speed, so these tests leave such cases out. A gap of half a standard deviation of the steps
// counts as noise.
Test(statistics_compare, is_wrong_about_at_most_one_of_100_equal_pairs)
{
    static const int64_t      counts[] = {1, 2, 6, 8, 10, 11, 12, 14, 19, 20, 30, 40, 60, 100};
    static const struct noise noises[] = {
        {.variation = 0.03},
        {.variation = 0.03, .memory = 0.5},
        {.variation = 0.03, .memory = 0.8},
        {.variation = 0.03, .memory = 0.9},
        {.variation = 0.03, .memory = 0.95},
        {.variation = 0.03, .memory = 0.98},
        {.variation = 0.005},
        {.variation = 0.005, .memory = 0.5},
        {.variation = 0.005, .memory = 0.8},
        {.variation = 0.005, .memory = 0.95},
        {.variation = 0.005, .drift = 0.02},
        {.variation = 0.005, .memory = 0.5, .drift = 0.02},
        {.variation = 0.005, .has_outlier = true},
        {.variation = 0.005, .memory = 0.5, .has_outlier = true},
    };
    int64_t asked = asked_pairs();
    for (int64_t i = 0; i < (asked > 0 ? LENGTH_MAX - 1 : LENGTH(counts)); i++) {
        int64_t count = asked > 0 ? i + 2 : counts[i];
        for (int64_t j = 0; j < LENGTH(noises); j++) {
            expect_few_wrong(asked > 0 ? asked : 10000 / count, count, &noises[j]);
        }
    }
}

Test(statistics_compare, is_wrong_about_at_most_one_of_100_equal_pairs_with_lasting_modes)
{
    static const double gaps[] = {0.015, 0.03, 0.05, 0.2}, stays[] = {0.5, 0.8, 0.9, 0.95, 0.97};
    int64_t             asked = asked_pairs();
    for (int64_t count = 11; count <= LENGTH_MAX; count += asked > 0 ? 1 : 29) {
        for (int i = 0; i < 20; i++) {
            struct noise noise = {.variation = 0.005, .gap = gaps[i % 4], .stay = stays[i / 4]};
            if (1 / (1 - noise.stay) <= (double)count / 3 + 0.01) {
                expect_few_wrong(asked > 0 ? asked : 8000 / count, count, &noise);
            }
        }
    }
}

// Steps vary by 0.5 %. Expects that at least the share `lowest` of the slower runs is found. docs/method.md prints the
// first ten rows.
Test(statistics_compare, finds_a_slower_run)
{
    static const struct {
        int64_t count;
        double  memory, slowdown, lowest;
        bool    has_outlier;
    } cases[] = {
        {10, 0, 0.5, 0, false},       {11, 0, 0.05, 0.3, false},   {20, 0, 0.02, 0.5, false},
        {20, 0, 0.05, 0.9, false},    {40, 0, 0.02, 0.95, false},  {40, 0.5, 0.02, 0.6, false},
        {40, 0.5, 0.05, 0.9, false},  {40, 0.9, 0.1, 0.95, false}, {100, 0, 0.02, 0.95, false},
        {100, 0.8, 0.05, 0.9, false}, {40, 0, 0.05, 1, false},     {40, 0.8, 0.05, 0.25, false},
        {40, 0, 0.02, 0.95, true},    {40, 0, 0.05, 1, true},
    };
    for (int64_t i = 0; i < LENGTH(cases); i++) {
        int64_t         pairs    = asked_pairs() > 0 ? asked_pairs() : 8000 / cases[i].count;
        struct noise    noise    = {.variation = 0.005, .memory = cases[i].memory, .has_outlier = cases[i].has_outlier};
        struct verdicts verdicts = compare_pairs(pairs, cases[i].count, &noise, cases[i].slowdown);
        double          share    = (double)verdicts.of[CHANGE_SLOWER] / (double)pairs;
        cr_expect(share >= cases[i].lowest && (cases[i].lowest > 0 || share == 0), "case %d: %g", (int)i, share);
        if (asked_pairs() > 0) {
            printf("%3d steps that keep %g, slower by %g%%: found in %.1f%%\n", (int)cases[i].count, cases[i].memory,
                   100 * cases[i].slowdown, 100 * share);
        }
    }
}

// The limit of 93 % is below the measured share: 94.7 % of 20,000 pairs of quiet runs were called the same.
Test(statistics_compare, calls_most_equal_pairs_of_quiet_runs_the_same)
{
    const struct noise quiet = {.variation = 0.005}, loud = {.variation = 0.03};

    cr_expect_geq(compare_pairs(SERIES, 40, &quiet, 0).of[CHANGE_SAME], 93 * SERIES / 100);
    cr_expect_eq(compare_pairs(SERIES, 40, &loud, 0).of[CHANGE_SAME], 0);
}

// The steps of one run are all fast. The other run has six fast steps in a row, and its remaining 34 steps take 5 %
// longer.
Test(statistics_compare, says_that_lasting_modes_set_the_margin)
{
    double                   fast[40], both[40];
    struct statistics        first, second;
    struct statistics_change change;
    for (int i = 0; i < 40; i++) {
        fast[i] = 7 + 0.001 * (i * 7 % 40);
        both[i] = fast[i] * (i >= 12 && i < 18 ? 1 : 1.05);
    }
    statistics_compute(&first, fast, 40);
    statistics_compute(&second, both, 40);

    statistics_compare(&change, &first, &second, 0.01);

    cr_expect_eq(change.verdict, CHANGE_AMBIGUOUS);
    cr_expect(change.swings);
    cr_expect(change.margin > 0.05 && change.margin < 0.06, "%g", change.margin);
}

Test(statistics_compare, takes_hardly_any_noise_for_a_drift)
{
    static const int64_t counts[] = {10, 20, 40};
    for (int64_t i = 0; i < LENGTH(counts); i++) {
        int wrong = 0;
        for (uint64_t series = 0; series < SERIES; series++) {
            struct statistics statistics;
            measure(&statistics, counts[i], &(struct noise){.variation = 0.05}, 0, series);
            wrong += statistics.trend != 0;
        }
        cr_expect_leq(wrong, 20, "of %d steps: %d", (int)counts[i], wrong);
    }
}

Test(statistics_compare, covers_the_median_as_often_as_its_interval_says)
{
    static const struct {
        double memory;
        int    lowest, maximum;
    } cases[] = {{0, 3740, 3880}, {0.5, 3740, 4000}, {0.8, 3740, 4000}, {0.95, 3740, 4000}};
    for (int64_t i = 0; i < LENGTH(cases); i++) {
        int covered = 0;
        for (uint64_t series = 0; series < 4000; series++) {
            struct statistics statistics;
            measure(&statistics, 40, &(struct noise){.variation = 0.005, .memory = cases[i].memory}, 0, series);
            covered += statistics.low <= 7 && 7 <= statistics.high;
        }
        cr_expect(covered >= cases[i].lowest && covered <= cases[i].maximum, "case %d: %d of 4000", (int)i, covered);
    }
}

// Stops a run by the rule of the option run.until: after 20 steps or more, as soon as the confidence interval is narrow
// enough. The rule must not bias the median: the interval must contain the true median of 7 s at nearly the rate of
// runs that do not use the rule.
Test(statistics_compare, covers_the_median_where_the_interval_says_when_to_stop)
{
    enum { MINIMUM = 20 };
    static const double memories[] = {0, 0.5};
    // Below 95 %, since each check is another chance to stop while the interval is narrow by accident.
    static const int leasts[] = {935, 910};
    for (int64_t i = 0; i < LENGTH(memories); i++) {
        int covered = 0, ended = 0;
        for (uint64_t series = 0; series < SERIES; series++) {
            double            values[COUNT_MAX];
            int64_t           count = MINIMUM;
            struct statistics statistics;
            draw(values, COUNT_MAX, &(struct noise){.variation = 0.03, .memory = memories[i]}, 0, series);
            while (count < COUNT_MAX && statistics_half_width(values, count) > 0.02) {
                count++;
            }
            statistics_compute(&statistics, values, count);
            covered += statistics.low <= 7 && 7 <= statistics.high;
            ended += count < COUNT_MAX;
        }
        cr_expect(covered >= leasts[i], "case %d: %d of %d", (int)i, covered, SERIES);
        cr_expect_geq(ended, 990, "case %d: %d", (int)i, ended);
    }
}
