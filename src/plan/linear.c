// SPDX-License-Identifier: MIT
// A linear layer: y [T, n] = x [T, k] W^T with W [n, k], and its two gradients.
#include "internal.h"

static void append_product(struct builder *builder, const char *role, const int32_t operands[3],
                           struct gemm_shape shape, bool accumulates)
{
    struct op op = builder_op(builder, OP_GEMM, role);
    builder_operand(&op, GEMM_A, ACCESS_READ, operands[GEMM_A]);
    builder_operand(&op, GEMM_B, ACCESS_READ, operands[GEMM_B]);
    builder_operand(&op, GEMM_C, accumulates ? ACCESS_UPDATE : ACCESS_WRITE, operands[GEMM_C]);
    op.accumulates = accumulates;
    op.shape.gemm  = shape;
    builder_append(builder, &op);
}

static int32_t weight_of(const struct builder *builder, const struct linear *linear)
{
    return builder->plan->weights[linear->weight].tensor;
}

int32_t linear_out(struct builder *builder, const struct linear *linear, int64_t rows)
{
    int32_t w = weight_of(builder, linear);
    return builder_activation(builder, linear->role, DIMS(rows, builder->plan->tensors[w].dim[linear->is_gradient]));
}

void linear_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out, bool accumulates)
{
    int32_t           w     = weight_of(builder, linear);
    const int64_t    *dim   = builder->plan->tensors[w].dim;
    struct gemm_shape shape = {.m           = builder->plan->tensors[x].dim[0],
                               .n           = dim[linear->is_gradient],
                               .k           = dim[!linear->is_gradient],
                               .transpose_b = !linear->is_gradient};
    append_product(builder, linear->role, (int32_t[]){x, w, out}, shape, accumulates);
}

int32_t linear_product(struct builder *builder, const struct linear *linear, int32_t x)
{
    int32_t out = linear_out(builder, linear, builder->plan->tensors[x].dim[0]);
    linear_append(builder, linear, x, out, false);
    return out;
}

int32_t linear_forward(struct builder *builder, const char *role, int32_t x, int32_t weight)
{
    return linear_product(builder, &(struct linear){role, weight, false}, x);
}

int32_t linear_data_gradient(struct builder *builder, const char *role, int32_t dy, int32_t weight)
{
    return linear_product(builder, &(struct linear){role, weight, true}, dy);
}

void linear_weight_gradient(struct builder *builder, const char *role, int32_t dy, int32_t x, int32_t weight)
{
    int32_t dw = builder->plan->weights[weight].gradient;
    int64_t n = builder->plan->tensors[dw].dim[0], k = builder->plan->tensors[dw].dim[1];
    append_product(builder, role, (int32_t[]){dy, x, dw},
                   (struct gemm_shape){.m = n, .n = k, .k = builder->plan->tensors[dy].dim[0], .transpose_a = true},
                   gradient_accumulates(builder, weight));
}

bool gradient_accumulates(const struct builder *builder, int32_t weight)
{
    return builder->plan->tensors[builder->plan->weights[weight].gradient].first_op >= 0;
}
