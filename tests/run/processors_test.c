// SPDX-License-Identifier: MIT
// Tests how a run notices contention for the cores of a host: too many ranks, or CPU time of other processes.
#define _GNU_SOURCE
#include "run/internal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <string.h>

#include "folder.h"
#include "meshes.h"

enum { HERE = 7, ELSEWHERE = 8 };

static const char file_path[] = "stat";

// Binds the test to one core, and writes two fake contents of /proc/stat with fixed counts for this core and large
// counts for all others.
static void use_one_processor(char before[256], char after[256])
{
    cpu_set_t cores, one;
    int       processor = 0;
    cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
    while (!CPU_ISSET((size_t)processor, &cores)) {
        processor++;
    }
    CPU_ZERO(&one);
    CPU_SET((size_t)processor, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    // The columns are user nice system idle iowait irq softirq steal guest. Processes used 100 + 20 + 30 + 50 ticks.
    snprintf(before, 256, "cpu  9 9 9 9 9 9 9 9 9 9\ncpu%d 1000 0 500 7 1 10 10 3 0 0\ncpu%d 5 5 5 5 5 5 5 5 5 5\n",
             processor, processor + 1);
    snprintf(after, 256,
             "cpu  9 9 9 9 9 9 9 9 9 9\ncpu%d 1100 20 530 99 9 90 90 53 99 0\ncpu%d 9000 5 5 5 5 5 5 5 5 5\n",
             processor, processor + 1);
}

// The report of the other rank. There are two ranks.
static struct {
    int64_t node_offset, process_offset;
    double  seconds;
    bool    is_elsewhere;
} other;

// Writes the report in the layout that ranks exchange: node, process, machine, seconds, ...
static void gather_two(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    (void)comm;
    int64_t  words[3];
    uint64_t machine = ELSEWHERE;
    char    *second  = (char *)out + bytes;
    memcpy(out, in, (size_t)bytes);
    memcpy(second, in, (size_t)bytes);
    memcpy(words, in, sizeof(words));
    words[0] += other.node_offset;
    words[1] += other.process_offset;
    memcpy(second, words, sizeof(words));
    if (other.is_elsewhere) {
        memcpy(second + 2 * sizeof(int64_t), &machine, sizeof(machine));
    }
    memcpy(second + 3 * sizeof(int64_t), &other.seconds, sizeof(double));
}

// Simulates a run of wall_seconds in which this process used 0.5 s of CPU time.
static struct result_rank gather(double wall_seconds)
{
    static const struct comm_ops two   = {.name = "mpi", .gather_all = gather_two};
    struct comm                  comm  = {.ops = &two, .topology = {.ranks = 2}};
    struct result_rank           own   = {.rank = 0};
    struct processors            times = {.is_begun = false};
    char                         before[256], after[256];
    use_one_processor(before, after);
    write_text(file_path, before);
    processors_begin(&times, file_path);
    write_text(file_path, after);
    processors_end(&times, file_path);
    times.wall_seconds = wall_seconds;
    times.own_seconds  = 0.5;
    processors_gather(&times, &comm, HERE, &own);
    return own;
}

TestSuite(processors, .init = enter_folder, .fini = remove_folder);

// Other processes used 100 + 20 + 30 + 50 ticks of 10 ms minus the time of both ranks, in a run of 4 s.
Test(processors, that_others_took_are_what_ranks_did_not)
{
    static const struct {
        int64_t node_offset, process_offset;
        double  seconds;
        bool    is_elsewhere;
        double  foreign;
    } cases[] = {
        {0, 1, 0.7, false, 0.2},      // two processes
        {0, 0, 0.5, false, 0.375},    // ranks of one process count once
        {1, 0, 0.7, false, 0.2},      // two containers have their own process ids
        {1, 0, 0.7, true, 0.375},     // the other rank is on another machine
        {0, 1, 9, false, 0.0},        // is never negative
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        other.node_offset      = cases[i].node_offset;
        other.process_offset   = cases[i].process_offset;
        other.seconds          = cases[i].seconds;
        other.is_elsewhere     = cases[i].is_elsewhere;
        struct result_rank own = gather(4);
        cr_expect_eq(own.processors, 1);
        cr_expect_float_eq(own.foreign, cases[i].foreign, 1e-12, "case %zu: %g", i, own.foreign);
    }
    cr_expect(isnan(gather(0.99).foreign), "a short run");
    cr_expect_not(isnan(gather(1).foreign));
}

Test(processors, are_not_known_without_the_file_or_without_a_measured_step)
{
    static const struct comm_ops two   = {.name = "mpi", .gather_all = gather_two};
    struct comm                  comm  = {.ops = &two, .topology = {.ranks = 2}};
    struct result_rank           own   = {.rank = 0};
    struct processors            times = {.is_begun = false};
    processors_end(&times, file_path);
    processors_gather(&times, &comm, HERE, &own);
    cr_expect(isnan(own.foreign));

    processors_begin(&times, "/proc/absent");
    processors_end(&times, "/proc/absent");
    processors_gather(&times, &comm, HERE, &own);
    cr_expect(isnan(own.foreign));
}

// Ranks 0 and 1 share four cores. Ranks 2 to 5 share two cores of another host.
static struct result note_ranks(int ranks, int64_t threads)
{
    static struct benchmark benchmark;
    struct environment_peer peers[7]    = {{.cores = 0}};
    struct rank_environment environment = {.peers = peers, .devices = {.sharers = 1}};
    struct result           result      = {.verdict = VERDICT_VALID};
    for (int rank = 0; rank < ranks; rank++) {
        peers[rank] = (struct environment_peer){
            .topology = {.rank = rank, .ranks = ranks}, .cores = rank < 2 ? 4 : 2, .cores_hash = rank < 2 ? 1 : 2};
        strcpy(peers[rank].topology.host, rank < 2 ? "wide" : "narrow");
    }
    benchmark.job.request.mesh       = MESH(.dp = ranks);
    benchmark.job.config.run.threads = threads;
    notes_add(&result, &benchmark, &environment);
    return result;
}

static void expect_note(struct result result, enum verdict verdict, const char *message)
{
    cr_assert_eq(result.reason_count, message != NULL, "%d", (int)result.reason_count);
    if (message != NULL) {
        cr_expect_str_eq(result.reasons[0].id, "oversubscribed");
        cr_expect_str_eq(result.reasons[0].message, message);
        cr_expect_eq(result.reasons[0].rank, 2);
    }
    cr_expect_eq(result.verdict, verdict);
    result_free(&result);
}

Test(processors, that_ranks_share_are_noted_and_degrade_from_two_a_core_on)
{
    expect_note(note_ranks(4, 0), VERDICT_VALID, NULL);
    expect_note(note_ranks(5, 0), VERDICT_VALID,
                "3 threads of 3 ranks share 2 cores of narrow, above 1 per core: step times mean nothing");
    expect_note(note_ranks(6, 0), VERDICT_VALID,
                "4 threads of 4 ranks share 2 cores of narrow, above 1 per core: step times mean nothing");
    expect_note(note_ranks(7, 0), VERDICT_DEGRADED,
                "5 threads of 5 ranks share 2 cores of narrow, above 2 per core: step times mean nothing");
    expect_note(note_ranks(4, 3), VERDICT_DEGRADED,
                "6 threads of 2 ranks share 2 cores of narrow, above 2 per core: step times mean nothing");
}
