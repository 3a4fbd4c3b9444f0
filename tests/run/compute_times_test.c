// SPDX-License-Identifier: MIT
// Tests the detection of slow ranks: it compares ranks with the same work, and must not mistake noise for a slow rank.
#include "run/internal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "gswbench/random.h"
#include "layouts.h"

enum { RANKS_MAX = 16, STEPS_MAX = 64 };

// Gathers a fingerprint of each rank's work, in which ranks with odd numbers have other work.
static void gather_odd(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        memcpy((char *)out + rank * bytes, in, (size_t)bytes);
        ((char *)out)[rank * bytes] ^= (char)(rank % 2);
    }
}

// Rank 0 adds the table of compute times to this result, which the tests do not read.
static struct result nothing;

static struct compute_times *open_times(int ranks, int rank)
{
    const struct comm_ops ops  = {.gather_all = gather_odd};
    struct comm           comm = {.ops = &ops, .topology = {.rank = rank, .ranks = ranks}};
    struct tiny           tiny = tiny_of("");
    tiny_plan(&tiny);
    struct compute_times *times = compute_times_open(&tiny.plan, &comm, STEPS_MAX);
    plan_free(&tiny.plan);
    return times;
}

static struct result_rank summarise(const struct compute_times *times, int rank, int ranks, bool is_judged)
{
    const struct comm_topology topology = {.rank = rank, .ranks = ranks};
    struct result_rank         own      = {.rank = rank};
    compute_times_summarise(times, &topology, is_judged, &own);
    return own;
}

Test(compute_times, compares_ranks_that_compute_the_same)
{
    const double               seconds[] = {1.0, 5.0, 1.1, 4.0, 1.2, 9.0};
    const struct comm_topology topology  = {.rank = 4, .ranks = 6};
    struct compute_times      *times     = open_times(6, 4);
    for (int i = 0; i < 12; i++) {
        compute_times_add(times, &topology, seconds, &nothing);
    }

    struct result_rank own = summarise(times, 4, 6, true);

    cr_expect_eq(own.class, 0);
    cr_expect_eq(times->classes[5], 1);
    cr_expect_eq(own.compute_seconds, 1.2);
    cr_expect_float_eq(own.excess, 1.2 / 1.1 - 1, 1e-12);
    cr_expect_float_eq(own.excess_low, 1.2 / 1.1 - 1, 1e-12);
    cr_expect(isnan(summarise(times, 4, 6, false).excess_low), "others compute where it does");
    compute_times_close(times);
}

// Of two ranks with the same work, the slower one is compared with the faster one and not with their mean. A rank
// without another rank with the same work is not compared.
Test(compute_times, compares_two_with_the_faster_and_one_with_none)
{
    const double               seconds[] = {1.06, 1.0, 1.0};
    const struct comm_topology topology = {.rank = 0, .ranks = 3}, alone = {.rank = 1, .ranks = 3};
    struct compute_times      *times = open_times(3, 0), *single = open_times(3, 1);
    compute_times_add(times, &topology, seconds, &nothing);
    compute_times_add(single, &alone, seconds, &nothing);

    cr_expect_float_eq(summarise(times, 0, 3, true).excess, 0.06, 1e-12);
    cr_expect(isnan(summarise(single, 1, 3, true).excess));
    cr_expect_eq(summarise(single, 1, 3, true).compute_seconds, 1.0);
    compute_times_close(times);
    compute_times_close(single);
}

// A rank may be blamed by mistake in 1 % of jobs, so with probability 1/1600 per rank and side in a job of 16 ranks.
// This needs 11 steps.
Test(compute_times, asks_for_steps_enough_to_leave_no_doubt)
{
    double                     seconds[RANKS_MAX];
    const struct comm_topology topology = {.rank = 2, .ranks = RANKS_MAX};
    struct compute_times      *times    = open_times(RANKS_MAX, 2);
    for (int rank = 0; rank < RANKS_MAX; rank++) {
        seconds[rank] = rank == 2 ? 2.0 : 1.0;
    }
    for (int i = 0; i < 10; i++) {
        compute_times_add(times, &topology, seconds, &nothing);
    }
    cr_expect(isnan(summarise(times, 2, RANKS_MAX, true).excess_low));
    compute_times_add(times, &topology, seconds, &nothing);
    cr_expect_eq(summarise(times, 2, RANKS_MAX, true).excess_low, 1.0);
    compute_times_close(times);
}

// Simulates a job of 8 ranks in which steps vary and rank 0 is slower by this fraction. Returns the result of a rank.
static struct result_rank run_job(int rank, double variation, double slower, uint64_t job)
{
    double                     seconds[8];
    const struct comm_topology topology = {.rank = rank, .ranks = 8};
    struct compute_times      *times    = open_times(8, rank);
    for (uint64_t step = 0; step < 40; step++) {
        for (uint64_t i = 0; i < 8; i++) {
            seconds[i] = 1 + variation * (double)random_normal(random_key(7, job), 8 * step + i);
        }
        seconds[0] *= 1 + slower;
        compute_times_add(times, &topology, seconds, &nothing);
    }
    struct result_rank own = summarise(times, rank, 8, true);
    compute_times_close(times);
    return own;
}

Test(compute_times, takes_hardly_any_noise_for_a_slow_rank)
{
    int slow = 0;
    for (uint64_t job = 0; job < 1000; job++) {
        slow += run_job(2, 0.05, 0, job).excess_low > 0;
    }
    cr_expect_leq(slow, 5, "%d of 1000 ranks", slow);    // 1000 jobs x 1 % / 8 ranks: 1.25 are expected
}

Test(compute_times, finds_six_percent_and_not_one)
{
    for (uint64_t job = 0; job < 200; job++) {
        struct result_rank six = run_job(0, 0.02, 0.06, job), one = run_job(0, 0.02, 0.01, job);
        cr_expect(six.excess >= 0.03 && six.excess_low > 0.01, "%g, %g", six.excess, six.excess_low);
        cr_expect(one.excess < 0.03, "%g, %g", one.excess, one.excess_low);
    }
}
