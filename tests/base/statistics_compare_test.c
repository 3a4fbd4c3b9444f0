// SPDX-License-Identifier: MIT
// Error rates and power of run comparisons, over simulated pairs of series by number of steps, autocorrelation and
// modes. GSWBENCH_PAIRS=4000 draws that many pairs for every length from 2 to 100 and prints the tables.
#include "gswbench/statistics.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/random.h"

enum { COUNT_MAX = 100 };

// AR(1) noise: `variation` is the coefficient of variation, `memory` the autocorrelation at lag 1. A bimodal run has
// two modes that differ by `gap`; a step keeps its predecessor's mode with probability `stay`.
struct noise {
    double variation, memory, gap, stay;
};

static double uniform(uint64_t key, int64_t index)
{
    return 0.5 * erfc(-(double)random_normal(key, (uint64_t)index) / sqrt(2));
}

static void measure(struct statistics *statistics, int64_t count, const struct noise *noise, double slowdown,
                    uint64_t series)
{
    uint64_t key = random_key(19, series), mode_key = random_key(20, series);
    double   state   = (double)random_normal(key, 0), values[COUNT_MAX];
    bool     is_high = uniform(mode_key, 0) < 0.5;
    for (int64_t i = 0; i < count; i++) {
        values[i] = 7 * (1 + slowdown) * (1 + noise->variation * state) * (1 + (is_high ? noise->gap : 0));
        state     = noise->memory * state +
                sqrt(1 - noise->memory * noise->memory) * (double)random_normal(key, (uint64_t)i + 1);
        is_high = uniform(mode_key, i + 1) < noise->stay ? is_high : !is_high;
    }
    statistics_compute(statistics, values, count);
}

static int64_t asked_pairs(void)
{
    const char *asked = getenv("GSWBENCH_PAIRS");
    return asked != NULL ? strtoll(asked, NULL, 10) : 0;
}

// Counts pairs with verdict SLOWER, or, for equal pairs, also FASTER.
static int64_t count_verdicts(int64_t pairs, int64_t count, const struct noise *noise, double slowdown)
{
    int64_t found = 0;
    for (int64_t pair = 0; pair < pairs; pair++) {
        struct statistics        first, second;
        struct statistics_change change;
        measure(&first, count, noise, 0, 2 * (uint64_t)pair);
        measure(&second, count, noise, slowdown, 2 * (uint64_t)pair + 1);
        statistics_compare(&change, &first, &second, 0.01);
        found += change.verdict == CHANGE_SLOWER || (slowdown == 0 && change.verdict == CHANGE_FASTER);
    }
    return found;
}

// Upper limit for a rate of 1 %: expectation plus three standard deviations.
static double most_of(int64_t pairs)
{
    return 0.01 * (double)pairs + 3 * sqrt(0.01 * (double)pairs);
}

static const double memories[] = {0, 0.5, 0.8, 0.9, 0.95, 0.98};
enum { MEMORIES = sizeof(memories) / sizeof(memories[0]) };

static void check_equal_pairs(int64_t count, int64_t pairs, bool is_printed)
{
    for (int i = 0; i < MEMORIES; i++) {
        struct noise noise = {.variation = 0.03, .memory = memories[i]};
        int64_t      wrong = count_verdicts(pairs, count, &noise, 0);
        cr_expect_leq((double)wrong, most_of(pairs), "%d steps, %g: %d of %d", (int)count, memories[i], (int)wrong,
                      (int)pairs);
        if (is_printed) {
            printf("%s %5.2f%%%s", i == 0 ? "equal pairs, steps and share kept:" : "",
                   100.0 * (double)wrong / (double)pairs, i + 1 < MEMORIES ? "" : "\n");
        }
    }
}

Test(statistics_compare, is_wrong_about_at_most_one_of_100_equal_pairs)
{
    static const int64_t counts[] = {2, 6, 8, 10, 11, 12, 14, 20, 30, 60, 100};
    int64_t              pairs    = asked_pairs();
    for (int64_t count = 2; pairs > 0 && count <= COUNT_MAX; count++) {
        printf("%3d ", (int)count);
        check_equal_pairs(count, pairs, true);
    }
    for (size_t i = 0; pairs == 0 && i < sizeof(counts) / sizeof(counts[0]); i++) {
        check_equal_pairs(counts[i], 10000 / counts[i], false);
    }
}

// A run can miss a mode that lasts longer than a third of it. A gap of half a standard deviation of the steps is noise.
Test(statistics_compare, is_wrong_about_at_most_one_of_100_equal_pairs_with_lasting_modes)
{
    static const double gaps[] = {0.015, 0.03, 0.05, 0.2}, stays[] = {0.5, 0.8, 0.9, 0.95, 0.97};
    int64_t             asked = asked_pairs();
    for (int64_t count = 11; count <= COUNT_MAX; count += asked > 0 ? 1 : 29) {
        for (int i = 0; i < 20; i++) {
            struct noise noise = {0.005, 0, gaps[i % 4], stays[i / 4]};
            int64_t      pairs = asked > 0 ? asked : 8000 / count;
            if (1 / (1 - noise.stay) > (double)count / 3 + 0.01) {
                continue;
            }
            int64_t wrong = count_verdicts(pairs, count, &noise, 0);
            cr_expect_leq((double)wrong, most_of(pairs), "%d steps, gap %g, stay %g: %d of %d", (int)count, noise.gap,
                          noise.stay, (int)wrong, (int)pairs);
            if (asked > 0) {
                printf("%3d steps, modes %g apart, stay %g: wrong %.2f%%\n", (int)count, noise.gap, noise.stay,
                       100.0 * (double)wrong / (double)pairs);
            }
        }
    }
}

// Coefficient of variation 0.5 %.
Test(statistics_compare, finds_a_slower_run)
{
    static const struct {
        int64_t count;
        double  memory, slowdown, lowest;
    } cases[] = {
        {10, 0, 0.5, 0},      {11, 0, 0.05, 0.3},   {20, 0, 0.02, 0.5},   {20, 0, 0.05, 0.9},   {40, 0, 0.02, 0.95},
        {40, 0.5, 0.02, 0.6}, {40, 0.5, 0.05, 0.9}, {40, 0.9, 0.1, 0.95}, {100, 0, 0.02, 0.95}, {100, 0.8, 0.05, 0.9},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t      pairs = asked_pairs() > 0 ? asked_pairs() : 8000 / cases[i].count;
        struct noise noise = {.variation = 0.005, .memory = cases[i].memory};
        double       share = (double)count_verdicts(pairs, cases[i].count, &noise, cases[i].slowdown) / (double)pairs;
        cr_expect(share >= cases[i].lowest && (cases[i].lowest > 0 || share == 0), "case %zu: %g", i, share);
        if (asked_pairs() > 0) {
            printf("%3d steps that keep %g, slower by %g%%: found in %.1f%%\n", (int)cases[i].count, cases[i].memory,
                   100 * cases[i].slowdown, 100 * share);
        }
    }
}

// One run stays in the fast mode. The other has six fast steps in a row; its remaining 34 steps take 5 % longer.
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
