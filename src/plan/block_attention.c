// SPDX-License-Identifier: MIT
// The attention half of a block: norm, q k v, rope, attention, output projection, and backward.
#include <math.h>

#include "internal.h"

struct op attention_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    const struct plan         *plan  = builder->plan;
    const struct model_config *model = &plan->model;
    struct op                  op    = builder_op(builder, kind, role);

    op.shape.attention = (struct attention_shape){.batch    = plan->train.micro_batch,
                                                  .sequence = builder->sequence,
                                                  .heads    = builder->heads,
                                                  .kv_heads = builder->kv_heads,
                                                  .head_dim = model->head_dim,
                                                  .rotary   = model_rotary_width(model),
                                                  .scale    = (float)(1.0 / sqrt((double)model->head_dim)),
                                                  .causal   = true};
    return op;
}

static int32_t new_query(struct builder *builder, const char *name)
{
    const struct model_config *model = &builder->plan->model;
    return builder_activation(builder, name, DIMS(builder->tokens, builder->heads, model->head_dim));
}

static int32_t new_key_value(struct builder *builder, const char *name)
{
    const struct model_config *model = &builder->plan->model;
    return builder_activation(builder, name, DIMS(builder->tokens, 2, builder->kv_heads, model->head_dim));
}

static struct norm_values norm_of(const struct block *block)
{
    return (struct norm_values){.x          = block->values->tensor[VALUE_X],
                                .branch     = block->branch,
                                .weight     = block->weights->norm1,
                                .bias       = block->weights->norm1_bias,
                                .sum        = block->values->tensor[VALUE_X],
                                .out        = block->values->tensor[VALUE_N1],
                                .statistics = block->values->tensor[VALUE_STATISTICS1]};
}

void attention_norm(struct block *block)
{
    struct norm_values norm = norm_of(block);
    norm_forward(block->builder, "attention norm", &norm);
    block->values->tensor[VALUE_X]           = norm.sum;
    block->values->tensor[VALUE_N1]          = norm.out;
    block->values->tensor[VALUE_STATISTICS1] = norm.statistics;
}

void attention_qkv(struct block *block)
{
    block->values->tensor[VALUE_QKV] =
        tensor_gather_linear(block->builder, &(struct linear){"qkv", block->weights->qkv, false}, "qkv input",
                             block->values->tensor[VALUE_N1], NULL);
}

void attention_rope(struct block *block)
{
    struct builder *builder = block->builder;
    struct op       op      = attention_op(builder, OP_ROPE_FORWARD, "rope");
    int32_t         q       = new_query(builder, "q");
    int32_t         kv      = new_key_value(builder, "kv");

    builder_operand(&op, ROPE_TABLE, ACCESS_READ, builder->plan->rope_table);
    builder_operand(&op, ROPE_PACKED, ACCESS_READ, block->values->tensor[VALUE_QKV]);
    builder_operand(&op, ROPE_QUERY, ACCESS_WRITE, q);
    builder_operand(&op, ROPE_KEY_VALUE, ACCESS_WRITE, kv);
    builder_append(builder, &op);
    block->values->tensor[VALUE_Q]  = q;
    block->values->tensor[VALUE_KV] = kv;
}

void attention_core(struct block *block)
{
    struct builder            *builder = block->builder;
    const struct train_config *train   = &builder->plan->train;
    if (builder->plan->mesh.size[AXIS_CP] > 1) {
        context_attention(block);
        return;
    }
    struct op op  = attention_op(builder, OP_ATTENTION_FORWARD, "attention");
    int32_t   out = new_query(builder, "attention");
    int32_t   lse = builder_tensor(builder, "attention statistics", STORAGE_ACTIVATION, DTYPE_F32,
                                   DIMS(train->micro_batch, builder->heads, builder->sequence));

    builder_operand(&op, ATTENTION_QUERY, ACCESS_READ, block->values->tensor[VALUE_Q]);
    builder_operand(&op, ATTENTION_KEY_VALUE, ACCESS_READ, block->values->tensor[VALUE_KV]);
    builder_operand(&op, ATTENTION_OUT, ACCESS_WRITE, out);
    builder_operand(&op, ATTENTION_STATISTICS, ACCESS_WRITE, lse);
    builder_append(builder, &op);
    block->values->tensor[VALUE_O]   = out;
    block->values->tensor[VALUE_LSE] = lse;
}

void attention_projection(struct block *block)
{
    block->values->tensor[VALUE_A] =
        tensor_linear_reduce(block->builder, &(struct linear){"projection", block->weights->proj, false},
                             "projection output", block->values->tensor[VALUE_O], -1);
}

static void core_backward(struct block *block, int32_t gradient, int32_t dq, int32_t dkv)
{
    const struct values *values = block->values;
    struct op            core   = attention_op(block->builder, OP_ATTENTION_BACKWARD, "attention gradient");
    if (block->builder->plan->mesh.size[AXIS_CP] > 1) {
        context_attention_backward(block, gradient, dq, dkv);
        return;
    }
    builder_operand(&core, ATTENTION_GRADIENT_OUT, ACCESS_READ, gradient);
    builder_operand(&core, ATTENTION_GRADIENT_QUERY_IN, ACCESS_READ, values->tensor[VALUE_Q]);
    builder_operand(&core, ATTENTION_GRADIENT_KEY_VALUE_IN, ACCESS_READ, values->tensor[VALUE_KV]);
    builder_operand(&core, ATTENTION_GRADIENT_OUT_IN, ACCESS_READ, values->tensor[VALUE_O]);
    builder_operand(&core, ATTENTION_GRADIENT_STATISTICS, ACCESS_READ, values->tensor[VALUE_LSE]);
    builder_operand(&core, ATTENTION_GRADIENT_QUERY, ACCESS_WRITE, dq);
    builder_operand(&core, ATTENTION_GRADIENT_KEY_VALUE, ACCESS_WRITE, dkv);
    builder_append(block->builder, &core);
}

// The gradients of q, k and v before rope, packed as the qkv product made them.
static int32_t rope_backward(struct block *block, int32_t gradient)
{
    struct builder *builder = block->builder;
    int32_t         dq      = new_query(builder, "q gradient");
    int32_t         dkv     = new_key_value(builder, "kv gradient");
    core_backward(block, gradient, dq, dkv);

    struct op rope = attention_op(builder, OP_ROPE_BACKWARD, "rope gradient");
    int32_t   dqkv = builder_activation(
          builder, "qkv gradient",
          DIMS(builder->tokens, (builder->heads + 2 * builder->kv_heads) * builder->plan->model.head_dim));
    builder_operand(&rope, ROPE_TABLE, ACCESS_READ, builder->plan->rope_table);
    builder_operand(&rope, ROPE_PACKED, ACCESS_WRITE, dqkv);
    builder_operand(&rope, ROPE_QUERY, ACCESS_READ, dq);
    builder_operand(&rope, ROPE_KEY_VALUE, ACCESS_READ, dkv);
    builder_append(builder, &rope);
    return dqkv;
}

int32_t attention_backward(struct block *block, int32_t gradient)
{
    struct builder             *builder = block->builder;
    const struct block_weights *weights = block->weights;

    int32_t whole;
    int32_t d_out = tensor_gather_linear(builder, &(struct linear){"projection data gradient", weights->proj, true},
                                         "projection output gradient", gradient, &whole);
    linear_weight_gradient(builder, "projection weight gradient", whole, block->values->tensor[VALUE_O], weights->proj);
    int32_t dqkv = rope_backward(block, d_out);
    // The input is gathered beside the data gradient, whose sum is made beside the weight gradient.
    int32_t in  = tensor_gather(builder, "qkv input again", block->values->tensor[VALUE_N1]);
    int32_t dn1 = linear_data_gradient(builder, "qkv data gradient", dqkv, weights->qkv);
    dn1         = tensor_reduce(builder, "qkv input gradient", dn1);
    linear_weight_gradient(builder, "qkv weight gradient", dqkv, in, weights->qkv);

    struct norm_values norm = norm_of(block);
    return norm_backward(builder, "attention norm gradient", &norm, dn1, gradient);
}
