// SPDX-License-Identifier: MIT
// Ranks that share cores are measured one at a time. Tests that a slow rank is found although the common clock of the
// cores changes from round to round. Also tests the rounds of link tests: each pair of nodes is tested once, and no
// node has two partners in a round.
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>

#include "gswbench/arena.h"
#include "gswbench/preflight.h"
#include "gswbench/random.h"
#include "preflight/internal.h"
#include "ranks.h"

enum { RANKS = 16, PROBES = 3, STRIDE = 4, SLOW = 6, UNLUCKY = 11 };

// Simulates rounds in which the core clock varies by 5 % and the rate of each rank by 2 %. Rank SLOW is 10 % slower in
// all probes, and rank UNLUCKY in one probe. The value after the probes is not a rate.
static void measure(struct turns *turns, uint64_t seed, int rounds)
{
    uint64_t key = random_key(seed, 1);
    for (int round = 0; round < rounds; round++) {
        double   rates[RANKS * STRIDE];
        uint64_t first = (uint64_t)round * 100;
        double   clock = 1.0 + 0.05 * (double)random_normal(key, first);
        for (int i = 0; i < RANKS * STRIDE; i++) {
            int    rank = i / STRIDE, probe = i % STRIDE;
            double noise = 1.0 + 0.02 * (double)random_normal(key, first + 1 + (uint64_t)i);
            bool   slow  = rank == SLOW || (rank == UNLUCKY && probe == 1);
            rates[i]     = probe == PROBES ? (double)i : 500.0 * clock * noise / (slow ? 1.1 : 1.0);
        }
        turns_add(turns, rates, STRIDE);
    }
}

Test(turns, tells_a_rank_that_takes_10_percent_longer_from_all_others)
{
    int missed = 0, wronged = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct turns turns;
        turns_open(&turns, RANKS, PROBES);
        measure(&turns, seed, 15);
        for (int rank = 0; rank < RANKS; rank++) {
            double longer = turns_rate(&turns, 0, 1) / turns_rate(&turns, rank, 1) - 1.0;
            missed += rank == SLOW && longer <= 0.06;
            wronged += rank != SLOW && longer > 0.06;
        }
        turns_close(&turns);
    }
    cr_expect_eq(missed, 0, "%d of 200", missed);
    cr_expect_eq(wronged, 0, "%d of 3000", wronged);
}

// Two of three rounds here are slow, and rank 1 is slowed down by chance in the fast round. A comparison of the best
// rates over all rounds would blame rank 1.
Test(turns, does_not_blame_a_rank_for_the_moment_of_its_turn)
{
    struct turns turns;
    const double rounds[3][3] = {{80.0, 80.0, 80.0}, {100.0, 82.0, 100.0}, {80.0, 80.0, 80.0}};
    turns_open(&turns, 3, 1);
    for (int round = 0; round < 3; round++) {
        turns_add(&turns, rounds[round], 1);
    }
    for (int rank = 0; rank < 3; rank++) {
        cr_expect_float_eq(turns_rate(&turns, rank, 0), 100.0, 1e-9, "%d", rank);
    }
    turns_close(&turns);
}

Test(turns, knows_how_far_its_rates_may_be_off)
{
    struct turns turns;
    turns_open(&turns, 2, 1);
    const double rounds[6][2] = {{100, 98}, {100, 102}, {100, 96}, {100, 104}, {100, 100}, {100, 100}};
    for (int round = 0; round < 6; round++) {
        cr_expect(isinf(turns_error(&turns, -INFINITY)), "%d", round);
        turns_add(&turns, rounds[round], 1);
    }
    // The median share is 1. The 95 % interval of six values reaches to the farthest one, rank 0's 100 / 98.
    cr_expect_float_eq(turns_error(&turns, -INFINITY), 100.0 * (100.0 / 98.0 - 1.0) / 1.96, 1e-9);
    turns_close(&turns);
}

// Rank 0 takes 10 % longer in every round. Another program slows down rank 1 in two of six rounds, so its median is not
// slow, but uncertain. That must not cast doubt on rank 0.
Test(turns, judges_a_slow_rank_by_its_own_error)
{
    struct turns turns;
    turns_open(&turns, 5, 1);
    for (int round = 0; round < 6; round++) {
        const double rates[5] = {100 / 1.1, round < 2 ? 60 : 100, 100, 100, 100};
        turns_add(&turns, rates, 1);
    }
    cr_expect_float_eq(turns_rate(&turns, 0, 0), 100 / 1.1, 1e-9);
    cr_expect_gt(turns_error(&turns, -INFINITY), 10.0);
    cr_expect_eq(turns_error(&turns, 6.0), 0.0, "%g", turns_error(&turns, 6.0));
    turns_close(&turns);
}

// During the first 12 rounds, another program slows down each rank by 12 % in a third of the rounds. As long as a rank
// therefore exceeds the limit of 6 %, the error must say that the ranks have to be measured again.
Test(turns, are_not_sure_of_a_rank_that_another_program_slows_down)
{
    int wronged = 0, settled = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        uint64_t     key = random_key(seed, 2);
        struct turns turns;
        turns_open(&turns, RANKS, 1);
        for (int round = 0; round % 6 != 0 || (round < 60 && turns_error(&turns, -INFINITY) > 1.0); round++) {
            double rates[RANKS];
            for (int rank = 0; rank < RANKS; rank++) {
                uint64_t index   = (uint64_t)(round * RANKS + rank);
                bool     is_slow = round < 12 && random_normal(key, 2 * index) > 0.5f;
                rates[rank]      = (1.0 + 0.005 * (double)random_normal(key, 2 * index + 1)) / (is_slow ? 1.12 : 1.0);
            }
            turns_add(&turns, rates, 1);
        }
        settled += turns_error(&turns, -INFINITY) <= 1.0;
        for (int rank = 0; rank < RANKS && turns_error(&turns, -INFINITY) <= 1.0; rank++) {
            wronged += turns_rate(&turns, rank, 0) < 1.0 / 1.06;
        }
        turns_close(&turns);
    }
    cr_expect_eq(wronged, 0, "%d of %d", wronged, settled);
    cr_expect_geq(settled, 900, "%d", settled);
}

// The slow rank of each batch; -1: none. There is time for one batch only.
struct batches {
    struct flight *flight;
    const int     *slow;
    int            count;
};

static status measure_batch(struct flight *flight, void *state)
{
    struct batches *batches = state;
    for (int rank = 0; rank < RANKS; rank++) {
        flight_set_value(flight->report.classes, rank, rank, rank == batches->slow[batches->count] ? 0.9 : 1.0);
    }
    batches->count++;
    return OK;
}

static void repeat(struct comm *comm, void *context)
{
    struct batches *batches       = context;
    batches->flight->comm         = comm;
    batches->flight->report.ranks = memory_allocate(RANKS * sizeof(struct preflight_rank));
    flight_add_class(batches->flight, PREFLIGHT_DEVICE, "FLOP/s", 6.0, "gemm");
    flight_repeat(batches->flight, &(struct flight_series){.run = measure_batch, .state = batches, .batch = 1});
}

Test(repeat, names_a_rank_that_two_batches_find_slow)
{
    static const struct {
        int slow[2], batches, named;
    } rows[] = {{{3, 3}, 2, 3}, {{3, -1}, 2, -1}, {{3, 4}, 2, -1}, {{-1, 3}, 1, -1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct preflight preflight = {.seconds = 0};
        struct flight          flight    = {.preflight = &preflight, .report.rank_count = RANKS};
        struct batches         batches   = {.flight = &flight, .slow = rows[i].slow};
        ranks_run(1, repeat, &batches);
        cr_expect_eq(batches.count, rows[i].batches, "%d: %d batches", (int)i, batches.count);
        cr_expect_eq(flight.report.outlier_count, rows[i].named >= 0, "%d", (int)i);
        cr_expect(rows[i].named < 0 || flight.report.outliers[0].rank == rows[i].named, "%d", (int)i);
        preflight_free(&flight.report);
    }
}

enum { PLAYERS_MAX = 33 };

Test(tournament, has_one_round_less_than_an_even_number_of_players)
{
    cr_expect_eq(preflight_rounds(2), 1);
    cr_expect_eq(preflight_rounds(8), 7);
    cr_expect_eq(preflight_rounds(7), 7);
}

// If the tests end early after r rounds, each node has been tested with r partners.
Test(tournament, lets_each_of_256_meet_somebody_in_every_round)
{
    enum { NODES = 256 };
    for (int64_t round = 0; round < preflight_rounds(NODES); round++) {
        for (int64_t player = 0; player < NODES; player++) {
            int64_t partner = preflight_partner(NODES, player, round);
            cr_assert(partner >= 0 && partner < NODES && partner != player, "%d in round %d", (int)player, (int)round);
        }
    }
}

Test(tournament, lets_every_pair_meet_once_and_both_know_it)
{
    for (int64_t players = 2; players <= PLAYERS_MAX; players++) {
        int met[PLAYERS_MAX][PLAYERS_MAX] = {{0}};
        for (int64_t round = 0; round < preflight_rounds(players); round++) {
            for (int64_t player = 0; player < players; player++) {
                int64_t partner = preflight_partner(players, player, round);
                if (partner >= 0) {
                    cr_expect_eq(preflight_partner(players, partner, round), player);
                    met[player][partner]++;
                }
            }
        }
        for (int64_t i = 0; i < players; i++) {
            for (int64_t j = 0; j < players; j++) {
                cr_expect_eq(met[i][j], i != j, "%d players: %d and %d meet %d times", (int)players, (int)i, (int)j,
                             met[i][j]);
            }
        }
    }
}
