// SPDX-License-Identifier: MIT
// Declares the builder: the state that layers share while they append the ops of a step to a plan (assembly.h).
#pragma once

#include "gswbench/assembly.h"

// An MTP module has two sublayers more than a layer.
enum { LAYER_SUBLAYERS = 4, BLOCK_SUBLAYERS = LAYER_SUBLAYERS + 2, SUBLAYER_WEIGHTS = 12 };

// A block is a layer, an MTP module, the embedding or the head. Its place is its index in builder->blocks: 0 is the
// embedding, l + 1 is layer l; the head and the MTP modules follow.
struct block {
    int64_t                  layer;    // -1: embedding or head
    int32_t                  count;    // number of sublayers
    const struct layer_kind *kinds[BLOCK_SUBLAYERS];
    int32_t                  weights[BLOCK_SUBLAYERS][SUBLAYER_WEIGHTS];    // indices in plan->weights; -1: none
    int64_t                  linears, first_linear;     // linears that can run in FP8; model-wide index of the first
    bool                     is_repeat;                 // an MTP module that shares the previous module's weights
    int64_t                  expert_layer;              // index among the layers with experts; -1: no experts
    int32_t                  first_unit, unit_count;    // FSDP units, consecutive; the unit of experts is the last
    int64_t                  own;                       // index among the blocks of this rank, over all its chunks
    int64_t                  in_chunk;                  // index of a layer in its pipeline chunk
};

// State of an FSDP unit at the current point of the op list.
struct unit_state {
    bool    is_whole;          // the weights are gathered
    int32_t users;             // pipeline actions that are using the gathered weights
    int32_t whole_gradient;    // tensor of this microbatch's unsharded gradients, not reduced yet; -1: none
    int32_t reduced;           // tensor of reduced gradients that are not yet in the accumulated gradients; -1: none
    bool    reduced_adds;      // `reduced` will be added to the accumulated gradients; false: copied
};

// An adapter (LoRA) computes t = scale x A^T, then adds t B^T to the output y. gradient: the latest gradient of t, kept
// because the gradients of x and of A need it. output_gradient: the gradient of y that it came from. -1: none yet.
struct adapter_input {
    int32_t output_gradient, gradient;
};

// Inputs of a deferred weight gradient of the head.
struct head_inputs {
    int32_t x, gradient;    // head input [S, hidden]; gradient of the logits [T, vocabulary]. S, T: struct builder
};

// Work that a zero-bubble schedule moves out of the backward pass: a weight gradient (DELAYED_GRADIENT), or the calls
// of unit_begin_gradients and unit_end_gradients before and after the weight gradients of an FSDP unit.
enum delayed_kind { DELAYED_BEGIN, DELAYED_GRADIENT, DELAYED_END };
struct delayed {
    enum delayed_kind kind;
    struct op_tag     tag;
    const char       *role;
    int32_t           output_gradient, x, weight;    // DELAYED_GRADIENT: its operands
    // DELAYED_BEGIN, DELAYED_END: unit, tensor of its unsharded gradients, and the part of it for the first weight.
    int32_t unit, whole, first_part;
};

struct builder {
    struct assembly      assembly;
    struct plan         *plan;                      // the plan that assembly appends to
    struct arena         scratch;                   // freed with the builder
    struct block        *blocks;                    // [all layers + 2]
    int64_t              linears, expert_layers;    // of the whole model
    struct unit_state   *states;                    // [units of the plan]
    struct block_values *values;                    // [own_blocks][in_flight]
    int64_t              own_blocks;                // on this rank
    int64_t              in_flight;                 // maximum microbatches of a chunk that await their backward pass
    int32_t              first_unit, end_unit;      // of the current chunk
    int64_t              tokens;                    // T: tokens of a microbatch on this rank
    int64_t shard_tokens;    // S: rows of the residual stream on this rank; T / tp with sequence parallelism, else T
    int64_t sequence;        // positions of a sequence on this rank
    bool    overlaps;        // GEMMs are split to overlap with tp communication
    bool    overlaps_experts;                  // the same for the GEMMs of experts
    int64_t heads, kv_heads;                   // on this rank
    int64_t key_dim, value_dim;                // of a head in attention
    struct routing_shape routing;              // the same for every layer with experts
    int64_t              prefetch, reshard;    // as in [parallel]
    bool                 gathers_forward;      // ZeRO-1: updated weights are gathered in the next forward pass
    bool                 reduces_each;         // gradients are reduced over replicas per microbatch, not per step
    int32_t             *owners;               // Muon: replica that owns each matrix [weights][WEIGHT_PARTS]
    // Adapters of frozen matrices. The backward pass ends at the first trained weight of the model.
    int64_t               first_trained_place;       // place of the block that has it
    int32_t               first_trained_sublayer;    // its sublayer in this block
    int32_t              *adapted;           // t of struct adapter_input [MTP modules, or 1][weights][in_flight]
    struct adapter_input *adapter_inputs;    // [weights of this rank]
    int64_t               deferral;          // number of microbatches whose head weight gradient is deferred
    struct head_inputs   *deferred;          // of microbatches 0, 1, ...
    int64_t               deferred_count;
    bool                  delays;     // the backward pass being appended adds its weight gradients to `delayed`
    struct delayed       *delayed;    // in the order of the backward passes
    int64_t               delayed_count, delayed_done;    // entries; of these, already appended as ops
    int32_t               reduces[2];                     // the last two reductions of unsharded gradients; -1: none
};

// Places of blocks (struct block). block_place returns the place of a layer (-1: the embedding), block_head that of the
// head, block_places the number of blocks. block_layer returns the layer at a place; -1 for embedding and head.
int64_t block_place(const struct model_config *model, int64_t layer);
int64_t block_layer(const struct model_config *model, int64_t place);
int64_t block_head(const struct model_config *model);
int64_t block_places(const struct model_config *model);

// A collective over these mesh axes (1 << axis). makes, in, out and hold: as in struct communication (assembly.h).
struct collective {
    enum op_kind kind;
    const char  *role;
    uint8_t      makes;
    uint32_t     axes;
    enum stream  stream;
    int32_t      in, out, hold;
};
int32_t collect(struct builder *builder, const struct collective *collective);

// Splits a tensor by columns into first and rest, or joins first and rest into a new tensor with this name. Each tensor
// has one row per row of the residual stream on this rank.
void    columns_split(struct builder *builder, const char *role, int32_t whole, int32_t first, int32_t rest);
int32_t columns_join(struct builder *builder, const char *role, const char *name, int32_t first, int32_t rest);

// Declarations of weights: shape, sharding and initial values of each part.

// A tensor of the exported model. name: %d stands for the layer, a second %d for the expert. stream: number of the
// random stream of its initial values within the layer (64 streams) or expert (4 streams).
struct exported {
    const char *name;
    int         stream;
};

// Names of an adapter's matrices. B has the same parts as the adapted matrix, such as q, k and v.
struct adapter_names {
    const char            *name[ADAPTER_MATRICES];
    const struct exported *a, *b[3];
};

// Random stream (struct exported) of a matrix B, which starts at zero and draws nothing. Matrices A have streams 0
// to 5.
enum { ADAPTER_NOT_DRAWN = 63 };

// A part of a weight: a whole matrix or vector, and this rank's rows and columns of it.
struct declared_part {
    const struct exported *as;
    int64_t                rows, columns;
    int64_t                first_row, local_rows;
    int64_t                first_column, local_columns;
    uint32_t               replica_axes;    // 1 << axis, or MESH_HEAD_COPIES: axes along which ranks have the same part
};

// A weight: up to WEIGHT_PARTS parts, concatenated by rows.
struct declaration {
    const char          *name;
    int32_t             *index;            // receives the index in plan->weights; NULL: not needed
    int64_t              expert;           // -1: not an expert's
    int64_t              rows, columns;    // on this rank, with padding
    struct declared_part part[WEIGHT_PARTS];
    int                  parts;
    int32_t              bias_of;       // declaration of the matrix that this is the bias of; -1: not a bias
    int32_t              adapter_of;    // declaration of the matrix that this adapts; -1: not of an adapter
    enum adapter_matrix  adapter;
    bool                 is_vector;        // exported with one dimension; a matrix of one row has two
    bool                 is_replicated;    // on all ranks of tp
    bool                 is_of_heads;      // replicated, but each rank's gradient covers only its own heads
    int64_t              linear;           // index among the sublayer's linears that can run in FP8; -1: none
    enum linear_kind     gemm;
    float                deviation, constant;
    bool                 is_summed;    // row-parallel: the outputs are partial sums over tp
    int32_t              place;        // index in plan->weights
};

// How tp shards a matrix: equal parts, by rows (outputs) or by columns (inputs). Experts with etp = 1 are whole.
struct share {
    int64_t  size, index;     // number of parts, and index of this rank's part
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

// Adds a weight without parts. The result is valid until the next declaration.
struct declaration *declare_matrix(struct declarations *declarations, int32_t *index, const char *name);
struct declaration *declare_linear(struct declarations *declarations, int32_t *index, const char *name,
                                   enum linear_kind gemm, int64_t linear);
// A vector of a norm, replicated over tp.
void declare_vector(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as,
                    int64_t columns, float constant);
// A matrix that is replicated over tp.
void declare_whole(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as,
                   int64_t rows, int64_t columns);
// Replicated vectors of head_dim elements that all heads share, one per part.
void declare_head_scales(struct declarations *declarations, int32_t *index, const char *name,
                         const struct exported *const *as, int parts);

// A vector that is sharded over tp in equal parts. The caller sets its initial values.
struct declaration *declare_sharded_vector(struct declarations *declarations, int32_t *index, const char *name,
                                           const struct exported *as, int64_t columns);
// One number per attention head, sharded over tp like the heads.
void declare_heads(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as);
// The bias of the matrix that was declared last, with the same parts.
void declare_bias(struct declarations *declarations, const char *name, const struct exported *const *as);

// Declares the adapter of the matrix declared last, if [adapters] targets it. The A of a column-parallel matrix and the
// B of a row-parallel one are replicated over tp. A rank computes only a partial gradient of these, from its part of
// the matrix, so their gradients are summed over tp.
void declare_adapter(struct declarations *declarations, const struct adapter_names *names);

// Adds a part of rows x columns that is sharded by rows (column-parallel), or replicated if the weight is.
void declare_rows(const struct declarations *declarations, struct declaration *declaration, const struct exported *as,
                  int64_t rows, int64_t columns);
// The same for keys or values: heads are sharded over tp, and several ranks can have the same head.
void declare_key_value_rows(const struct declarations *declarations, struct declaration *declaration,
                            const struct exported *as);
// Adds a part that is sharded by columns (row-parallel). Its output is added to the residual stream, so its initial
// deviation is divided by sqrt(2 layers), which keeps the variance independent of depth.
void declare_columns(const struct declarations *declarations, struct declaration *declaration,
                     const struct exported *as, int64_t rows, int64_t columns);
// Adds a vocabulary table, with padding after the last row.
void declare_table(const struct declarations *declarations, struct declaration *declaration, const struct exported *as);
