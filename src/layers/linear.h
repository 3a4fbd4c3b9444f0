// SPDX-License-Identifier: MIT
// Linear layer y = x W^T, with data and weight gradient.
#ifndef GSWBENCH_LAYERS_LINEAR_H
#define GSWBENCH_LAYERS_LINEAR_H

#include "builder.h"

struct linear {
    const char *role;
    int32_t     weight;
    bool        is_gradient;    // data gradient dx = dy W
    bool        is_whole;       // not split to overlap with tp communication
};
int32_t linear_out(struct builder *builder, const struct linear *linear, int64_t rows);    // a new output tensor with
                                                                                           // this many rows
int32_t linear_out_of(struct builder *builder, const struct linear *linear, int32_t x);    // a new output tensor with
                                                                                           // the rows of x
void    linear_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out, bool accumulates);
int32_t linear_gemm(struct builder *builder, const struct linear *linear, int32_t x);
int32_t linear_factor(struct builder *builder, const struct linear *linear, int32_t x);    // x, or its FP8 copy if that
                                                                                           // can be used by rows
int32_t linear_forward(struct builder *builder, const char *role, int32_t x, int32_t weight);
int32_t linear_data_gradient(struct builder *builder, const char *role, int32_t dy, int32_t weight);
void    linear_weight_gradient(struct builder *builder, const char *role, int32_t dy, int32_t x, int32_t weight);
// Whether this step has written the gradient before, so that the next contribution is added.
bool gradient_accumulates(const struct builder *builder, int32_t weight);

#endif
