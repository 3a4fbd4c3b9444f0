// SPDX-License-Identifier: MIT
// Tests the time of a collective from the arrival of its last rank, which rank that is, and its time in isolation. In
// large jobs a list of every rank's collectives would take gigabytes; tests which ranks are listed then.
#include "run/trace.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layouts.h"
#include "ranks.h"
#include "training.h"

enum { RANKS = 4 };

static struct result          result;
static struct config          config;
static struct parallel_config parallel;

// Runs a step in which a collective takes 10 - r ms on rank r. All ranks end it together, so rank 3 arrives last.
static void run_rank(struct comm *comm, void *unused)
{
    int            rank    = comm->topology.rank;
    struct backend backend = {.ops = &backend_host};
    struct tiny    tiny    = tiny_of("");
    struct step   *step;
    struct result  own = {.method = 0};
    (void)unused;
    tiny.parallel = parallel;
    tiny_plan_rank(&tiny, RANKS, rank);
    training_require(backend.ops->open(&backend, &(struct backend_setup){.threads = 1, .cache = ""}));
    training_require(step_open(&step, &tiny.plan, &backend, comm));
    struct op_time *times = calloc((size_t)tiny.plan.op_count, sizeof(*times));
    for (int32_t i = 0; i < tiny.plan.op_count; i++) {
        times[i] = (struct op_time){.begin = 1, .end = 1.010 - 0.001 * rank};
    }

    struct communication_rows *rows = calloc(1, sizeof(*rows));
    communication_times_add(&(struct communication_times_setup){.config = &config,
                                                                .plan   = &tiny.plan,
                                                                .step   = step,
                                                                .comm   = comm,
                                                                .times  = times,
                                                                .result = rank == 0 ? &result : &own},
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
    parallel                              = tiny_of("fsdp 4").parallel;
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

// In groups of two ranks, one group waits for rank 1, the other for rank 3. Without a network there is no predicted
// time.
Test(communication_times, are_read_by_groups_and_links)
{
    parallel                              = tiny_of("tp 2; pp 2").parallel;
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
#define ONE(NAME, key, ...) .key  = 1,
    struct parallel_config layout = {AXES(ONE).vp = 1};
    layout.dp                     = dp;
    layout.pp                     = pp;
    mesh_init(&plan.mesh, &layout, dp * pp);
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
