// SPDX-License-Identifier: MIT
// Tensor parallelism: GEMMs with the collectives before and after them.
#ifndef GSWBENCH_LAYERS_TENSOR_H
#define GSWBENCH_LAYERS_TENSOR_H

#include "linear.h"

// Column-parallel linear: with sequence parallelism, gathers x [S, k] over tp, then multiplies, split into a ring if
// the layout overlaps them. Else, and for experts that are not sharded, only the GEMM. whole, unless NULL, receives the
// gathered tensor. Returns [T, n].
int32_t tensor_gather_linear(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t *whole);
// Row-parallel linear: multiplies x [T, k], then reduce-scatters over tp (all-reduce without sequence parallelism).
// Returns [S, n]. out: result tensor, or -1 for a new one.
int32_t tensor_linear_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t out);
int32_t tensor_linear_then_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                                  int32_t out);    // the same, never split
int32_t tensor_ring_gather(struct builder *builder, const struct linear *linear, int32_t rows, int32_t *whole);
int32_t tensor_ring_reduce(struct builder *builder, const struct linear *linear, int32_t x, int32_t out);
bool    tensor_shares_rows(const struct builder *builder);                            // the residual stream is sharded
                                                                                      // over tp (sequence parallelism)
bool    tensor_shares_matrix(const struct builder *builder, int32_t weight);          // the weight is sharded over tp
int32_t tensor_gather(struct builder *builder, const char *role, int32_t rows);       // [S, n] to [T, n]
int32_t tensor_reduce(struct builder *builder, const char *role, int32_t partial);    // partial sums [T, n] to [S, n]
// All-reduces over tp the gradients of a unit's replicated weights, to which each rank adds its own rows, and the
// gradients of key and value heads that several ranks have.
void tensor_reduce_replicated(struct builder *builder, int32_t unit);

#endif
