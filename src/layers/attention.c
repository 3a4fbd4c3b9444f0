// SPDX-License-Identifier: MIT
// Defines the layer kinds of attention, with and without a sliding window: qkv projection, optional norm of query and
// key heads, RoPE, core attention, output projection. context.c has core attention under context parallelism.
#include "attention.h"

#include <inttypes.h>
#include <math.h>

#include "gswbench/linear.h"

enum { LINEAR_QKV, LINEAR_PROJECTION, LINEARS };

// Tensors in the exported model, with the random streams of their initial values.
static const struct exported exported_q          = {"model.layers.%d.self_attn.q_proj.weight", 6};
static const struct exported exported_k          = {"model.layers.%d.self_attn.k_proj.weight", 7};
static const struct exported exported_v          = {"model.layers.%d.self_attn.v_proj.weight", 8};
static const struct exported exported_projection = {"model.layers.%d.self_attn.o_proj.weight", 9};
static const struct exported exported_q_bias     = {"model.layers.%d.self_attn.q_proj.bias", 21};
static const struct exported exported_k_bias     = {"model.layers.%d.self_attn.k_proj.bias", 22};
static const struct exported exported_v_bias     = {"model.layers.%d.self_attn.v_proj.bias", 23};
static const struct exported exported_out_bias   = {"model.layers.%d.self_attn.o_proj.bias", 24};
static const struct exported exported_sinks      = {"model.layers.%d.self_attn.sinks", 25};
static const struct exported exported_q_norm     = {"model.layers.%d.self_attn.q_norm.weight", 16};
static const struct exported exported_k_norm     = {"model.layers.%d.self_attn.k_norm.weight", 17};

// The LoRA adapters of q, k and v share one matrix A, because they have the same input; each has its own B. All B start
// at zero, so no random stream is drawn for them.
static const struct exported exported_qkv_a = {"model.layers.%d.self_attn.qkv_proj.lora_A.weight", 0};
static const struct exported exported_q_b   = {"model.layers.%d.self_attn.q_proj.lora_B.weight", ADAPTER_NOT_DRAWN};
static const struct exported exported_k_b   = {"model.layers.%d.self_attn.k_proj.lora_B.weight", ADAPTER_NOT_DRAWN};
static const struct exported exported_v_b   = {"model.layers.%d.self_attn.v_proj.lora_B.weight", ADAPTER_NOT_DRAWN};
static const struct exported exported_projection_a = {"model.layers.%d.self_attn.o_proj.lora_A.weight", 1};
static const struct exported exported_projection_b = {"model.layers.%d.self_attn.o_proj.lora_B.weight",
                                                      ADAPTER_NOT_DRAWN};

static const struct adapter_names qkv_adapter = {
    {"qkv adapter A", "qkv adapter B"}, &exported_qkv_a, {&exported_q_b, &exported_k_b, &exported_v_b}};
static const struct adapter_names projection_adapter = {
    {"projection adapter A", "projection adapter B"}, &exported_projection_a, {&exported_projection_b}};

int64_t attention_projection_adapter(const struct model_config *model, int64_t in)
{
    return model_adapter(model, LINEAR_KIND_PROJECTION, in, model->hidden);
}

void attention_adapt_projection(struct declarations *declarations)
{
    declare_adapter(declarations, &projection_adapter);
}

static struct layer_count count(const struct model_config *model)
{
    int64_t matrices = model->hidden * 2 * (model_query_width(model) + model_kv_width(model));
    int64_t vectors  = model->qk_norm ? 2 * model->head_dim : 0;
    vectors += model->attention_sinks ? model->heads : 0;
    vectors += model->attention_bias ? model_query_width(model) + 2 * model_kv_width(model) + model->hidden : 0;
    int64_t adapters =
        attention_projection_adapter(model, model_query_width(model)) +
        model_adapter(model, LINEAR_KIND_QKV, model->hidden, model_query_width(model) + 2 * model_kv_width(model));
    return (struct layer_count){.parameters = matrices + vectors + adapters,
                                .active     = matrices + vectors + adapters,
                                .multiplied = matrices,
                                .attended   = 2 * model_query_width(model),
                                .linears    = LINEARS,
                                .adapters   = adapters};
}

static struct layer_count count_windowed(const struct model_config *model)
{
    struct layer_count counted = count(model);
    counted.windowed           = counted.attended;
    counted.attended           = 0;
    return counted;
}

static void check(const struct model_config *model, status *errors)
{
    if (model->kv_rank > 0) {
        status_add(errors, fail("[model] pattern = %s mixes attention and latent attention, which this version does "
                                "not support: remove attention from pattern, or kv_rank",
                                model->pattern));
        return;    // latent attention has other head sizes, so the checks below do not apply
    }
    status_add_if(errors, model->heads % model->kv_heads != 0,
                  "[model] kv_heads = %" PRId64 " does not divide heads = %" PRId64, model->kv_heads, model->heads);
    double rotary = (double)model->head_dim * model->rope_fraction;
    status_add_if(errors,
                  model->positions == POSITIONS_ROTARY &&
                      (rotary != (double)model_rotary_width(model) || model_rotary_width(model) % 2 != 0),
                  "[model] rope_fraction = %g of head_dim = %" PRId64 " is %g elements, not an even number",
                  model->rope_fraction, model->head_dim, rotary);
}

static void check_windowed(const struct model_config *model, status *errors)
{
    check(model, errors);
    status_add_if(
        errors, model->window == 0,
        "[model] pattern = %s has window_attention, which needs a window: set window to a number of positions",
        model->pattern);
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    int64_t                    h = model->hidden, q = model_query_width(model);

    struct declaration *qkv =
        declare_linear(declarations, &weights[WEIGHT_QKV], "qkv weight", LINEAR_KIND_QKV, LINEAR_QKV);
    declare_rows(declarations, qkv, &exported_q, q, h);
    declare_key_value_rows(declarations, qkv, &exported_k);
    declare_key_value_rows(declarations, qkv, &exported_v);
    if (model->attention_bias) {
        declare_bias(declarations, "qkv bias",
                     (const struct exported *const[]){&exported_q_bias, &exported_k_bias, &exported_v_bias});
    }
    declare_adapter(declarations, &qkv_adapter);
    struct declaration *projection = declare_linear(declarations, &weights[WEIGHT_PROJECTION], "projection weight",
                                                    LINEAR_KIND_PROJECTION, LINEAR_PROJECTION);
    declare_columns(declarations, projection, &exported_projection, h, q);
    if (model->attention_bias) {
        declare_bias(declarations, "projection bias", (const struct exported *const[]){&exported_out_bias});
    }
    attention_adapt_projection(declarations);
    if (model->qk_norm) {
        declare_head_scales(declarations, &weights[WEIGHT_HEAD_NORM], "q and k norm",
                            (const struct exported *const[]){&exported_q_norm, &exported_k_norm}, 2);
    }
    if (model->attention_sinks) {
        declare_sharded_vector(declarations, &weights[WEIGHT_SINKS], "sinks", &exported_sinks, model->heads);
    }
}

int32_t attention_new_query(struct builder *builder, const char *name, int64_t tokens)
{
    return assembly_activation(&builder->assembly, name, DIMS(tokens, builder->heads, builder->key_dim));
}

int32_t attention_new_out(struct builder *builder, const char *name, int64_t tokens)
{
    int32_t out = assembly_activation(&builder->assembly, name, DIMS(tokens, builder->heads, builder->value_dim));

    builder->plan->tensors[out].holds = TENSOR_ATTENTION;
    return out;
}

int32_t attention_new_key_value(struct builder *builder, const char *name, int64_t tokens)
{
    return assembly_activation(&builder->assembly, name,
                               DIMS(tokens, builder->kv_heads * (builder->key_dim + builder->value_dim)));
}

static void append_qkv(struct sublayer *sublayer)
{
    sublayer->values->tensor[VALUE_QKV] =
        tp_gather_linear(sublayer->builder, &(struct linear){.role = "qkv", .weight = sublayer->weights[WEIGHT_QKV]},
                         "qkv input", sublayer->values->tensor[VALUE_N], NULL);
}

// Returns a RoPE op. If the model has qk_norm, the op also normalises the heads of q and k.
static struct op rope_op(const struct sublayer *sublayer, enum op_kind kind, const char *role)
{
    const struct plan *plan  = sublayer->builder->plan;
    int32_t            scale = sublayer->weights[WEIGHT_HEAD_NORM];
    struct op          op    = attention_op(sublayer->builder, kind, role);
    assembly_operand(&op, ROPE_TABLE, plan->rope_table);
    if (scale >= 0) {
        op.shape.attention.epsilon = (float)plan->model.norm_epsilon;
        assembly_operand(&op, ROPE_SCALE, plan->weights[scale].tensor);
    }
    return op;
}

static void append_rope(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    struct op       op      = rope_op(sublayer, OP_ROPE_FORWARD, "rope");
    int32_t         q       = attention_new_query(builder, "q", builder->tokens);
    int32_t         kv      = attention_new_key_value(builder, "kv", builder->tokens);

    builder->plan->tensors[q].holds  = TENSOR_QUERIES;
    builder->plan->tensors[kv].holds = TENSOR_KEYS;
    assembly_append_with(
        &builder->assembly, &op,
        SLOTS({ROPE_PACKED, sublayer->values->tensor[VALUE_QKV]}, {ROPE_QUERY, q}, {ROPE_KEY_VALUE, kv}));
    bool is_ulysses = context_is_ulysses(builder);
    assembly_set_part(&builder->assembly, PART_QUERIES);
    sublayer->values->tensor[VALUE_Q] = is_ulysses ? context_to_heads(builder, "q exchange", q, QUERY_PIECES) : q;
    assembly_set_part(&builder->assembly, PART_KEYS);
    sublayer->values->tensor[VALUE_KV] =
        is_ulysses ? context_to_heads(builder, "kv exchange", kv, KEY_VALUE_PIECES) : kv;
}

// Attention sinks are separate ops after attention. They rescale the output and increase the log-sum-exp. The backward
// pass of attention uses only these two results of the forward pass, so sinks do not change it.

// With cp, a rank has two chunks of each sequence (the runs of context.c). The op treats each chunk as a sequence of
// the batch.
static struct op sink_op(const struct sublayer *sublayer, enum op_kind kind, const char *role)
{
    const struct builder *builder = sublayer->builder;
    struct op             op      = attention_op(builder, kind, role);
    if (builder->plan->mesh.size[AXIS_CP] > 1) {
        op.shape.attention.batch    = context_runs(builder);
        op.shape.attention.sequence = builder->sequence / HALVES;
    }
    return op;
}

static void sink_forward(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         sinks   = sublayer->weights[WEIGHT_SINKS];
    if (sinks < 0) {
        return;
    }
    struct op op = sink_op(sublayer, OP_SINK_FORWARD, "sinks");
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({SINK_SINKS, builder->plan->weights[sinks].tensor}, {SINK_OUT, values[VALUE_O]},
                               {SINK_STATISTICS, values[VALUE_LSE]}));
}

static void sink_backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         sinks   = sublayer->weights[WEIGHT_SINKS];
    if (sinks < 0 || weight_is_frozen(builder, sinks)) {
        return;
    }
    struct op op   = sink_op(sublayer, OP_SINK_BACKWARD, "sinks gradient");
    op.accumulates = gradient_accumulates(builder, sinks);
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({SINK_GRADIENT_SINKS_IN, builder->plan->weights[sinks].tensor},
                               {SINK_GRADIENT_OUT, gradient}, {SINK_GRADIENT_OUT_IN, values[VALUE_O]},
                               {SINK_GRADIENT_STATISTICS, values[VALUE_LSE]},
                               {SINK_GRADIENT_SINKS, builder->plan->weights[sinks].gradient}));
}

static void append_core(struct sublayer *sublayer)
{
    struct builder            *builder = sublayer->builder;
    const struct train_config *train   = &builder->plan->train;
    if (builder->plan->mesh.size[AXIS_CP] > 1) {
        context_attention(sublayer);
        return;
    }
    struct op op  = attention_op(builder, OP_ATTENTION_FORWARD, "attention");
    int32_t   out = attention_new_out(builder, "attention", builder->tokens);
    int32_t   lse = assembly_tensor(&builder->assembly, "attention statistics", STORAGE_ACTIVATION, FORMAT_F32,
                                    DIMS(train->micro_batch, builder->heads, builder->sequence));

    builder->plan->tensors[lse].holds = TENSOR_STATISTICS;
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({ATTENTION_QUERY, sublayer->values->tensor[VALUE_Q]},
                               {ATTENTION_KEY_VALUE, sublayer->values->tensor[VALUE_KV]}, {ATTENTION_OUT, out},
                               {ATTENTION_STATISTICS, lse}));
    sublayer->values->tensor[VALUE_O]   = out;
    sublayer->values->tensor[VALUE_LSE] = lse;
}

void attention_append(struct sublayer *sublayer)
{
    append_core(sublayer);
    sink_forward(sublayer);
}

void attention_append_projection(struct sublayer *sublayer)
{
    sublayer->values->tensor[VALUE_OUT] = tp_linear_reduce(
        sublayer->builder, &(struct linear){.role = "projection", .weight = sublayer->weights[WEIGHT_PROJECTION]},
        "projection output", sublayer->values->tensor[VALUE_O], -1);
}

static void core_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv)
{
    const struct sublayer_values *values = sublayer->values;
    struct op                     core   = attention_op(sublayer->builder, OP_ATTENTION_BACKWARD, "attention gradient");
    if (sublayer->builder->plan->mesh.size[AXIS_CP] > 1) {
        context_attention_backward(sublayer, gradient, dq, dkv);
        return;
    }
    assembly_append_with(&sublayer->builder->assembly, &core,
                         SLOTS({ATTENTION_GRADIENT_OUT, gradient},
                               {ATTENTION_GRADIENT_QUERY_IN, values->tensor[VALUE_Q]},
                               {ATTENTION_GRADIENT_KEY_VALUE_IN, values->tensor[VALUE_KV]},
                               {ATTENTION_GRADIENT_OUT_IN, values->tensor[VALUE_O]},
                               {ATTENTION_GRADIENT_STATISTICS, values->tensor[VALUE_LSE]},
                               {ATTENTION_GRADIENT_QUERY, dq}, {ATTENTION_GRADIENT_KEY_VALUE, dkv}));
}

int32_t attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t *dkv)
{
    static const struct rows_roles roles   = {"projection output gradient", "projection data gradient",
                                              "projection weight gradient"};
    struct builder                *builder = sublayer->builder;
    // Whether no weight before the projection is trained.
    bool is_first_trained = sublayer->is_first_trained && !adapter_exists(builder, sublayer->weights[WEIGHT_QKV]);
    assembly_set_part(&builder->assembly, PART_PROJECTION);
    int32_t d_out = rows_backward(builder, &roles, gradient, sublayer->values->tensor[VALUE_O],
                                  sublayer->weights[WEIGHT_PROJECTION], is_first_trained);
    if (is_first_trained) {
        return -1;
    }
    int32_t dq = attention_new_query(builder, "q gradient", builder->tokens);
    *dkv       = attention_new_key_value(builder, "kv gradient", builder->tokens);
    assembly_set_part(&builder->assembly, PART_CORE_ATTENTION);
    core_backward(sublayer, d_out, dq, *dkv);
    assembly_set_part(&builder->assembly, PART_CORE_ATTENTION);    // with cp, core_backward sets other parts
    sink_backward(sublayer, d_out);
    return dq;
}

// Returns the gradient of the qkv GEMM's output: the gradients of q, k and v before RoPE.
static int32_t rope_backward(struct sublayer *sublayer, int32_t dq, int32_t dkv)
{
    struct builder *builder = sublayer->builder;
    assembly_set_part(&builder->assembly, PART_ROPE);
    struct op rope             = rope_op(sublayer, OP_ROPE_BACKWARD, "rope gradient");
    int32_t   scale            = sublayer->weights[WEIGHT_HEAD_NORM];
    bool      is_scale_trained = scale >= 0 && !weight_is_frozen(builder, scale);
    int32_t   dqkv             = assembly_activation(
                      &builder->assembly, "qkv gradient",
                      DIMS(builder->tokens, (builder->heads + 2 * builder->kv_heads) * builder->plan->model.head_dim));
    rope.accumulates = is_scale_trained && gradient_accumulates(builder, scale);
    assembly_append_with(&builder->assembly, &rope,
                         SLOTS({ROPE_PACKED, dqkv}, {ROPE_QUERY, dq}, {ROPE_KEY_VALUE, dkv},
                               {ROPE_PACKED_IN, scale >= 0 ? sublayer->values->tensor[VALUE_QKV] : -1},
                               {ROPE_SCALE_GRADIENT, is_scale_trained ? builder->plan->weights[scale].gradient : -1}));
    return dqkv;
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    static const struct columns_roles roles = {"qkv input again", "qkv data gradient", "qkv input gradient",
                                               "qkv weight gradient"};
    int32_t                           dkv, dq = attention_backward(sublayer, gradient, &dkv);
    if (dq < 0) {
        return -1;
    }
    int32_t dqkv = rope_backward(sublayer, dq, dkv);
    assembly_set_part(&sublayer->builder->assembly, PART_QKV);
    return columns_backward(sublayer->builder, &roles, dqkv, sublayer->values->tensor[VALUE_N],
                            sublayer->weights[WEIGHT_QKV], sublayer->is_first_trained);
}

const struct norm_names attention_norm =
    NORM_NAMES(PART_ATTENTION_NORM, "attention norm", "norm1", "layers.%d.input_layernorm", 4);

enum { CORE_MAKES = BIT(VALUE_O) | BIT(VALUE_LSE) | BIT(VALUE_HEADS_O) };

// clang-format off
static const struct forward_step steps[] = {
    // append,                     part,                reads,                        makes,                        saved_as,                modules
    { append_qkv,                  PART_QKV,            BIT(VALUE_N),                 BIT(VALUE_QKV),               1u << OUTPUT_QKV,        0 },
    { append_rope,                 PART_ROPE,           BIT(VALUE_QKV),               BIT(VALUE_Q) | BIT(VALUE_KV), 1u << OUTPUT_QKV,        0 },
    { attention_append,            PART_CORE_ATTENTION, BIT(VALUE_Q) | BIT(VALUE_KV), CORE_MAKES,                   1u << OUTPUT_ATTENTION,  1u << MODULE_CORE_ATTENTION },
    { attention_append_projection, PART_PROJECTION,     BIT(VALUE_O),                 BIT(VALUE_OUT),               1u << OUTPUT_PROJECTION, 0 },
    { .append = NULL },
};
// clang-format on

// With qk_norm, the backward pass of the head norms reads their input, which is the output of the qkv GEMM.
static uint32_t needed_also(const struct model_config *model)
{
    return model->qk_norm ? BIT(VALUE_QKV) : 0;
}

enum { NEEDED = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_Q) | BIT(VALUE_KV) | CORE_MAKES };

// clang-format off
#define ATTENTION_KIND(kind, count_layer, check_layer) \
    { \
        .name = kind, .norm = &attention_norm, .declare = declare, .steps = steps, .needed = NEEDED, \
        .inputs = {[LINEAR_KIND_QKV] = BIT(VALUE_N), [LINEAR_KIND_PROJECTION] = BIT(VALUE_O)}, \
        .needed_also = needed_also, .backward = {backward}, .count = count_layer, .check = check_layer \
    }
const struct layer_kind attention_kind        = ATTENTION_KIND("attention", count, check);
const struct layer_kind window_attention_kind = ATTENTION_KIND("window_attention", count_windowed, check_windowed);
// clang-format on

// Returns the sliding window of the current layer's attention, or 0 if it has none.
static int64_t window_of(const struct builder *builder)
{
    const struct block *block = &builder->blocks[block_place(&builder->plan->model, builder->assembly.tag.layer)];
    for (int32_t i = 0; i < block->count; i++) {
        if (block->kinds[i] == &window_attention_kind) {
            return builder->plan->model.window;
        }
    }
    return 0;
}

// Sets the ALiBi slopes. They depend on the number of heads in the model (sloped_heads) and on a head's index in it;
// first_head is the index of this tp rank's first head.
static void set_alibi_slopes(const struct builder *builder, struct attention_shape *shape)
{
    const struct plan *plan = builder->plan;
    if (plan->model.positions == POSITIONS_ALIBI) {
        shape->sloped_heads = plan->model.heads;
        shape->first_head   = mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_TP) * builder->heads;
    }
}

struct op attention_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    const struct plan         *plan     = builder->plan;
    const struct model_config *model    = &plan->model;
    struct op                  op       = assembly_op(&builder->assembly, kind, role);
    bool                       is_equal = builder->value_dim == builder->key_dim;

    op.shape.attention = (struct attention_shape){.batch     = plan->train.micro_batch,
                                                  .sequence  = builder->sequence,
                                                  .heads     = builder->heads,
                                                  .kv_heads  = builder->kv_heads,
                                                  .head_dim  = builder->key_dim,
                                                  .rotary    = model_rotary_width(model),
                                                  .scale     = (float)(1.0 / sqrt((double)builder->key_dim)),
                                                  .causal    = true,
                                                  .value_dim = is_equal ? 0 : builder->value_dim};
    if (kind == OP_ATTENTION_FORWARD || kind == OP_ATTENTION_BACKWARD) {
        op.shape.attention.window = window_of(builder);
        set_alibi_slopes(builder, &op.shape.attention);
    }
    return op;
}
