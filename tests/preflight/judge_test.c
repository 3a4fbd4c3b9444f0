// SPDX-License-Identifier: MIT
// Outlier detection: the ranks and links that are named, and the hosts to drain.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/preflight.h"

enum { RANKS_MAX = 32, VALUES_MAX = RANKS_MAX * RANKS_MAX };

// Ranks on nodes h1, h2, ... with local_ranks each, and one class of values.
struct case_at_hand {
    struct preflight_rank   ranks[RANKS_MAX];
    struct preflight_value  values[VALUES_MAX];
    struct preflight_class  value_class;
    struct preflight_report report;
};

static struct case_at_hand *open_case(int nodes, int local_ranks, enum preflight_subject subject, double limit)
{
    struct case_at_hand *at_hand = calloc(1, sizeof(*at_hand));
    for (int i = 0; i < nodes * local_ranks; i++) {
        at_hand->ranks[i].node       = i / local_ranks;
        at_hand->ranks[i].local_rank = i % local_ranks;
        snprintf(at_hand->ranks[i].host, sizeof(at_hand->ranks[i].host), "h%d", i / local_ranks + 1);
    }
    at_hand->report.ranks      = at_hand->ranks;
    at_hand->report.rank_count = nodes * local_ranks;
    at_hand->value_class       = (struct preflight_class){
              .name = "rate", .subject = subject, .limit_percent = limit, .profile = NAN, .values = at_hand->values};
    return at_hand;
}

static void add(struct case_at_hand *at_hand, int64_t first, int64_t second, double value)
{
    at_hand->values[at_hand->value_class.value_count++] = (struct preflight_value){first, second, value};
}

static void add_devices(struct case_at_hand *at_hand, double value)
{
    for (int64_t i = 0; i < at_hand->report.rank_count; i++) {
        add(at_hand, i, i, value);
    }
}

// Adds the links between all pairs of nodes, in both directions.
static void add_links(struct case_at_hand *at_hand, double value)
{
    const struct preflight_rank *ranks = at_hand->ranks;
    for (int64_t i = 0; i < at_hand->report.rank_count; i++) {
        for (int64_t j = 0; j < at_hand->report.rank_count; j++) {
            if (ranks[i].node != ranks[j].node && ranks[i].local_rank == ranks[j].local_rank) {
                add(at_hand, i, j, value);
            }
        }
    }
}

// Sets the links from one node to another (-1: any) to this value.
static void set_links(struct case_at_hand *at_hand, int64_t from, int64_t to, double value)
{
    for (int64_t i = 0; i < at_hand->value_class.value_count; i++) {
        struct preflight_value *link = &at_hand->values[i];
        if ((from < 0 || at_hand->ranks[link->first].node == from) &&
            (to < 0 || at_hand->ranks[link->second].node == to)) {
            link->value = value;
        }
    }
}

// Returns the texts of the outliers, separated by "; ".
static const char *judge(struct case_at_hand *at_hand)
{
    static char text[4096];
    text[0] = '\0';
    preflight_judge(&at_hand->report, &at_hand->value_class);
    preflight_conclude(&at_hand->report);
    for (int64_t i = 0; i < at_hand->report.outlier_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? "; " : "", at_hand->report.outliers[i].text);
    }
    return text;
}

static const char *drained(const struct case_at_hand *at_hand)
{
    static char text[256];
    text[0] = '\0';
    for (int64_t i = 0; i < at_hand->report.drain_count; i++) {
        strcat(text, i > 0 ? "," : "");
        strcat(text, at_hand->report.drain[i].host);
    }
    return text;
}

Test(preflight_judge, names_the_device_that_is_slower_than_the_limit_and_no_other)
{
    struct case_at_hand *at_hand = open_case(2, 4, PREFLIGHT_DEVICE, 5.0);
    add_devices(at_hand, 100.0);
    at_hand->values[6].value = 90.0;
    at_hand->values[1].value = 96.0;

    cr_expect_str_eq(judge(at_hand), "device 2 of host h2 (rank 6): rate takes 11.1 % longer");
    cr_expect_str_eq(drained(at_hand), "h2");
    cr_expect_eq(at_hand->report.exit_code, 6);
    cr_expect_eq(at_hand->value_class.minimum, 90.0);
    cr_expect_eq(at_hand->value_class.median, 100.0);
}

Test(preflight_judge, names_the_slower_one_of_two)
{
    struct case_at_hand *at_hand = open_case(2, 1, PREFLIGHT_DEVICE, 5.0);
    add_devices(at_hand, 100.0);
    at_hand->values[0].value = 92.0;

    cr_expect_str_eq(judge(at_hand), "device 0 of host h1 (rank 0): rate takes 8.7 % longer");
}

Test(preflight_judge, names_a_host_all_of_whose_devices_are_slow)
{
    struct case_at_hand *at_hand = open_case(4, 2, PREFLIGHT_DEVICE, 5.0);
    add_devices(at_hand, 100.0);
    at_hand->values[4].value = 80.0;
    at_hand->values[5].value = 90.0;

    cr_expect_str_eq(judge(at_hand), "host h3: all devices: rate takes at least 11.1 % longer");
    cr_expect_str_eq(drained(at_hand), "h3");
}

Test(preflight_judge, says_nothing_of_a_class_without_a_limit)
{
    struct case_at_hand *at_hand = open_case(4, 2, PREFLIGHT_DEVICE, 0.0);
    add_devices(at_hand, 100.0);
    at_hand->values[4].value = 1.0;

    cr_expect_str_eq(judge(at_hand), "");
    cr_expect_eq(at_hand->report.exit_code, 0);
    cr_expect_eq(at_hand->value_class.minimum, 1.0);
}

Test(preflight_judge, says_that_all_are_slower_than_the_profile_and_drains_nobody)
{
    struct case_at_hand *at_hand = open_case(2, 2, PREFLIGHT_DEVICE, 5.0);
    add_devices(at_hand, 100.0);
    at_hand->value_class.profile = 110.0;

    cr_expect_str_eq(judge(at_hand), "all: rate takes 10.0 % longer than in the profile");
    cr_expect_str_eq(drained(at_hand), "");
    cr_expect_eq(at_hand->report.exit_code, 6);
}

Test(preflight_judge, names_the_slow_group_by_its_ranks_and_drains_only_a_host_that_has_all_of_it)
{
    struct case_at_hand *at_hand = open_case(4, 2, PREFLIGHT_GROUP, 15.0);
    at_hand->value_class.is_time = true;
    add(at_hand, 0, 1, 1.0);
    add(at_hand, 2, 3, 1.3);
    add(at_hand, 4, 5, 1.0);
    add(at_hand, 0, 6, 1.2);

    cr_expect_str_eq(judge(at_hand),
                     "group of ranks 2 (h2) to 3 (h2): rate takes 30.0 % longer; group of ranks 0 (h1) to "
                     "6 (h4): rate takes 20.0 % longer");
    cr_expect_str_eq(drained(at_hand), "h2");
}

Test(preflight_judge, names_the_host_whose_way_out_is_slow)
{
    for (int nodes = 3; nodes <= 8; nodes++) {
        struct case_at_hand *at_hand = open_case(nodes, 4, PREFLIGHT_LINK, 20.0);
        add_links(at_hand, 100.0);
        set_links(at_hand, 1, -1, 70.0);

        cr_expect_str_eq(judge(at_hand), "host h2: every rate from it takes 42.9 % longer", "%d nodes", nodes);
        cr_expect_str_eq(drained(at_hand), "h2");
    }
}

Test(preflight_judge, names_the_host_that_is_slow_both_ways_once)
{
    struct case_at_hand *at_hand = open_case(5, 1, PREFLIGHT_LINK, 20.0);
    add_links(at_hand, 100.0);
    set_links(at_hand, 4, -1, 70.0);
    set_links(at_hand, -1, 4, 50.0);

    cr_expect_str_eq(judge(at_hand), "host h5: every rate from and to it takes 100.0 % longer");
    cr_expect_str_eq(drained(at_hand), "h5");
}

Test(preflight_judge, names_the_device_whose_own_links_alone_are_slow)
{
    struct case_at_hand *at_hand = open_case(4, 2, PREFLIGHT_LINK, 20.0);
    add_links(at_hand, 100.0);
    for (int64_t i = 0; i < at_hand->value_class.value_count; i++) {
        at_hand->values[i].value = at_hand->values[i].second == 5 ? 50.0 : at_hand->values[i].value;
    }

    cr_expect_str_eq(judge(at_hand), "device 1 of host h3 (rank 5): every rate to it takes 100.0 % longer");
    cr_expect_str_eq(drained(at_hand), "h3");
}

Test(preflight_judge, names_a_single_slow_link_by_its_two_ends_and_drains_one_of_them)
{
    for (int nodes = 2; nodes <= 8; nodes += 2) {
        struct case_at_hand *at_hand = open_case(nodes, 1, PREFLIGHT_LINK, 20.0);
        add_links(at_hand, 100.0);
        set_links(at_hand, 0, 1, 70.0);

        cr_expect_str_eq(judge(at_hand), "link h1 -> h2 (rank 0 -> 1): rate takes 42.9 % longer", "%d nodes", nodes);
        cr_expect_str_eq(drained(at_hand), "h2");
    }
}

Test(preflight_judge, drains_the_end_that_has_more_slow_links)
{
    struct case_at_hand *at_hand = open_case(8, 1, PREFLIGHT_LINK, 20.0);
    add_links(at_hand, 100.0);
    set_links(at_hand, 2, 4, 70.0);
    set_links(at_hand, 2, 5, 70.0);

    judge(at_hand);
    cr_expect_eq(at_hand->report.outlier_count, 2);
    cr_expect_str_eq(drained(at_hand), "h3");
}
