// SPDX-License-Identifier: MIT
// The MLP half of a block: norm, fc1 (gate and up together), activation, fc2, and backward.
#include "internal.h"

// in: what the activation works on.
static struct op activation_op(const struct builder *builder, enum op_kind kind, const char *role, int32_t in)
{
    struct op op  = builder_op(builder, kind, role);
    op.shape.rows = (struct rows_shape){.rows    = builder->plan->tensors[in].dim[0],
                                        .columns = builder->ffn,
                                        .variant = (int32_t)builder->plan->model.activation};
    return op;
}

static struct norm_values norm_of(const struct block *block)
{
    return (struct norm_values){.x          = block->values->tensor[VALUE_X],
                                .branch     = block->values->tensor[VALUE_A],
                                .weight     = block->weights->norm2,
                                .bias       = block->weights->norm2_bias,
                                .sum        = block->values->tensor[VALUE_X2],
                                .out        = block->values->tensor[VALUE_N2],
                                .statistics = block->values->tensor[VALUE_STATISTICS2]};
}

void mlp_norm(struct block *block)
{
    struct norm_values norm = norm_of(block);
    norm_forward(block->builder, "mlp norm", &norm);
    block->values->tensor[VALUE_X2]          = norm.sum;
    block->values->tensor[VALUE_N2]          = norm.out;
    block->values->tensor[VALUE_STATISTICS2] = norm.statistics;
}

void mlp_fc1(struct block *block)
{
    block->values->tensor[VALUE_FC1] =
        tensor_gather_linear(block->builder, &(struct linear){"fc1", block->weights->fc1, false}, "fc1 input",
                             block->values->tensor[VALUE_N2], NULL);
}

int32_t mlp_activate(struct builder *builder, int32_t in)
{
    struct op op  = activation_op(builder, OP_ACTIVATION_FORWARD, "activation", in);
    int32_t   out = builder_activation(builder, "activation", DIMS(op.shape.rows.rows, builder->ffn));

    builder_operand(&op, ACTIVATION_IN, ACCESS_READ, in);
    builder_operand(&op, ACTIVATION_OUT, ACCESS_WRITE, out);
    builder_append(builder, &op);
    return out;
}

void mlp_activation(struct block *block)
{
    block->values->tensor[VALUE_S] = mlp_activate(block->builder, block->values->tensor[VALUE_FC1]);
}

void mlp_fc2(struct block *block)
{
    block->values->tensor[VALUE_FC2] =
        tensor_linear_reduce(block->builder, &(struct linear){"fc2", block->weights->fc2, false}, "fc2 output",
                             block->values->tensor[VALUE_S], -1);
}

int32_t mlp_activation_backward(struct builder *builder, int32_t gradient, int32_t in)
{
    struct op op = activation_op(builder, OP_ACTIVATION_BACKWARD, "activation gradient", in);
    int32_t   d_in =
        builder_activation(builder, "fc1 gradient", DIMS(op.shape.rows.rows, builder->plan->tensors[in].dim[1]));

    builder_operand(&op, ACTIVATION_GRADIENT_OUT, ACCESS_READ, gradient);
    builder_operand(&op, ACTIVATION_GRADIENT_IN_IN, ACCESS_READ, in);
    builder_operand(&op, ACTIVATION_GRADIENT_IN, ACCESS_WRITE, d_in);
    builder_append(builder, &op);
    return d_in;
}

int32_t mlp_backward(struct block *block, int32_t gradient)
{
    struct builder             *builder = block->builder;
    const struct block_weights *weights = block->weights;

    int32_t whole;
    int32_t ds = tensor_gather_linear(builder, &(struct linear){"fc2 data gradient", weights->fc2, true},
                                      "fc2 output gradient", gradient, &whole);
    linear_weight_gradient(builder, "fc2 weight gradient", whole, block->values->tensor[VALUE_S], weights->fc2);
    int32_t dfc1 = mlp_activation_backward(builder, ds, block->values->tensor[VALUE_FC1]);
    // The input is gathered beside the data gradient, whose sum is made beside the weight gradient.
    int32_t in  = tensor_gather(builder, "fc1 input again", block->values->tensor[VALUE_N2]);
    int32_t dn2 = linear_data_gradient(builder, "fc1 data gradient", dfc1, weights->fc1);
    dn2         = tensor_reduce(builder, "fc1 input gradient", dn2);
    linear_weight_gradient(builder, "fc1 weight gradient", dfc1, in, weights->fc1);
    return dn2;
}

int32_t mlp_norm_backward(struct block *block, int32_t gradient, int32_t residual)
{
    struct norm_values norm = norm_of(block);
    return norm_backward(block->builder, "mlp norm gradient", &norm, gradient, residual);
}
