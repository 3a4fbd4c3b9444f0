// SPDX-License-Identifier: MIT
// Tensor parallelism: GEMMs with the transfers before and after them.
#ifndef GSWBENCH_LAYERS_TENSOR_H
#define GSWBENCH_LAYERS_TENSOR_H

#include "linear.h"

// S: rows of the residual stream on this rank. Where tp shares them out, a gather before a GEMM and a sum's own rows
// after one, split so that they overlap if the layout asks; where every rank has all of them, the whole sum after one;
// without tp, and for experts that are whole, just the GEMM. x: [S, k]; whole receives the tensor of all rows, unless
// it is NULL. Returns [T, n].
int32_t tensor_gather_linear(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t *whole);
// x: [T, k]. Returns this rank's rows of the sum over tp [S, n].
// out: where these go, or -1: a new tensor.
int32_t tensor_linear_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t out);
int32_t tensor_linear_then_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                                  int32_t out);    // the same, never split
int32_t tensor_ring_gather(struct builder *builder, const struct linear *linear, int32_t rows, int32_t *whole);
int32_t tensor_ring_reduce(struct builder *builder, const struct linear *linear, int32_t x, int32_t out);
bool    tensor_shares_rows(const struct builder *builder);                            // the residual stream, over tp
bool    tensor_shares_matrix(const struct builder *builder, int32_t weight);          // this weight, over tp
int32_t tensor_gather(struct builder *builder, const char *role, int32_t rows);       // [S, n] of all: [T, n]
int32_t tensor_reduce(struct builder *builder, const char *role, int32_t partial);    // sum of [T, n]: own [S, n]
// Sums over tp the gradients of a unit's replicated weights, where each rank saw its own rows, and over those of its
// ranks that have a head alike the gradients of that.
void tensor_reduce_replicated(struct builder *builder, int32_t unit);

#endif
