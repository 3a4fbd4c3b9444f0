// SPDX-License-Identifier: MIT
// Tests outlier detection: which ranks and links are named, and which hosts are to be drained. Judging a preflight of
// 256 nodes with 8 devices each must take about a second, whichever ranks are slow. If it searched all links for each
// rank, it would take minutes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gswbench/random.h"
#include "gswbench/text.h"
#include "preflight/internal.h"

enum { RANKS_MAX = 32, VALUES_MAX = RANKS_MAX * RANKS_MAX };

// A case has ranks on nodes h1, h2, ... with local_ranks on each, and measured values of one quantity (a
// preflight_class).
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
    at_hand->value_class =
        (struct preflight_class){.name = "rate", .subject = subject, .limit_percent = limit, .values = at_hand->values};
    return at_hand;
}

static void close_case(struct case_at_hand *at_hand)
{
    free(at_hand->report.outliers);
    free(at_hand->report.drain);
    free(at_hand);
}

static void add(struct case_at_hand *at_hand, int64_t first, int64_t second, double value)
{
    at_hand->values[at_hand->value_class.value_count++] = (struct preflight_value){first, second, value};
}

// Sets the value of every device, or of every link between nodes in both directions, to 100. A case adds the values of
// groups of ranks itself.
static void add_values(struct case_at_hand *at_hand, enum preflight_subject subject)
{
    const struct preflight_rank *ranks = at_hand->ranks;
    for (int64_t i = 0; i < at_hand->report.rank_count && subject == PREFLIGHT_DEVICE; i++) {
        add(at_hand, i, i, 100.0);
    }
    for (int64_t i = 0; i < at_hand->report.rank_count && subject == PREFLIGHT_LINK; i++) {
        for (int64_t j = 0; j < at_hand->report.rank_count; j++) {
            if (ranks[i].node != ranks[j].node && ranks[i].local_rank == ranks[j].local_rank) {
                add(at_hand, i, j, 100.0);
            }
        }
    }
}

// A change of a case. For devices, it sets the value of rank `from`. For links, it sets the values of all links from
// node `from` to node `to` (-1: any node), or of all links to rank to_rank if that is not 0. For groups, it adds a
// value of the group with first rank `from` and last rank `to`.
struct change {
    int64_t from, to;
    double  value;
    int64_t to_rank;
};

static void apply(struct case_at_hand *at_hand, const struct change *change)
{
    enum preflight_subject subject = (enum preflight_subject)at_hand->value_class.subject;
    if (subject == PREFLIGHT_GROUP) {
        add(at_hand, change->from, change->to, change->value);
    }
    for (int64_t i = 0; i < at_hand->value_class.value_count && subject != PREFLIGHT_GROUP; i++) {
        struct preflight_value *value   = &at_hand->values[i];
        bool                    is_link = change->to_rank > 0 ? value->second == change->to_rank
                                                              : (change->from < 0 || at_hand->ranks[value->first].node == change->from) &&
                                                 (change->to < 0 || at_hand->ranks[value->second].node == change->to);
        if (subject == PREFLIGHT_DEVICE ? value->first == change->from : is_link) {
            value->value = change->value;
        }
    }
}

// Judges the case and returns the texts of the outliers, separated by "; ".
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

Test(preflight_judge, names_what_is_slow_and_drains_its_host)
{
    static const struct {
        const char            *what;
        int                    nodes, last_nodes, local_ranks;    // in steps of two up to last_nodes
        enum preflight_subject subject;
        double                 limit, profile;
        struct change          changes[4];    // value 0 ends the list
        const char            *text, *drained;
        int                    exit_code;
        double                 minimum, median;    // 0: not checked
        // clang-format off
    } cases[] = {
        {"the device that is slower than the limit, and no other", 2, 2, 4, PREFLIGHT_DEVICE, 5.0, NAN,
         {{6, 0, 90.0, 0}, {1, 0, 96.0, 0}},
         "device 2 of host h2 (rank 6): rate takes 11.1 % longer", "h2", 6, 90.0, 100.0},
        {"the slower one of two", 2, 2, 1, PREFLIGHT_DEVICE, 5.0, NAN, {{0, 0, 92.0, 0}},
         "device 0 of host h1 (rank 0): rate takes 8.7 % longer", "h1", 6, 92.0, 96.0},
        {"each of two slow devices of a host that has others", 2, 2, 4, PREFLIGHT_DEVICE, 5.0, NAN,
         {{4, 0, 80.0, 0}, {6, 0, 90.0, 0}},
         "device 0 of host h2 (rank 4): rate takes 25.0 % longer; device 2 of host h2 (rank 6): rate takes 11.1 % "
         "longer", "h2", 6, 80.0, 100.0},
        {"a host all of whose devices are slow", 4, 4, 2, PREFLIGHT_DEVICE, 5.0, NAN,
         {{4, 0, 80.0, 0}, {5, 0, 90.0, 0}},
         "host h3: all devices: rate takes at least 11.1 % longer", "h3", 6, 80.0, 100.0},
        {"nothing of a class without a limit", 4, 4, 2, PREFLIGHT_DEVICE, 0.0, NAN, {{4, 0, 1.0, 0}},
         "", "", 0, 1.0, 100.0},
        {"that all are slower than the profile; drains nobody", 2, 2, 2, PREFLIGHT_DEVICE, 5.0, 110.0, {{0}},
         "all: rate takes 10.0 % longer than in the profile", "", 6, 100.0, 100.0},
        {"the slow group by its ranks; drains only a host that has all of it", 4, 4, 2, PREFLIGHT_GROUP, 15.0, NAN,
         {{0, 1, 1.0, 0}, {2, 3, 1.3, 0}, {4, 5, 1.0, 0}, {0, 6, 1.2, 0}},
         "group of ranks 2 (h2) to 3 (h2): rate takes 30.0 % longer; group of ranks 0 (h1) to 6 (h4): rate takes "
         "20.0 % longer", "h2", 6, 1.0, 0},
        {"the host whose way out is slow", 3, 7, 4, PREFLIGHT_LINK, 20.0, NAN, {{1, -1, 70.0, 0}},
         "host h2: every rate from it takes 42.9 % longer", "h2", 6, 70.0, 100.0},
        {"the host whose way out is slow", 4, 8, 4, PREFLIGHT_LINK, 20.0, NAN, {{1, -1, 70.0, 0}},
         "host h2: every rate from it takes 42.9 % longer", "h2", 6, 70.0, 100.0},
        {"the host that is slow both ways, once", 5, 5, 1, PREFLIGHT_LINK, 20.0, NAN,
         {{4, -1, 70.0, 0}, {-1, 4, 50.0, 0}},
         "host h5: every rate from and to it takes 100.0 % longer", "h5", 6, 50.0, 100.0},
        {"the device whose own links alone are slow", 4, 4, 2, PREFLIGHT_LINK, 20.0, NAN, {{0, 0, 50.0, 5}},
         "device 1 of host h3 (rank 5): every rate to it takes 100.0 % longer", "h3", 6, 50.0, 100.0},
        {"a single slow link by its two ends; drains one of them", 2, 8, 1, PREFLIGHT_LINK, 20.0, NAN,
         {{0, 1, 70.0, 0}}, "link h1 -> h2 (rank 0 -> 1): rate takes 42.9 % longer", "h2", 6, 70.0, 0},
        {"two slow links; drains the end that both have", 8, 8, 1, PREFLIGHT_LINK, 20.0, NAN,
         {{2, 4, 70.0, 0}, {2, 5, 70.0, 0}},
         "link h3 -> h5 (rank 2 -> 4): rate takes 42.9 % longer; link h3 -> h6 (rank 2 -> 5): rate takes 42.9 % "
         "longer", "h3", 6, 70.0, 100.0},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int nodes = cases[i].nodes; nodes <= cases[i].last_nodes; nodes += 2) {
            struct case_at_hand *at_hand = open_case(nodes, cases[i].local_ranks, cases[i].subject, cases[i].limit);
            at_hand->value_class.profile = cases[i].profile;
            at_hand->value_class.is_time = cases[i].subject == PREFLIGHT_GROUP;
            add_values(at_hand, cases[i].subject);
            for (int change = 0; change < 4 && cases[i].changes[change].value > 0.0; change++) {
                apply(at_hand, &cases[i].changes[change]);
            }
            cr_expect_str_eq(judge(at_hand), cases[i].text, "%s, %d nodes", cases[i].what, nodes);
            cr_expect_str_eq(drained(at_hand), cases[i].drained, "%s, %d nodes", cases[i].what, nodes);
            cr_expect_eq(at_hand->report.exit_code, cases[i].exit_code, "%s", cases[i].what);
            for (int64_t j = 0; j < at_hand->report.outlier_count && cases[i].subject != PREFLIGHT_GROUP; j++) {
                const struct preflight_outlier *outlier = &at_hand->report.outliers[j];
                cr_expect_eq(outlier->rank < 0, outlier->blame == BLAME_HOST || outlier->blame == BLAME_ALL);
            }
            cr_expect_eq(at_hand->value_class.minimum, cases[i].minimum, "%s", cases[i].what);
            cr_expect(cases[i].median == 0 || at_hand->value_class.median == cases[i].median, "%s", cases[i].what);
            close_case(at_hand);
        }
    }
}

// Links on busy hosts vary by 20 %, so the median link of some rank is always more than 20 % slower than that of
// others. Links that vary by 2 % must not hide a host that is slow in both directions, although half of all links are
// slow then.
Test(preflight_judge, tells_a_slow_host_from_noisy_links)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        bool                 is_noisy = seed % 2 == 0;
        struct case_at_hand *at_hand  = open_case(is_noisy ? 8 : 4, 4, PREFLIGHT_LINK, 20.0);
        add_values(at_hand, PREFLIGHT_LINK);
        if (!is_noisy) {
            apply(at_hand, &(struct change){2, -1, 70.0, 0});
            apply(at_hand, &(struct change){-1, 2, 70.0, 0});
        }
        for (int64_t i = 0; i < at_hand->value_class.value_count; i++) {
            double noise = (is_noisy ? 0.2 : 0.02) * (double)random_normal(random_key(seed, 3), (uint64_t)i);
            at_hand->values[i].value *= exp(noise);
        }
        judge(at_hand);
        cr_expect_str_eq(drained(at_hand), is_noisy ? "" : "h3", "%d", (int)seed);
        cr_expect(!is_noisy || strstr(at_hand->value_class.note, "links vary by") != NULL);
        close_case(at_hand);
    }
}

static struct preflight_class spread_class(struct case_at_hand *at_hand, int count, double step)
{
    for (int i = 0; i < count; i++) {
        add(at_hand, i, i, 100.0 + step * (i % 2 == 0 ? 1.0 : -1.0));
    }
    return at_hand->value_class;
}

// With at least 16 devices, the limit is six robust standard deviations (1.4826 x median deviation) of their values,
// but at least 3.5 % and at most 5 %. With fewer devices the limit stays as given, 7 % here.
Test(judge, narrows_the_limit_of_devices_that_hardly_differ)
{
    static const struct {
        int    count;
        double step, limit;
    } cases[] = {{16, 1.0, 5.0}, {16, 0.2, 3.5}, {16, 0.5, 6 * 0.5 * 1.4826}, {15, 0.2, 7.0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_at_hand   *at_hand     = open_case(2, 16, PREFLIGHT_DEVICE, 7.0);
        struct preflight_class value_class = spread_class(at_hand, cases[i].count, cases[i].step);
        flight_fit_limit(&value_class);
        cr_expect_float_eq(value_class.limit_percent, cases[i].limit, 1e-9, "%g", value_class.limit_percent);
        close_case(at_hand);
    }
}

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
    struct text_stream text;
    text_stream_open(&text);
    preflight_write_text(&flight->report, text.file);
    text_stream_close(&text);
    cr_expect_not_null(strstr(text.data, "\ndrain: h"), "the list of hosts is wrapped");
    free(text.data);
    close_flight(flight);
}
