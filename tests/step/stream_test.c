// SPDX-License-Identifier: MIT
// Tests complete steps on a fake device with streams. One thread enqueues the ops, or a captured graph replays them.
// Collectives are enqueued as well, or one thread per stream stages them through the host. The fake device runs the ops
// of the host backend, so results must equal the host's bit for bit.
#include "gswbench/step.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layouts.h"
#include "ranks.h"
#include "stream_backend.h"
#include "training.h"

static void start(struct training *training, const struct backend_ops *backend, bool captures)
{
    *training = (struct training){
        .tiny = tiny_of(""), .ranks = 1, .steps = 6, .threads = 1, .seed = 7, .backend = backend, .captures = captures};
}

static void expect_equal(const struct training *streams, const struct training *host)
{
    cr_expect_arr_eq(streams->loss, host->loss, (size_t)host->steps * sizeof(float));
    cr_expect_arr_eq(streams->norm, host->norm, (size_t)host->steps * sizeof(float));
    cr_expect_eq(streams->allocations_in_steps, 0);
    cr_expect_neq(host->loss[5], host->loss[0]);
}

// Trains on the fake device and on the host. Expects equal numbers, and returns the host's training.
static struct training compare(struct training *streams)
{
    struct training host = *streams;
    host.backend         = NULL;
    host.captures        = false;
    host.times           = NULL;
    training_run(streams);
    training_run(&host);
    expect_equal(streams, &host);
    return host;
}

TestSuite(stream, .init = stream_fill_table, .timeout = 60);

Test(stream, enqueues_a_step_of_one_rank_in_list_order_and_replays_a_captured_one)
{
    for (int captures = 0; captures < 2; captures++) {
        struct training streams;
        start(&streams, &stream_backend, captures != 0);
        struct training host = compare(&streams);
        cr_expect_gt(streams.device_seconds, 0);
        cr_expect(isnan(host.device_seconds));
        cr_expect(isnan(streams.compute_seconds), "nobody asked for it");
    }
}

// Each op has an event before and after it. The fake device needs 0.25 s for each event and op. One event of every
// stream comes before the first op.
Test(stream, times_the_ops_of_a_traced_step_though_others_are_replayed)
{
    enum { OPS_MAX = 4096 };
    static struct op_time times[OPS_MAX];
    struct training       streams;
    start(&streams, &stream_backend, true);
    streams.times = times;
    times[0].end  = -1;
    compare(&streams);
    tiny_plan(&streams.tiny);
    for (int32_t i = 0; i < streams.tiny.plan.op_count; i++) {
        cr_expect_eq(times[i].begin, 0.5 + 0.75 * i, "op %d begins at %g", i, times[i].begin);
        cr_expect_eq(times[i].end, times[i].begin + 0.5);
    }
    plan_free(&streams.tiny.plan);
}

// A step on one rank has no collectives, so it never stalls. Its compute time is the ops and two events.
Test(stream, computes_all_the_time_where_nothing_is_waited_for)
{
    struct training streams;
    start(&streams, &stream_backend, true);
    streams.stalls = true;
    training_run(&streams);
    tiny_plan(&streams.tiny);
    cr_expect_eq(streams.compute_seconds, 0.25 * (streams.tiny.plan.op_count + 2));
    plan_free(&streams.tiny.plan);
}

// A host communicator has one thread per stream. The first layout uses the streams of FSDP, the second the streams of
// tp and pp.
Test(stream, stages_communications_through_the_host)
{
    for (int i = 0; i < 2; i++) {
        struct training streams;
        start(&streams, &stream_backend, false);
        streams.ranks = layout_apply(&streams.tiny, i == 0 ? "dp 2; fsdp 2" : "tp 2; pp 2");
        compare(&streams);
    }
}

#define EXPERTS "experts 4; top_k 2; auxiliary_loss 0.05"

// Without a capacity factor, the host waits on the stream for token counts, so the step cannot be captured.
Test(stream, runs_ops_with_rows_that_are_counted_on_the_device)
{
    for (int ranks = 1; ranks <= 2; ranks++) {
        struct training streams;
        start(&streams, &stream_backend, true);
        streams.ranks = layout_apply(&streams.tiny, ranks == 1 ? EXPERTS : EXPERTS "; dp 2; ep 2");
        compare(&streams);
    }
}

// A fake communicator of two ranks: the other rank contributes the same data as the caller. It copies data at once, or
// enqueues the copy on a stream.
struct comm_group {
    int64_t size;
    int     stream;
};

static struct comm_group *mirror_open(struct comm *comm, const int64_t *members, int64_t size, int stream,
                                      int processors)
{
    (void)processors;
    struct comm_group *group = malloc(sizeof(*group));
    (void)comm;
    (void)members;
    *group = (struct comm_group){size, stream};
    return group;
}

static void mirror_close(struct comm_group *group)
{
    free(group);
}

static void mirror_barrier(struct comm *comm)
{
    (void)comm;
}

typedef void copy_part(struct comm_group *group, void *to, const void *from, int64_t bytes);

static void copy_now(struct comm_group *group, void *to, const void *from, int64_t bytes)
{
    (void)group;
    memcpy(to, from, (size_t)bytes);
}

static void copy_on_stream(struct comm_group *group, void *to, const void *from, int64_t bytes)
{
    stream_copy(stream_latest, group->stream, to, from, bytes);
}

static void mirror(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format,
                   copy_part *copy)
{
    int64_t part = format_bytes(format, op->shape.communication.elements / group->size);
    for (int64_t i = 0; i < group->size && op->kind == OP_ALL_GATHER; i++) {
        copy(group, (char *)out + i * part, in, part);
    }
    if (op->kind == OP_REDUCE_SCATTER) {
        copy(group, out, in, part);
    }
}

static void run_now(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    mirror(group, op, in, out, format, copy_now);
}

static void run_on_stream(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    mirror(group, op, in, out, format, copy_on_stream);
}

static const struct comm_ops mirror_now = {.name        = "mirror",
                                           .group_open  = mirror_open,
                                           .group_close = mirror_close,
                                           .run         = run_now,
                                           .barrier     = mirror_barrier,
                                           .gather_all  = ranks_report_the_same};

typedef void              run_communication(struct comm_group *group, const struct op *op, const void *in, void *out,
                                            enum format format);
static run_communication *host_run = run_now;
static bool               times_pauses;

// Runs one of two ranks. Streams other than compute gather its weights and reduce its gradients.
static void run_mirrored(struct training *training, const struct backend_ops *backend, bool captures)
{
    struct comm_ops ops  = mirror_now;
    struct comm     comm = {.ops = &ops, .topology = {.ranks = 2, .local_ranks = 2, .nodes = 1}};
    ops.is_enqueued      = backend != NULL;
    ops.run              = backend != NULL ? run_on_stream : host_run;
    start(training, backend, captures);
    training->ranks                = 2;
    training->stalls               = times_pauses;
    training->tiny.parallel.fsdp   = 2;
    training->allocations_in_steps = training_run_rank(training, &comm);
}

Test(stream, enqueues_and_captures_communications_on_their_streams)
{
    struct training eager, captured, host;
    run_mirrored(&eager, &stream_backend, false);
    run_mirrored(&captured, &stream_backend, true);
    run_mirrored(&host, NULL, false);

    expect_equal(&eager, &host);
    expect_equal(&captured, &host);
}

// Each op, collective and event takes 0.25 s. The compute time of a step must leave out stalls.
Test(stream, leaves_out_what_the_compute_stream_waits_for)
{
    struct training eager, captured;
    times_pauses = true;

    run_mirrored(&eager, &stream_backend, false);
    run_mirrored(&captured, &stream_backend, true);

    cr_expect_eq(eager.compute_seconds, 29.5);
    cr_expect_eq(captured.compute_seconds, eager.compute_seconds);
    cr_expect_eq(captured.device_seconds, eager.device_seconds);
}

static void run_late(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    run_now(group, op, in, out, format);
}

// Sixteen collectives of 20 ms each stall a step that computes for about a millisecond. The compute time must leave out
// the stalls.
Test(stream, leaves_out_what_a_stream_of_the_host_waits_for)
{
    struct training late;
    host_run = run_late;

    run_mirrored(&late, NULL, false);

    cr_expect_gt(late.step_seconds, 0.1);
    cr_expect_gt(late.compute_seconds, 0);
    cr_expect_lt(late.compute_seconds, 0.5 * late.step_seconds);
}
