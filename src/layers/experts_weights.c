// SPDX-License-Identifier: MIT
// Weights, exported names and parameter counts of experts and router, and the [model] checks for them.
#include <inttypes.h>
#include <string.h>

#include "experts.h"
#include "mlp.h"

// An expert has four random streams: three matrices, and one for all biases, which start at zero.
enum { NOT_DRAWN = 3 };

// Tensor names of Mixtral, or of Qwen3 and DeepSeek-V3.
struct experts_names {
    struct exported  router, router_bias;
    struct mlp_names expert;
};
static const struct experts_names names_of_mixtral = {
    .router      = {"model.layers.%d.block_sparse_moe.gate.weight", 15},
    .router_bias = {"model.layers.%d.block_sparse_moe.gate.bias", 29},
    .expert      = {.gate      = {"model.layers.%d.block_sparse_moe.experts.%d.w1.weight", 0},
                    .up        = {"model.layers.%d.block_sparse_moe.experts.%d.w3.weight", 1},
                    .down      = {"model.layers.%d.block_sparse_moe.experts.%d.w2.weight", 2},
                    .gate_bias = {"model.layers.%d.block_sparse_moe.experts.%d.w1.bias", NOT_DRAWN},
                    .up_bias   = {"model.layers.%d.block_sparse_moe.experts.%d.w3.bias", NOT_DRAWN},
                    .down_bias = {"model.layers.%d.block_sparse_moe.experts.%d.w2.bias", NOT_DRAWN}},
};
static const struct experts_names names_of_qwen3 = {
    .router = {"model.layers.%d.mlp.gate.weight", 15},
    .expert = {.gate = {"model.layers.%d.mlp.experts.%d.gate_proj.weight", 0},
               .up   = {"model.layers.%d.mlp.experts.%d.up_proj.weight", 1},
               .down = {"model.layers.%d.mlp.experts.%d.down_proj.weight", 2}},    // no biases: see check.c
};

int64_t experts_here(const struct plan *plan)
{
    return plan->model.experts / mesh_group_size(&plan->mesh, plan->mesh.owner_axes);
}

// No FLOP convention counts the router's GEMM. linears covers remote experts as well.
struct layer_count experts_count(const struct model_config *model)
{
    int64_t expert = mlp_elements(model, model_expert_ffn(model));
    int64_t router = model->hidden * model->experts;
    int64_t shared = mlp_elements(model, model->shared_ffn);
    int64_t bias   = mlp_biases(model, model_expert_ffn(model));
    int64_t all = shared + mlp_biases(model, model->shared_ffn) + router + (model->router_offset ? model->experts : 0);
    return (struct layer_count){.parameters = model->experts * (expert + bias) + all,
                                .active     = model->top_k * (expert + bias) + all,
                                .multiplied = model->top_k * expert + shared,
                                .linears    = MLP_LINEARS * (model->experts + (shared > 0))};
}

static void check_groups(const struct model_config *model, status *errors)
{
    int64_t groups = model->router_groups, used = model->router_top_groups;
    if (groups == 0) {
        if (used != 0) {
            status_add(errors, fail("[model] router_top_groups = %" PRId64 " needs router_groups", used));
        }
    } else if (model->experts % groups != 0) {
        status_add(errors, fail("[model] router_groups = %" PRId64 " does not divide experts = %" PRId64, groups,
                                model->experts));
    } else if (used < 1 || used > groups || used * (model->experts / groups) < model->top_k) {
        status_add(errors, fail("[model] router_top_groups = %" PRId64 " of router_groups = %" PRId64
                                " have fewer than top_k = %" PRId64 " experts, with %" PRId64
                                " per group: raise router_top_groups",
                                used, groups, model->top_k, model->experts / groups));
    }
}

void experts_check(const struct model_config *model, status *errors)
{
    check_groups(model, errors);
    if (model->experts == 0) {
        status_add(
            errors,
            fail("[model] pattern = %s has experts: set experts to their number, and top_k to the experts per token",
                 model->pattern));
    } else if (model->top_k < 1 || model->top_k > model->experts) {
        status_add(errors, fail("[model] top_k = %" PRId64 " with experts = %" PRId64 ": expected 1 to %" PRId64,
                                model->top_k, model->experts, model->experts));
    }
}

void experts_declare(struct declarations *declarations, int32_t *weights)
{
    const struct plan         *plan  = declarations->builder->plan;
    const struct model_config *model = &plan->model;
    int64_t                    count = experts_here(plan);
    int64_t                    first = mesh_group_index(&plan->mesh, plan->rank, plan->mesh.owner_axes) * count;

    const struct model_family  *family  = model_family_of(model);
    bool                        is_qwen = family != NULL && (family->has_qk_norm || family->has_latent_attention);
    const struct experts_names *names   = is_qwen ? &names_of_qwen3 : &names_of_mixtral;
    struct declaration         *router  = declare_matrix(declarations, &weights[WEIGHT_ROUTER], "router weight");
    router->is_replicated               = true;
    declare_rows(declarations, router, &names->router, model->experts, model->hidden);
    if (model->router_offset) {
        declare_bias(declarations, "router bias", (const struct exported *const[]){&names->router_bias});
    }
    for (int64_t expert = first; expert < first + count; expert++) {
        mlp_declare(declarations, expert == first ? &weights[WEIGHT_EXPERTS] : NULL, NULL,
                    &(struct mlp_weights){&names->expert, model_expert_ffn(model), expert, MLP_LINEARS * expert});
    }
    shared_declare(declarations, weights);
}
