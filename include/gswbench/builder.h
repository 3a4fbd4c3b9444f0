// SPDX-License-Identifier: MIT
// Declares struct builder, the state of a plan under construction. All layers read and change it while they append the
// ops of a training step.
#pragma once

#include "gswbench/assembly.h"

// Maximum sublayers of a layer and of any block, and maximum weights of a sublayer. An MTP module is a layer with one
// additional sublayer before it and one after it.
enum { LAYER_SUBLAYERS = 4, BLOCK_SUBLAYERS = LAYER_SUBLAYERS + 2, SUBLAYER_WEIGHTS = 12 };

// A block is a layer, an MTP module, the embedding or the head. The place of a block is its index in builder->blocks: 0
// is the embedding, l + 1 is layer l; the head and the MTP modules follow.
struct block {
    int64_t                  layer;    // MTP modules have the numbers after the last layer; -1: embedding or head
    int32_t                  count;    // number of sublayers
    const struct layer_kind *kinds[BLOCK_SUBLAYERS];
    int32_t                  weights[BLOCK_SUBLAYERS][SUBLAYER_WEIGHTS];    // indices in plan->weights; -1: none
    int64_t                  linears, first_linear;     // linears that can run in FP8: number; model index of first
    bool                     is_repeat;                 // an MTP module that shares the previous module's weights
    int64_t                  expert_layer;              // index among the layers with experts; -1: no experts
    int32_t                  first_unit, unit_count;    // consecutive FSDP units; experts are the last one
    int64_t                  own;                       // index among the blocks of this rank's pipeline chunks
    int64_t                  in_chunk;                  // index of a layer in its pipeline chunk
};

// State of an FSDP unit at the current point of the op list.
struct unit_state {
    bool    is_whole;          // the weights are gathered
    int32_t users;             // forward and backward passes (pipeline actions) that use the gathered weights now
    int32_t whole_gradient;    // tensor of this microbatch's unsharded gradients, not reduced yet; -1: none
    int32_t reduced;           // tensor of reduced gradients that are not yet in the accumulated gradients; -1: none
    bool    reduced_adds;      // true: `reduced` will be added to the accumulated gradients; false: will replace them
};

// An adapter (LoRA) computes t = scale * (x A^T) and adds t B^T to the output y of the frozen matrix. output_gradient:
// tensor with the latest gradient of y. gradient: tensor with the gradient of t, computed from output_gradient. It is
// kept because the gradients of x and of A both need it. -1: none yet.
struct adapter_input {
    int32_t output_gradient, gradient;
};

// Inputs of a deferred weight gradient of the head.
struct head_inputs {
    // Input of the head [shard_tokens, hidden], and gradient of its logits [tokens, vocabulary] (tokens, shard_tokens:
    // see struct builder).
    int32_t x, gradient;
};

// Work that a zero-bubble schedule moves out of a backward pass: the weight gradient of one linear (DELAYED_GRADIENT),
// or the calls of unit_begin_gradients and unit_end_gradients around the weight gradients of an FSDP unit.
enum delayed_kind { DELAYED_BEGIN, DELAYED_GRADIENT, DELAYED_END };
struct delayed {
    enum delayed_kind kind;
    struct op_tag     tag;
    const char       *role;
    int32_t           output_gradient, x, weight;    // DELAYED_GRADIENT: operands of the weight gradient
    // DELAYED_BEGIN, DELAYED_END: index of the FSDP unit, tensor of its unsharded gradients, and the part of that
    // tensor for the unit's first weight.
    int32_t unit, whole, first_part;
};

struct builder {
    struct assembly      assembly;
    struct plan         *plan;                      // the plan that assembly appends to
    struct arena         scratch;                   // freed with the builder
    struct block        *blocks;                    // [block_places]: all blocks of the model
    int64_t              linears, expert_layers;    // in the model: linears that can run in FP8; layers with experts
    struct unit_state   *states;                    // one per FSDP unit of the plan
    struct block_values *values;                    // [own_blocks][in_flight]: tensors of each block and microbatch
    int64_t              own_blocks;                // number of blocks on this rank
    int64_t              in_flight;                 // maximum microbatches of a chunk that await their backward pass
    int32_t              first_unit, end_unit;      // FSDP units of the current pipeline chunk
    int64_t              tokens;                    // tokens of a microbatch on this rank
    // Rows of the residual stream on this rank: tokens / tp with sequence parallelism, else tokens.
    int64_t              shard_tokens;
    int64_t              sequence;              // positions of a sequence on this rank
    bool                 overlaps;              // GEMMs are split to overlap with tp communication
    bool                 overlaps_experts;      // the GEMMs of experts are split, too
    int64_t              heads, kv_heads;       // attention heads on this rank
    int64_t              key_dim, value_dim;    // elements of a head of queries and keys, and of values
    struct routing_shape routing;               // shape of the routing ops, the same in every layer with experts
    int64_t              prefetch, reshard;     // parallel.prefetch and parallel.reshard
    bool                 gathers_forward;       // ZeRO-1: updated weights are gathered in the next forward pass
    bool                 reduces_each;          // gradients are reduced over replicas per microbatch, not per step
    int32_t             *owners;                // Muon: replica that owns each matrix [weights][WEIGHT_PARTS]
    // With adapters, all other weights are frozen. The backward pass ends at the first trained weight of the model.
    int64_t               first_trained_place;       // place of the block with the first trained weight
    int32_t               first_trained_sublayer;    // index in that block of the sublayer with this weight
    int32_t              *adapted;                   // [MTP modules, at least 1][weights][in_flight]: t (adapter_input)
    struct adapter_input *adapter_inputs;            // one per weight of this rank
    int64_t               deferral;                  // number of microbatches whose head weight gradient is deferred
    struct head_inputs   *deferred;                  // [deferred_count]: of microbatches 0, 1, ...
    int64_t               deferred_count;
    bool                  delays;     // the current backward pass postpones weight gradients: adds them to `delayed`
    struct delayed       *delayed;    // work moved out of backward passes, oldest first
    int64_t               delayed_count, delayed_done;    // entries of `delayed`; entries already appended as ops
    int32_t               reduces[2];                     // the last two ops that reduce unsharded gradients; -1: none
};

// block_place returns the place (struct block) of a layer; layer -1 is the embedding. block_head returns the place of
// the head, block_places the number of blocks. block_layer returns the layer at a place, or -1 for embedding and head.
int64_t block_place(const struct model_config *model, int64_t layer);
int64_t block_layer(const struct model_config *model, int64_t place);
int64_t block_head(const struct model_config *model);
int64_t block_places(const struct model_config *model);

// Appends a communication op (assembly_communication).
int32_t collect(struct builder *builder, const struct communication *communication);

// columns_split copies the columns of tensor `whole` into the tensors `first` and `rest`. columns_join concatenates the
// columns of `first` and `rest` in a new tensor. All have one row per row of the residual stream on this rank.
void    columns_split(struct builder *builder, const char *role, int32_t whole, int32_t first, int32_t rest);
int32_t columns_join(struct builder *builder, const char *role, const char *name, int32_t first, int32_t rest);

// Layers declare their weights with the following types: shape, sharding and initial values of each part.

// A tensor of the model in Hugging Face's layout. In its name, the first %d is the layer, a second %d the expert.
// stream: number of the random stream of its initial values, within the layer (0 to 63) or the expert (0 to 3).
struct exported {
    const char *name;
    int         stream;
};

// Names of an adapter's matrices A and B: `name` in the plan, `a` and `b` in the exported model. B has the same parts
// as the adapted matrix, such as q, k and v.
struct adapter_names {
    const char            *name[ADAPTER_MATRICES];
    const struct exported *a, *b[3];
};

// Random stream (struct exported) of every adapter matrix B. B starts at zero, so this stream is never drawn from. The
// matrices A have streams 0 to 5.
enum { ADAPTER_NOT_DRAWN = 63 };

// A weight: up to WEIGHT_PARTS parts, concatenated by rows.
struct declaration {
    const char            *name;
    int32_t               *index;                 // receives the index in plan->weights; NULL: not needed
    int64_t                expert;                // index of the expert; -1: not an expert's weight
    int64_t                rows, columns;         // size on this rank, with padding
    struct weight_part     part[WEIGHT_PARTS];    // shape and replica axes; src/build/weights.c sets the other fields
    const struct exported *as[WEIGHT_PARTS];      // exported name and random stream of each part
    int                    parts;
    int32_t                bias_of;       // index of the declaration whose bias this is; -1: not a bias
    int32_t                adapter_of;    // index of the declaration that this adapts; -1: not an adapter
    enum adapter_matrix    adapter;
    bool                   is_vector;        // exported with one dimension; a matrix of one row has two
    bool                   is_replicated;    // replicated over tp
    bool                   is_of_heads;    // replicated, but a rank's gradient is a partial sum, such as over its heads
    int64_t                linear;         // index among the model's linears that can run in FP8; -1: none
    enum linear_kind       gemm;
    float                  deviation, constant;    // standard deviation and mean of the initial values
    bool                   is_summed;              // row-parallel: the outputs are partial sums over tp
    int32_t                place;                  // index in plan->weights
};

// How tp shards a matrix: into equal parts, by rows (outputs) or by columns (inputs). With etp = 1, matrices of experts
// are one part.
struct share {
    int64_t  size, index;     // number of parts; index of this rank's part
    uint32_t replica_axes;    // axes along which ranks have the same part
};

struct declarations {
    const struct builder *builder;
    const struct block   *block;
    struct share          share;
    int64_t               first_linear;    // model-wide index of the current sublayer's first linear
    struct declaration   *list;
    int32_t               count;
};

// Add a weight that has no parts yet; declare_rows and the functions after it add parts. The returned pointer is valid
// until the next declaration. linear: index among the sublayer's linears that can run in FP8.
struct declaration *declare_matrix(struct declarations *declarations, int32_t *index, const char *name);
struct declaration *declare_linear(struct declarations *declarations, int32_t *index, const char *name,
                                   enum linear_kind gemm, int64_t linear);
// Declares the weight or bias vector of a norm, replicated over tp.
void declare_vector(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as,
                    int64_t columns, float constant);
// Declares vectors of head_dim elements that all heads share, such as the weights of qk_norm: one per part, replicated
// over tp.
void declare_head_scales(struct declarations *declarations, int32_t *index, const char *name,
                         const struct exported *const *as, int parts);

// Declares a vector that is sharded over tp in equal parts. The caller sets its initial values.
struct declaration *declare_sharded_vector(struct declarations *declarations, int32_t *index, const char *name,
                                           const struct exported *as, int64_t columns);
// Declares the bias of the matrix that was declared last, with the same parts.
void declare_bias(struct declarations *declarations, const char *name, const struct exported *const *as);

// Declares the adapter of the matrix declared last, if [adapters] targets it and it is not an expert's. The A of a
// column-parallel matrix and the B of a row-parallel one are replicated over tp. A rank has only a part of the adapted
// matrix and computes a partial gradient of the replicated one, so these gradients are summed over tp.
void declare_adapter(struct declarations *declarations, const struct adapter_names *names);

// Adds a part with this shape that is sharded by rows (column-parallel), or replicated if the weight is replicated.
void declare_rows(const struct declarations *declarations, struct declaration *declaration, const struct exported *as,
                  int64_t rows, int64_t columns);
// Adds a part with keys or values, sharded by heads over tp. With more ranks than heads, several ranks have the same
// head.
void declare_key_value_rows(const struct declarations *declarations, struct declaration *declaration,
                            const struct exported *as);
// Adds a part that is sharded by columns (row-parallel). Its output is added to the residual stream, so the standard
// deviation of its initial values is divided by sqrt(2 layers), which keeps the variance independent of depth.
void declare_columns(const struct declarations *declarations, struct declaration *declaration,
                     const struct exported *as, int64_t rows, int64_t columns);
// Adds a vocabulary table (of the embedding or the output layer), with padding after the last row.
void declare_table(const struct declarations *declarations, struct declaration *declaration, const struct exported *as);
