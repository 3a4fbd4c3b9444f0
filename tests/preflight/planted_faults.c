// SPDX-License-Identifier: MIT
// Scores the judgement of the preflight: planted_faults [SPREAD [LINK_SPREAD]]
//
// It simulates measurements of machines, plants faults in them, and counts how many faults are found, whether the right
// host is drained, and how many healthy hosts are drained. SPREAD and LINK_SPREAD are the standard deviations of equal
// devices and of links in percent, 0.5 and 4 by default. docs/preflight.md has the results.
//
// With --write it prints the measurements and faults for other programs, one line of JSON for each machine: 64 ranks
// with a fault, and 256 without. tests/preflight/score_faults scores the verdicts of such programs.
//
// Measurements are random numbers, judged by the program's own code. Wrong numbers, stalls and lost ranks are not
// simulated, since tests of the preflight and of the watchdog inject them in real runs.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/json.h"
#include "gswbench/random.h"
#include "preflight/internal.h"

enum { LOCAL = 8, REPEATS = 40, CLEAN_MACHINES = 313, MACHINES = 3, CHECK_REPEATS = 4, CHECK_MACHINES = 2 };
static const int nodes_of[MACHINES] = {8, 32, 128};

enum fault { SLOW_GPU, SLOW_MEMORY, SLOW_LINK, SLOW_NIC, SLOW_HOST, SLOW_NODE_LINK, SLOW_NODE_GROUP, NOTHING };

// A fault multiplies a rate by `share`: the GEMM or copy rate of a device, the rate of a link between hosts, of every
// link of a rank, of every link of a host, of a link within a node, or of the collectives of a node.
static const struct row {
    enum fault  fault;
    const char *name;
    double      share;    // fraction of the healthy rate
} rows[] = {
    {SLOW_GPU, "GPU 2 % slow", 0.98},
    {SLOW_GPU, "GPU 3 % slow", 0.97},
    {SLOW_GPU, "GPU 5 % slow", 0.95},
    {SLOW_GPU, "GPU 6 % slow", 0.94},
    {SLOW_GPU, "GPU 8 % slow", 0.92},
    {SLOW_GPU, "GPU 10 % slow", 0.90},
    {SLOW_MEMORY, "memory 5 % slow", 0.95},
    {SLOW_MEMORY, "memory 8 % slow", 0.92},
    {SLOW_LINK, "link between two hosts at 70 %", 0.7},
    {SLOW_NIC, "NIC of a rank at 70 %", 0.7},
    {SLOW_NIC, "NIC of a rank on TCP (a fifth)", 0.2},
    {SLOW_HOST, "all NICs of a host at 80 %", 0.8},
    {SLOW_HOST, "all NICs of a host at 70 %", 0.7},
    {SLOW_NODE_LINK, "NVLink of a GPU at 70 %", 0.7},
    {SLOW_NODE_GROUP, "collectives of a node at 80 % (no sums in the switch)", 0.8},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

struct machine_of {
    const char    *name;    // name of the fault
    int            nodes;
    double         spread, link_spread;    // relative
    uint64_t       key, drawn;
    enum fault     fault;
    double         share;
    int64_t        rank, other;    // rank with the fault; other: receiver, if a link is slow
    struct flight *flight;
};

// Returns a normally distributed random number (Box-Muller).
static double normal(struct machine_of *machine)
{
    struct random_block block = random_philox(machine->key, 0, machine->drawn++);
    double              a = (block.word[0] + 1.0) / 4294967297.0, b = block.word[1] / 4294967296.0;
    return sqrt(-2.0 * log(a)) * cos(2.0 * 3.14159265358979323846 * b);
}

static void open_machine(struct machine_of *machine)
{
    int64_t ranks                      = (int64_t)machine->nodes * LOCAL;
    machine->flight                    = memory_allocate(sizeof(*machine->flight));
    machine->flight->report.rank_count = ranks;
    machine->flight->report.ranks      = memory_allocate((size_t)ranks * sizeof(*machine->flight->report.ranks));
    for (int64_t i = 0; i < ranks; i++) {
        struct preflight_rank *rank = &machine->flight->report.ranks[i];
        *rank                       = (struct preflight_rank){.node = i / LOCAL, .local_rank = i % LOCAL};
        snprintf(rank->host, sizeof(rank->host), "h%d", (int)(i / LOCAL));
    }
}

// Equal devices differ by the given spread, and repeated measurements of one device by a fifth of it.
static void measure_devices(struct machine_of *machine)
{
    struct flight          *flight = machine->flight;
    struct preflight_class *gemm   = flight_add_class(flight, PREFLIGHT_DEVICE, "FLOP/s", flight_device_limit, "gemm");
    struct preflight_class *copy =
        flight_add_class(flight, PREFLIGHT_DEVICE, "bytes/s", flight_device_limit, "device memory copy");
    gemm = copy - 1;    // the second call may have moved the array of classes
    for (int64_t rank = 0; rank < flight->report.rank_count; rank++) {
        bool   is_here = rank == machine->rank;
        double chip = 1.0 + machine->spread * normal(machine), noise = 1.0 + 0.2 * machine->spread * normal(machine);
        flight_set_value(gemm, rank, rank,
                         chip * noise * (is_here && machine->fault == SLOW_GPU ? machine->share : 1.0));
        noise = 1.0 + machine->spread * normal(machine);
        flight_set_value(copy, rank, rank, noise * (is_here && machine->fault == SLOW_MEMORY ? machine->share : 1.0));
    }
    flight_fit_limit(gemm);
    flight_fit_limit(copy);
}

static double link_share(const struct machine_of *machine, int64_t from, int64_t to, bool between)
{
    bool is_rank = from == machine->rank || to == machine->rank;
    bool is_host = from / LOCAL == machine->rank / LOCAL || to / LOCAL == machine->rank / LOCAL;
    bool is_slow = between ? (machine->fault == SLOW_LINK && from == machine->rank && to == machine->other) ||
                                 (machine->fault == SLOW_NIC && is_rank) || (machine->fault == SLOW_HOST && is_host)
                           : machine->fault == SLOW_NODE_LINK && is_rank;
    return is_slow ? machine->share : 1.0;
}

// Returns the upper quartile of three measurements, which is the second largest.
static double measure_link(struct machine_of *machine, double share)
{
    double a = normal(machine), b = normal(machine), c = normal(machine);
    double second = fmax(fmin(a, b), fmin(fmax(a, b), c));
    return share * (1.0 + machine->link_spread * second);
}

static void measure_links(struct machine_of *machine, bool between)
{
    struct flight          *flight = machine->flight;
    struct preflight_class *links  = flight_add_class(flight, PREFLIGHT_LINK, "bytes/s", flight_link_limit,
                                                     between ? "link between nodes" : "link within a node");
    for (int64_t from = 0; from < flight->report.rank_count; from++) {
        for (int64_t i = 0; i < (between ? machine->nodes : LOCAL); i++) {
            int64_t to = between ? i * LOCAL + from % LOCAL : from / LOCAL * LOCAL + i;
            if (to != from) {
                flight_set_value(links, from, to, measure_link(machine, link_share(machine, from, to, between)));
            }
        }
    }
}

static void measure_groups(struct machine_of *machine)
{
    struct flight          *flight = machine->flight;
    struct preflight_class *groups = flight_add_class(flight, PREFLIGHT_GROUP, "s", flight_group_limit, "all_reduce");
    for (int64_t node = 0; node < machine->nodes; node++) {
        bool   is_slow = machine->fault == SLOW_NODE_GROUP && node == machine->rank / LOCAL;
        double seconds = (1.0 + 0.5 * machine->link_spread * normal(machine)) / (is_slow ? machine->share : 1.0);
        flight_set_value(groups, node * LOCAL, node * LOCAL + LOCAL - 1, seconds);
    }
}

struct score {
    int64_t found, right, false_hosts, planted;
};

static void judge(struct machine_of *machine, struct score *score)
{
    struct preflight_report *report = &machine->flight->report;
    char                     host[2][64];
    bool                     is_right = false;
    for (int64_t i = 0; i < report->class_count; i++) {
        preflight_judge(report, &report->classes[i]);
    }
    preflight_conclude(report);
    snprintf(host[0], sizeof(host[0]), "h%d", (int)(machine->rank / LOCAL));
    snprintf(host[1], sizeof(host[1]), "h%d", (int)(machine->other / LOCAL));
    for (int64_t i = 0; i < report->drain_count; i++) {
        bool is_end = strcmp(report->drain[i].host, host[0]) == 0 ||
                      (machine->fault == SLOW_LINK && strcmp(report->drain[i].host, host[1]) == 0);
        is_right = is_right || (machine->fault != NOTHING && is_end);
        score->false_hosts += machine->fault == NOTHING || !is_end;
    }
    score->planted++;
    score->found += report->outlier_count > 0;
    score->right += is_right;
}

// Prints the planted fault as JSON. The correct verdict drains one of `hosts`.
static void write_case(struct machine_of *machine, uint64_t number)
{
    json_t *truth = json_pack("{s:I, s:s, s:b, s:[]}", "case", (json_int_t)number, "fault", machine->name, "counts",
                              machine->share <= 0.95, "hosts");
    for (int i = 0; i < (machine->fault == NOTHING ? 0 : machine->fault == SLOW_LINK ? 2 : 1); i++) {
        int64_t rank = i == 0 ? machine->rank : machine->other;
        json_array_append_new(json_object_get(truth, "hosts"), json_string(machine->flight->report.ranks[rank].host));
    }
    json_object_set_new(truth, "preflight", json_from_struct(preflight_fields, &machine->flight->report));
    json_dumpf(truth, stdout, JSON_COMPACT | JSON_REAL_PRECISION(7));
    putchar('\n');
    json_decref(truth);
}

// Simulates and judges one machine. If score is NULL, it prints the measurements instead.
static void play(struct machine_of *machine, struct score *score, uint64_t number)
{
    machine->key   = random_key(20261128, number);
    machine->drawn = 0;
    int64_t ranks  = (int64_t)machine->nodes * LOCAL;
    machine->rank  = (int64_t)(random_philox(machine->key, 1, 0).word[0] % (uint32_t)ranks);
    machine->other = (machine->rank + LOCAL) % ranks;    // the device with the same number on the next host
    open_machine(machine);
    measure_devices(machine);
    measure_links(machine, false);
    measure_links(machine, true);
    measure_groups(machine);
    if (score != NULL) {
        judge(machine, score);
    } else {
        write_case(machine, number);
    }
    preflight_free(&machine->flight->report);
    free(machine->flight);
}

static void print_share(int64_t part, int64_t whole)
{
    printf(" %.1f %% |", 100.0 * (double)part / (double)whole);
}

struct trial {
    double   spread, link_spread;    // percent
    int      repeats, machines;
    int      clean_machines;
    uint64_t number;
    bool     writes;
};

static struct machine_of new_machine(const struct trial *trial, const struct row *row, int nodes)
{
    return (struct machine_of){.name        = row != NULL ? row->name : "none",
                               .nodes       = nodes,
                               .spread      = trial->spread / 100,
                               .link_spread = trial->link_spread / 100,
                               .fault       = row != NULL ? row->fault : NOTHING,
                               .share       = row != NULL ? row->share : 1.0};
}

static void print_score(const char *name, const struct score *score)
{
    printf("| %s | %" PRId64 " |", name, score->planted);
    print_share(score->found, score->planted);
    print_share(score->right, score->planted);
    printf(" %" PRId64 " |\n", score->false_hosts);
}

// Simulates all faults, and returns the summed score of faults of at least 5 %.
static struct score play_rows(struct trial *trial)
{
    struct score all = {0};
    for (int i = 0; i < ROWS; i++) {
        struct score score = {0};
        for (int repeat = 0; repeat < trial->machines * trial->repeats; repeat++) {
            struct machine_of machine = new_machine(trial, &rows[i], nodes_of[repeat % trial->machines]);
            play(&machine, trial->writes ? NULL : &score, trial->number++);
        }
        if (trial->writes) {
            continue;
        }
        print_score(rows[i].name, &score);
        if (rows[i].share <= 0.95) {
            all.planted += score.planted;
            all.found += score.found;
            all.right += score.right;
            all.false_hosts += score.false_hosts;
        }
    }
    return all;
}

static struct score play_healthy(struct trial *trial)
{
    struct score clean = {0};
    for (int i = 0; i < trial->clean_machines; i++) {
        struct machine_of machine = new_machine(trial, NULL, nodes_of[1]);
        play(&machine, trial->writes ? NULL : &clean, trial->number++);
    }
    return clean;
}

int main(int argc, char *argv[])
{
    bool         checks = argc > 1 && strcmp(argv[1], "--check") == 0;
    bool         writes = argc > 1 && strcmp(argv[1], "--write") == 0;
    const char **spread = (const char **)argv + (checks || writes ? 2 : 1);
    int          given  = (int)((const char **)argv + argc - spread);
    struct trial trial  = {.spread         = given > 0 ? atof(spread[0]) : 0.5,
                           .link_spread    = given > 1 ? atof(spread[1]) : 4.0,
                           .repeats        = checks   ? CHECK_REPEATS
                                             : writes ? 2 * REPEATS
                                                      : REPEATS,
                           .machines       = checks   ? CHECK_MACHINES
                                             : writes ? 1
                                                      : MACHINES,
                           .clean_machines = checks ? CLEAN_MACHINES / 10 + 1 : CLEAN_MACHINES,
                           .writes         = writes};
    if (writes) {
        play_rows(&trial);
        play_healthy(&trial);
        return 0;
    }
    printf("Equal devices: %.2g %% standard deviation; links: %.2g %%.\n\n| fault | planted | found | right host | "
           "other hosts |\n"
           "|---|---|---|---|---|\n",
           trial.spread, trial.link_spread);
    struct score all = play_rows(&trial);
    print_score("**5 % and more**", &all);
    struct score clean = play_healthy(&trial);
    printf("\n%" PRId64 " healthy hosts in machines of %d: %" PRId64 " drained.\n", clean.planted * nodes_of[1],
           nodes_of[1], clean.false_hosts);
    bool is_good = all.right == all.planted && all.false_hosts + clean.false_hosts == 0;
    return checks && !is_good;
}
