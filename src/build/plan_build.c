// SPDX-License-Identifier: MIT
// Builds a rank's plan: resolves and checks the request, declares weights and inputs, appends all microbatches and the
// optimizer.
#include "gswbench/plan_build.h"

#include <inttypes.h>

#include "gswbench/linear.h"
#include "block.h"

static status check_sections(const struct plan_sections *sections, struct precision *precision)
{
    status errors = layers_check(sections->model);
    status_add(&errors, layers_check_train(sections->model, sections->train));
    status_add(&errors, precision_init(precision, sections->precision));
    status_add(&errors, precision_check_weights(precision, model_is_frozen(sections->model)));
    return errors;
}

status plan_check(const struct plan_sections *sections)
{
    struct precision precision;
    return check_sections(sections, &precision);
}

status plan_resolve(struct plan_request *request, const struct plan_sections *sections)
{
    *request =
        (struct plan_request){.model = *sections->model, .parallel = *sections->parallel, .train = *sections->train};
    status errors = check_sections(sections, &request->precision);
    status meshed = mesh_init(&request->mesh, sections->parallel, sections->world);
    status_add(&errors, meshed);
    if (failed(&meshed)) {
        request->mesh.world = 0;
        return errors;
    }
    mesh_resolve(&request->parallel, &request->mesh);
    mesh_share_heads(&request->mesh, request->model.kv_heads);
    status_add(&errors,
               train_resolve(&request->train, mesh_group_size(&request->mesh, axis_sharing(AXIS_SHARES_SEQUENCES))));
    return errors;
}

// Checks the requirements of Ulysses context parallelism (context = exchange).
static status check_exchange(const struct mesh *mesh, const struct model_config *model)
{
    int64_t ranks = mesh->size[AXIS_CP] * mesh->size[AXIS_TP];
    FAIL_IF(model->kv_rank > 0 || model->attention_sinks,
            "this version does not support latent attention or sinks with an all-to-all ([model] kv_rank, "
            "attention_sinks with [parallel] context = exchange): use context = gather or ring");
    FAIL_IF(model->heads % ranks != 0 || model->kv_heads % ranks != 0,
            "[parallel] context = exchange shards heads over tp x cp = %" PRId64
            " ranks, which must divide [model] heads = %" PRId64 " and kv_heads = %" PRId64
            ": use a smaller cp, or context = gather or ring",
            ranks, model->heads, model->kv_heads);
    return OK;
}

// Checks the requirements of gradient_reduce = microbatch.
static status check_gradient_reduce(const struct mesh *mesh, const struct parallel_config *axes)
{
    if (axes->gradient_reduce == GRADIENT_REDUCE_STEP) {
        return OK;
    }
    FAIL_IF(mesh_is_sharded(mesh) && mesh_group_size(mesh, mesh_replica_axes(mesh, false)) == 1,
            "[parallel] gradient_reduce = microbatch has no effect with fsdp and dp = 1, where every microbatch "
            "reduces gradients anyway: leave it out, or set dp");
    FAIL_IF(mesh->size[AXIS_PP] > 1 && axes->deferred_head_gradients > 0,
            "[parallel] gradient_reduce = microbatch reduces gradients after each microbatch, but "
            "deferred_head_gradients = %" PRId64 " computes some at the end: use one of the two",
            axes->deferred_head_gradients);
    return OK;
}

// Checks the requirements of schedule = zero-bubble.
static status check_schedule(const struct plan_request *request)
{
    static const char option[] = "[parallel] schedule = zero-bubble";
    if (!request->mesh.delays_weights) {
        return OK;
    }
    FAIL_IF(request->mesh.vp > 1,
            "this version does not support %s with several chunks per stage (vp = %" PRId64
            "): set vp = 1, or schedule = 1f1b",
            option, request->mesh.vp);
    FAIL_IF(request->train.overlap_microbatches,
            "this version does not support %s with [train] overlap_microbatches = yes: set one of the two", option);
    FAIL_IF(request->train.delay_weight_gradients,
            "%s delays every weight gradient already: set [train] delay_weight_gradients = no", option);
    FAIL_IF(request->parallel.deferred_head_gradients > 0,
            "%s delays every weight gradient already: set deferred_head_gradients = 0", option);
    return OK;
}

// Checks the requirements of optimizer = muon, which needs the gradient of a whole matrix to update it.
static status check_muon(const struct plan_request *request)
{
    static const char          option[] = "[train] optimizer = muon";
    const struct model_config *model    = &request->model;
    if (request->train.optimizer != OPTIMIZER_MUON) {
        return OK;
    }
    FAIL_IF(mesh_is_sharded(&request->mesh),
            "%s updates whole matrices, which no rank has with [parallel] %s: use dp and zero = 1", option,
            request->parallel.fsdp > 1 ? "fsdp > 1" : "shard_over_cp = yes");
    FAIL_IF(request->precision.has_low_precision_weights || request->precision.recipe == RECIPE_CURRENT,
            "this version does not support %s with [precision] fp8_weights = yes or recipe = current: set fp8_weights "
            "= no and another recipe",
            option);
    FAIL_IF(model_is_frozen(model),
            "this version does not support %s with adapters ([adapters] rank = %" PRId64 "): set optimizer = adamw",
            option, model->adapters.rank);
    FAIL_IF(model->mlp_bias && model->experts > 0,
            "this version does not support %s with biases of experts ([model] mlp_bias = yes): set optimizer = adamw",
            option);
    FAIL_IF(request->mesh.head_copies > 0,
            "this version does not support %s with several ranks for a key head ([model] kv_heads = %" PRId64
            " with [parallel] tp = %" PRId64 "): lower tp",
            option, model->kv_heads, request->mesh.size[AXIS_TP]);
    FAIL_IF(request->parallel.gradient_reduce == GRADIENT_REDUCE_MICROBATCH && request->parallel.zero > 0,
            "this version does not support %s with [parallel] gradient_reduce = microbatch and zero = 1: use "
            "gradient_reduce = step",
            option);
    return OK;
}

status plan_supports(const struct plan_request *request)
{
    const struct parallel_config *axes       = &request->parallel;
    const struct mesh            *mesh       = &request->mesh;
    const struct model_config    *model      = &request->model;
    bool                          is_sharded = mesh_is_sharded(mesh);
    bool                          is_skewed  = request->train.routing == ROUTING_SKEWED && model->experts > 0;
    FAIL_IF(
        is_skewed && request->train.routing_skew * (double)model->top_k > (double)model->experts,
        "[train] routing_skew = %g: the maximum is %g, where an expert gets all tokens, with [model] experts = %" PRId64
        " and top_k = %" PRId64,
        request->train.routing_skew, (double)model->experts / (double)model->top_k, model->experts, model->top_k);
    FAIL_IF(mesh->size[AXIS_CP] > 1 && axes->context == CONTEXT_RING && model->window > 0,
            "this version does not support windows in ring attention ([model] window = %" PRId64
            " with [parallel] context = ring): use context = gather",
            model->window);
    FAIL_IF(mesh->size[AXIS_CP] > 1 && model->mamba_heads > 0,
            "this version does not support Mamba-2 layers with context parallelism ([model] mamba_heads = %" PRId64
            " with [parallel] cp = %" PRId64 "): set cp = 1",
            model->mamba_heads, mesh->size[AXIS_CP]);
    if (mesh->size[AXIS_CP] > 1 && axes->context == CONTEXT_EXCHANGE) {
        TRY(check_exchange(mesh, model));
    }
    FAIL_IF(model->mlp_bias && model->experts > 0 && request->precision.has_low_precision_weights,
            "this version does not support expert biases with FP8 weights ([model] mlp_bias = yes with [precision] "
            "fp8_weights = yes): set fp8_weights = no");
    FAIL_IF(is_sharded && mesh->size[AXIS_PP] > 1 && axes->deferred_head_gradients > 0,
            "this version does not support deferred gradients of a sharded output layer ([parallel] "
            "deferred_head_gradients = %" PRId64 " with fsdp): set deferred_head_gradients = 0",
            axes->deferred_head_gradients);
    TRY(check_gradient_reduce(mesh, axes));
    TRY(check_schedule(request));
    FAIL_IF(model_is_frozen(model) && axes->deferred_head_gradients > 0,
            "[parallel] deferred_head_gradients = %" PRId64
            " has no effect on a frozen output layer ([adapters] rank = %" PRId64 "): leave it out",
            axes->deferred_head_gradients, model->adapters.rank);
    enum scaling_recipe recipe = request->precision.recipe;
    FAIL_IF(model_is_frozen(model) && request->precision.has_low_precision_weights && is_sharded &&
                recipe != RECIPE_DELAYED && recipe != RECIPE_CURRENT,
            "this version shards frozen weights with one scale per matrix only ([precision] fp8_weights = yes and "
            "[adapters] rank = %" PRId64 " with fsdp): set recipe = delayed or current, or fp8_weights = no",
            model->adapters.rank);
    TRY(check_muon(request));
    FAIL_IF(is_sharded && mesh_group_size(mesh, mesh_replica_axes(mesh, false)) > 1 && axes->zero > 0,
            "this version does not shard the optimizer over replicas of sharded weights ([parallel] zero = %" PRId64
            " with fsdp): set zero = 0",
            axes->zero);
    return plan_check_size(request);
}

struct schedule_assignment plan_assignment(const struct plan_request *request)
{
    return (struct schedule_assignment){.layers           = request->model.layers,
                                        .chunks           = request->mesh.size[AXIS_PP] * request->mesh.vp,
                                        .counts_embedding = request->parallel.layers_per_chunk_embedding != 0,
                                        .last             = request->parallel.last_chunk_layers};
}

static struct plan describe(const struct plan_request *request)
{
    return (struct plan){.model       = request->model,
                         .mesh        = request->mesh,
                         .train       = request->train,
                         .precision   = request->precision,
                         .rank        = request->rank,
                         .assignment  = plan_assignment(request),
                         .is_unplaced = request->is_unplaced,
                         .is_zero     = request->parallel.zero > 0 && !mesh_is_sharded(&request->mesh),
                         .context     = (enum context)request->parallel.context};
}

status plan_check_layout(const struct plan_request *request)
{
    struct schedule_assignment assignment = plan_assignment(request);
    TRY(schedule_check(&assignment));
    int64_t tokens = request->train.micro_batch * request->train.sequence / request->mesh.size[AXIS_CP];
    FAIL_IF(request->parallel.sequence_parallel && tokens % request->mesh.size[AXIS_TP] != 0,
            "[parallel] tp = %lld does not divide the %lld tokens that sequence_parallel shards ([train] micro_batch x "
            "sequence / [parallel] cp): change one of them, or set sequence_parallel = no",
            (long long)request->mesh.size[AXIS_TP], (long long)tokens);
    return OK;
}

static int32_t declare_ids(struct builder *builder, const char *name)
{
    return assembly_tensor(&builder->assembly, name, STORAGE_INPUT, FORMAT_I32, DIMS(builder->tokens));
}

static void declare_inputs(struct builder *builder)
{
    struct plan *plan         = builder->plan;
    int64_t      microbatches = plan->train.accumulation;
    int64_t      targets      = microbatches * (1 + plan->model.predicted_tokens);
    int64_t      pairs        = model_rotary_width(&plan->model) / 2;
    int64_t      stage        = pipeline_stage(plan);
    bool         is_last      = stage == plan->mesh.size[AXIS_PP] - 1;

    plan->tokens  = arena_allocate(&plan->arena, (size_t)microbatches * sizeof(*plan->tokens));
    plan->targets = arena_allocate(&plan->arena, (size_t)targets * sizeof(*plan->targets));
    for (int64_t m = 0; m < microbatches; m++) {
        builder->assembly.tag.microbatch = (int32_t)m;
        plan->tokens[m]                  = stage == 0 ? declare_ids(builder, "tokens") : -1;
    }
    for (int64_t m = 0; m < targets; m++) {
        int64_t further                  = m / microbatches;
        builder->assembly.tag.microbatch = (int32_t)(m % microbatches);
        builder->assembly.tag.layer      = (int16_t)(further > 0 ? plan->model.layers + further - 1 : -1);
        plan->targets[m]                 = is_last ? declare_ids(builder, "targets") : -1;
    }
    builder->assembly.tag.layer      = -1;
    builder->assembly.tag.microbatch = -1;
    bool has_positions               = stage == 0 && plan->model.positions == POSITIONS_LEARNED;
    plan->positions  = has_positions ? assembly_tensor(&builder->assembly, "positions", STORAGE_INPUT, FORMAT_I32,
                                                       DIMS(builder->shard_tokens))
                                     : -1;
    plan->rope_table = assembly_tensor(&builder->assembly, "rope table", STORAGE_INPUT, FORMAT_F32,
                                       DIMS(builder->sequence, pairs > 0 ? pairs : 1, 2));
    plan->hyper = assembly_tensor(&builder->assembly, "hyperparameters", STORAGE_INPUT, FORMAT_F32, DIMS(HYPER_COUNT));
    plan->loss  = assembly_tensor(&builder->assembly, "loss", STORAGE_RESULT, FORMAT_F32, DIMS(1));
    plan->prediction_loss =
        plan->model.predicted_tokens == 0
            ? -1
            : assembly_tensor(&builder->assembly, "loss of further tokens", STORAGE_RESULT, FORMAT_F32, DIMS(1));
    plan->gradient_norm = assembly_tensor(&builder->assembly, "gradient norm", STORAGE_RESULT, FORMAT_F32, DIMS(1));
    plan->clip_scale    = assembly_tensor(&builder->assembly, "clip scale", STORAGE_RESULT, FORMAT_F32, DIMS(1));
    plan->routing = plan->router_bias = -1;
    if (builder->expert_layers > 0) {
        plan->routing = assembly_tensor(&builder->assembly, "routing", STORAGE_RESULT, FORMAT_F32,
                                        DIMS(builder->expert_layers, plan->model.experts + 2));
        assembly_set_part(&builder->assembly, PART_STEP);
        assembly_clear(&builder->assembly, "routing", plan->routing);    // every microbatch adds to it
        if (plan->model.router_bias_rate > 0) {
            plan->router_bias = assembly_tensor(&builder->assembly, "biases of routers", STORAGE_OPTIMIZER, FORMAT_F32,
                                                DIMS(builder->expert_layers, plan->model.experts));
        }
    }
}

// Checks that rows and columns of every NVFP4 matrix are multiples of 16: it has a scale per block of 16 numbers, and
// its Hadamard transform multiplies 16 numbers.
static status check_nv_sizes(const struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct quantize_shape *shape = &plan->ops[i].shape.quantize;
        FAIL_IF(plan->ops[i].kind == OP_QUANTIZE && scaling_is_nv((enum scaling)shape->scaling) &&
                    (shape->rows % SCALING_NV_BLOCK != 0 || shape->columns % SCALING_NV_BLOCK != 0),
                "[precision] compute = fp4: \"%s\" has %" PRId64 " x %" PRId64
                " numbers per rank, which must be multiples of %d: change train.sequence, the model or its layout, or "
                "use precision.compute = bf16",
                plan->ops[i].tag.role, shape->rows, shape->columns, SCALING_NV_BLOCK);
    }
    return OK;
}

status plan_build(struct plan *plan, const struct plan_request *request)
{
    *plan = describe(request);
    TRY(plan_supports(request));
    TRY(plan_check_layout(request));
    FAIL_IF(request->rank < 0 || request->rank >= plan->mesh.world, "rank %lld is outside 0..%lld",
            (long long)request->rank, (long long)plan->mesh.world - 1);
    int64_t        sequence = plan->train.sequence / plan->mesh.size[AXIS_CP];
    int64_t        tp       = plan->mesh.size[AXIS_TP];
    struct builder builder  = {.plan             = plan,
                               .tokens           = plan->train.micro_batch * sequence,
                               .sequence         = sequence,
                               .overlaps         = request->parallel.tp_overlap != 0 && tp > 1,
                               .overlaps_experts = request->parallel.tp_overlap_experts != 0,
                               .heads            = plan->model.heads / tp,
                               .kv_heads         = plan->mesh.head_copies > 0 ? 1 : plan->model.kv_heads / tp,
                               .key_dim          = model_key_dim(&plan->model),
                               .value_dim        = model_value_dim(&plan->model),
                               .prefetch         = request->parallel.prefetch,
                               .reshard          = request->parallel.reshard,
                               .gathers_forward  = request->parallel.zero_gather == ZERO_GATHER_FORWARD,
                               // With one microbatch, reducing per microbatch equals reducing per step.
                               .reduces_each = request->parallel.gradient_reduce == GRADIENT_REDUCE_MICROBATCH &&
                                               request->train.accumulation > 1,
                               .deferral = plan->mesh.size[AXIS_PP] > 1 ? request->parallel.deferred_head_gradients : 0,
                               .reduces  = {-1, -1}};
    builder.shard_tokens    = request->parallel.sequence_parallel ? builder.tokens / tp : builder.tokens;
    assembly_begin(&builder.assembly, plan);
    block_describe_all(&builder);
    if (builder.expert_layers > 0) {
        builder.routing = experts_routing(&builder);
    }

    scales_declare(&builder);
    weights_declare(&builder);
    declare_inputs(&builder);
    pipeline_append(&builder);
    optimizer_append(&builder);
    quantize_drop_unread(&builder);
    assembly_finish(&builder.assembly);
    arena_free(&builder.scratch);
    return check_nv_sizes(plan);
}

status plan_build_stage(struct plan *plan, const struct plan_request *request, int64_t stage)
{
    struct plan_request first = *request;
    first.rank                = mesh_rank(&request->mesh, (const int64_t[AXIS_COUNT]){[AXIS_PP] = stage});
    return plan_build(plan, &first);
}

void plan_declare(struct plan *declared, const struct plan *plan, int64_t rank)
{
    struct builder builder = {.plan = declared};
    assembly_begin(&builder.assembly, declared);
    *declared = (struct plan){.model       = plan->model,
                              .mesh        = plan->mesh,
                              .train       = plan->train,
                              .precision   = plan->precision,
                              .rank        = rank,
                              .is_zero     = plan->is_zero,
                              .assignment  = plan->assignment,
                              .router_bias = -1};
    block_describe_all(&builder);
    scales_declare(&builder);
    weights_declare(&builder);
    assembly_free(&builder.assembly);
    arena_free(&builder.scratch);
}
