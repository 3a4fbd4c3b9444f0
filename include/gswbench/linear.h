// SPDX-License-Identifier: MIT
// Appends linear layers y = x W^T with their data and weight gradients, and the sharding around them: tensor
// parallelism, adapters, FSDP units, Muon's matrices and quantization. src/shard has a file for each.
#pragma once

#include "gswbench/builder.h"

struct linear {
    const char *role;
    int32_t     weight;
    bool        is_gradient;    // data gradient dx = dy W
    bool        is_whole;       // not split to overlap with tp communication
};
// Add an output tensor with this many rows, or with the rows of x.
int32_t linear_out(struct builder *builder, const struct linear *linear, int64_t rows);
int32_t linear_out_of(struct builder *builder, const struct linear *linear, int32_t x);
void    linear_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out, bool accumulates);
int32_t linear_gemm(struct builder *builder, const struct linear *linear, int32_t x);
int32_t linear_gemm_scaled(struct builder *builder, const struct linear *linear, int32_t x, float scale);
// Returns x, or its FP8 copy if one scale covers the whole copy, so that its rows can be split.
int32_t linear_factor(struct builder *builder, const struct linear *linear, int32_t x);
int32_t linear_forward(struct builder *builder, const char *role, int32_t x, int32_t weight);
int32_t linear_data_gradient(struct builder *builder, const char *role, int32_t dy, int32_t weight);
void    linear_weight_gradient(struct builder *builder, const char *role, int32_t dy, int32_t x, int32_t weight);
// Appends the weight gradients that builder->delays has left out for the microbatch of the tag, and ends the units.
void linear_append_delayed(struct builder *builder);
// Whether the weight has a gradient, or an adapter has.
bool linear_is_trained(const struct builder *builder, int32_t weight);
// Whether this step has written the gradient before, so that the next contribution is added.
bool gradient_accumulates(const struct builder *builder, int32_t weight);

// Adapters of frozen matrices (LoRA): y = W x + scale B A x, beside the GEMMs of W. They run in BF16.
bool adapter_exists(const struct builder *builder, int32_t weight);
// Adds the adapter's part to out, which is the output, or the input gradient if linear->is_gradient.
void adapter_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out);
void adapter_weight_gradients(struct builder *builder, int32_t dy, int32_t x, int32_t weight);
bool weight_is_frozen(const struct builder *builder, int32_t weight);

// Column-parallel linear: all-gathers x [S, k] over tp to [T, k], and returns the product [T, n]. If the layout
// overlaps tp communication, both are split into the steps of a ring. Without sequence parallelism (S = T), and for
// experts that are not sharded over tp, nothing is gathered. whole, unless NULL, receives the gathered tensor.
int32_t tensor_gather_linear(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t *whole);
// Row-parallel linear: multiplies x [T, k], then reduce-scatters over tp to [S, n], or all-reduces without sequence
// parallelism (S = T). out: result tensor, or -1 for a new one.
int32_t tensor_linear_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t out);
int32_t tensor_linear_then_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                                  int32_t out);    // the same, never split
// Whether the residual stream is sharded over tp (sequence parallelism).
bool    tensor_shares_rows(const struct builder *builder);
bool    tensor_shares_matrix(const struct builder *builder, int32_t weight);       // the weight is sharded over tp
int32_t tensor_gather(struct builder *builder, const char *role, int32_t rows);    // [S, n] to [T, n]
int32_t tensor_gather_again(struct builder *builder, const char *role, int32_t rows,
                            int32_t weight);    // the input for the weight gradient; -1: there is none
int32_t tensor_reduce(struct builder *builder, const char *role, int32_t partial);    // partial sums [T, n] to [S, n]
// All-reduces two kinds of gradients of a unit over tp: of replicated weights, because a rank computes them from its
// own rows only, and of key and value heads that several ranks have.
void tensor_reduce_replicated(struct builder *builder, int32_t unit);
// Rows first .. first + rows - 1 of a [rows, ...] tensor.
int32_t tensor_rows(struct builder *builder, const char *name, int32_t whole, int64_t first, int64_t rows);
// tensor_counts_loss: whether this rank adds its loss to the sum; if several ranks have the same loss, only one does.
// tensor_loss_axes: axes over which the loss is summed. tensor_job_axes: axes of the communicator for a sum over
// `axes`. If they have several ranks, it is the communicator of the whole job: communicators per replica could each add
// in another order, and norms and weights of replicas would differ in the last bits.
bool     tensor_counts_loss(const struct plan *plan);
uint32_t tensor_loss_axes(const struct plan *plan);
uint32_t tensor_job_axes(const struct plan *plan, uint32_t axes);

// FSDP units: gathering of weights, reduction of gradients, and the tensors that hold them.

// Number of units in the model. The unit of a block has the block's index; units of experts follow, one per layer with
// experts.
int64_t unit_places(const struct builder *builder);
int64_t unit_place_of_experts(const struct builder *builder, int64_t expert_layer);
// With FP8 weights or Muon, the linears of a block form a separate unit, because a unit has one format and optimizer.
int64_t unit_place_of_linears(const struct builder *builder, int64_t layer);
int64_t unit_place_of_adapters(const struct builder *builder, int64_t layer);
// Rounds up the elements of a unit that is cut into this many slices, so that each slice starts at a multiple of 16
// bytes even in the weight format with the fewest bits.
int64_t unit_align(const struct plan *plan, int64_t elements, int64_t slices);
// Adds a unit with the given place, elements and flags, for the layer of the current tag.
void unit_create(struct builder *builder, const struct plan_unit *described);
// Whether gradients are reduced after each microbatch and accumulated in the rank's slice.
bool unit_reduces_each(const struct builder *builder, int32_t unit);
// Makes the weights available, and prefetches the next units in this direction (1 or -1; 0: no prefetch).
void unit_acquire(struct builder *builder, int32_t unit, int32_t direction);
// Ends the use that unit_acquire began. stays: keeps the gathered weights.
void unit_leave(struct builder *builder, int32_t unit, bool stays);
// Drops gathered weights that no pipeline action uses.
void unit_release(struct builder *builder, int32_t unit);
// The unit's weight gradients are written between these calls. The end reduces them as the layout requires.
void unit_begin_gradients(struct builder *builder, int32_t unit);
void unit_end_gradients(struct builder *builder, int32_t unit);
// Points the unit's gradients again to the tensors that a delayed microbatch began with.
void unit_resume_gradients(struct builder *builder, const struct delayed *begun);
// At the end of a chunk: adds or copies reduced gradients to the kept gradients.
void unit_settle_gradients(struct builder *builder);
// Makes the unit's weights (gradients) parts of a tensor with all elements of the unit; -1: unavailable.
void unit_point_weights(struct builder *builder, int32_t unit, int32_t whole);
void unit_point_gradients(struct builder *builder, int32_t unit, int32_t whole);
// Whether the optimizer updates only a part of the kept weights (ZeRO-1).
bool unit_updates_slice(const struct builder *builder, int32_t unit);
// The tensors that this rank's optimizer reads and writes.
int32_t unit_updated_gradient(struct builder *builder, int32_t unit);
int32_t unit_updated_weight(struct builder *builder, int32_t unit);
// ZeRO-1: all-gathers the updated slices, not before op hold (or -1) has ended.
void unit_gather_updated(struct builder *builder, int32_t unit, int32_t hold);

// Muon updates whole matrices. These functions list them, and assign them to the replicas that update them.
struct muon_matrix {
    const struct weight_part *part;             // the first of its parts
    int64_t                   first;            // offset in the unit, in elements
    int64_t                   rows, columns;    // of the whole matrix
    int64_t                   local_rows, local_columns;
    int32_t                   owner;    // index among the replicas
};
// Whether matrices form units of their own.
bool               muon_is_used(const struct plan *plan);
int32_t            muon_matrices(const struct plan *plan, int32_t weight);    // their number in a weight
struct muon_matrix muon_matrix(const struct builder *builder, int32_t weight, int32_t index);
double             muon_flops(const struct muon_matrix *matrix);    // of the Newton-Schulz iterations
enum { MUON_ITERATIONS = 5 };
// Assigns matrices to replicas in model order, with equal FLOPs, and adds the optimizer state of this rank's.
void muon_assign_owners(struct builder *builder);
// ZeRO-1: broadcasts the updated matrices of a unit, not before op hold (or -1) has ended.
void muon_broadcast(struct builder *builder, int32_t unit, int32_t hold);

// FP8 quantization for the GEMMs of linears.

// The FP8 version of a tensor [rows, columns], optionally transposed. One op makes both versions: the op that made the
// tensor if it can fuse quantization, else an OP_QUANTIZE, which is reused until the tensor changes.
int32_t      quantize_copy(struct builder *builder, int32_t tensor, int32_t weight, enum linear_role role,
                           bool is_transposed);
enum scaling quantize_scaling(const struct plan *plan, enum linear_role role);
void         quantize_drop_unread(struct builder *builder);    // call last: drops outputs that are only read in FP8
// Frozen weights in FP8 or FP4: describes how the weight is quantized before the first step, and declares its scales.
void quantize_store(struct builder *builder, int32_t weight);
// Gives the weight's tensor, in FP8 or FP4, the scales of the weight.
void quantize_point(struct builder *builder, int32_t weight);
// FP8 weights: quantizes this rank's slice of a unit from its master weights. With current scaling,
// quantize_scale_weights comes first.
void quantize_update_weights(struct builder *builder, int32_t unit);
// Current scaling: computes the scales of updated weights from their largest magnitudes. AdamW has found these, except
// for FP8 weights, which this call measures.
void quantize_scale_weights(struct builder *builder);

// Persistent FP8 scales, for delayed scaling and for scales that ranks share.
void    scales_declare(struct builder *builder);
int32_t scales_inverse(const struct builder *builder, int32_t weight, enum linear_role role);
// Where AdamW stores the largest magnitude of a weight; -1: nowhere.
int32_t scales_noted_magnitude(const struct builder *builder, int32_t weight);
// After the last use in a step: reduces magnitudes over all ranks, and computes the next scales from them.
void scales_reduce_magnitudes(struct builder *builder);
void scales_renew(struct builder *builder);
