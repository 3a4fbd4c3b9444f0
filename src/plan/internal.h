// SPDX-License-Identifier: MIT
// How the files of this folder append tensors and ops to a plan under construction.
#ifndef GSWBENCH_PLAN_INTERNAL_H
#define GSWBENCH_PLAN_INTERNAL_H

#include "gswbench/plan.h"
#include "gswbench/schedule.h"

// Who touched a tensor last, lane by lane: what a new op must be ordered after. -1: nobody.
struct usage {
    int32_t writer;
    int32_t reader[LANE_COUNT];
    // Of the tensor itself, not of its whole:
    bool    is_apart;     // all of this is known for it alone
    int32_t quantizer;    // the op that made its copies in FP8, or its transpose if it is FP8; -1: none
    int32_t factor;       // what it is to be multiplied by if it is FP8
};

// The values of one block for one microbatch, by what they mean; -1 when they do not exist now.
enum value {
    VALUE_X,              // residual stream at the block's entry [T, hidden]
    VALUE_STATISTICS1,    // of the norm before attention [T, 2]
    VALUE_N1,             // [T, hidden]
    VALUE_QKV,            // [T, (heads + 2 kv_heads) head_dim]
    VALUE_Q,              // [T, heads, head_dim], after rope
    VALUE_KV,             // [T, 2, kv_heads, head_dim], after rope
    VALUE_O,              // attention output [T, heads, head_dim]
    VALUE_LSE,            // [batch, heads, sequence]; under cp [runs, heads, sequence / HALVES]
    VALUE_A,              // output projection [T, hidden]
    VALUE_X2,             // residual stream between attention and MLP [T, hidden]
    VALUE_STATISTICS2,    // of the norm before the MLP [T, 2]
    VALUE_N2,             // [T, hidden]
    VALUE_FC1,            // [T, ffn] or [T, 2 ffn]; with experts, in each one's own values
    VALUE_S,              // after the activation [T, ffn]; likewise
    VALUE_FC2,            // [T, hidden]: added to the residual stream by the next norm
    VALUE_LOGITS,         // of the router, of all rows that compete [rows, experts]
    VALUE_CHOICES,        // this and the next: as routing makes them
    VALUE_SLOTS,
    VALUE_GATES,
    VALUE_SOURCES,
    VALUE_COUNTS,
    VALUE_EXPERT_IN,     // in each expert's own values
    VALUE_EXPERT_OUT,    // [slots, hidden], back on the ranks of the tokens
    VALUE_COUNT
};
// Of an expert on this rank; S: its slots on all ranks of ep, R: those on all ranks of tp, too.
struct expert_values {
    int32_t in;     // [S, hidden]
    int32_t fc1;    // [R, ffn] or [R, 2 ffn]
    int32_t s;      // [R, ffn]
};
struct values {
    int32_t               tensor[VALUE_COUNT];
    struct expert_values *experts;    // [experts here]
};

// The weights of one block, as indices into plan->weights; -1 where the model has none.
struct block_weights {
    int32_t norm1, norm1_bias, qkv, proj, norm2, norm2_bias, fc1, fc2, router;
    int32_t experts;    // fc1 of the first expert here; its fc2 and those of the next follow
};
struct model_weights {
    int32_t               embedding, final_norm, final_norm_bias, head;    // head == embedding when tied
    struct block_weights *blocks;                                          // [layers]
};

// How a unit stands while ops are appended.
struct unit_state {
    bool    is_whole;          // its weights can be read now
    int32_t whole_gradient;    // where this microbatch's gradients go under FSDP; -1: not open
    int32_t reduced;           // gradients as a transfer left them, still to be brought into the kept ones; -1: none
    bool    reduced_adds;      // ... added, not copied
};

// What the weight gradient of the head is computed from.
struct head_inputs {
    int32_t x, gradient;    // [S, hidden] before the head, and of the logits [T, vocabulary]
};

struct builder {
    struct plan         *plan;
    int32_t              tensor_capacity, op_capacity;
    struct usage        *usage;    // [tensor_capacity] of wholes: touching a part is touching the whole
    struct op_tag        tag;      // of the ops being appended
    struct model_weights weights;
    struct unit_state   *states;                  // of the plan's units
    struct values       *values;                  // [in_flight][layers]
    int64_t              in_flight;               // microbatches of a chunk between forward and backward, at most
    int32_t              first_unit, end_unit;    // of the chunk at hand
    int64_t              tokens;                  // T
    int64_t              shard_tokens;    // rows of the residual stream here: T / tp, or T without sequence parallelism
    int64_t              sequence;        // positions of a sequence that this rank holds
    bool                 is_ring;         // cp passes keys and values round
    bool                 overlaps;        // tp splits products so that transfers hide
    int64_t              heads, kv_heads, ffn;    // of this rank
    struct routing_shape routing;                 // of every layer, where there are experts
    int64_t              prefetch, reshard;       // [parallel]
    bool                 gathers_forward;         // updated weights, in the next forward pass
    bool                 is_initial;              // of the ops that are appended
    int64_t              deferral;                // microbatches whose weight gradient of the head is deferred
    struct head_inputs  *deferred;                // those of the microbatches from 0 on
    int64_t              deferred_count;
    int32_t              pending[LANE_COUNT];    // ops that the next compute op waits for, whatever it touches; -1
    int32_t              last_compute;           // -1: none
    int32_t              reduces[2];             // the latest two reductions of whole gradients; -1: none
};

// builder.c
#define DIMS(...) ((const int64_t[4]){__VA_ARGS__})
int32_t builder_tensor(struct builder *builder, const char *name, enum storage storage, enum dtype dtype,
                       const int64_t dim[4]);
int32_t builder_activation(struct builder *builder, const char *name, const int64_t dim[4]);
// A part of another tensor, from its element first_element on; it has the whole's type and storage.
int32_t builder_part(struct builder *builder, const char *name, int32_t whole, int64_t first_element,
                     const int64_t dim[4]);
// From now on what touches the part does not wait for what touches the rest of its whole. Whoever touches its bytes by
// another name comes after all of that anyway.
void      builder_set_apart(struct builder *builder, int32_t part);
struct op builder_op(const struct builder *builder, enum op_kind kind, const char *role);
void      builder_operand(struct op *op, int slot, enum access access, int32_t tensor);
int32_t   builder_append(struct builder *builder, struct op *op);    // adds waits for what its operands depend on
int32_t   builder_group(struct builder *builder, uint32_t axes);
// The next compute op waits for that one. No operand asks for it: it bounds how far a lane lags, and so how much
// memory it holds.
void builder_hold_compute(struct builder *builder, int32_t until);

// A transfer of whole tensors. in -1: out is updated in place; a send has no out, a receive no in. hold: an op that
// ends first, whatever is touched, or -1. peer: of a send, receive or rotation; channel: of a send or receive.
struct transfer {
    enum op_kind kind;
    const char  *role;
    uint32_t     axes;
    enum lane    lane;
    int32_t      in, out, hold;
    int32_t      peer, channel;
};
int32_t builder_transfer(struct builder *builder, const struct transfer *transfer);
// Gives an op that was appended another operand, which no other lane has touched.
void builder_add_operand(struct builder *builder, int32_t op, int slot, enum access access, int32_t tensor);
bool builder_is_current(const struct builder *builder, int32_t op, int32_t tensor);    // not written since that op
bool builder_is_unread(const struct builder *builder, int32_t tensor);
void builder_clear(struct builder *builder, const char *role, int32_t tensor);
void builder_cast(struct builder *builder, const char *role, int32_t from, int32_t to, bool adds);

// quantize.c: copies in FP8, and their scales.
void quantize_declare(struct builder *builder);
// A tensor [rows, columns] as the products of a weight read it: in FP8, transposed or not; itself if it is that. One op
// makes both copies: the one that made the tensor, if it can, or one that is appended unless an earlier one still
// holds.
int32_t quantize_copy(struct builder *builder, int32_t tensor, int32_t weight, enum fp8_role role, bool is_transposed);
enum fp8_scaling quantize_scaling(const struct plan *plan, enum fp8_role role);
void quantize_drop_unread(struct builder *builder);    // at the end: outputs of which only the fused copies are read
// After a step's last copy: magnitudes of all ranks to scales for the next step.
void quantize_reduce_magnitudes(struct builder *builder);
void quantize_rescale(struct builder *builder);
// Weights that are kept in FP8: what brings them back, and the copy of this rank's slice of a unit, made of its
// masters. Scaled by current values, all slices are measured before.
int32_t quantize_weight_factor(struct builder *builder, int32_t weight);
void    quantize_measure_weights(struct builder *builder);
void    quantize_update_weights(struct builder *builder, int32_t unit);

// linear.c: y = x W^T and its two gradients.
struct linear {
    const char *role;
    int32_t     weight;
    bool        is_gradient;    // dx = dy W instead
};
int32_t linear_out(struct builder *builder, const struct linear *linear, int64_t rows);    // a tensor for so many rows
void    linear_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out, bool accumulates);
int32_t linear_product(struct builder *builder, const struct linear *linear, int32_t x);
int32_t linear_factor(struct builder *builder, const struct linear *linear, int32_t x);    // x as the product reads it
int32_t linear_forward(struct builder *builder, const char *role, int32_t x, int32_t weight);
int32_t linear_data_gradient(struct builder *builder, const char *role, int32_t dy, int32_t weight);
void    linear_weight_gradient(struct builder *builder, const char *role, int32_t dy, int32_t x, int32_t weight);
// True when this step has already written the gradient, so that the next contribution adds to it.
bool gradient_accumulates(const struct builder *builder, int32_t weight);

// tensor.c, tensor_ring.c: tensor parallelism. S: rows of the residual stream on this rank. Where tp shares them out, a
// gather before a product and a sum's own rows after one, split so that they overlap if the layout asks; where every
// rank has all of them, the whole sum after one; without tp just the product. x: [S, k]; whole receives the tensor of
// all rows, unless it is NULL. Returns [T, n].
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
int32_t tensor_gather(struct builder *builder, const char *role, int32_t rows);       // [S, n] of all: [T, n]
int32_t tensor_reduce(struct builder *builder, const char *role, int32_t partial);    // sum of [T, n]: own [S, n]
// Sums over tp the gradients of a unit's replicated weights, where each rank saw its own rows.
void tensor_reduce_replicated(struct builder *builder, int32_t unit);

// norm.c: the residual sum and the norm of it, and their gradient.
struct norm_values {
    int32_t x, branch, weight, bias;    // in; branch -1: no addition
    int32_t sum, out, statistics;       // out; sum == x without a branch
};
void norm_forward(struct builder *builder, const char *role, struct norm_values *norm);
// Returns the gradient of sum: the norm's own, plus residual when it is not -1.
int32_t norm_backward(struct builder *builder, const char *role, const struct norm_values *norm, int32_t gradient,
                      int32_t residual);

// weights.c: declares the weights of the chunks on this rank, in units.
void    weights_declare(struct builder *builder);
int64_t weights_linears(const struct model_config *model);    // that FP8 may compute, in a layer

// pipeline.c: the chunks of the model by place, and every microbatch through those of this rank.
struct schedule_deal  pipeline_deal(const struct plan *plan);
struct schedule_shape pipeline_shape(const struct plan *plan);
int64_t               pipeline_stage(const struct plan *plan);
void                  pipeline_append(struct builder *builder);

// block_embedding.c, block_head.c
int32_t embedding_forward(struct builder *builder, int64_t microbatch);
void    embedding_backward(struct builder *builder, int64_t microbatch, int32_t gradient);
// Final norm, logits, loss and their gradients; returns the gradient of the residual stream.
int32_t head_forward_backward(struct builder *builder, int64_t microbatch, int32_t x, int32_t branch);
void    head_append_deferred(struct builder *builder);    // weight gradients that were left for later; there are some

// block.c: a block's ops in order, and what is computed again before its backward pass.
// The values of a layer for the microbatch of the tag.
struct values *block_values(const struct builder *builder, int64_t layer);
// x: the residual stream; branch: what the first norm adds to it, or -1. Fills the block's values.
void block_forward(struct builder *builder, int64_t layer, int32_t x, int32_t branch);
// Returns the gradient of the residual stream at the block's entry. The gradients of a unit's weights are complete as
// soon as its ops are: their reduction starts then, beside the rest.
int32_t block_backward(struct builder *builder, int64_t layer, int32_t gradient);
// A block's units, one after another: all but what follows; its linears, where these are apart; its experts.
int32_t block_unit(const struct builder *builder, int64_t layer);
int32_t block_units(const struct builder *builder);

// block_attention.c, block_mlp.c, block_moe.c
struct block {
    struct builder             *builder;
    const struct block_weights *weights;
    struct values              *values;
    int32_t                     branch;    // what the first norm adds; -1 when VALUE_X is complete
};
void    attention_norm(struct block *block);
void    attention_qkv(struct block *block);
void    attention_rope(struct block *block);
void    attention_core(struct block *block);
void    attention_projection(struct block *block);
int32_t attention_backward(struct block *block, int32_t gradient);
void    mlp_norm(struct block *block);
void    mlp_fc1(struct block *block);
void    mlp_activation(struct block *block);
void    mlp_fc2(struct block *block);
int32_t mlp_activate(struct builder *builder, int32_t in);
int32_t mlp_activation_backward(struct builder *builder, int32_t gradient, int32_t in);    // in: as before
// From the gradient of the block's output to that of its second norm's; from that, and the residual's, through the
// norm.
int32_t  mlp_backward(struct block *block, int32_t gradient);
int32_t  mlp_norm_backward(struct block *block, int32_t gradient, int32_t residual);
int64_t  moe_experts_here(const struct plan *plan);
uint32_t moe_row_axes(const struct builder *builder);    // whose ranks have other rows of the same sequences
struct routing_shape moe_routing(const struct builder *builder);
void                 moe_logits(struct block *block);
void                 moe_route(struct block *block);
void                 moe_dispatch(struct block *block);
void                 moe_fc1(struct block *block);
void                 moe_activation(struct block *block);
void                 moe_fc2(struct block *block);
void                 moe_combine(struct block *block);
int32_t              moe_backward(struct block *block, int32_t gradient);

// context.c, context_ring.c: attention over keys and values of a whole sequence whose queries the ranks of cp share
// out.
void context_attention(struct block *block);
// The gradients of q and kv of this rank, from that of the attention output.
void context_attention_backward(struct block *block, int32_t gradient, int32_t dq, int32_t dkv);
void ring_attention(struct block *block);
void ring_attention_backward(struct block *block, int32_t gradient, int32_t dq, int32_t dkv);
// Rows first .. first + rows - 1 of a [rows, ...] tensor.
int32_t context_rows(struct builder *builder, const char *name, int32_t whole, int64_t first, int64_t rows);
// The queries of a rank of cp are runs of positions: of each sequence in order, one from either end.
enum { HALVES = 2 };
int64_t context_runs(const struct builder *builder);
int32_t context_run(struct builder *builder, int32_t whole, int64_t run);    // of [T, ...] or [runs, ...]
int32_t context_statistics(struct builder *builder, int64_t runs);
// An attention op of a run on so many keys, and the inputs of its backward pass but for the keys.
struct op context_op(const struct builder *builder, enum op_kind kind, const char *role, int64_t keys);
void      context_gradient_inputs(struct block *block, struct op *op, int32_t gradient, int64_t run);
// One attention op: forward (gradient -1) or backward over a run of queries and the keys before and among them.
struct op attention_op(const struct builder *builder, enum op_kind kind, const char *role);

// unit.c: places of units.
int64_t unit_places(const struct plan *plan);
int64_t unit_place_of_experts(const struct plan *plan, int64_t layer);
// A block's linears are a unit of their own where they are kept in FP8 and the rest of the block is not.
int64_t unit_place_of_linears(const struct plan *plan, int64_t layer);
// Elements, rounded up so that each of so many slices of them starts at a multiple of 16 bytes of the narrowest type.
int64_t unit_align(const struct plan *plan, int64_t elements, int64_t slices);
// Where a unit's weights and gradients are while a microbatch passes, and their transfers.
void unit_create(struct builder *builder, int64_t place, int64_t elements);
// Makes the weights readable; gathers those of the next units in that direction (1 or -1) ahead of their use.
void unit_acquire(struct builder *builder, int32_t unit, int32_t direction);
void unit_release(struct builder *builder, int32_t unit);
// Between these two, the gradients of the unit's weights are written. The end reduces them as far as the layout asks.
void unit_begin_gradients(struct builder *builder, int32_t unit);
void unit_end_gradients(struct builder *builder, int32_t unit);
void unit_settle_gradients(struct builder *builder);    // at a chunk's end: what transfers left goes to its place
// Points the unit's weights at parts of a tensor that holds its whole range; -1: they cannot be touched.
void unit_point_weights(struct builder *builder, int32_t unit, int32_t whole);
void unit_point_gradients(struct builder *builder, int32_t unit, int32_t whole);
// What this rank's optimizer reads and writes.
int32_t unit_updated_gradient(struct builder *builder, int32_t unit);
int32_t unit_updated_weight(struct builder *builder, int32_t unit);
// Under ZeRO-1, updated slices to whole weights; not before the op hold has ended, or -1.
void unit_gather_updated(struct builder *builder, int32_t unit, int32_t hold);

// optimizer_ops.c
void optimizer_append(struct builder *builder);

// order.c: [op * LANE_COUNT + lane]: how many of that lane's ops have surely ended before the op starts. The caller
// frees it. position: [op], the op's place in its own lane.
int32_t *order_clocks(const struct plan *plan, int32_t *position);
// Drops the waits that other waits and the order of lanes imply.
void order_prune(struct plan *plan, const int32_t *clocks, const int32_t *position);

// memory.c: gives every activation its place in the arena.
void memory_place(struct plan *plan, const int32_t *clocks, const int32_t *position);

#endif
