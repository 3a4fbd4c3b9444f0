// SPDX-License-Identifier: MIT
// Judging a preflight of 256 nodes with 8 devices each must take about a second, whichever ranks are slow. If it
// searched all links for each rank, it would take minutes.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "preflight/internal.h"

enum { NODES = 256, LOCAL = 8, RANKS = NODES * LOCAL, LINKS = RANKS * (NODES - 1), TOURNAMENTS = 2 };

// Returns CPU time, on which other processes have no influence.
static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

// Adds measured values in the order in which ranks gather them: for each round of link tests, the rate at which every
// rank received.
static void play(struct preflight_class *value_class, double value)
{
    for (int64_t i = 0; i < (int64_t)TOURNAMENTS * preflight_rounds(NODES); i++) {
        for (int64_t rank = 0; rank < RANKS; rank++) {
            int64_t partner = preflight_partner(NODES, rank / LOCAL, i % preflight_rounds(NODES));
            flight_set_value(value_class, partner * LOCAL + rank % LOCAL, rank, value);
        }
    }
}

static struct flight *open_flight(void)
{
    struct flight *flight     = calloc(1, sizeof(*flight));
    flight->report.ranks      = calloc(RANKS, sizeof(*flight->report.ranks));
    flight->report.rank_count = RANKS;
    for (int64_t i = 0; i < RANKS; i++) {
        struct preflight_rank *rank = &flight->report.ranks[i];
        rank->node                  = i / LOCAL;
        rank->local_rank            = i % LOCAL;
        snprintf(rank->host, sizeof(rank->host), "h%d", (int)(i / LOCAL));
    }
    return flight;
}

static void close_flight(struct flight *flight)
{
    preflight_free(&flight->report);
    free(flight);
}

static void expect_judged_in_seconds(struct flight *flight, struct preflight_class *links)
{
    double began = processor_seconds();
    preflight_judge(&flight->report, links);
    preflight_conclude(&flight->report);
    cr_expect_lt(processor_seconds() - began, 10.0);
}

Test(preflight_scale, keeps_one_value_of_each_pair_and_judges_half_a_million_in_seconds, .timeout = 240)
{
    struct flight          *flight = open_flight();
    struct preflight_class *links  = flight_add_class(flight, PREFLIGHT_LINK, "bytes/s", 20.0, "link between nodes");
    play(links, 100.0);
    cr_assert_eq(links->value_count, LINKS);

    for (int64_t i = 0; i < LINKS; i++) {
        struct preflight_value *link = &links->values[i];
        bool                    slow = link->first / LOCAL == 77 || (link->first == 800 && link->second == 1600);
        flight_set_value(links, link->first, link->second, slow ? 70.0 : 100.0);
    }
    cr_assert_eq(links->value_count, LINKS);
    expect_judged_in_seconds(flight, links);
    cr_assert_eq(flight->report.outlier_count, 2);
    cr_expect_str_eq(flight->report.outliers[0].text, "host h77: every link between nodes from it takes 42.9 % longer");
    cr_expect_str_eq(flight->report.outliers[1].text,
                     "link h100 -> h200 (rank 800 -> 1600): link between nodes takes 42.9 % longer");
    cr_assert_eq(flight->report.drain_count, 2);
    cr_expect_str_eq(flight->report.drain[0].host, "h77");
    cr_expect_str_eq(flight->report.drain[1].host, "h200");
    close_flight(flight);
}

// A slow switch connects a third of the hosts. 115,600 links are slow, but no host is at fault.
Test(preflight_scale, judges_a_hundred_thousand_slow_links_in_seconds, .timeout = 240)
{
    enum { THIRD = 85 };
    struct flight          *flight = open_flight();
    struct preflight_class *links  = flight_add_class(flight, PREFLIGHT_LINK, "bytes/s", 20.0, "link between nodes");
    play(links, 100.0);
    for (int64_t i = 0; i < LINKS; i++) {
        struct preflight_value *link = &links->values[i];
        int64_t                 from = link->first / LOCAL, to = link->second / LOCAL;
        link->value = from < THIRD && to >= THIRD && to < 2 * THIRD ? 70.0 : 100.0;
        link->value = to < THIRD && from >= THIRD && from < 2 * THIRD ? 70.0 : link->value;
    }
    expect_judged_in_seconds(flight, links);
    cr_expect_eq(flight->report.outlier_count, 2 * THIRD * THIRD * LOCAL);
    cr_expect_eq(flight->report.drain_count, THIRD);
    close_flight(flight);
}
