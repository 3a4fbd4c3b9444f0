// SPDX-License-Identifier: MIT
// A linear layer, y = x W^T, and its two gradients.
#ifndef GSWBENCH_LAYERS_LINEAR_H
#define GSWBENCH_LAYERS_LINEAR_H

#include "builder.h"

struct linear {
    const char *role;
    int32_t     weight;
    bool        is_gradient;    // dx = dy W instead
    bool        is_whole;       // not split so that transfers of tp hide
};
int32_t linear_out(struct builder *builder, const struct linear *linear, int64_t rows);    // a tensor for so many rows
int32_t linear_out_of(struct builder *builder, const struct linear *linear, int32_t x);    // for as many as x has
void    linear_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out, bool accumulates);
int32_t linear_gemm(struct builder *builder, const struct linear *linear, int32_t x);
int32_t linear_factor(struct builder *builder, const struct linear *linear, int32_t x);    // x as the GEMM reads it
int32_t linear_forward(struct builder *builder, const char *role, int32_t x, int32_t weight);
int32_t linear_data_gradient(struct builder *builder, const char *role, int32_t dy, int32_t weight);
void    linear_weight_gradient(struct builder *builder, const char *role, int32_t dy, int32_t x, int32_t weight);
// True when this step has already written the gradient, so that the next contribution adds to it.
bool gradient_accumulates(const struct builder *builder, int32_t weight);

#endif
