// SPDX-License-Identifier: MIT
// Compares the result of a sweep with predictions of every layout.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "bounds.h"
#include "layouts.h"

enum { LAYOUTS_MAX = 1024, WORLD = 8 };

// Eight layers on 8 devices, whose links are so slow that communication matters.
static struct {
    struct tiny            tiny;
    struct hardware_config hardware;
    struct software_config software;
    struct machine         machine;
    struct plan_request    layouts[LAYOUTS_MAX];
    struct sweep           sweep;
} space;

static void add_layout(const struct parallel_config *parallel, int64_t micro_batch, int64_t recompute)
{
    struct tiny tiny        = space.tiny;
    tiny.parallel           = *parallel;
    tiny.train.micro_batch  = micro_batch;
    tiny.train.recompute    = recompute;
    tiny.train.accumulation = 0;
    status result =
        plan_resolve(&space.layouts[space.sweep.layout_count],
                     &(struct plan_sections){&tiny.model, &tiny.parallel, &tiny.train, &tiny.precision, WORLD});
    space.sweep.layout_count += !failed(&result);
}

// Adds layouts with every divisor of the world size on each axis, and with one, two or four chunks.
static void add_layouts(int64_t tp, int64_t cp, int64_t pp)
{
    for (int64_t vp = 1; vp <= (pp > 1 ? 8 / pp : 1); vp *= 2) {
        for (int64_t fsdp = 1; tp * cp * pp * fsdp <= WORLD; fsdp *= 2) {
            struct parallel_config parallel = space.tiny.parallel;
            parallel.tp                     = tp;
            parallel.cp                     = cp;
            parallel.tp_overlap             = cp > 1;    // so that both values occur
            parallel.pp                     = pp;
            parallel.vp                     = vp;
            parallel.fsdp                   = fsdp;
            parallel.dp                     = WORLD / (tp * cp * pp * fsdp);
            for (int64_t zero = 0; zero <= (fsdp == 1); zero++) {
                parallel.zero = zero;
                add_layout(&parallel, 1, RECOMPUTE_NONE);
                add_layout(&parallel, 2, RECOMPUTE_NONE);
                add_layout(&parallel, 1, RECOMPUTE_FULL);
            }
        }
    }
}

static void open_space(int64_t compute)
{
    memset(&space, 0, sizeof(space));
    tiny_init(&space.tiny);
    space.tiny.model.layers      = 8;
    space.tiny.precision.compute = compute;
    layout_apply(&space.tiny, "sequence 64; global_batch 32; context ring");
    option_set_defaults(hardware_options, &space.hardware);
    option_set_defaults(software_options, &space.software);
    space.hardware.multiprocessors         = 4;
    space.hardware.peak[RATE_BF16].value   = 1e12;
    space.hardware.peak[RATE_FP8].value    = 2e12;
    space.hardware.memory_bandwidth.value  = 1e11;
    space.hardware.node_bandwidth.value    = 1e9;
    space.hardware.network_bandwidth.value = 1e9;
    space.hardware.jitter.value            = 0;
    space.machine                          = (struct machine){.hardware = &space.hardware, .software = &space.software};
    for (int64_t tp = 1; tp <= 2; tp *= 2) {
        for (int64_t cp = 1; cp <= 2; cp *= 2) {
            for (int64_t pp = 1; tp * cp * pp <= WORLD; pp *= 2) {
                add_layouts(tp, cp, pp);
            }
        }
    }
    space.sweep.machine = &space.machine;
    space.sweep.layouts = space.layouts;
    space.sweep.threads = 2;
}

static struct prediction cost(int64_t layout)
{
    return predict_layout(&space.layouts[layout], &space.machine);
}

// Counts the layouts whose bounds fit this time and the device memory.
static int64_t count_possible(double seconds)
{
    int64_t count = 0;
    for (int64_t i = 0; i < space.sweep.layout_count; i++) {
        struct sweep_bound bound = close_bound(&space.layouts[i], &space.machine);
        count += hardware_holds(&space.hardware, bound.bytes) && bound.seconds <= seconds;
    }
    return count;
}

static int64_t need(const struct sweep_choice *choice)
{
    return predict_device_bytes(&choice->prediction, &space.software);
}

static int by_memory(const void *left, const void *right)
{
    return (need(left) > need(right)) - (need(left) < need(right));
}

// Expects that the sweep finds the best layouts in memory that suffices for three of four. At least least_possible
// layouts must have lower bounds on time and memory that do not exclude them from the best.
static void expect_best(int64_t least_possible)
{
    struct sweep        *sweep = &space.sweep;
    struct sweep_choice *all   = memory_allocate((size_t)sweep->layout_count * sizeof(*all));
    int64_t              fit   = sweep->layout_count * 3 / 4;
    cr_assert_gt(sweep->layout_count, 150);
    for (int64_t i = 0; i < sweep->layout_count; i++) {
        all[i] = (struct sweep_choice){.layout = i, .prediction = cost(i)};
    }
    qsort(all, (size_t)sweep->layout_count, sizeof(*all), by_memory);
    while (fit < sweep->layout_count && need(&all[fit]) == need(&all[fit - 1])) {
        fit++;
    }
    space.hardware.memory_gb.value = ((double)need(&all[fit - 1]) + 0.5) / 1e9;
    qsort(all, (size_t)fit, sizeof(*all), by_time);

    REQUIRE(sweep_run(sweep));
    cr_expect(fit > sweep->layout_count / 4 && fit < sweep->layout_count, "%d of %d fit", (int)fit,
              (int)sweep->layout_count);
    cr_expect(sweep->fit >= fit && sweep->fit < sweep->layout_count, "%d fit, not %d", (int)sweep->fit, (int)fit);
    cr_expect_eq(sweep->too_large, sweep->layout_count - sweep->fit);
    cr_expect_lt(sweep->predicted, fit, "no bound excludes a layout");
    int64_t possible = count_possible(all[SWEEP_BEST - 1].prediction.step_seconds);
    cr_expect(possible >= least_possible && sweep->predicted >= possible, "%d predicted of %d", (int)sweep->predicted,
              (int)possible);
    expect_choices(sweep, all);
    free(all);
}

Test(sweep, finds_what_predicting_every_layout_finds)
{
    open_space(COMPUTE_BF16);
    expect_best(SWEEP_BEST);
}

Test(sweep, finds_it_where_bounds_are_far_from_the_step)
{
    open_space(COMPUTE_BF16);
    space.hardware.contention.value     = 0.8;
    space.hardware.node_bandwidth.value = space.hardware.network_bandwidth.value = 2e8;
    expect_best(SWEEP_BEST + 2);
}

static void expect_bounds(int64_t compute, double least_share)
{
    open_space(compute);
    double share = 0.0;
    for (int64_t i = 0; i < space.sweep.layout_count; i++) {
        struct prediction  exact = cost(i);
        struct sweep_bound bound = close_bound(&space.layouts[i], &space.machine);
        expect_below(&bound, &exact, &space.machine, i);
        cr_expect_lt((double)(exact.own_bytes - bound.bytes), 0.1 * (double)exact.largest_bytes, "layout %d", (int)i);
        share += bound.seconds / exact.step_seconds;
    }
    cr_expect_gt(share / (double)space.sweep.layout_count, least_share, "bounds are %g of the step in the mean",
                 share / (double)space.sweep.layout_count);
}

Test(sweep, bounds_time_and_memory_closely_from_below)
{
    expect_bounds(COMPUTE_BF16, 0.95);
}

// Expects that bounds from one layer of the layout do not exceed predictions, and that on average they are at least
// least_share of the step time, so that sweeps can skip layouts.
static void expect_rough_bounds(int64_t compute, int64_t deferred, double least_share)
{
    open_space(compute);
    double share = 0.0, memory = 0.0, count = (double)space.sweep.layout_count;
    for (int64_t i = 0; i < space.sweep.layout_count; i++) {
        struct plan_request *layout              = &space.layouts[i];
        bool                 is_deferred         = layout->mesh.size[AXIS_PP] > 1 && !mesh_is_sharded(&layout->mesh);
        layout->parallel.deferred_head_gradients = is_deferred ? deferred : 0;
        struct prediction  exact                 = cost(i);
        struct sweep_bound rough                 = rough_bound(layout, &space.machine);
        expect_below(&rough, &exact, &space.machine, i);
        share += rough.seconds / exact.step_seconds;
        memory += (double)rough.bytes / (double)exact.largest_bytes;
    }
    cr_expect_gt(share / count, least_share, "bounds are %g of the step in the mean", share / (double)count);
    cr_expect_gt(memory / count, compute == COMPUTE_FP8 ? 0.1 : 0.3, "bounds are %g of the memory in the mean",
                 memory / (double)count);
}

Test(sweep, bounds_time_and_memory_roughly_by_a_layer)
{
    expect_rough_bounds(COMPUTE_BF16, 0, 0.8);
    expect_rough_bounds(COMPUTE_FP8, 0, 0.8);
    expect_rough_bounds(COMPUTE_BF16, 2, 0.75);
}

// The head multiplies with a matrix of vocabulary size, the layers do not.
Test(sweep, bounds_the_head_from_below)
{
    open_space(COMPUTE_BF16);
    struct plan_request *layout = &space.layouts[0];
    double               few    = rough_bound(layout, &space.machine).seconds;
    layout->model.vocab *= 1000;
    struct prediction  exact = cost(0);
    struct sweep_bound rough = rough_bound(layout, &space.machine);
    expect_below(&rough, &exact, &space.machine, 0);
    cr_expect_gt(rough.seconds, 2.0 * few);
}

// Quantized weights are kept for all microbatches, so they do not count as memory that a microbatch keeps in a layer.
Test(sweep, counts_no_copies_of_weights_as_what_microbatches_leave)
{
    open_space(COMPUTE_FP8);
    struct sweep_layer layer;
    sweep_look_at_layer(&layer, &space.layouts[0], &space.machine);
    cr_expect_eq(layer.bytes, 0);
    cr_expect_gt(layer.first[SCHEDULE_FORWARD].through, 0.0);
}

Test(sweep, looks_at_no_layer_where_they_differ)
{
    open_space(COMPUTE_BF16);
    text_copy(space.layouts[0].model.pattern, sizeof(space.layouts[0].model.pattern), "8 x dense");
    cr_expect_eq(rough_bound(&space.layouts[0], &space.machine).seconds, 0.0);
}

Test(sweep, bounds_what_casts_before_its_input_comes)
{
    expect_bounds(COMPUTE_FP8, 0.95);
}

// If communication takes no time, the bound differs from the step only by waits between stages within the pipeline.
Test(sweep, bounds_pipelines_whose_communications_take_no_time_almost_exactly)
{
    static const struct {
        int64_t pp, vp, layers, accumulation, compute;
        double  least_share;
    } pipelines[] = {{2, 1, 8, 1, COMPUTE_BF16, 0.99},  {2, 1, 8, 8, COMPUTE_BF16, 0.995},
                     {4, 1, 9, 1, COMPUTE_BF16, 0.99},  {4, 1, 9, 16, COMPUTE_BF16, 0.95},
                     {4, 2, 8, 8, COMPUTE_BF16, 0.995}, {2, 1, 8, 1, COMPUTE_FP8, 0.985},
                     {2, 1, 8, 4, COMPUTE_FP8, 0.995}};
    open_space(COMPUTE_BF16);
    struct hardware_config *hardware = &space.hardware;
    hardware->node_bandwidth.value = hardware->network_bandwidth.value = 1e18;
    hardware->collective_latency.value = hardware->node_collective_latency.value = 0;
    hardware->node_latency.value = hardware->network_latency.value = 0;
    hardware->contention.value                                     = 0;
    for (size_t i = 0; i < sizeof(pipelines) / sizeof(pipelines[0]); i++) {
        struct tiny tiny            = space.tiny;
        tiny.parallel.pp            = pipelines[i].pp;
        tiny.parallel.vp            = pipelines[i].vp;
        tiny.train.micro_batch      = 1;
        tiny.train.accumulation     = pipelines[i].accumulation;
        tiny.train.global_batch     = pipelines[i].accumulation;
        tiny.model.layers           = pipelines[i].layers;
        tiny.precision.compute      = pipelines[i].compute;
        struct plan_request request = tiny_request(&tiny, pipelines[i].pp, 0);
        double              share =
            close_bound(&request, &space.machine).seconds / predict_layout(&request, &space.machine).step_seconds;
        cr_expect(share > pipelines[i].least_share && share < 1 + 1e-9, "pipeline %d: bound is %g of the step", (int)i,
                  share);
    }
}

Test(sweep, does_not_depend_on_threads)
{
    open_space(COMPUTE_BF16);
    struct sweep one = space.sweep, three = space.sweep;
    one.threads   = 1;
    three.threads = 3;
    REQUIRE(sweep_run(&one));
    REQUIRE(sweep_run(&three));
    cr_expect_eq(one.predicted, three.predicted);
    for (int i = 0; i < SWEEP_BEST; i++) {
        cr_expect_eq(one.best[i].layout, three.best[i].layout);
    }
}

Test(sweep, counts_refused_layouts_by_their_reason)
{
    open_space(COMPUTE_BF16);
    struct tiny tiny = space.tiny;
    layout_apply(&tiny, "pp 2; fsdp 4; dp 1; deferred_head_gradients 1");
    tiny.train.accumulation = 0;    // is derived from the global batch
    for (int64_t i = 0; i < 7; i++) {
        space.layouts[i] = tiny_request(&tiny, WORLD, 0);
    }
    space.sweep.layout_count = 9;
    REQUIRE(sweep_run(&space.sweep));
    cr_expect_eq(space.sweep.refused, 7);
    cr_expect_eq(space.sweep.fit, 2);
    cr_assert_eq(space.sweep.refusal_count, 1);
    cr_expect_eq(space.sweep.refusals[0].layouts, 7);
    cr_expect_neq(strstr(space.sweep.refusals[0].text, "deferred_head_gradients = 1 with fsdp"), NULL, "%s",
                  space.sweep.refusals[0].text);
}
