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

int32_t linear_forward(struct builder *builder, const char *role, int32_t x, int32_t weight)
{
    int32_t w = builder->plan->weights[weight].tensor;
    int64_t n = builder->plan->tensors[w].dim[0], k = builder->plan->tensors[w].dim[1];
    int32_t y = builder_activation(builder, role, DIMS(builder->tokens, n));
    append_product(builder, role, (int32_t[]){x, w, y},
                   (struct gemm_shape){.m = builder->tokens, .n = n, .k = k, .transpose_b = true}, false);
    return y;
}

int32_t linear_data_gradient(struct builder *builder, const char *role, int32_t dy, int32_t weight)
{
    int32_t w = builder->plan->weights[weight].tensor;
    int64_t n = builder->plan->tensors[w].dim[0], k = builder->plan->tensors[w].dim[1];
    int32_t dx = builder_activation(builder, role, DIMS(builder->tokens, k));
    append_product(builder, role, (int32_t[]){dy, w, dx}, (struct gemm_shape){.m = builder->tokens, .n = k, .k = n},
                   false);
    return dx;
}

void linear_weight_gradient(struct builder *builder, const char *role, int32_t dy, int32_t x, int32_t weight)
{
    int32_t dw = builder->plan->weights[weight].gradient;
    int64_t n = builder->plan->tensors[dw].dim[0], k = builder->plan->tensors[dw].dim[1];
    append_product(builder, role, (int32_t[]){dy, x, dw},
                   (struct gemm_shape){.m = n, .n = k, .k = builder->tokens, .transpose_a = true},
                   gradient_accumulates(builder, weight));
}

bool gradient_accumulates(const struct builder *builder, int32_t weight)
{
    return builder->plan->tensors[builder->plan->weights[weight].gradient].first_op >= 0;
}
