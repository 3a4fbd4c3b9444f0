// SPDX-License-Identifier: MIT
// Tests the rounds of link tests: each pair of nodes is tested once, and no node has two partners in a round.
#include <criterion/criterion.h>

#include "gswbench/preflight.h"

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
