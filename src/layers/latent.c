// SPDX-License-Identifier: MIT
// Defines the layer kind of latent attention (MLA). Down projections, replicated over tp, compress queries, keys and
// values of this rank's part of the residual stream. The compressed tensors (latents) are normalised, all-gathered over
// tp, and projected up to this rank's heads. All heads share one rotated key part, which is computed with the
// compressed keys and values. Core attention is in attention.c. tokens: tokens of a microbatch on this rank;
// shard_tokens: its tokens in the residual stream, tokens / tp with sequence parallelism.
#include <inttypes.h>

#include "gswbench/linear.h"
#include "attention.h"

enum {
    WEIGHT_KV_DOWN = WEIGHT_ATTENTION_END,
    WEIGHT_KV_NORM,
    WEIGHT_KV_UP,
    WEIGHT_Q_DOWN,    // WEIGHT_Q_DOWN, WEIGHT_Q_NORM: -1 if queries are not compressed
    WEIGHT_Q_NORM,
    WEIGHT_Q_UP,
};
enum { LINEAR_KV_DOWN, LINEAR_KV_UP, LINEAR_Q_UP, LINEAR_PROJECTION, LINEAR_Q_DOWN };
enum {
    VALUE_KV_DOWN = VALUE_ATTENTION_END,    // compressed keys and values [shard_tokens, kv_rank]
    VALUE_KEY_ROPE,                         // key part that all heads share, before RoPE [shard_tokens, rope_dim]
    VALUE_KV_STATISTICS,                    // mean and 1 / deviation of the latent's norm [shard_tokens, 2]
    VALUE_KV_LATENT,                        // normalised latent [shard_tokens, kv_rank]
    VALUE_Q_DOWN,                           // VALUE_Q_*: the same tensors for queries; -1 if queries are not compressed
    VALUE_Q_STATISTICS,
    VALUE_Q_LATENT,
    VALUE_KV_UP,    // [tokens, heads (head_dim + value_dim)]
    VALUE_Q_UP,     // [tokens, heads key_dim]
};

// Tensors in the exported model, with the random streams of their initial values.
static const struct exported exported_q          = {"model.layers.%d.self_attn.q_proj.weight", 32};
static const struct exported exported_q_down     = {"model.layers.%d.self_attn.q_a_proj.weight", 33};
static const struct exported exported_q_norm     = {"model.layers.%d.self_attn.q_a_layernorm.weight", 34};
static const struct exported exported_q_up       = {"model.layers.%d.self_attn.q_b_proj.weight", 35};
static const struct exported exported_kv_down    = {"model.layers.%d.self_attn.kv_a_proj_with_mqa.weight", 36};
static const struct exported exported_kv_norm    = {"model.layers.%d.self_attn.kv_a_layernorm.weight", 37};
static const struct exported exported_kv_up      = {"model.layers.%d.self_attn.kv_b_proj.weight", 38};
static const struct exported exported_projection = {"model.layers.%d.self_attn.o_proj.weight", 39};

static struct layer_count count(const struct model_config *model)
{
    int64_t h = model->hidden, heads = model->heads, value = model_value_dim(model);
    int64_t q        = heads * model_key_dim(model);
    int64_t queries  = model->q_rank > 0 ? model->q_rank * (h + q) : h * q;
    int64_t pairs    = h * (model->kv_rank + model->rope_dim) + model->kv_rank * heads * (model->head_dim + value);
    int64_t matrices = queries + pairs + heads * value * h;
    int64_t adapters = attention_projection_adapter(model, heads * value);
    return (struct layer_count){.parameters = matrices + model->q_rank + model->kv_rank + adapters,
                                .active     = matrices + model->q_rank + model->kv_rank + adapters,
                                .multiplied = matrices,
                                .attended   = q + heads * value,
                                .linears    = LINEAR_Q_DOWN + (model->q_rank > 0),
                                .adapters   = adapters};
}

static void check(const struct model_config *model, status *errors)
{
    status_add_if(errors, model->kv_rank == 0 || model->rope_dim == 0 || model->rope_dim % 2 != 0,
                  "[model] kv_rank = %" PRId64 " and rope_dim = %" PRId64
                  ": latent attention needs kv_rank > 0 and an even rope_dim > 0",
                  model->kv_rank, model->rope_dim);
    status_add_if(errors, model->kv_heads != model->heads,
                  "[model] kv_heads = %" PRId64 ": latent attention needs kv_heads = heads = %" PRId64, model->kv_heads,
                  model->heads);
    status_add_if(errors, model->attention_sinks || model->attention_bias,
                  "[model] latent attention does not support attention_sinks and attention_bias: set both to no");
    status_add_if(errors, model->qk_norm != 0,
                  "[model] qk_norm = yes: latent attention does not support it: set qk_norm = no");
    status_add_if(errors, model->rope_fraction != 1.0,
                  "[model] rope_fraction = %g: latent attention uses rope_dim instead: leave rope_fraction out",
                  model->rope_fraction);
    status_add_if(errors, model->norm != NORM_RMS, "[model] norm: latent attention needs norm = rmsnorm");
}

static struct declaration *declare_down(struct declarations *declarations, int32_t *index, const char *name,
                                        int64_t linear)
{
    struct declaration *down = declare_linear(declarations, index, name, LINEAR_KIND_QKV, linear);
    down->is_replicated      = true;
    return down;
}

static void declare_queries(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model    = &declarations->builder->plan->model;
    bool                       has_down = model->q_rank > 0;
    if (has_down) {
        struct declaration *down = declare_down(declarations, &weights[WEIGHT_Q_DOWN], "q down weight", LINEAR_Q_DOWN);
        declare_rows(declarations, down, &exported_q_down, model->q_rank, model->hidden);
        declare_vector(declarations, &weights[WEIGHT_Q_NORM], "q latent norm", &exported_q_norm, model->q_rank, 1.0f);
    }
    struct declaration *up =
        declare_linear(declarations, &weights[WEIGHT_Q_UP], "q up weight", LINEAR_KIND_QKV, LINEAR_Q_UP);
    declare_rows(declarations, up, has_down ? &exported_q_up : &exported_q, model->heads * model_key_dim(model),
                 has_down ? model->q_rank : model->hidden);
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    int64_t                    value = model_value_dim(model);

    declare_queries(declarations, weights);
    struct declaration *down = declare_down(declarations, &weights[WEIGHT_KV_DOWN], "kv down weight", LINEAR_KV_DOWN);
    declare_rows(declarations, down, &exported_kv_down, model->kv_rank + model->rope_dim, model->hidden);
    declare_vector(declarations, &weights[WEIGHT_KV_NORM], "kv latent norm", &exported_kv_norm, model->kv_rank, 1.0f);
    struct declaration *up =
        declare_linear(declarations, &weights[WEIGHT_KV_UP], "kv up weight", LINEAR_KIND_QKV, LINEAR_KV_UP);
    declare_rows(declarations, up, &exported_kv_up, model->heads * (model->head_dim + value), model->kv_rank);
    struct declaration *projection = declare_linear(declarations, &weights[WEIGHT_PROJECTION], "projection weight",
                                                    LINEAR_KIND_PROJECTION, LINEAR_PROJECTION);
    declare_columns(declarations, projection, &exported_projection, model->hidden, model->heads * value);
    attention_adapt_projection(declarations);
}

static bool compresses_queries(const struct sublayer *sublayer)
{
    return sublayer->weights[WEIGHT_Q_DOWN] >= 0;
}

static void append_down(struct sublayer *sublayer)
{
    struct builder            *builder = sublayer->builder;
    const struct model_config *model   = &builder->plan->model;
    int32_t                   *values  = sublayer->values->tensor;
    int64_t                    rows    = builder->shard_tokens;
    if (compresses_queries(sublayer)) {
        assembly_set_part(&builder->assembly, PART_Q_DOWN);
        values[VALUE_Q_DOWN] = linear_forward(builder, "q down", values[VALUE_N], sublayer->weights[WEIGHT_Q_DOWN]);
    }
    assembly_set_part(&builder->assembly, PART_KV_DOWN);
    int32_t down           = linear_forward(builder, "kv down", values[VALUE_N], sublayer->weights[WEIGHT_KV_DOWN]);
    values[VALUE_KV_DOWN]  = assembly_activation(&builder->assembly, "compressed kv", DIMS(rows, model->kv_rank));
    values[VALUE_KEY_ROPE] = assembly_activation(&builder->assembly, "shared key", DIMS(rows, model->rope_dim));
    columns_split(builder, "kv split", down, values[VALUE_KV_DOWN], values[VALUE_KEY_ROPE]);
}

enum latent { LATENT_KV, LATENT_Q };

static struct norm_values norm_of(const struct sublayer *sublayer, enum latent latent)
{
    bool           is_query = latent == LATENT_Q;
    const int32_t *values   = sublayer->values->tensor;
    int            first    = is_query ? VALUE_Q_DOWN : VALUE_KV_DOWN;
    return (struct norm_values){.x          = values[first],
                                .branch     = -1,
                                .weight     = sublayer->weights[is_query ? WEIGHT_Q_NORM : WEIGHT_KV_NORM],
                                .bias       = -1,
                                .sum        = values[first],
                                .out        = values[is_query ? VALUE_Q_LATENT : VALUE_KV_LATENT],
                                .statistics = values[is_query ? VALUE_Q_STATISTICS : VALUE_KV_STATISTICS],
                                .epsilon    = sublayer->builder->plan->model.latent_norm_epsilon};
}

static void append_norms(struct sublayer *sublayer)
{
    int32_t           *values = sublayer->values->tensor;
    struct norm_values norm   = norm_of(sublayer, LATENT_KV);
    norm_forward(sublayer->builder, "kv latent norm", &norm);
    values[VALUE_KV_LATENT]     = norm.out;
    values[VALUE_KV_STATISTICS] = norm.statistics;
    if (compresses_queries(sublayer)) {
        norm = norm_of(sublayer, LATENT_Q);
        assembly_set_part(&sublayer->builder->assembly, PART_Q_NORM);
        norm_forward(sublayer->builder, "q latent norm", &norm);
        values[VALUE_Q_LATENT]     = norm.out;
        values[VALUE_Q_STATISTICS] = norm.statistics;
    }
}

static int32_t query_input(const struct sublayer *sublayer)
{
    return sublayer->values->tensor[compresses_queries(sublayer) ? VALUE_Q_LATENT : VALUE_N];
}

static void append_up(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t        *values  = sublayer->values->tensor;
    values[VALUE_Q_UP] =
        tp_gather_linear(builder, &(struct linear){.role = "q up", .weight = sublayer->weights[WEIGHT_Q_UP]},
                         "q up input", query_input(sublayer), NULL);
    assembly_set_part(&builder->assembly, PART_KV_UP);
    values[VALUE_KV_UP] =
        tp_gather_linear(builder, &(struct linear){.role = "kv up", .weight = sublayer->weights[WEIGHT_KV_UP]},
                         "kv up input", values[VALUE_KV_LATENT], NULL);
}

// Operands of RoPE or of its backward op. RoPE reads the first three tensors and writes query and key_value. In the
// backward op all five are gradients: it reads query and key_value, and writes the first three.
struct latent_rope {
    int32_t query_up, key_value_up, shared_key, query, key_value;
};

static void append_latent_rope(struct builder *builder, enum op_kind kind, const char *role,
                               const struct latent_rope *rope)
{
    struct op op = attention_op(builder, kind, role);
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({LATENT_ROPE_TABLE, builder->plan->rope_table}, {LATENT_ROPE_QUERY_UP, rope->query_up},
                               {LATENT_ROPE_KEY_VALUE_UP, rope->key_value_up},
                               {LATENT_ROPE_SHARED_KEY, rope->shared_key}, {LATENT_ROPE_QUERY, rope->query},
                               {LATENT_ROPE_KEY_VALUE, rope->key_value}));
}

static void append_rope(struct sublayer *sublayer)
{
    struct builder *builder                        = sublayer->builder;
    int32_t        *values                         = sublayer->values->tensor;
    int32_t         shared                         = tp_gather(builder, "shared key gather", values[VALUE_KEY_ROPE]);
    values[VALUE_Q]                                = attention_new_query(builder, "q", builder->tokens);
    values[VALUE_KV]                               = attention_new_key_value(builder, "kv", builder->tokens);
    builder->plan->tensors[values[VALUE_Q]].holds  = TENSOR_QUERIES;
    builder->plan->tensors[values[VALUE_KV]].holds = TENSOR_KEYS;
    append_latent_rope(
        builder, OP_LATENT_ROPE_FORWARD, "rope",
        &(struct latent_rope){values[VALUE_Q_UP], values[VALUE_KV_UP], shared, values[VALUE_Q], values[VALUE_KV]});
}

// Appends the backward pass of the query projections. Returns the part of VALUE_N's gradient that comes from the
// queries.
static int32_t query_backward(struct sublayer *sublayer, int32_t gradient)
{
    static const struct columns_roles roles   = {"q up input again", "q up data gradient", "q up input gradient",
                                                 "q up weight gradient"};
    struct builder                   *builder = sublayer->builder;
    int32_t                           down    = sublayer->weights[WEIGHT_Q_DOWN];
    assembly_set_part(&builder->assembly, PART_Q_UP);
    int32_t dx =
        columns_backward(builder, &roles, gradient, query_input(sublayer), sublayer->weights[WEIGHT_Q_UP], false);
    if (!compresses_queries(sublayer)) {
        return dx;
    }
    struct norm_values norm = norm_of(sublayer, LATENT_Q);
    assembly_set_part(&builder->assembly, PART_Q_NORM);
    int32_t dq = norm_backward(builder, "q latent norm gradient", &norm, dx, -1);
    assembly_set_part(&builder->assembly, PART_Q_DOWN);
    linear_weight_gradient(builder, "q down weight gradient", dq, sublayer->values->tensor[VALUE_N], down);
    return linear_data_gradient(builder, "q down data gradient", dq, down);
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    static const struct columns_roles roles   = {"kv up input again", "kv up data gradient", "kv up input gradient",
                                                 "kv up weight gradient"};
    struct builder                   *builder = sublayer->builder;
    const struct model_config        *model   = &builder->plan->model;
    const int32_t                    *values = sublayer->values->tensor, *weights = sublayer->weights;
    int32_t                           dkv, dq = attention_backward(sublayer, gradient, &dkv);
    if (dq < 0) {
        return -1;
    }
    struct latent_rope rope = {
        .query_up = assembly_activation(&builder->assembly, "q up gradient",
                                        DIMS(builder->tokens, builder->heads * builder->key_dim)),
        .key_value_up =
            assembly_activation(&builder->assembly, "kv up gradient",
                                DIMS(builder->tokens, builder->heads * (model->head_dim + builder->value_dim))),
        .shared_key =
            assembly_activation(&builder->assembly, "shared key gradient", DIMS(builder->tokens, model->rope_dim)),
        .query     = dq,
        .key_value = dkv};
    assembly_set_part(&builder->assembly, PART_ROPE);
    append_latent_rope(builder, OP_LATENT_ROPE_BACKWARD, "rope gradient", &rope);

    int32_t d_key = tp_reduce(builder, "shared key gradient reduce", rope.shared_key);
    int32_t dn    = query_backward(sublayer, rope.query_up);
    assembly_set_part(&builder->assembly, PART_KV_UP);
    int32_t latent =
        columns_backward(builder, &roles, rope.key_value_up, values[VALUE_KV_LATENT], weights[WEIGHT_KV_UP], false);
    struct norm_values norm = norm_of(sublayer, LATENT_KV);
    assembly_set_part(&builder->assembly, PART_KV_NORM);
    latent = norm_backward(builder, "kv latent norm gradient", &norm, latent, -1);
    assembly_set_part(&builder->assembly, PART_KV_DOWN);
    int32_t down = columns_join(builder, "kv join", "compressed kv gradient", latent, d_key);
    linear_weight_gradient(builder, "kv down weight gradient", down, values[VALUE_N], weights[WEIGHT_KV_DOWN]);
    linear_append(
        builder,
        &(struct linear){.role = "kv down data gradient", .weight = weights[WEIGHT_KV_DOWN], .is_gradient = true}, down,
        dn, true);
    return dn;
}

enum {
    COMPRESSED = BIT(VALUE_KV_DOWN) | BIT(VALUE_Q_DOWN),
    LATENTS    = BIT(VALUE_KV_LATENT) | BIT(VALUE_KV_STATISTICS) | BIT(VALUE_Q_LATENT) | BIT(VALUE_Q_STATISTICS),
    HEADS      = BIT(VALUE_Q) | BIT(VALUE_KV),
};

// clang-format off
static const struct forward_step steps[] = {
    // append,                     part,                reads,                                                    makes,                              saved_as,                modules
    { append_down,                 PART_KV_DOWN,        BIT(VALUE_N),                                             COMPRESSED | BIT(VALUE_KEY_ROPE),   1u << OUTPUT_LATENT,     0 },
    { append_norms,                PART_KV_NORM,        COMPRESSED,                                               LATENTS,                            1u << OUTPUT_LATENT,     0 },
    { append_up,                   PART_Q_UP,           BIT(VALUE_N) | LATENTS,                                   BIT(VALUE_Q_UP) | BIT(VALUE_KV_UP), 0,                       1u << MODULE_UP_PROJECTIONS },
    { append_rope,                 PART_ROPE,           BIT(VALUE_Q_UP) | BIT(VALUE_KV_UP) | BIT(VALUE_KEY_ROPE), HEADS,                              1u << OUTPUT_QKV,        1u << MODULE_UP_PROJECTIONS },
    { attention_append,            PART_CORE_ATTENTION, HEADS,                                                    BIT(VALUE_O) | BIT(VALUE_LSE),      1u << OUTPUT_ATTENTION,  1u << MODULE_CORE_ATTENTION },
    { attention_append_projection, PART_PROJECTION,     BIT(VALUE_O),                                             BIT(VALUE_OUT),                     1u << OUTPUT_PROJECTION, 0 },
    { .append = NULL },
};
// clang-format on

const struct layer_kind latent_kind = {
    .name    = "latent",
    .norm    = &attention_norm,
    .declare = declare,
    .steps   = steps,
    .needed  = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_N) | COMPRESSED | LATENTS | HEADS | BIT(VALUE_O) |
              BIT(VALUE_LSE),
    .backward = {backward},
    .count    = count,
    .check    = check,
};
