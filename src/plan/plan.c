// SPDX-License-Identifier: MIT
// Builds a rank's plan: declares weights and inputs, walks the microbatches, appends the optimizer, places memory.
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

status plan_supports(const struct plan_request *request)
{
    const struct parallel_config *parallel = request->parallel;
    const struct {
        const char *what;
        bool        is_asked;
        int64_t     value;
    } missing[] = {
        {"mixture of experts ([model] experts = %lld)", request->model->experts > 0, request->model->experts},
        {"FP8 ([precision] compute = fp8)", request->precision->compute == COMPUTE_FP8, 0},
        {"tensor parallelism ([parallel] tp = %lld)", parallel->tp > 1, parallel->tp},
        {"context parallelism ([parallel] cp = %lld)", parallel->cp > 1, parallel->cp},
        {"pipeline parallelism ([parallel] pp = %lld)", parallel->pp > 1, parallel->pp},
        {"expert parallelism ([parallel] ep = %lld)", parallel->ep > 1, parallel->ep},
        {"sharded parameters ([parallel] fsdp = %lld)", parallel->fsdp > 1, parallel->fsdp},
        {"a sharded optimizer ([parallel] zero = %lld)", parallel->zero > 0, parallel->zero},
    };
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        if (missing[i].is_asked) {
            char what[128];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(what, sizeof(what), missing[i].what, (long long)missing[i].value);
#pragma GCC diagnostic pop
            return fail("this version has no %s", what);
        }
    }
    return OK;
}

static status resolve(struct plan *plan, const struct plan_request *request)
{
    *plan = (struct plan){.model = *request->model, .train = *request->train, .rank = request->rank};
    TRY(plan_supports(request));
    TRY(model_check(&plan->model));
    TRY(mesh_init(&plan->mesh, request->parallel, request->world));
    TRY(train_resolve(&plan->train, plan->mesh.size[AXIS_DP] * plan->mesh.size[AXIS_FSDP]));
    TRY(precision_init(&plan->precision, request->precision));
    if (request->rank < 0 || request->rank >= plan->mesh.world) {
        return fail("rank %lld is outside 0..%lld", (long long)request->rank, (long long)plan->mesh.world - 1);
    }
    return OK;
}

static void declare_inputs(struct builder *builder)
{
    struct plan *plan         = builder->plan;
    int64_t      microbatches = plan->train.accumulation;
    int64_t      pairs        = model_rotary_width(&plan->model) / 2;

    plan->tokens  = arena_allocate(&plan->arena, (size_t)microbatches * sizeof(*plan->tokens));
    plan->targets = arena_allocate(&plan->arena, (size_t)microbatches * sizeof(*plan->targets));
    for (int64_t m = 0; m < microbatches; m++) {
        builder->tag.microbatch = (int32_t)m;
        plan->tokens[m]         = builder_tensor(builder, "tokens", STORAGE_INPUT, DTYPE_I32, DIMS(builder->tokens));
        plan->targets[m]        = builder_tensor(builder, "targets", STORAGE_INPUT, DTYPE_I32, DIMS(builder->tokens));
    }
    builder->tag.microbatch = -1;
    plan->rope_table        = builder_tensor(builder, "rope table", STORAGE_INPUT, DTYPE_F32,
                                             DIMS(plan->train.sequence, pairs > 0 ? pairs : 1, 2));
    plan->hyper             = builder_tensor(builder, "hyperparameters", STORAGE_INPUT, DTYPE_F32, DIMS(HYPER_COUNT));
    plan->loss              = builder_tensor(builder, "loss", STORAGE_RESULT, DTYPE_F32, DIMS(1));
    plan->gradient_norm     = builder_tensor(builder, "gradient norm", STORAGE_RESULT, DTYPE_F32, DIMS(1));
}

// Forward and backward of one microbatch. With the last one, each unit's gradient is complete as soon as its backward
// ops are: its reduction starts then, beside the rest.
static void append_microbatch(struct builder *builder, int64_t microbatch)
{
    const struct plan *plan    = builder->plan;
    int64_t            layers  = plan->model.layers;
    bool               is_last = microbatch == plan->train.accumulation - 1;

    builder->tag = (struct op_tag){.phase = PHASE_FORWARD, .layer = -1, .chunk = -1, .microbatch = (int32_t)microbatch};
    int32_t x    = embedding_forward(builder, microbatch);
    int32_t branch = -1;
    for (int64_t layer = 0; layer < layers; layer++) {
        block_forward(builder, layer, x, branch);
        x      = builder->values[layer].tensor[VALUE_X2];
        branch = builder->values[layer].tensor[VALUE_FC2];
    }
    int32_t gradient = head_forward_backward(builder, microbatch, x, branch);
    if (is_last) {
        gradient_reduce(builder, builder->unit_count - 1);
    }
    for (int64_t layer = layers - 1; layer >= 0; layer--) {
        gradient = block_backward(builder, layer, gradient);
        if (is_last) {
            gradient_reduce(builder, (int32_t)layer + 1);
        }
    }
    embedding_backward(builder, microbatch, gradient);
    if (is_last) {
        gradient_reduce(builder, 0);
    }
}

status plan_build(struct plan *plan, const struct plan_request *request)
{
    TRY(resolve(plan, request));
    struct builder builder = {.plan   = plan,
                              .tag    = {.phase = PHASE_FORWARD, .layer = -1, .chunk = -1, .microbatch = -1},
                              .tokens = plan->train.micro_batch * plan->train.sequence};
    builder.values         = arena_allocate(&plan->arena, (size_t)plan->model.layers * sizeof(*builder.values));

    weights_declare(&builder);
    declare_inputs(&builder);
    for (int64_t microbatch = 0; microbatch < plan->train.accumulation; microbatch++) {
        append_microbatch(&builder, microbatch);
    }
    optimizer_append(&builder);
    memory_place(plan);

    free(builder.usage);
    return OK;
}

void plan_free(struct plan *plan)
{
    free(plan->tensors);
    free(plan->ops);
    free(plan->weights);
    free(plan->groups);
    arena_free(&plan->arena);
    *plan = (struct plan){.tensors = NULL};
}

const char *plan_storage_name(enum storage storage)
{
    static const char *const names[STORAGE_COUNT] = {
        [STORAGE_WEIGHT] = "weights", [STORAGE_GRADIENT] = "gradients", [STORAGE_OPTIMIZER] = "optimizer",
        [STORAGE_INPUT] = "inputs",   [STORAGE_RESULT] = "results",     [STORAGE_ACTIVATION] = "activations",
    };
    return names[storage];
}

static const char *place_name(char text[48], int layer, int microbatch)
{
    int used = layer >= 0 ? snprintf(text, 48, ", layer %d", layer) : 0;
    if (microbatch >= 0) {
        snprintf(text + used, 48 - (size_t)used, ", microbatch %d", microbatch);
    } else {
        text[used] = '\0';
    }
    return text;
}

const char *plan_tensor_name(const struct plan *plan, int32_t tensor, char *text, size_t bytes)
{
    const struct tensor *named = &plan->tensors[tensor];
    char                 place[48];
    snprintf(text, bytes, "%s%s", named->name, place_name(place, named->layer, named->microbatch));
    return text;
}

const char *plan_op_name(const struct plan *plan, int32_t op, char *text, size_t bytes)
{
    const struct op *named = &plan->ops[op];
    char             place[48];
    snprintf(text, bytes, "op %d %s \"%s\", %s%s", op, op_name((enum op_kind)named->kind), named->tag.role,
             op_phase_name((enum phase)named->tag.phase), place_name(place, named->tag.layer, named->tag.microbatch));
    return text;
}
