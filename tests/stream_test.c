// SPDX-License-Identifier: MIT
// Whole steps on a backend with streams: enqueued by one thread, replayed from a capture, and with transfers staged
// through the host by a thread for each lane. The bits are the host backend's, since the ops are.
#include "gswbench/step.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "stream_backend.h"
#include "training.h"

static void start(struct training *training, const struct backend_ops *backend, bool captures)
{
    *training = (struct training){.steps = 6, .threads = 1, .seed = 7, .backend = backend, .captures = captures};
    tiny_init(&training->tiny);
    training->ranks = 1;
}

static void expect_equal(const struct training *streams, const struct training *host)
{
    cr_expect_arr_eq(streams->loss, host->loss, (size_t)host->steps * sizeof(float));
    cr_expect_arr_eq(streams->norm, host->norm, (size_t)host->steps * sizeof(float));
    cr_expect_eq(streams->allocations_in_steps, 0);
    cr_expect_neq(host->loss[5], host->loss[0]);
}

Test(stream, enqueues_a_step_of_one_rank_in_list_order)
{
    struct training streams, host;
    stream_fill_table();
    start(&streams, &stream_backend, false);
    start(&host, NULL, false);

    training_run(&streams);
    training_run(&host);

    expect_equal(&streams, &host);
    cr_expect_eq(streams.device_seconds, 0.25);
    cr_expect(isnan(host.device_seconds));
}

Test(stream, replays_a_captured_step)
{
    struct training streams, host;
    stream_fill_table();
    start(&streams, &stream_backend, true);
    start(&host, NULL, false);

    training_run(&streams);
    training_run(&host);

    expect_equal(&streams, &host);
    cr_expect_eq(streams.device_seconds, 0.25);
}

// Transfers of the host's communicators: every lane keeps its thread.
static void expect_staged(const struct parallel_config *parallel, int ranks)
{
    struct training streams, host;
    stream_fill_table();
    start(&streams, &stream_backend, false);
    streams.tiny.parallel = *parallel;
    streams.ranks         = ranks;
    host                  = streams;
    host.backend          = NULL;

    training_run(&streams);
    training_run(&host);

    expect_equal(&streams, &host);
}

Test(stream, stages_transfers_of_sharded_weights, .timeout = 60)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.parallel.dp   = 2;
    tiny.parallel.fsdp = 2;
    expect_staged(&tiny.parallel, 4);
}

Test(stream, stages_transfers_of_matrices_sequences_and_stages, .timeout = 60)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.parallel.tp = 2;
    tiny.parallel.pp = 2;
    expect_staged(&tiny.parallel, 4);
}
