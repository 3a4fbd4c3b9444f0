// SPDX-License-Identifier: MIT
// Compares sweeps of small jobs with predictions of every layout. Sweeps must skip layouts, and find the same best
// ones.
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "bounds.h"
#include "layouts.h"

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
    char           all[512];
    snprintf(all, sizeof(all), "model.layers=4 hardware.profile=h100-sxm train.global_batch=16 %s", settings);
    layout_job(&search->job, "tiny-llama", 8, all);
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
    expect_below(&rough, exact, layout);
    expect_below(&actions, exact, layout);
    expect_below(&close, exact, layout);
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
        search->fit += sweep_fits(search->machine.hardware, choice->prediction.largest_bytes);
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

Test(sweep_full, finds_what_all_layouts_in_fp8_show)
{
    expect_full("precision.compute=fp8 precision.recipe=current");
    expect_full("precision.compute=fp8 precision.recipe=delayed software.profile=nemo-25.02");
}

Test(sweep_full, finds_what_all_layouts_of_a_model_with_experts_show)
{
    expect_full("model.family=mixtral model.experts=4 model.top_k=2 train.routing=balanced");
    expect_full("model.family=mixtral model.experts=4 model.top_k=2 model.capacity_factor=1.25 precision.compute=fp8 "
                "software.profile=megatron-bridge hardware.profile=gb200");
}

Test(sweep_full, finds_what_all_layouts_show_where_few_fit)
{
    expect_full("hardware.memory_gb=0.6920744 hardware.node_bandwidth=2e9");
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
