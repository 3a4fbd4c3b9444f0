// SPDX-License-Identifier: MIT
// The names of ops and tensors are only shown to users, so predictions must not depend on them.
#include <criterion/criterion.h>
#include "gswbench/predict.h"
#include "layouts.h"
#include "shipped_machine.h"
#include "success.h"

// clang-format off
static const struct {
    enum launch_graphs graphs;
    const char        *layout;
} rows[] = {
    {LAUNCH_GRAPHS_NONE, "dp 2; ep 2; experts 8; top_k 3; shared_ffn 14; accumulation 2"},
    {LAUNCH_GRAPHS_ROUTER, "dp 2; ep 2; experts 8; top_k 3; shared_ffn 14; compute fp8; recipe mxfp8; hidden 64; fp8_fused no"},
    {LAUNCH_GRAPHS_ATTENTION, "tp 2; dp 2; ep 4; etp 1; experts 8; top_k 3; layers 4; pattern 2 x (dense, experts); pp 2; accumulation 2"},
    {LAUNCH_GRAPHS_NONE, "vocab 4096; fsdp 2; accumulation 2; compute fp8; recipe current; recompute selective; recompute_save attention"},
};
// clang-format on
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

// Returns settings with all mechanisms of frameworks that depend on the part of the model to which an op belongs.
static struct software_config every_mechanism(enum launch_graphs graphs)
{
    struct software_config software;
    option_set_defaults(software_options, &software);
    software.expert_launch.value   = 1e-4;
    software.launch_graphs         = graphs;
    software.fp8_head              = 1;
    software.caching_allocator     = 1;
    software.gradient_placeholders = 1;
    software.second_gemms = software.keeps_unread = 1;
    software.whole_gradients = software.gather_pool = 1;
    software.logit_copies                           = 2;
    return software;
}

struct answer {
    double           seconds;
    struct footprint footprint[2];
};

static struct answer answer(struct predict_pipeline *pipeline, const struct plan_request *request,
                            const struct machine *machine)
{
    struct answer     found = {.seconds = 0.0};
    struct prediction prediction;
    REQUIRE(predict_time_pipeline(&prediction, pipeline, request, machine));
    found.seconds = prediction.step_seconds;
    for (int32_t i = 0; i < pipeline->simulation.actor_count; i++) {
        footprint_find(&found.footprint[i], &pipeline->stages[i].plan, machine->software, machine->hardware, 8);
    }
    return found;
}

Test(renamed, predictions_do_not_depend_on_names)
{
    for (int i = 0; i < ROWS; i++) {
        struct predict_pipeline pipeline;
        struct config           config   = read_machine("h100-sxm");
        struct software_config  software = every_mechanism(rows[i].graphs);
        struct machine          machine  = {.hardware = &config.hardware, .software = &software};
        struct plan_request     request  = layout_request(rows[i].layout);
        REQUIRE(predict_pipeline_init(&pipeline, &request));
        struct answer before = answer(&pipeline, &request, &machine);
        for (int32_t stage = 0; stage < pipeline.simulation.actor_count; stage++) {
            struct plan *plan = &pipeline.stages[stage].plan;
            for (int32_t op = 0; op < plan->op_count; op++) {
                plan->ops[op].tag.role = "an op";
            }
            for (int32_t tensor = 0; tensor < plan->tensor_count; tensor++) {
                plan->tensors[tensor].name = "a tensor";
            }
        }
        struct answer after = answer(&pipeline, &request, &machine);
        cr_expect_eq(before.seconds, after.seconds, "%s: %.17g and %.17g", rows[i].layout, before.seconds,
                     after.seconds);
        cr_expect_arr_eq(before.footprint, after.footprint, sizeof(before.footprint), "%s", rows[i].layout);
        predict_pipeline_free(&pipeline);
    }
}
