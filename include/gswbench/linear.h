// SPDX-License-Identifier: MIT
// Appends linear layers y = x W^T with their data and weight gradients, and the sharding around them: tensor
// parallelism, adapters, FSDP units, Muon's matrices and quantization. src/shard has a file for each of these.
#pragma once

#include "gswbench/builder.h"

struct linear {
    const char *role;           // name of the GEMM
    int32_t     weight;         // index in plan->weights
    bool        is_gradient;    // true: the GEMM is the data gradient dx = dy W
    bool        is_whole;       // true: the GEMM is not split to overlap with tp communication
};
// Add an output tensor with `rows` rows, or with the same number of rows as x.
int32_t linear_out(struct builder *builder, const struct linear *linear, int64_t rows);
int32_t linear_out_of(struct builder *builder, const struct linear *linear, int32_t x);
void    linear_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out, bool accumulates);
int32_t linear_gemm(struct builder *builder, const struct linear *linear, int32_t x);
int32_t linear_gemm_scaled(struct builder *builder, const struct linear *linear, int32_t x, float scale);
// Call before a GEMM is split by rows of x. If x is quantized with a single scale, returns its quantized copy, whose
// rows can be split. Else returns x.
int32_t linear_splittable(struct builder *builder, const struct linear *linear, int32_t x);
int32_t linear_forward(struct builder *builder, const char *role, int32_t x, int32_t weight);
int32_t linear_data_gradient(struct builder *builder, const char *role, int32_t dy, int32_t weight);
void    linear_weight_gradient(struct builder *builder, const char *role, int32_t dy, int32_t x, int32_t weight);
// For a zero-bubble schedule: appends the postponed weight gradients (builder->delayed) of the current microbatch
// (assembly.tag), and ends the gradients of their FSDP units.
void linear_append_delayed(struct builder *builder);
// Returns whether the weight has a gradient, or an adapter of it has one.
bool linear_is_trained(const struct builder *builder, int32_t weight);
// Returns whether ops of this step have already written the weight's gradient, so that the next op must add to it.
bool gradient_accumulates(const struct builder *builder, int32_t weight);

// Adapters of frozen matrices (LoRA): y = W x + scale B A x. Their GEMMs run in BF16, even if the GEMM of W runs in
// FP8.
bool adapter_exists(const struct builder *builder, int32_t weight);
// Adds the adapter's part of the result to `out`: the output, or the input gradient if linear->is_gradient.
void adapter_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out);
void adapter_weight_gradients(struct builder *builder, int32_t dy, int32_t x, int32_t weight);
bool weight_is_frozen(const struct builder *builder, int32_t weight);

// Column-parallel linear: all-gathers x [shard_tokens, k] over tp to [tokens, k], and returns the product [tokens, n].
// tokens: tokens of a microbatch on this rank; shard_tokens: tokens / tp with sequence parallelism, else tokens; k, n:
// inputs and outputs. With tp_overlap, gather and GEMM are split into the steps of a ring. Without sequence
// parallelism, and for experts that are not sharded over tp, x is not gathered. whole, unless NULL, receives the
// gathered tensor. role: name of the all-gather.
int32_t tp_gather_linear(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                         int32_t *whole);
// Row-parallel linear: multiplies x [tokens, k], then reduce-scatters the product over tp to [shard_tokens, n], or
// all-reduces it without sequence parallelism. out: result tensor, or -1 for a new one. role: name of the collective.
int32_t tp_linear_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                         int32_t out);
int32_t tp_linear_then_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                              int32_t out);    // like tp_linear_reduce, but without overlap
// Returns whether the residual stream is sharded over tp (sequence parallelism).
bool tp_shares_rows(const struct builder *builder);
// Returns whether the weight is sharded over tp.
bool tp_shares_matrix(const struct builder *builder, int32_t weight);
// All-gathers [shard_tokens, n] over tp to [tokens, n].
int32_t tp_gather(struct builder *builder, const char *role, int32_t rows);
// All-gathers a linear's input again for its weight gradient. Returns -1 if the weight is not trained.
int32_t tp_gather_again(struct builder *builder, const char *role, int32_t rows, int32_t weight);
// Sums the partial sums [tokens, n] of the tp ranks to [shard_tokens, n].
int32_t tp_reduce(struct builder *builder, const char *role, int32_t partial);
// All-reduces the partial gradients of a unit over tp. They belong to replicated weights, whose gradient each rank
// computes from its own tokens or heads, and to key and value heads that several ranks have.
void tp_reduce_replicated(struct builder *builder, int32_t unit);
// Returns rows first .. first + rows - 1 of a tensor [rows, ...] as a tensor.
int32_t tensor_rows(struct builder *builder, const char *name, int32_t whole, int64_t first, int64_t rows);
// tp_counts_loss returns whether this rank adds its loss to the sum. If several tp ranks have the same loss, only
// one adds it. tp_loss_axes returns the axes over which the loss is summed. tp_job_axes returns the axes of the
// communicator for a sum over `axes`: all axes of the job, or none if `axes` has one rank. With one communicator per
// replica, replicas could add in different orders, so that their norms and weights would differ in the last bits.
bool     tp_counts_loss(const struct plan *plan);
uint32_t tp_loss_axes(const struct plan *plan);
uint32_t tp_job_axes(const struct plan *plan, uint32_t axes);

// FSDP units (parameter groups): the following functions gather their weights, reduce their gradients, and update the
// tensors that hold them.

// The place of a unit is its index in the model: 0 is the embedding, l + 1 is layer l; the head and MTP modules follow.
// After them come the experts of each layer that has any, then the linears of each layer, then the adapters, if these
// form separate units. unit_places returns the number of places. A place without weights of its own has no unit.
int64_t unit_places(const struct builder *builder);
int64_t unit_place_of_experts(const struct builder *builder, int64_t expert_layer);
// With FP8 weights or Muon, the linears of a block form a separate unit, because a unit has one format and optimizer.
int64_t unit_place_of_linears(const struct builder *builder, int64_t layer);
int64_t unit_place_of_adapters(const struct builder *builder, int64_t layer);
// Rounds up the number of elements of a unit, which is then divided into this many slices. Each slice thus starts at a
// multiple of 16 bytes, even in the weight format with the fewest bits.
int64_t unit_align(const struct plan *plan, int64_t elements, int64_t slices);
// Adds a unit with the place, elements and flags of `described`, for the layer of the current tag.
void unit_create(struct builder *builder, const struct plan_unit *described);
// Returns whether the unit's gradients are reduced after each microbatch and accumulated in reduced form.
bool unit_reduces_each(const struct builder *builder, int32_t unit);
// Makes the unit's weights available: gathers them if needed, and prefetches the units that the pass needs next, as far
// as parallel.prefetch says. direction: 1 in a forward pass, -1 in a backward pass; 0: no prefetch.
void unit_acquire(struct builder *builder, int32_t unit, int32_t direction);
// Ends the use that unit_acquire began. stays: keeps the gathered weights.
void unit_leave(struct builder *builder, int32_t unit, bool stays);
// Drops gathered weights that no pipeline action uses.
void unit_release(struct builder *builder, int32_t unit);
// Call before and after the ops that write the unit's weight gradients in a microbatch. unit_end_gradients reduces the
// gradients, either after each microbatch or after the last one only.
void unit_begin_gradients(struct builder *builder, int32_t unit);
void unit_end_gradients(struct builder *builder, int32_t unit);
// For weight gradients that a zero-bubble schedule delays: points the unit's gradients to the tensors of their
// microbatch again. begun: the unit's entry DELAYED_BEGIN, which has the indices of these tensors.
void unit_resume_gradients(struct builder *builder, const struct delayed *begun);
// Call at the end of a backward pass through a pipeline chunk. Adds or copies reduced gradients to the accumulated
// gradients. After the last microbatch, also reduces the accumulated gradients over replicas, if this happens once per
// step.
void unit_settle_gradients(struct builder *builder);
// Make the unit's weights, or gradients, parts of `whole`, a tensor of the whole unit; -1: mark them unavailable.
void unit_point_weights(struct builder *builder, int32_t unit, int32_t whole);
void unit_point_gradients(struct builder *builder, int32_t unit, int32_t whole);
// Returns whether this rank's optimizer updates only a slice of the weights that the rank keeps (ZeRO-1).
bool unit_updates_slice(const struct builder *builder, int32_t unit);
// Return the gradient tensor that this rank's optimizer reads, and the weight tensor that it writes.
int32_t unit_updated_gradient(struct builder *builder, int32_t unit);
int32_t unit_updated_weight(struct builder *builder, int32_t unit);
// ZeRO-1: all-gathers a unit's updated slices (Muon: broadcasts its matrices) after op `hold` has ended; -1: no op.
void unit_gather_updated(struct builder *builder, int32_t unit, int32_t hold);

// A matrix that Muon updates as a whole. With ZeRO-1 each matrix is assigned to one replica, its owner, which updates
// it for all replicas.
struct muon_matrix {
    const struct weight_part *part;             // first part of the matrix; gate and up may be parts of one matrix
    int64_t                   first;            // offset in the unit, in elements
    int64_t                   rows, columns;    // rows and columns of the whole matrix
    int64_t                   local_rows, local_columns;
    int32_t                   owner;    // index among the replicas; 0 without ZeRO-1: every replica updates the matrix
};
// Returns whether the optimizer is Muon. The linears of a block then form a separate unit.
bool               muon_is_used(const struct plan *plan);
int32_t            muon_matrices(const struct plan *plan, int32_t weight);    // number of matrices in a weight
struct muon_matrix muon_matrix(const struct builder *builder, int32_t weight, int32_t index);
enum { MUON_ITERATIONS = 5 };
// Adds Muon's optimizer state of this rank. With ZeRO-1, first assigns matrices to replicas in model order, with about
// equal FLOPs.
void muon_assign_owners(struct builder *builder);
// ZeRO-1: broadcasts the updated matrices of a unit. hold: an op that must end before the broadcasts start; -1: none.
void muon_broadcast(struct builder *builder, int32_t unit, int32_t hold);

// FP8 and FP4 quantization for the GEMMs of linears.

// Returns the FP8 or FP4 copy of a tensor [rows, columns], or its transposed copy. One op makes both copies: the op
// that made the tensor if it can fuse quantization, else an OP_QUANTIZE. Later calls return the same copies until the
// tensor changes.
int32_t      quantize_copy(struct builder *builder, int32_t tensor, int32_t weight, enum linear_role role,
                           bool is_transposed);
enum scaling quantize_scaling(const struct plan *plan, enum linear_role role);
// Call after all other ops are appended. If only the FP8 copies of a tensor are read, the op with fused quantization
// that makes them no longer writes the unquantized output.
void quantize_drop_unread(struct builder *builder);
// For frozen weights in FP8 or FP4: describes how the weight is quantized before the first step, and declares its
// scales.
void quantize_store(struct builder *builder, int32_t weight);
// Attaches the scales of an FP8 or FP4 weight to the tensor that now holds the weight, such as a part of a newly
// gathered FSDP unit.
void quantize_point(struct builder *builder, int32_t weight);
// FP8 weights: quantizes this rank's slice of an FSDP unit from master weights. With current scaling, call
// quantize_scale_weights first.
void quantize_update_weights(struct builder *builder, int32_t unit);
// Current scaling: computes the scales of updated weights from their amaxes. AdamW has stored the amaxes of BF16
// weights; this call computes the amaxes of FP8 weights.
void quantize_scale_weights(struct builder *builder);

// Declares the FP8 scales that persist over steps. Delayed scaling: all scales. Current scaling: the scales of weights,
// if several ranks must have the same scale.
void scales_declare(struct builder *builder);
// Returns the tensor in which AdamW stores the amax of a weight; -1: it stores none.
int32_t scales_noted_magnitude(const struct builder *builder, int32_t weight);
// Delayed scaling: call after the last use of scales in a step. scales_reduce_magnitudes reduces amaxes over the ranks;
// scales_renew computes the scales of the next step.
void scales_reduce_magnitudes(struct builder *builder);
void scales_renew(struct builder *builder);
