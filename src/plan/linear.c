// SPDX-License-Identifier: MIT
// A linear layer: y [T, n] = x [T, k] W^T with W [n, k], and its two gradients.
#include "internal.h"

// The product of a and b; each in that format if it is FP8, else as it is.
struct product {
    const char       *role;
    int32_t           a, b, c;
    enum dtype        a_format, b_format;
    struct gemm_shape shape;
    bool              accumulates;
};

// Takes one of the two factors of a product, or its copy in FP8: of B, and not of A, the transpose is what is read.
static void read_factor(struct builder *builder, struct op *op, int slot, int32_t tensor, enum dtype format)
{
    if (!dtype_is_fp8(format)) {
        builder_operand(op, slot, ACCESS_READ, tensor);
        return;
    }
    bool            is_a       = slot == GEMM_A;
    bool           *transposes = is_a ? &op->shape.gemm.transpose_a : &op->shape.gemm.transpose_b;
    struct fp8_copy copy       = quantize_copy(builder, tensor, format, *transposes == is_a);
    builder_operand(op, slot, ACCESS_READ, copy.tensor);
    builder_operand(op, is_a ? GEMM_FACTOR_A : GEMM_FACTOR_B, ACCESS_READ, copy.factor);
    *transposes = !is_a;
}

static void append_product(struct builder *builder, const struct product *product)
{
    struct op op  = builder_op(builder, OP_GEMM, product->role);
    op.shape.gemm = product->shape;
    read_factor(builder, &op, GEMM_A, product->a, product->a_format);
    read_factor(builder, &op, GEMM_B, product->b, product->b_format);
    builder_operand(&op, GEMM_C, product->accumulates ? ACCESS_UPDATE : ACCESS_WRITE, product->c);
    op.accumulates = product->accumulates;
    builder_append(builder, &op);
}

// Values and weights have more digits, gradients more range.
static enum dtype format_of(const struct builder *builder, int32_t weight, bool is_gradient)
{
    const struct plan *plan = builder->plan;
    return !plan->weights[weight].is_fp8 ? plan->precision.activation : is_gradient ? DTYPE_E5M2 : DTYPE_E4M3;
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
    int32_t        w   = weight_of(builder, linear);
    const int64_t *dim = builder->plan->tensors[w].dim;
    append_product(builder, &(struct product){.role        = linear->role,
                                              .a           = x,
                                              .b           = w,
                                              .c           = out,
                                              .a_format    = format_of(builder, linear->weight, linear->is_gradient),
                                              .b_format    = format_of(builder, linear->weight, false),
                                              .shape       = {.m           = builder->plan->tensors[x].dim[0],
                                                              .n           = dim[linear->is_gradient],
                                                              .k           = dim[!linear->is_gradient],
                                                              .transpose_b = !linear->is_gradient},
                                              .accumulates = accumulates});
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
    int32_t        dw  = builder->plan->weights[weight].gradient;
    const int64_t *dim = builder->plan->tensors[dw].dim;
    append_product(builder,
                   &(struct product){
                       .role     = role,
                       .a        = dy,
                       .b        = x,
                       .c        = dw,
                       .a_format = format_of(builder, weight, true),
                       .b_format = format_of(builder, weight, false),
                       .shape = {.m = dim[0], .n = dim[1], .k = builder->plan->tensors[dy].dim[0], .transpose_a = true},
                       .accumulates = gradient_accumulates(builder, weight)});
}

bool gradient_accumulates(const struct builder *builder, int32_t weight)
{
    return builder->plan->tensors[builder->plan->weights[weight].gradient].first_op >= 0;
}
