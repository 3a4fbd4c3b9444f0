// SPDX-License-Identifier: MIT
// Linear layer y = x W^T, with data and weight gradient, and tensor parallelism: the same with collectives before and
// after the GEMMs.
#pragma once

#include "gswbench/builder.h"

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

// Column-parallel linear: all-gathers x [S, k] over tp, multiplies, and returns [T, n]. If the layout overlaps tp
// communication, the GEMM is split into the steps of a ring. Without sequence parallelism, and for experts that are not
// sharded over tp, nothing is gathered. whole, unless NULL, receives the gathered tensor.
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
// Rows first .. first + rows - 1 of a [rows, ...] tensor.
int32_t tensor_rows(struct builder *builder, const char *name, int32_t whole, int64_t first, int64_t rows);
// tensor_counts_loss: whether this rank adds its loss to the sum; of ranks with the same loss only one does.
// tensor_loss_axes: axes over which the loss is summed. tensor_job_axes: axes of the communicator for a sum over these
// axes. A sum over several ranks uses the communicator of the whole job: communicators per replica could each add in
// another order, and norms and weights of replicas would differ in the last bits.
bool     tensor_counts_loss(const struct plan *plan);
uint32_t tensor_loss_axes(const struct plan *plan);
uint32_t tensor_job_axes(const struct plan *plan, uint32_t axes);
