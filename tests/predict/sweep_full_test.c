// SPDX-License-Identifier: MIT
// Compares sweeps of small jobs with predictions of every layout. Sweeps must skip layouts, and find the same best
// ones. With experts, layouts shard each expert over tp, or have whole experts (etp 1).
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "gswbench/arena.h"
#include "layouts.h"
#include "line.h"

struct search {
    struct job           job;
    struct machine       machine;
    struct sweep_list    list;
    struct sweep_choice *all;    // layouts that fit the device, fastest first
    int64_t              fit;
};

static struct search *open_search(const char *settings)
{
    struct search *search = memory_allocate(sizeof(*search));
    layout_job(&search->job, "tiny-llama", 8,
               line_of("model.layers=4 hardware.profile=h100-sxm train.global_batch=16 %s", settings));
    search->machine =
        (struct machine){.hardware = &search->job.config.hardware, .software = &search->job.config.software};
    sweep_list(&search->list, &search->job);
    return search;
}

// Expects that no lower bound on a layout's step time or memory exceeds its exact prediction.
static void expect_bounds(const struct search *search, int64_t layout, const struct prediction *exact)
{
    const struct plan_request *request = &search->list.layouts[layout];
    struct sweep_layer         layer;
    struct sweep_bound         close = close_bound(request, &search->machine), actions = {.bytes = 0};
    sweep_look_at_layer(&layer, request, &search->machine);
    struct sweep_bound rough = sweep_find_rough_bound(&layer, request);
    sweep_find_actions(&actions, &layer, request, &search->machine);
    sweep_free_bound(&actions);
    expect_below(&rough, exact, &search->machine, layout);
    expect_below(&actions, exact, &search->machine, layout);
    expect_below(&close, exact, &search->machine, layout);
}

static void cost_all(struct search *search)
{
    search->all = memory_allocate((size_t)search->list.count * sizeof(*search->all));
    for (int64_t i = 0; i < search->list.count; i++) {
        struct sweep_choice *choice = &search->all[search->fit];
        choice->layout              = i;
        choice->prediction          = predict_layout(&search->list.layouts[i], &search->machine);
        if (i % 3 == 0) {
            expect_bounds(search, i, &choice->prediction);
        }
        search->fit += hardware_holds(search->machine.hardware,
                                      predict_device_bytes(&choice->prediction, search->machine.software));
    }
    qsort(search->all, (size_t)search->fit, sizeof(*search->all), by_time);
}

static void expect_full(const char *settings)
{
    struct search *search = open_search(settings);
    struct sweep   sweep  = {
           .machine = &search->machine, .layouts = search->list.layouts, .layout_count = search->list.count, .threads = 2};
    cost_all(search);
    REQUIRE(sweep_run(&sweep));
    cr_expect_gt(search->list.count, 100);
    cr_expect_lt(sweep.predicted, search->fit / 2, "%d of %d predicted", (int)sweep.predicted, (int)search->fit);
    expect_choices(&sweep, search->all);
    free(search->list.layouts);
    free(search->all);
    free(search);
}

Test(sweep_full, finds_what_all_layouts_of_a_dense_model_show)
{
    expect_full("");
}

Test(sweep_full, finds_what_all_layouts_in_fp8_and_of_torchtitan_show)
{
    expect_full("precision.compute=fp8 precision.recipe=current");
    expect_full("precision.compute=fp8 precision.recipe=delayed software.profile=nemo-25.02");
    expect_full("software.profile=torchtitan");
}

Test(sweep_full, finds_what_all_layouts_of_a_model_with_experts_show)
{
    expect_full("model.family=mixtral model.experts=4 model.top_k=2 train.routing=balanced");
    expect_full("model.family=mixtral model.experts=4 model.top_k=2 model.capacity_factor=1.25 precision.compute=fp8 "
                "software.profile=megatron-bridge hardware.profile=gb200");
}

Test(sweep_full, finds_what_all_layouts_show_where_few_fit)
{
    expect_full("hardware.memory_gb=0.8 hardware.node_bandwidth=2e9");
}

Test(sweep_full, finds_what_all_layouts_show_where_layers_are_computed_again_in_part)
{
    expect_full(
        "train.recompute=block_every train.recompute_every=2 hardware.gpus_per_node=2 hardware.network_bandwidth=5e9");
}

Test(sweep_full, has_the_layout_of_a_job_whose_ranks_have_many_divisors)
{
    struct job        job;
    struct sweep_list list;
    int               own = 0;
    layout_job(&job, "tiny-llama", 10080, "parallel.fsdp=10080 train.micro_batch=1 train.global_batch=10080");
    sweep_list(&list, &job);
    for (int64_t i = 0; i < list.count; i++) {
        own += list.layouts[i].parallel.fsdp == 10080;
    }
    cr_expect_gt(own, 0);
    free(list.layouts);
}

static struct job        job;
static struct sweep_list list;    // of the job

static void list_experts(void)
{
    layout_job(&job, "tiny-llama", 8,
               "model.family=mixtral model.experts=4 model.top_k=2 model.capacity_factor=1.25 "
               "hardware.profile=h100-sxm train.global_batch=16");
    sweep_list(&list, &job);
}

static void free_list(void)
{
    free(list.layouts);
}

TestSuite(sweep_experts, .init = list_experts, .fini = free_list);

// Returns whether two layouts differ only in whether experts are sharded over tp.
static bool is_twin(const struct plan_request *whole, const struct plan_request *other)
{
    struct parallel_config sharded = whole->parallel;
    sharded.etp                    = 0;
    return memcmp(&sharded, &other->parallel, sizeof(sharded)) == 0 &&
           whole->train.micro_batch == other->train.micro_batch && whole->train.recompute == other->train.recompute;
}

Test(sweep_experts, tries_whole_experts_wherever_tp_and_ep_allow_them)
{
    int64_t whole = 0, twins = 0, filled = 0;
    for (int64_t i = 0; i < list.count; i++) {
        const struct plan_request *layout = &list.layouts[i];
        const struct mesh         *mesh   = &layout->mesh;
        if (!mesh_has_whole_experts(mesh)) {
            cr_expect_eq(layout->parallel.etp, 0);
            continue;
        }
        whole++;
        filled += mesh->asked[AXIS_EP] > mesh->asked[AXIS_TP];
        cr_expect_eq(layout->parallel.etp, 1);
        cr_expect(mesh->asked[AXIS_TP] > 1 && mesh->asked[AXIS_EP] % mesh->asked[AXIS_TP] == 0);
        cr_expect_eq(mesh_group_size(mesh, mesh->owner_axes), mesh->asked[AXIS_EP]);
        for (int64_t other = 0; other < list.count; other++) {
            if (is_twin(layout, &list.layouts[other])) {
                twins++;
                cr_expect_not(sweep_is_cut_alike(layout, &list.layouts[other]));
            }
        }
    }
    cr_expect_gt(list.count, 2 * whole);
    cr_expect(whole > 20 && filled > 0 && twins > 0 && twins < whole, "%d whole, %d more than tp, %d twins", (int)whole,
              (int)filled, (int)twins);
}

Test(sweep_experts, bounds_layouts_with_whole_experts_from_below)
{
    struct machine machine = predict_machine(&job.config, NULL);
    int            looked  = 0;
    for (int64_t i = 0; i < list.count && looked < 24; i++) {
        const struct plan_request *layout = &list.layouts[i];
        if (!mesh_has_whole_experts(&layout->mesh) || i % 5 != 0) {
            continue;
        }
        struct prediction  exact = predict_layout(layout, &machine);
        struct sweep_bound rough = rough_bound(layout, &machine);
        cr_expect_gt(rough.seconds, 0.0);
        expect_below(&rough, &exact, &machine, i);
        looked++;
    }
    cr_expect_gt(looked, 4);
}

// With overlapped microbatches, compute of one microbatch may hide the all-to-alls of another. Bounds must assume this,
// with and without a pipeline.
Test(sweep_experts, bounds_layouts_whose_microbatches_overlap_from_below)
{
    struct machine machine                 = predict_machine(&job.config, NULL);
    job.config.train.overlap_microbatches  = true;
    job.request.train.overlap_microbatches = true;
    int looked = 0, pipelines = 0;
    free_list();
    sweep_list(&list, &job);
    for (int64_t i = 0; i < list.count; i += 7) {
        const struct plan_request *layout = &list.layouts[i];
        cr_expect(layout->train.overlap_microbatches && layout->train.accumulation > 1 &&
                  layout->mesh.asked[AXIS_EP] > 1);
        struct prediction  exact = predict_layout(layout, &machine);
        struct sweep_bound bound = close_bound(layout, &machine), rough = rough_bound(layout, &machine);
        expect_below(&bound, &exact, &machine, i);
        expect_below(&rough, &exact, &machine, i);
        looked++;
        pipelines += layout->mesh.size[AXIS_PP] > 1;
    }
    cr_expect(looked > 10 && pipelines > 3, "%d, %d pipelines", looked, pipelines);
}
