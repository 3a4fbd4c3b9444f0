// SPDX-License-Identifier: MIT
// Tests emulated jobs, in which one rank runs the ops of many. Checks which ops are executed, that they compute with
// valid numbers, and how their times are used.
#include <criterion/criterion.h>

#include <string.h>

#include "gswbench/clock.h"
#include "gswbench/comm.h"
#include "gswbench/emulate.h"
#include "layouts.h"
#include "success.h"

static struct tiny         tiny;
static struct plan_request request;
static struct run_config   run;
static struct backend      backend;
static struct emulation    emulation;
static struct measured_ops list;    // of the emulation

// Makes the sections of a small job in BF16.
static void make_job(void)
{
    tiny_init(&tiny);
    option_set_defaults(run_options, &run);
    tiny.precision.compute = COMPUTE_BF16;
    tiny.train.sequence    = 16;
}

static void free_results(void)
{
    measured_free(&list);
    emulate_free(&emulation);
}

TestSuite(emulate, .init = make_job, .fini = free_results);

// Emulates a job of `world` ranks on the host backend. Each executed stage measures two steps.
static void run_job(int64_t world, enum emulate_stages stages)
{
    request = tiny_request(&tiny, world, 0);
    emulation =
        (struct emulation){.request = &request, .backend = &backend, .run = &run, .stages = stages, .repeats = 2};
    REQUIRE(backend_open(&backend, "host", &(struct backend_setup){.threads = 1}));
    REQUIRE(emulate(&emulation));
    backend_close(&backend);
}

static int64_t compute_ops(int64_t rank, const struct measured_ops *found_in)
{
    struct plan_request own = request;
    struct plan         plan;
    int64_t             count = 0;
    own.rank                  = rank;
    REQUIRE(plan_build(&plan, &own));
    for (int32_t i = 0; i < plan.op_count; i++) {
        count += plan.ops[i].stream == STREAM_COMPUTE &&
                 (found_in == NULL || measured_find(found_in, &plan, &plan.ops[i]) != NULL);
    }
    plan_free(&plan);
    return count;
}

Test(emulate, computes_with_numbers_in_every_layout)
{
    static const char *const layouts[] = {"fsdp 4", "tp 2; cp 2",
                                          "tp 2; tp_overlap yes; cp 2; context ring; dp 2; zero 1",
                                          "experts 4; top_k 2; auxiliary_loss 0.05; fsdp 4; ep 2"};
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        free_results();
        make_job();
        run_job(layout_apply(&tiny, layouts[i]), EMULATE_DISTINCT);
        cr_expect_not(emulation.has_failed, "%s: a loss or gradient norm is no number", layouts[i]);
        emulate_list(&emulation, &list);
        cr_expect_eq(compute_ops(0, &list), compute_ops(0, NULL), "%s", layouts[i]);
        for (int32_t op = 0; op < list.count; op++) {
            cr_expect_gt(list.ops[op].seconds.value, 0.0, "%s", layouts[i]);
        }
    }
}

Test(emulate, counts_no_time_twice)
{
    tiny.parallel.fsdp = 2;
    double begin = clock_seconds(), sum = 0.0;
    run_job(2, EMULATE_DISTINCT);
    double end = clock_seconds();
    for (int64_t i = 0; i < emulation.measured_count; i++) {
        sum += emulation.measured[i].seconds.value;
    }
    cr_expect(sum > 0.0 && sum < (end - begin) / (double)emulation.repeats, "%g s of %g s", sum, end - begin);
}

Test(emulate, notices_what_is_no_number)
{
    tiny.train.learning_rate = 1e30;
    run_job(1, EMULATE_DISTINCT);
    cr_expect(emulation.has_failed);
}

// The job has eight layers on four pipeline stages, and two microbatches.
static void make_pipeline(void)
{
    layout_apply(&tiny, "layers 8; pp 4; accumulation 2");
}

Test(emulate, executes_each_stage_that_has_something_new)
{
    make_pipeline();

    run_job(4, EMULATE_DISTINCT);
    cr_expect_not(emulation.has_failed);
    cr_expect_eq(emulation.stage_count, 4);
    cr_expect_eq(emulation.executed, 2, "%d stages: the two in the middle do what the first one does",
                 (int)emulation.executed);
    cr_expect_eq(emulation.measured_count, compute_ops(0, NULL) + compute_ops(3, NULL));
    emulate_list(&emulation, &list);
    for (int64_t rank = 0; rank < 4; rank++) {
        cr_expect_eq(compute_ops(rank, &list), compute_ops(rank, NULL), "rank %d", (int)rank);
    }
}

Test(emulate, executes_all_stages_or_the_first_as_asked)
{
    make_pipeline();
    run_job(4, EMULATE_ALL);
    cr_expect_eq(emulation.executed, 4);
    emulate_free(&emulation);

    run_job(4, EMULATE_FIRST);
    cr_expect_eq(emulation.executed, 1);
    emulate_list(&emulation, &list);
    int64_t known = compute_ops(3, &list), all = compute_ops(3, NULL);
    cr_expect(known > all / 2 && known < all, "the head is not measured: %d of %d", (int)known, (int)all);
}

static int64_t two_megabytes(struct backend *null)
{
    (void)null;
    return 2000000;
}

Test(emulate, names_the_stage_that_does_not_fit)
{
    struct backend_ops small = backend_null;
    small.available_bytes    = two_megabytes;
    make_pipeline();
    tiny.model.vocab_multiple = 100000;    // embedding and head, on the first and last stage, then exceed 2 MB
    tiny.model.hidden         = 8;
    request                   = tiny_request(&tiny, 4, 0);
    emulation                 = (struct emulation){.request = &request, .backend = &backend, .run = &run, .repeats = 1};
    REQUIRE(backend_open(&backend, "null", &(struct backend_setup){.threads = 1}));
    backend.ops = &small;

    status result = emulate(&emulation);

    cr_expect_eq(result.exit_code, EXIT_MEMORY);
    cr_expect_eq(strncmp(result.text, "stage 0 (rank 0): the plan does not fit: ", 41), 0, "%s", result.text);
    backend_close(&backend);
}

Test(emulate, takes_the_median_of_ops_that_are_alike)
{
    static const double seconds[] = {5.0, 1.0, 2.0, 9.0, 3.0, 4.0};
    struct measured_op  samples[6];
    memset(samples, 0, sizeof(samples));
    for (int i = 0; i < 6; i++) {
        samples[i].key.kind      = i == 3 ? 7 : 4;
        samples[i].seconds.value = seconds[i];
    }
    emulate_list(&(struct emulation){.measured = samples, .measured_count = 6}, &list);
    cr_assert_eq(list.count, 2);
    cr_expect_eq(list.ops[0].seconds.value, 3.0);
    cr_expect_float_eq(list.ops[0].seconds.spread_percent, 200.0 / 3 / 1.349, 1e-9, "4 - 2 over 3");
    cr_expect_eq(list.ops[1].seconds.value, 9.0);
    cr_expect_eq(list.ops[1].seconds.spread_percent, 0.0);
}

// Runs a collective of one rank in a group of four, without the other ranks. The elements are fp32.
static void communication(enum op_kind kind, int64_t elements, const float *in, float *out)
{
    static const int64_t members[] = {0, 1, 2, 3};
    struct op            op        = {.kind = (uint8_t)kind, .shape.communication = {.elements = elements}};
    struct comm          comm;
    comm_open_alone(&comm);
    struct comm_group *group = comm.ops->group_open(&comm, members, 4, STREAM_TENSOR, 0);
    comm.ops->run(group, &op, in, out, FORMAT_F32);
    comm.ops->group_close(group);
    comm_close(&comm);
}

Test(emulate, leaves_data_as_other_ranks_would)
{
    static const float in[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float              out[8];

    communication(OP_ALL_GATHER, 8, in, out);
    for (int i = 0; i < 8; i++) {
        cr_expect_eq(out[i], in[i % 2], "gathered %d: %g", i, (double)out[i]);
    }
    memset(out, 0, sizeof(out));
    communication(OP_REDUCE_SCATTER, 8, in, out);
    cr_expect(out[0] == 1 && out[1] == 2 && out[2] == 0, "a quarter only");
    communication(OP_ROTATE, 8, in, out);
    cr_expect_eq(memcmp(in, out, sizeof(in)), 0);
    communication(OP_ALL_REDUCE, 8, NULL, out);
    cr_expect_eq(memcmp(in, out, sizeof(in)), 0);
}

Test(emulate, receives_normal_numbers)
{
    enum { ELEMENTS = 200000 };
    static float out[ELEMENTS];
    double       sum = 0.0, squares = 0.0;
    communication(OP_RECEIVE, ELEMENTS, NULL, out);
    for (int i = 0; i < ELEMENTS; i++) {
        sum += (double)out[i];
        squares += (double)out[i] * (double)out[i];
    }
    cr_expect_float_eq(sum / ELEMENTS, 0.0, 0.02);
    cr_expect_float_eq(squares / ELEMENTS, 1.0, 0.02);
    cr_expect_neq(out[ELEMENTS - 1], 0.0f);
}
