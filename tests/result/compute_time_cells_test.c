// SPDX-License-Identifier: MIT
// Tests the compute times of ranks by step, which are stored in a table of bounded size.
#include <criterion/criterion.h>
#include <math.h>

#include "gswbench/result.h"

static struct result result;

// Adds the compute times of this many ranks in this many steps.
static void add_steps(int64_t ranks, int64_t steps)
{
    double seconds[1000], excess[1000];
    for (int64_t step = 0; step < steps; step++) {
        for (int64_t rank = 0; rank < ranks; rank++) {
            seconds[rank] = (double)step + 1000.0 * (double)rank;
            excess[rank]  = rank % 3 == 0 ? NAN : 0.01 * (double)rank;
        }
        result_add_compute_times(&result, seconds, excess, ranks);
    }
}

static void close_result(void)
{
}

TestSuite(result_compute_times, .fini = close_result);

Test(result_compute_times, has_a_cell_for_each_rank_and_step)
{
    result.planned_warmup = 10;
    add_steps(3, 5);

    cr_assert_eq(result.compute_time_count, 15);
    const struct result_compute_time *cell = &result.compute_times[3 * 2 + 1];
    cr_expect(cell->rank == 1 && cell->ranks == 1 && cell->step == 12 && cell->steps == 1);
    cr_expect_eq(cell->seconds, 1002);
    cr_expect_eq(cell->excess, 0.01);
    cr_expect(isnan(result.compute_times[3 * 2].excess));
}

// The table has at most 64 columns. 200 steps fill 64 columns of one step, then 64 of two, and finally 50 columns of
// four steps.
Test(result_compute_times, joins_ranks_and_steps_that_are_too_many)
{
    add_steps(640, 200);

    cr_assert_eq(result.compute_time_count, 64 * 50);
    for (int64_t i = 0; i < result.compute_time_count; i++) {
        const struct result_compute_time *cell = &result.compute_times[i];
        cr_expect(cell->rank == i % 64 * 10 && cell->ranks == 10 && cell->step == i / 64 * 4 && cell->steps == 4);
        cr_expect_float_eq(cell->seconds, 1000.0 * (double)(cell->rank + 9) + (double)cell->step + 1.5, 1e-6);
        cr_expect_float_eq(cell->excess, 0.01 * (double)(cell->rank + (cell->rank % 3 == 0 ? 8 : 9)), 1e-9);
    }
}

Test(result_compute_times, keeps_a_last_column_that_is_not_full)
{
    add_steps(1, 67);
    cr_assert_eq(result.compute_time_count, 34);
    cr_expect(result.compute_times[33].step == 66 && result.compute_times[33].steps == 1);
    cr_expect_eq(result.compute_times[32].seconds, 64.5);
}
