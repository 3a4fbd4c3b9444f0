// SPDX-License-Identifier: MIT
// Builds a rank's plan: declares weights and inputs, walks the microbatches, appends the optimizer, places memory.
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

status plan_supports(const struct plan_request *request)
{
    struct mesh mesh;
    TRY(mesh_init(&mesh, request->parallel, request->world));
    const int64_t *size = mesh.asked;
    int64_t        zero = request->parallel->zero;
    const struct {
        const char *what;
        bool        is_asked;
        int64_t     value;
    } missing[] = {
        {"deferred weight gradients of a sharded head ([parallel] deferred_head_gradients = %lld with fsdp)",
         request->parallel->deferred_head_gradients > 0 && size[AXIS_FSDP] > 1,
         request->parallel->deferred_head_gradients},
        {"optimizer shared over the replicas of sharded weights ([parallel] zero = %lld with fsdp)",
         zero > 0 && size[AXIS_FSDP] > 1, zero},
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
    TRY(train_resolve(&plan->train, mesh_group_size(&plan->mesh, MESH_BATCH_AXES)));
    TRY(precision_init(&plan->precision, request->precision));
    plan->counts_embedding    = request->parallel->layers_per_chunk_embedding != 0;
    plan->is_zero             = request->parallel->zero > 0;
    struct schedule_deal deal = pipeline_deal(plan);
    TRY(schedule_check(&deal));
    int64_t tokens = plan->train.micro_batch * plan->train.sequence / plan->mesh.size[AXIS_CP];
    if (request->parallel->sequence_parallel && tokens % plan->mesh.size[AXIS_TP] != 0) {
        return fail("[parallel] tp = %lld does not divide the %lld tokens that it shares out (micro_batch * sequence / "
                    "cp): choose other sizes, or sequence_parallel = no",
                    (long long)plan->mesh.size[AXIS_TP], (long long)tokens);
    }
    if (request->rank < 0 || request->rank >= plan->mesh.world) {
        return fail("rank %lld is outside 0..%lld", (long long)request->rank, (long long)plan->mesh.world - 1);
    }
    return OK;
}

static int32_t declare_ids(struct builder *builder, const char *name)
{
    return builder_tensor(builder, name, STORAGE_INPUT, DTYPE_I32, DIMS(builder->tokens));
}

static void declare_inputs(struct builder *builder)
{
    struct plan *plan         = builder->plan;
    int64_t      microbatches = plan->train.accumulation;
    int64_t      pairs        = model_rotary_width(&plan->model) / 2;
    int64_t      stage        = pipeline_stage(plan);
    bool         is_last      = stage == plan->mesh.size[AXIS_PP] - 1;

    plan->tokens  = arena_allocate(&plan->arena, (size_t)microbatches * sizeof(*plan->tokens));
    plan->targets = arena_allocate(&plan->arena, (size_t)microbatches * sizeof(*plan->targets));
    for (int64_t m = 0; m < microbatches; m++) {
        builder->tag.microbatch = (int32_t)m;
        plan->tokens[m]         = stage == 0 ? declare_ids(builder, "tokens") : -1;
        plan->targets[m]        = is_last ? declare_ids(builder, "targets") : -1;
    }
    builder->tag.microbatch = -1;
    plan->rope_table        = builder_tensor(builder, "rope table", STORAGE_INPUT, DTYPE_F32,
                                             DIMS(builder->sequence, pairs > 0 ? pairs : 1, 2));
    plan->hyper             = builder_tensor(builder, "hyperparameters", STORAGE_INPUT, DTYPE_F32, DIMS(HYPER_COUNT));
    plan->loss              = builder_tensor(builder, "loss", STORAGE_RESULT, DTYPE_F32, DIMS(1));
    plan->gradient_norm     = builder_tensor(builder, "gradient norm", STORAGE_RESULT, DTYPE_F32, DIMS(1));
    plan->routing           = -1;
    if (plan->model.experts > 0) {
        plan->routing = builder_tensor(builder, "routing", STORAGE_RESULT, DTYPE_F32,
                                       DIMS(plan->model.layers, plan->model.experts + 2));
        builder_clear(builder, "routing", plan->routing);    // every microbatch adds to it
    }
}

int64_t plan_position(const struct plan *plan, int64_t index)
{
    int64_t ranks = mesh_group_size(&plan->mesh, 1u << AXIS_CP);
    int64_t rank  = mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_CP);
    if (ranks == 1) {
        return index;
    }
    int64_t length = plan->train.sequence / (2 * ranks);
    int64_t chunk  = index < length ? rank : 2 * ranks - 1 - rank;
    return chunk * length + index % length;
}

status plan_build(struct plan *plan, const struct plan_request *request)
{
    TRY(resolve(plan, request));
    int64_t        sequence = plan->train.sequence / plan->mesh.size[AXIS_CP];
    int64_t        tp       = plan->mesh.size[AXIS_TP];
    struct builder builder  = {.plan            = plan,
                               .tag             = {.phase = PHASE_FORWARD, .layer = -1, .chunk = -1, .microbatch = -1},
                               .tokens          = plan->train.micro_batch * sequence,
                               .sequence        = sequence,
                               .overlaps        = request->parallel->tp_overlap != 0 && tp > 1,
                               .is_ring         = request->parallel->context == CONTEXT_RING,
                               .heads           = plan->model.heads / tp,
                               .kv_heads        = plan->model.kv_heads / tp,
                               .ffn             = plan->model.ffn / tp,
                               .prefetch        = request->parallel->prefetch,
                               .reshard         = request->parallel->reshard,
                               .gathers_forward = request->parallel->zero_gather == ZERO_GATHER_FORWARD,
                               .deferral = plan->mesh.size[AXIS_PP] > 1 ? request->parallel->deferred_head_gradients : 0,
                               .last_compute = -1,
                               .reduces      = {-1, -1}};
    builder.shard_tokens    = request->parallel->sequence_parallel ? builder.tokens / tp : builder.tokens;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        builder.pending[lane] = -1;
    }
    if (plan->model.experts > 0) {
        builder.routing = moe_routing(&builder);
    }

    quantize_declare(&builder);
    weights_declare(&builder);
    declare_inputs(&builder);
    pipeline_append(&builder);
    optimizer_append(&builder);
    quantize_drop_unread(&builder);
    free(builder.usage);

    int32_t *position = memory_allocate((size_t)plan->op_count * sizeof(*position));
    int32_t *clocks   = order_clocks(plan, position);
    memory_place(plan, clocks, position);
    order_prune(plan, clocks, position);
    free(clocks);
    free(position);
    return OK;
}

status plan_build_stage(struct plan *plan, const struct plan_request *request, int64_t stage)
{
    struct plan_request first = *request;
    struct mesh         mesh;
    *plan = (struct plan){.tensors = NULL};
    TRY(mesh_init(&mesh, request->parallel, request->world));
    first.rank = mesh_rank(&mesh, (const int64_t[AXIS_COUNT]){[AXIS_PP] = stage});
    return plan_build(plan, &first);
}

int64_t plan_total_bytes(const struct plan *plan)
{
    int64_t bytes = 0;
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        bytes += plan->storage_bytes[storage];
    }
    return bytes;
}

void plan_declare(struct plan *declared, const struct plan *plan, int64_t rank)
{
    struct builder builder = {.plan = declared, .tag = {.layer = -1, .chunk = -1, .microbatch = -1}};
    *declared              = (struct plan){.model            = plan->model,
                                           .mesh             = plan->mesh,
                                           .train            = plan->train,
                                           .precision        = plan->precision,
                                           .rank             = rank,
                                           .is_zero          = plan->is_zero,
                                           .counts_embedding = plan->counts_embedding};
    quantize_declare(&builder);
    weights_declare(&builder);
    free(builder.usage);
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

enum { PLACE_BYTES = 64 };

static int add_place(char text[PLACE_BYTES], int used, const char *name, int number)
{
    return number < 0 ? used : used + snprintf(text + used, (size_t)(PLACE_BYTES - used), ", %s %d", name, number);
}

// ", layer 3, microbatch 0, chunk 1", of which -1 is left out.
static const char *place_name(char text[PLACE_BYTES], int layer, int microbatch, int chunk)
{
    text[0] = '\0';
    add_place(text, add_place(text, add_place(text, 0, "layer", layer), "microbatch", microbatch), "chunk", chunk);
    return text;
}

const char *plan_tensor_name(const struct plan *plan, int32_t tensor, char *text, size_t bytes)
{
    const struct tensor *named = &plan->tensors[tensor];
    char                 place[PLACE_BYTES];
    snprintf(text, bytes, "%s%s", named->name, place_name(place, named->layer, named->microbatch, -1));
    return text;
}

const char *plan_op_name(const struct plan *plan, int32_t op, char *text, size_t bytes)
{
    const struct op *named = &plan->ops[op];
    char             place[PLACE_BYTES];
    snprintf(text, bytes, "op %d %s \"%s\", %s%s", op, op_name((enum op_kind)named->kind), named->tag.role,
             op_phase_name((enum phase)named->tag.phase),
             place_name(place, named->tag.layer, named->tag.microbatch, named->tag.chunk));
    return text;
}
