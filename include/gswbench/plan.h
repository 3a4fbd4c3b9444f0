// SPDX-License-Identifier: MIT
// The plan: a training step of one rank as an immutable table of tensors and a list of ops. src/build and src/layers
// write it (plan_build.h, assembly.h); every other module reads it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/arena.h"
#include "gswbench/json.h"
#include "gswbench/mesh.h"
#include "gswbench/model.h"
#include "gswbench/op.h"
#include "gswbench/schedule.h"
#include "gswbench/status.h"

// A plan lists its weights and groups them into FSDP units (parameter groups). The weights of a unit are gathered and
// updated together, and their gradients are reduced together.

// A matrix or vector of the exported model that is a part of a weight. For example, the weight "qkv" has the parts q, k
// and v.
enum { WEIGHT_PARTS = 5 };
struct weight_part {
    char     name[64];                       // exported name, "model.layers.3.self_attn.q_proj.weight"
    int64_t  stream;                         // random stream (random.h) of the initial values, the same in every layout
    int64_t  rows, columns;                  // of the whole tensor; 1 row for a vector
    int64_t  first_row, local_rows;          // range of rows on this rank
    int64_t  first_column, local_columns;    // range of columns on this rank
    uint32_t replica_axes;                   // axes of replication: mask of 1 << axis, or MESH_HEAD_COPIES (mesh.h)
    int64_t  offset;                         // elements from the start of the weight
    bool     is_vector;
    float    deviation;    // standard deviation of the initial values
    float    constant;     // mean of the initial values
};

// The matrices of a LoRA adapter. A [rank, in] starts with random numbers, B [out, rank] with zeros.
enum adapter_matrix { ADAPTER_A, ADAPTER_B, ADAPTER_MATRICES };

struct weight {
    const char *name;    // static text: "qkv weight"
    int32_t     unit;
    int64_t     first;                        // offset in the unit, in elements
    int64_t     rows, columns;                // on this rank, with padding
    int32_t     tensor;                       // -1 if this rank keeps only a slice of the unit
    int32_t     gradient;                     // -1 if this rank keeps only a slice of the unit, or the weight is frozen
    int32_t     linear;                       // index among the model's FP8 linears; -1: its GEMMs run in BF16
    int32_t     bias;                         // index of the bias in plan->weights; -1: none
    int32_t     adapter[ADAPTER_MATRICES];    // indices of the adapter in plan->weights; -1: none
    // Frozen weights in FP8 or FP4: the OP_QUANTIZE that computes the weight once from BF16 initial values, without
    // operands IN and OUT. NULL for other weights.
    struct op         *stored;
    int32_t            part_count;
    struct weight_part part[WEIGHT_PARTS];
};

struct plan_slice {
    int64_t first, elements;
};

// An FSDP unit: the embedding, one layer or MTP module, the experts of one of these, or the head with the final norm.
// FP8 linears, Muon's matrices and adapters have separate units, since a unit has one format and one optimizer. The
// weights of a unit are consecutive. An element has the same offset in the unit's weights, gradients, master weights
// and moments; a rank keeps a slice of each. With Muon and ZeRO-1, a rank updates whole matrices, possibly none.
struct plan_unit {
    // Index of the unit in the model. The embedding is 0, a layer l is l + 1, the head is layers + 1. MTP modules,
    // experts of each layer that has any, separate linears, and adapters follow.
    int64_t place;
    bool    is_experts;    // sharded over the expert-parallel group
    // Weights are kept in FP8, and only master weights in full precision. Frozen weights are kept in FP8 or FP4,
    // without masters.
    bool              is_low_precision;
    bool              is_muon;      // matrices, which Muon updates; second_moment is -1
    bool              is_frozen;    // without gradient and optimizer state: gradient, master and moments are -1
    bool              is_copy;      // a copy of the embedding, on a stage with a tied head or MTP modules
    uint32_t          shard_axes, replica_axes;    // axes over which the weights are sharded, and replicated
    uint32_t          update_axes;                 // axes over which the optimizer is sharded
    int64_t           elements;
    int32_t           first_weight, weight_count;
    int64_t           replicated;          // number of leading elements that are replicated over tp
    int64_t           of_heads;            // leading elements whose gradients tp sums even without sequence parallelism
    struct plan_slice kept;                // slice of the weights on this rank: a shard under FSDP, else all
    struct plan_slice updated;             // slice that the optimizer updates: a shard under FSDP and ZeRO-1, else all
    int32_t           weight, gradient;    // tensors of `kept`; gradient: of `updated` if reduced per microbatch
    int32_t           master;              // tensor of the slice `updated`; -1: no separate master weights
    int32_t           first_moment, second_moment;
};

// Memory pools. Activations whose lifetimes do not overlap may share memory. Tensors of the other pools have memory of
// their own and keep their content between steps.
enum storage {
    STORAGE_WEIGHT,
    STORAGE_GRADIENT,
    STORAGE_OPTIMIZER,    // master weights, moments
    STORAGE_INPUT,        // tokens, targets, rope table, hyperparameters: the host fills them between steps
    STORAGE_RESULT,       // loss, gradient norm, partial sums
    STORAGE_ACTIVATION,
    STORAGE_COUNT
};

// The content of a tensor, for predictions of another framework's memory (src/predict/footprint.c): such a framework
// keeps some tensors longer, copies them or casts them again. Other tensors are TENSOR_OTHER.
enum tensor_content {
    TENSOR_OTHER,
    TENSOR_RESIDUAL,      // the residual stream of a layer
    TENSOR_QUERIES,       // queries after RoPE
    TENSOR_KEYS,          // keys or values
    TENSOR_ATTENTION,     // output of core attention, the input of the output projection
    TENSOR_STATISTICS,    // softmax statistics of attention
    TENSOR_FC1,           // output of fc1 in an MLP or a routed expert
    TENSOR_GATED,         // activation output of a routed expert
    TENSOR_EXPERT_OUT,    // outputs of the routed experts for this rank's tokens
    TENSOR_LOGITS,
    TENSOR_WEIGHT_COPY    // FP8 copy of a weight, or its scales
};

struct tensor {
    const char  *name;          // string literal; unique together with layer and microbatch
    uint8_t      holds;         // enum tensor_content
    int16_t      layer;         // -1: none
    int32_t      microbatch;    // -1: none
    enum format  format;
    enum storage storage;
    int32_t      dims;
    int64_t      dim[4];
    int64_t      elements, bytes;
    int64_t      offset;               // bytes from the start of the storage
    int32_t      whole;                // index of the tensor that this one is a part of, or its own
    int64_t      part_offset;          // bytes from the start of the whole
    int32_t      first_op, last_op;    // indices of the first and last op that use the tensor; -1: none
    int32_t      row_count;            // 1 + index in plan->row_counts of the number of rows in use; 0: all are in use
    bool         has_rows_across;      // the row count applies to columns, because the tensor is a transposed copy
    bool         is_packed;    // row counts also determine where this part of `whole` starts; `offset` is not used
};

// A number of rows that is known only during a step, such as the tokens of an expert. Tensors have memory for the
// maximum. Ops in the plan have the expected count, for FLOPs and cost; the step replaces it by the actual count. Row
// counts with the same reader are in the order of the local experts. If the expert-parallel group has several ranks,
// each expert has two counts: rows sent, then rows received.
struct row_count {
    int32_t reader;    // index of the OP_READ_TOKEN_COUNTS that makes the count known to the host
    int64_t expected, maximum;
};

struct plan_group {
    uint32_t axes;    // 1 << AXIS_DP | ...
    int64_t  size;
    int64_t *ranks;    // [size], in rank order
    int64_t  index;    // index of this rank
};

// plan_group_nodes returns the number of nodes that a group spans (ranks fill nodes in order). plan_group_is_apart
// returns whether this rank and the member with index `peer` are on different nodes.
int64_t plan_group_nodes(const struct plan_group *group, int64_t ranks_per_node);
bool    plan_group_is_apart(const struct plan_group *group, int64_t peer, int64_t ranks_per_node);

// FP8 scales of the model's linears, the same on all ranks: f32 [entries]. Entry role * linears + linear is for one
// operand role (enum linear_role) of one linear.
struct plan_scaling {
    int64_t linears;
    int32_t scales, factors;    // scales and their inverses, 1 before the first step; -1: none
    int32_t amaxes;             // largest magnitudes of the current step; RESCALE resets them to 0
    int32_t history;            // [entries, steps] largest magnitudes of past steps, initially 0
};

enum { PLAN_ALIGNMENT = 256 };

struct plan {
    // Configuration that the plan was built from.
    struct model_config        model;
    struct mesh                mesh;
    struct train_config        train;    // with resolved batch sizes
    struct precision           precision;
    struct schedule_assignment assignment;    // assignment of layers to pipeline chunks
    int64_t                    rank;
    bool                       is_zero;        // the optimizer is sharded over replicas (ZeRO-1)
    enum context               context;        // how cp ranks exchange keys and values
    bool                       is_unplaced;    // activations have no offsets; only their peak live bytes are known

    struct tensor *tensors;
    int32_t        tensor_count;
    struct op     *ops;
    int32_t        op_count;
    struct weight *weights;
    int32_t        weight_count;
    // FSDP units of this rank's pipeline chunks: embedding, layers in order, head with the final norm, MTP modules. If
    // the last stage needs the embedding table of the first stage, it has a copy of the embedding before the head.
    struct plan_unit  *units;
    int32_t            unit_count;
    struct plan_group *groups;
    int32_t            group_count;
    struct row_count  *row_counts;
    int32_t            row_count_total;
    int64_t            storage_bytes[STORAGE_COUNT];
    int64_t            activation_live_bytes;    // peak bytes of live activations; activation memory is never smaller

    // Indices of tensors that the host fills or reads; -1: on another stage. tokens: [accumulation], one tensor per
    // microbatch. targets: the same for each of the 1 + predicted_tokens predictions.
    int32_t *tokens, *targets;
    int32_t  positions;    // i32, position of each local row, if the model learns positions; else -1
    int32_t  rope_table, hyper, gradient_norm, clip_scale;
    // FLOPs per step of Muon updates: the mean over the replicas minus this rank's; 0 without zero = 1
    double              owner_flops;
    int32_t             loss, prediction_loss;    // prediction_loss: mean loss of the MTP modules; -1: none
    struct plan_scaling scaling;
    // f32 [layers, experts]: bias that the router adds to scores to choose experts. It is 0 before the first step and
    // the same on all ranks. -1: none.
    int32_t router_bias;
    // f32 [layers, experts + 2]: routing statistics of a step, over all ranks: per layer the rows of each expert, the
    // dropped rows, and the auxiliary loss. -1: no experts.
    int32_t routing;

    struct arena arena;
};

// Returns the position in the sequence of a row on this rank. index: counts the rows of one sequence on this rank. With
// cp, a sequence has 2 cp chunks, and rank r has chunks r and 2 cp - 1 - r.
int64_t plan_position(const struct plan *plan, int64_t index);

void plan_free(struct plan *plan);

// Formats "qkv, layer 3, microbatch 0" into text; returns text.
const char *plan_tensor_name(const struct plan *plan, int32_t tensor, char *text, size_t bytes);
// Formats: op 512 gemm "fc1 weight gradient", backward, layer 3, microbatch 0, chunk 0
const char                    *plan_op_name(const struct plan *plan, int32_t op, char *text, size_t bytes);
const char                    *plan_storage_name(enum storage storage);
extern const struct json_field plan_storage_fields[];    // keys of an array with the bytes of each storage

// Returns the row count that determines the number of rows of the op, or NULL if this number is fixed.
const struct row_count *plan_op_row_count(const struct plan *plan, const struct op *op);
// Returns a copy of the op. If a row count determines its rows, the copy has this number of rows.
struct op plan_op_of_rows(const struct plan *plan, const struct op *op, int64_t rows);
// Returns the op with the rows that its expert has under skewed routing; the plan itself expects uniform routing. An
// all-to-all gets the rows of the busiest rank, because it ends on all ranks at the same time.
struct op plan_op_of_load(const struct plan *plan, const struct op *op);
// Returns the number of elements that the op uses of the operand in this slot, with expected row counts.
int64_t plan_operand_elements(const struct plan *plan, const struct op *op, int slot);
// Returns the elements per row of a tensor that has a row count.
int64_t plan_row_elements(const struct plan *plan, int32_t tensor);

int64_t plan_total_bytes(const struct plan *plan);    // sum over the storages

// Returns the bytes that a compute op reads and writes, or the bytes of a communication op's elements. Repeated reads
// by GEMMs and attention after cache misses are not counted.
double plan_op_bytes(const struct plan *plan, const struct op *op);

// The following functions compute the happens-before relation of a plan's ops from stream order and dependencies.

// Returns vector clocks: [op * STREAM_COUNT + stream] is the number of ops of that stream that have certainly ended
// before the op starts. position: [op], the index of the op in its stream. The caller frees the clocks.
int32_t *order_clocks(const struct plan *plan, int32_t *position);

// Drops dependencies that stream order and other dependencies imply.
void order_prune(struct plan *plan, const int32_t *clocks, const int32_t *position);

// Moves every op to the compute stream, in the order of the plan. This order satisfies all dependencies, so they are
// dropped.
void order_join_streams(struct plan *plan);
