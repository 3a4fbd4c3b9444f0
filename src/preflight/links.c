// SPDX-License-Identifier: MIT
// Measures the links between pairs of ranks in a round-robin tournament. Between nodes, ranks with the same local rank
// are paired; within a node, all its ranks. Each direction is timed by its receiver.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/assembly.h"
#include "gswbench/clock.h"
#include "gswbench/statistics.h"
#include "gswbench/text.h"
#include "internal.h"

// A round-robin schedule by the circle method. Players are nodes, or the ranks of a node. If the number of players is
// odd, then in round r those two meet whose numbers add up to r modulo the number of players. A player that would meet
// itself pauses. If the number is even, one player fewer is scheduled like this, and the player that would pause meets
// the last player.
int64_t preflight_rounds(int64_t players)
{
    return players % 2 == 0 ? players - 1 : players;
}

int64_t preflight_partner(int64_t players, int64_t player, int64_t round)
{
    int64_t circle = preflight_rounds(players);
    bool    is_odd = circle == players;
    if (player == circle) {    // the last player meets the player p with 2 p = round (mod circle)
        return round * ((circle + 1) / 2) % circle;
    }
    int64_t partner = ((round - player) % circle + circle) % circle;
    if (partner != player) {
        return partner;
    }
    return is_odd ? -1 : circle;
}

// A step that measures links: collectives of two ranks, which need not be a group of the mesh. Each op is timed.
struct traffic {
    struct plan     plan;
    struct assembly assembly;
    struct step    *step;     // NULL until traffic_open
    struct op_time *times;    // [plan.op_count]: start and end of each op in the latest run
};

// Begins the plan of a step. members: the two ranks of the link. size 0: the rank has no partner; its plan stays empty,
// and it opens the step only because all ranks must.
static void traffic_begin(struct traffic *traffic, const struct flight *flight, const int64_t *members, int64_t size)
{
    struct plan *plan = &traffic->plan;
    *traffic          = (struct traffic){.step = NULL};
    *plan             = (struct plan){.mesh = flight->setup.request->mesh, .rank = flight->comm->topology.rank};
    assembly_begin(&traffic->assembly, plan);
    plan->groups             = memory_allocate(sizeof(*plan->groups));
    struct plan_group *group = &plan->groups[0];
    *group                   = (struct plan_group){.axes = 1, .size = size};
    if (size > 0) {
        plan->group_count = 1;
        group->ranks      = arena_allocate(&plan->arena, (size_t)size * sizeof(*members));
        memcpy(group->ranks, members, (size_t)size * sizeof(*members));
        while (members[group->index] != plan->rank) {
            group->index++;
        }
    }
}

static void traffic_add(struct traffic *traffic, enum op_kind kind, int32_t in, int32_t out, int32_t peer)
{
    const struct tensor *tensors  = traffic->plan.tensors;
    struct op            op       = assembly_op(&traffic->assembly, kind, "preflight");
    int64_t              elements = tensors[out].elements;
    op.stream                     = STREAM_WEIGHT_GATHER;
    op.shape.communication        = (struct communication_shape){.elements = elements, .peer = peer};
    if (in >= 0) {
        assembly_operand(&op, COMMUNICATION_IN, in);
    }
    assembly_operand(&op, COMMUNICATION_OUT, out);
    assembly_append(&traffic->assembly, &op);
}

static status traffic_open(struct traffic *traffic, struct flight *flight)
{
    struct plan *plan = &traffic->plan;
    assembly_finish(&traffic->assembly);
    TRY(step_open(&traffic->step, plan, &flight->environment.backend, flight->comm));
    traffic->times = memory_allocate((size_t)plan->op_count * sizeof(*traffic->times));
    step_trace(traffic->step, traffic->times);
    return OK;
}

static void traffic_close(struct traffic *traffic)
{
    if (traffic->step != NULL) {
        step_close(traffic->step);
    }
    free(traffic->times);
    plan_free(&traffic->plan);
}

enum { PINGS = 8, BULKS = 2, SAMPLES = 32, WHOLE = 3, HOST_BYTES = 1 << 20, DEVICE_BYTES = 64 << 20 };
const double flight_link_limit = 20.0;    // tolerated slowdown in percent

// Measured speeds of the data that one partner sends to this rank.
struct samples {
    double  rate[SAMPLES], latency[SAMPLES];
    int64_t count;
};

struct links {
    bool    between;    // measure links between nodes; false: between the ranks of each node
    int64_t players;    // nodes if `between`, else the maximum number of ranks per node
    int64_t first_class, bytes;
    double  visit_seconds;    // duration of the longest visit (measurement of two ranks) so far
    double  share;            // part of the time budget after which the measurement ends
    int64_t tournaments;      // completed tournaments

    int64_t        *numbers;    // [node][local rank]: rank + 1; 0: no such rank
    int64_t         local_ranks;
    struct samples *samples;    // [player]: samples of the link from this node, or this local rank, to this rank
};

// A measurement of two ranks in a round, seen by one of them. rate (bytes/s) and latency (s) describe the link from the
// partner to this rank, by its samples so far. seconds: duration of the measurement. All ranks gather the visits.
struct visit {
    int64_t partner;    // rank of the partner; -1: none
    double  rate, latency, seconds;
};

static int64_t max_local_ranks(const struct flight *flight)
{
    int64_t maximum = 0;
    for (int64_t i = 0; i < flight->report.rank_count; i++) {
        maximum = flight->report.ranks[i].local_rank >= maximum ? flight->report.ranks[i].local_rank + 1 : maximum;
    }
    return maximum;
}

static void list_ranks(struct links *links, const struct flight *flight)
{
    const struct preflight_report *report = &flight->report;
    links->local_ranks                    = max_local_ranks(flight);
    links->numbers =
        memory_allocate((size_t)(flight->comm->topology.nodes * links->local_ranks) * sizeof(*links->numbers));
    for (int64_t i = 0; i < report->rank_count; i++) {
        links->numbers[report->ranks[i].node * links->local_ranks + report->ranks[i].local_rank] = i + 1;
    }
}

// Returns the rank with this local rank on a node; -1: none.
static int64_t find_rank(const struct links *links, int64_t node, int64_t local)
{
    return links->numbers[node * links->local_ranks + local] - 1;
}

// Returns the rank that this rank meets in the round; -1: none.
static int64_t find_partner(const struct flight *flight, const struct links *links, int64_t round)
{
    const struct comm_topology *topology = &flight->comm->topology;
    int64_t                     player   = links->between ? topology->node : topology->local_rank;
    int64_t                     partner  = preflight_partner(links->players, player, round);
    if (partner < 0) {
        return -1;
    }
    return links->between ? find_rank(links, partner, topology->local_rank) : find_rank(links, topology->node, partner);
}

// Plans and opens a step of messages between this rank and its partner: small ones in alternating directions for the
// latency, then large ones in each direction for the bandwidth.
static status open_traffic(struct flight *flight, struct traffic *traffic, int64_t partner, int64_t bytes)
{
    int64_t own       = flight->comm->topology.rank,
            members[] = {own < partner ? own : partner, own < partner ? partner : own};
    traffic_begin(traffic, flight, members, partner >= 0 ? 2 : 0);
    if (partner >= 0) {
        int32_t small = assembly_tensor(&traffic->assembly, "ping", STORAGE_INPUT, FORMAT_F32, DIMS(1));
        int32_t large = assembly_tensor(&traffic->assembly, "bulk", STORAGE_INPUT, FORMAT_BF16,
                                        DIMS(bytes / format_bytes(FORMAT_BF16, 1)));
        for (int i = 0; i < 2 * PINGS; i++) {
            traffic_add(traffic, OP_BROADCAST, -1, small, i % 2);
        }
        for (int i = 0; i < 2 * (1 + BULKS); i++) {
            traffic_add(traffic, OP_BROADCAST, -1, large, i / (1 + BULKS));
        }
    }
    return traffic_open(traffic, flight);
}

// Adds a sample of the speeds at which this rank received. The first messages are not used, because they fill buffers
// and may use a burst allowance of the network.
static void read_times(struct samples *samples, const struct traffic *traffic, int64_t bytes)
{
    const struct op_time *times = traffic->times;
    int                   from  = 1 - (int)traffic->plan.groups[0].index;
    const struct op_time *bulk  = &times[2 * PINGS + from * (1 + BULKS)];
    int64_t               at    = samples->count++ % SAMPLES;
    samples->rate[at]           = BULKS * (double)bytes / fmax(bulk[BULKS].end - bulk[0].end, 1e-9);
    samples->latency[at]        = fmax(times[2 * PINGS - 1].end - times[1].end, 1e-9) / (2 * (PINGS - 1));
}

// Sets the visit's speeds from the samples so far. The rate is the upper quartile of the samples: other traffic lowers
// a sample, and one is too high if the end of the first message, which starts the clock, was noticed late.
static void sum_up(struct visit *visit, const struct samples *samples)
{
    double  rates[SAMPLES];
    int64_t count = samples->count < SAMPLES ? samples->count : SAMPLES;
    memcpy(rates, samples->rate, sizeof(rates));
    statistics_sort(rates, count);
    visit->rate    = rates[(3 * (count - 1) + 2) / 4];
    visit->latency = statistics_median(samples->latency, count);
}

static void run_visit(struct flight *flight, struct links *links, const struct traffic *traffic, struct visit *visit)
{
    const struct preflight_rank *rank    = &flight->report.ranks[visit->partner];
    struct samples              *samples = &links->samples[links->between ? rank->node : rank->local_rank];
    double                       begin   = clock_seconds();
    step_run(traffic->step);
    read_times(samples, traffic, links->bytes);
    visit->seconds = clock_seconds() - begin;
    sum_up(visit, samples);
}

// Measures the links with the partner. A rank without a partner sleeps for about the duration of a measurement instead
// of polling, so that it takes no cores from other ranks.
static status visit_partner(struct flight *flight, struct links *links, struct visit *visit)
{
    struct traffic traffic;
    int64_t        partner = visit->partner;
    const char    *host    = partner >= 0 ? flight->report.ranks[partner].host : "";
    flight_run(flight, NULL, NULL, "opening the link with rank %d (%s)", (int)partner, host);
    status opened = open_traffic(flight, &traffic, partner, links->bytes);
    flight_meet(flight, "opening a link");
    opened = comm_agree(flight->comm, opened);
    flight->comm->ops->barrier(flight->comm);
    if (!failed(&opened) && partner >= 0) {
        flight_run(flight, &traffic.plan, traffic.step, "link with rank %d (%s)", (int)partner, host);
        run_visit(flight, links, &traffic, visit);
    } else if (!failed(&opened)) {
        clock_sleep_until(clock_seconds() + 0.9 * links->visit_seconds);
    }
    flight_meet(flight, "a link");
    traffic_close(&traffic);
    return opened;
}

static void gather_visits(struct flight *flight, struct links *links, const struct visit *own)
{
    int           ranks = flight->comm->topology.ranks;
    struct visit *all   = comm_gather(flight->comm, own, sizeof(*own));
    for (int rank = 0; rank < ranks; rank++) {
        const struct visit *visit = &all[rank];
        links->visit_seconds      = visit->seconds > links->visit_seconds ? visit->seconds : links->visit_seconds;
        if (visit->partner >= 0) {
            flight_set_value(&flight->report.classes[links->first_class], visit->partner, rank, visit->rate);
            flight_set_value(&flight->report.classes[links->first_class + 1], visit->partner, rank, visit->latency);
        }
    }
    free(all);
}

// Returns whether two ranks whose link was an outlier in the last batch meet in this round. turn: local rank that
// measures in this round; -1: all do.
static bool has_slow_link(const struct flight *flight, const struct links *links, int64_t turn, int64_t round)
{
    const struct preflight_report *report = &flight->report;
    for (int64_t i = 0; i < report->outlier_count; i++) {
        const struct preflight_outlier *outlier = &report->outliers[i];
        if (outlier->blame != BLAME_LINK ||
            strcmp(outlier->class_name, report->classes[links->first_class].name) != 0) {
            continue;
        }
        const struct preflight_rank *from = &report->ranks[outlier->rank], *to = &report->ranks[outlier->other_rank];
        int64_t                      one = links->between ? from->node : from->local_rank,
                other                    = links->between ? to->node : to->local_rank;
        if (preflight_partner(links->players, one, round) == other && (turn < 0 || turn == from->local_rank)) {
            return true;
        }
    }
    return false;
}

// Measures links in one tournament, where each pair of players meets once. The first WHOLE tournaments measure all
// links, as far as time permits. Later ones measure only links that were outliers in the last batch (flight_repeat).
static status run_tournament(struct flight *flight, void *state)
{
    struct links *links = state;
    // Without devices, the ranks of a node share a network port, so they measure one after the other. They take turns
    // in every round. So every rank has measured links when time runs out, and a busy second slows down links of each.
    bool    is_shared = links->between && !flight->environment.backend.ops->is_device;
    int64_t turns = is_shared ? links->local_ranks : 1, rounds = preflight_rounds(links->players),
            met     = links->tournaments;
    bool   is_whole = links->tournaments++ < WHOLE;
    double share    = is_whole ? 0.9 * links->share : links->share;    // leaves time to measure slow links again
    for (int64_t i = 0; i < turns * rounds; i++) {
        int64_t turn = turns > 1 ? i % turns : -1, round = i / turns;
        if ((!is_whole && !has_slow_link(flight, links, turn, round)) ||
            (met++ > 0 && !flight_has_time(flight, share))) {
            continue;
        }
        bool         is_on = turn < 0 || flight->comm->topology.local_rank == turn;
        struct visit visit = {.partner = is_on ? find_partner(flight, links, round) : -1};
        TRY(visit_partner(flight, links, &visit));
        gather_visits(flight, links, &visit);
    }
    return OK;
}

static void add_classes(struct flight *flight, const struct links *links, bool is_judged)
{
    const char *const where = links->between ? "between nodes" : "within a node";
    char              name[64];
    snprintf(name, sizeof(name), "link %s", where);
    struct preflight_class *rates =
        flight_add_class(flight, PREFLIGHT_LINK, "bytes/s", is_judged ? flight_link_limit : 0.0, name);
    if (!is_judged) {
        snprintf(rates->note, sizeof(rates->note), "no limit applied: %s", flight->sharing);
    }
    snprintf(name, sizeof(name), "latency %s", where);
    struct preflight_class *latencies = flight_add_class(flight, PREFLIGHT_LINK, "s", 0.0, name);
    text_copy(latencies->note, sizeof(latencies->note), "no limit applied");
}

static void note_missing(struct flight *flight, const struct links *links)
{
    struct preflight_class *rates = &flight->report.classes[links->first_class];
    int64_t                 pairs = 0;
    for (int64_t i = 0; i < flight->report.rank_count; i++) {
        for (int64_t player = 0; player < links->players; player++) {
            const struct preflight_rank *rank = &flight->report.ranks[i];
            int64_t                      other =
                links->between ? find_rank(links, player, rank->local_rank) : find_rank(links, rank->node, player);
            pairs += other >= 0 && other != i;
        }
    }
    size_t used = strlen(rates->note);
    if (rates->value_count < pairs) {
        snprintf(rates->note + used, sizeof(rates->note) - used, "%s%d of %d measured within the time limit",
                 used > 0 ? "; " : "", (int)rates->value_count, (int)pairs);
    }
}

status flight_measure_links(struct flight *flight, bool between)
{
    bool         is_device = flight->environment.backend.ops->is_device, is_judged = between || !flight->takes_turns;
    struct links links = {.between     = between,
                          .players     = between ? flight->comm->topology.nodes : max_local_ranks(flight),
                          .first_class = flight->report.class_count,
                          .bytes       = is_device ? DEVICE_BYTES : HOST_BYTES,
                          .share       = between ? 0.85 : 0.55};
    if (links.players < 2) {
        return OK;
    }
    list_ranks(&links, flight);
    add_classes(flight, &links, is_judged);
    const struct flight_series series = {.run         = run_tournament,
                                         .state       = &links,
                                         .batch       = is_judged ? WHOLE : 1,
                                         .first_class = links.first_class,
                                         .share       = links.share};
    links.samples                     = memory_allocate((size_t)links.players * sizeof(*links.samples));
    status result                     = flight_repeat(flight, &series);
    note_missing(flight, &links);
    free(links.samples);
    free(links.numbers);
    return result;
}
