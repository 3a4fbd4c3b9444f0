// SPDX-License-Identifier: MIT
// Tests sweeps of models with experts, over layouts that shard each expert over tp and layouts with whole experts (etp
// 1).
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "layouts.h"

static struct job experts_job(void)
{
    static struct job job;
    layout_job(&job, "tiny-llama", 8,
               "model.family=mixtral model.experts=4 model.top_k=2 model.capacity_factor=1.25 "
               "hardware.profile=h100-sxm train.global_batch=16");
    return job;
}

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
    struct job        job = experts_job();
    struct sweep_list list;
    int64_t           whole = 0, twins = 0, filled = 0;
    sweep_list(&list, &job);
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
    free(list.layouts);
}

Test(sweep_experts, bounds_layouts_with_whole_experts_from_below)
{
    struct job        job     = experts_job();
    struct machine    machine = {.hardware = &job.config.hardware};
    struct sweep_list list;
    int               looked = 0;
    sweep_list(&list, &job);
    for (int64_t i = 0; i < list.count && looked < 24; i++) {
        const struct plan_request *layout = &list.layouts[i];
        if (!mesh_has_whole_experts(&layout->mesh) || i % 5 != 0) {
            continue;
        }
        struct prediction  exact = predict_layout(layout, &machine);
        struct sweep_bound rough = rough_bound(layout, &machine);
        cr_expect_gt(rough.seconds, 0.0);
        expect_below(&rough, &exact, i);
        looked++;
    }
    cr_expect_gt(looked, 4);
    free(list.layouts);
}

// With overlapped microbatches, compute of one microbatch may hide the all-to-alls of another. Bounds must assume this,
// with and without a pipeline.
Test(sweep_experts, bounds_layouts_whose_microbatches_overlap_from_below)
{
    struct job     job                     = experts_job();
    struct machine machine                 = {.hardware = &job.config.hardware};
    job.config.train.overlap_microbatches  = true;
    job.request.train.overlap_microbatches = true;
    int               looked = 0, pipelines = 0;
    struct sweep_list list;
    sweep_list(&list, &job);
    for (int64_t i = 0; i < list.count; i += 7) {
        const struct plan_request *layout = &list.layouts[i];
        cr_expect(layout->train.overlap_microbatches && layout->train.accumulation > 1 &&
                  layout->mesh.asked[AXIS_EP] > 1);
        struct prediction  exact = predict_layout(layout, &machine);
        struct sweep_bound bound = close_bound(layout, &machine), rough = rough_bound(layout, &machine);
        expect_below(&bound, &exact, i);
        expect_below(&rough, &exact, i);
        looked++;
        pipelines += layout->mesh.size[AXIS_PP] > 1;
    }
    cr_expect(looked > 10 && pipelines > 3, "%d, %d pipelines", looked, pipelines);
    free(list.layouts);
}
