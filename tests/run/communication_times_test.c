// SPDX-License-Identifier: MIT
// Tests the time of a collective from the arrival of its last rank, which rank that is, and its time in isolation. In
// large jobs a list of every rank's collectives would take gigabytes; tests which ranks are listed then. Also tests the
// detection of slow ranks: it compares ranks with the same work, and must not mistake noise for a slow rank.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/random.h"
#include "layouts.h"
#include "ranks.h"
#include "run/internal.h"
#include "run/trace.h"
#include "training.h"

enum { RANKS = 4 };

static struct result result;
static struct config config;
static const char   *layout;
static bool          is_known = true;    // whether the hardware is known

// Runs a step in which a collective takes 10 - r ms on rank r. All ranks end it together, so rank 3 arrives last.
static void run_rank(struct comm *comm, void *unused)
{
    int            rank    = comm->topology.rank;
    struct backend backend = {.ops = &backend_host};
    struct tiny    tiny    = tiny_of(layout);
    struct step   *step;
    struct result  own = {.method = 0};
    (void)unused;
    tiny_plan_rank(&tiny, RANKS, rank);
    training_require(backend.ops->open(&backend, &(struct backend_setup){.threads = 1, .cache = ""}));
    training_require(step_open(&step, &tiny.plan, &backend, comm));
    struct op_time *times = calloc((size_t)tiny.plan.op_count, sizeof(*times));
    for (int32_t i = 0; i < tiny.plan.op_count; i++) {
        times[i] = (struct op_time){.begin = 1, .end = 1.010 - 0.001 * rank};
    }

    struct communication_rows *rows = calloc(1, sizeof(*rows));
    communication_times_add(&(struct communication_times_setup){.config   = &config,
                                                                .hardware = is_known ? &config.hardware : NULL,
                                                                .plan     = &tiny.plan,
                                                                .step     = step,
                                                                .comm     = comm,
                                                                .times    = times,
                                                                .result   = rank == 0 ? &result : &own},
                            rows);

    cr_expect_eq(own.communication_time_count, 0);
    free(rows);
    free(times);
    step_close(step);
    backend_close(&backend);
    plan_free(&tiny.plan);
}

static const struct result_communication_time *find(const char *kind, const char *axes)
{
    for (int64_t i = 0; i < result.communication_time_count; i++) {
        const struct result_communication_time *time = &result.communication_times[i];
        if (strcmp(time->kind, kind) == 0 && strcmp(time->axes, axes) == 0 && time->elements > 1) {
            return time;
        }
    }
    cr_assert_fail("no %s over %s", kind, axes);
    return NULL;
}

static void close_all(void)
{
    result_free(&result);
}

TestSuite(communication_times, .fini = close_all, .timeout = 60);

Test(communication_times, say_who_is_waited_for_and_what_moves_how_fast)
{
    layout                                = "fsdp 4";
    config.hardware.gpus_per_node         = 8;
    config.hardware.node_bandwidth.value  = 1e9;
    config.hardware.node_efficiency.value = 1;

    ranks_run(RANKS, run_rank, NULL);

    const struct result_communication_time *time = find("all_gather", "fsdp");
    cr_expect_eq(time->group_size, RANKS);
    cr_expect_eq(time->bytes, 4.0 * (double)time->elements);
    cr_expect_float_eq(time->seconds, 0.0085, 1e-9);
    cr_expect_float_eq(time->moving_seconds, 0.007, 1e-9);
    cr_expect_float_eq(time->bandwidth, 0.75 * time->bytes / 0.007, 1);
    cr_expect_float_eq(time->predicted_seconds, 0.75 * time->bytes / 1e9, 1e-12);
    cr_expect_eq(time->late_rank, 3);
    cr_expect_eq(time->late_share, 1);
    cr_expect_float_eq(time->wait_seconds, 0.003, 1e-9);
    cr_expect(time->alone_seconds > 0 && time->alone_seconds < 10);
    cr_expect_float_eq(time->alone_bandwidth, 0.75 * time->bytes / time->alone_seconds, 1);
    time = find("reduce_scatter", "fsdp");
    cr_expect_float_eq(time->bandwidth, 0.75 * time->bytes / 0.007, 1);
}

Test(communication_times, predict_nothing_for_unknown_hardware)
{
    layout                                = "fsdp 4";
    is_known                              = false;
    config.hardware.gpus_per_node         = 8;
    config.hardware.node_bandwidth.value  = 1e9;
    config.hardware.node_efficiency.value = 1;

    ranks_run(RANKS, run_rank, NULL);

    const struct result_communication_time *time = find("all_gather", "fsdp");
    cr_expect(isnan(time->predicted_seconds));
    cr_expect(time->alone_seconds > 0);
}

// In groups of two ranks, one group waits for rank 1, the other for rank 3. Without a network there is no predicted
// time.
Test(communication_times, are_read_by_groups_and_links)
{
    layout                                = "tp 2; pp 2";
    config.hardware.gpus_per_node         = 1;
    config.hardware.node_bandwidth.value  = 1e9;
    config.hardware.node_efficiency.value = 1;

    ranks_run(RANKS, run_rank, NULL);

    const struct result_communication_time *time = find("all_gather", "tp");
    cr_expect_float_eq(time->moving_seconds, 0.008, 1e-9);
    cr_expect_float_eq(time->wait_seconds, 0.001, 1e-9);
    cr_expect(time->late_rank == 1 || time->late_rank == 3);
    cr_expect(isnan(time->predicted_seconds));
    time = find("send", "pp");
    cr_expect_eq(time->bandwidth, time->bytes / time->seconds);
    cr_expect(isnan(time->alone_seconds) && isnan(time->wait_seconds));
    cr_expect_eq(time->late_rank, -1);
}

enum { COMMUNICATIONS = 3000, OTHERS = 1000 };

static struct op           ops[COMMUNICATIONS + OTHERS];
static struct trace_config trace = {.steps = 2, .communications = "auto"};

static struct plan plan_of(int64_t dp, int64_t pp)
{
    struct plan plan = {.ops = ops, .op_count = COMMUNICATIONS + OTHERS};
#define ONE(NAME, key, ...) .key = 1,
    struct parallel_config axes  = {AXES(ONE).vp = 1};
    axes.dp                      = dp;
    axes.pp                      = pp;
    mesh_init(&plan.mesh, &axes, dp * pp);
    for (int i = 0; i < COMMUNICATIONS + OTHERS; i++) {
        ops[i].kind = i < COMMUNICATIONS ? OP_ALL_REDUCE : OP_GEMM;
    }
    return plan;
}

Test(communication_cut, lists_all_ranks_of_a_job_whose_files_are_small)
{
    struct plan                plan  = plan_of(128, 8);
    struct communication_files files = communication_files_of(&trace, &plan);

    cr_expect(!files.is_cut);
    cr_expect_eq(files.bytes, 1024 * COMMUNICATIONS * 256);
    cr_expect(communication_files_have(&files, 1023));
}

Test(communication_cut, lists_the_first_rank_of_each_stage_where_all_are_more_than_a_gib)
{
    struct plan                plan  = plan_of(256, 8);
    struct communication_files files = communication_files_of(&trace, &plan);
    int                        count = 0;
    for (int64_t rank = 0; rank < 2048; rank++) {
        count += communication_files_have(&files, rank);
    }

    cr_expect(files.is_cut);
    cr_expect_eq(files.bytes_of_all, INT64_C(2048) * COMMUNICATIONS * 256);
    cr_expect_eq(files.bytes, 8 * COMMUNICATIONS * 256);
    cr_expect_eq(count, 8);
    for (int64_t stage = 0; stage < 8; stage++) {
        int64_t place[AXIS_COUNT] = {[AXIS_PP] = stage};
        cr_expect(communication_files_have(&files, mesh_rank(&plan.mesh, place)), "stage %d", (int)stage);
    }
}

Test(communication_cut, lists_what_is_asked_for_however_large)
{
    struct plan                plan  = plan_of(256, 8);
    struct trace_config        asked = {.steps = 2, .communications = "all"};
    struct communication_files files = communication_files_of(&asked, &plan);

    cr_expect(!files.is_cut);
    cr_expect_eq(files.bytes, INT64_C(2048) * COMMUNICATIONS * 256);
    strcpy(asked.communications, "2047");
    cr_expect_eq(communication_files_of(&asked, &plan).bytes, COMMUNICATIONS * 256);
}

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
    const struct comm_ops local = {.gather_all = gather_odd};
    struct comm           comm  = {.ops = &local, .topology = {.rank = rank, .ranks = ranks}};
    return compute_times_open(tiny_plan_of("", 0), &comm, STEPS_MAX);
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
