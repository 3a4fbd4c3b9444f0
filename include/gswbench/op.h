// SPDX-License-Identifier: MIT
// Declares ops, the kernel-sized pieces of work of a training step; a plan is a list of them. op_operands.h and
// op_shape.h describe each kind, and a row of src/op/op_table.c has everything else.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/op_operands.h"
#include "gswbench/op_shape.h"

// Two fields of op_tag, `part` and `makes`, say for which part of the model an op works, and which value of this part
// it makes. The layer that appends the op sets both. Other code reads these fields, and never the tag's text (role).

enum model_part {
    PART_NONE,    // the op is not in a plan
    PART_EMBEDDING,
    PART_ATTENTION_NORM,
    PART_QKV,
    PART_Q_DOWN,    // PART_Q_DOWN to PART_KV_UP: latent attention
    PART_Q_NORM,
    PART_Q_UP,
    PART_KV_DOWN,
    PART_KV_NORM,
    PART_KV_UP,
    PART_ROPE,
    PART_QUERIES,    // PART_QUERIES, PART_KEYS: communication and casts of q, k and v with cp, around core attention
    PART_KEYS,
    PART_CORE_ATTENTION,
    PART_PROJECTION,
    PART_MAMBA_NORM,    // PART_MAMBA_NORM to PART_MAMBA_OUT: Mamba-2
    PART_MAMBA_IN,
    PART_CONVOLUTION,
    PART_SCAN,
    PART_GATED_NORM,
    PART_MAMBA_OUT,
    PART_MLP_NORM,
    PART_FC1,
    PART_ACTIVATION,
    PART_FC2,
    PART_ROUTER,
    PART_DISPATCH,
    PART_EXPERT_FC1,
    PART_EXPERT_ACTIVATION,
    PART_EXPERT_FC2,
    PART_COMBINE,
    PART_SHARED_FC1,
    PART_SHARED_ACTIVATION,
    PART_SHARED_FC2,
    PART_EXPERT_DOWN,    // PART_EXPERT_DOWN, PART_EXPERT_UP: projections to and from model.expert_hidden
    PART_EXPERT_UP,
    PART_MTP_EMBEDDING,    // PART_MTP_EMBEDDING to PART_MTP_PROJECTION: the first sublayer of an MTP module
    PART_MTP_NORM,
    PART_MTP_PROJECTION,
    PART_FINAL_NORM,
    PART_HEAD,
    PART_LOSS,
    PART_RESIDUAL,     // sends and receives of the residual stream between pipeline stages
    PART_WEIGHTS,      // gathers of weights
    PART_GRADIENTS,    // reductions of gradients
    PART_STEP,         // once per step: loss, gradient norm, scales, optimizer
    MODEL_PARTS
};

// The value that an op makes for a linear y = W x: its output y, the gradient of x, or the gradient of W. An op that
// gathers or casts an operand of the linear's GEMMs makes the input x, the weight W or the output gradient.
enum model_value {
    MAKES_OUTPUT,
    MAKES_INPUT_GRADIENT,
    MAKES_WEIGHT_GRADIENT,
    MAKES_INPUT,
    MAKES_WEIGHT,
    MAKES_OUTPUT_GRADIENT,
};

// All kinds of ops. The name of a kind is part of its function's name in each backend (host_gemm, device_gemm).
// clang-format off
// Kinds of compute ops, which a backend executes.
#define OP_COMPUTE_KINDS(KIND)                        \
    KIND(OP_EMBEDDING_FORWARD, embedding_forward)     \
    KIND(OP_EMBEDDING_BACKWARD, embedding_backward)   \
    KIND(OP_NORM_FORWARD, norm_forward)               \
    KIND(OP_NORM_BACKWARD, norm_backward)             \
    KIND(OP_GEMM, gemm)                               \
    KIND(OP_ROPE_FORWARD, rope_forward)               \
    KIND(OP_ROPE_BACKWARD, rope_backward)             \
    KIND(OP_ATTENTION_FORWARD, attention_forward)     \
    KIND(OP_ATTENTION_BACKWARD, attention_backward)   \
    KIND(OP_ATTENTION_MERGE, attention_merge)         \
    KIND(OP_SINK_FORWARD, sink_forward)               \
    KIND(OP_SINK_BACKWARD, sink_backward)             \
    KIND(OP_SPLIT, split)                             \
    KIND(OP_JOIN, join)                               \
    KIND(OP_REGROUP, regroup)                         \
    KIND(OP_LATENT_ROPE_FORWARD, latent_rope_forward) \
    KIND(OP_LATENT_ROPE_BACKWARD, latent_rope_backward) \
    KIND(OP_CONVOLUTION_FORWARD, convolution_forward) \
    KIND(OP_CONVOLUTION_BACKWARD, convolution_backward) \
    KIND(OP_SCAN_FORWARD, scan_forward)               \
    KIND(OP_SCAN_BACKWARD, scan_backward)             \
    KIND(OP_GATED_NORM_FORWARD, gated_norm_forward)   \
    KIND(OP_GATED_NORM_BACKWARD, gated_norm_backward) \
    KIND(OP_ACTIVATION_FORWARD, activation_forward)   \
    KIND(OP_ACTIVATION_BACKWARD, activation_backward) \
    KIND(OP_ROUTE_FORWARD, route_forward)             \
    KIND(OP_ROUTE_BACKWARD, route_backward)           \
    KIND(OP_READ_TOKEN_COUNTS, read_token_counts)               \
    KIND(OP_DISPATCH, dispatch)                       \
    KIND(OP_COMBINE, combine)                         \
    KIND(OP_COMBINE_BACKWARD, combine_backward)       \
    KIND(OP_BALANCE, balance)                         \
    KIND(OP_LOGIT_STATISTICS, logit_statistics)       \
    KIND(OP_CROSS_ENTROPY, cross_entropy)             \
    KIND(OP_LOSS_SUM, loss_sum)                       \
    KIND(OP_COLUMN_SUM, column_sum)                   \
    KIND(OP_CAST, cast)                               \
    KIND(OP_QUANTIZE, quantize)                       \
    KIND(OP_TRANSPOSE, transpose)                     \
    KIND(OP_MAGNITUDE, magnitude)                     \
    KIND(OP_RESCALE, rescale)                         \
    KIND(OP_CLEAR, clear)                             \
    KIND(OP_SQUARE_SUM, square_sum)                   \
    KIND(OP_CLIP, clip)                               \
    KIND(OP_ADAMW, adamw)                             \
    KIND(OP_MOMENTUM, momentum)                       \
    KIND(OP_NORMALIZE, normalize)                     \
    KIND(OP_MUON, muon)

// Kinds of communication between ranks, which a communicator executes.
#define OP_COMMUNICATION_KINDS(KIND)                     \
    KIND(OP_ALL_REDUCE, all_reduce)                 \
    KIND(OP_ALL_REDUCE_MAXIMUM, all_reduce_maximum) \
    KIND(OP_ALL_GATHER, all_gather)                 \
    KIND(OP_REDUCE_SCATTER, reduce_scatter)         \
    KIND(OP_ALL_TO_ALL, all_to_all)                 \
    KIND(OP_ROTATE, rotate)                         \
    KIND(OP_SEND, send)                             \
    KIND(OP_RECEIVE, receive)                       \
    KIND(OP_BROADCAST, broadcast)

#define OP_ENUMERATOR(kind, name) kind,
#define OP_AND_ONE(kind, name) + 1
enum op_kind { OP_COMPUTE_KINDS(OP_ENUMERATOR) OP_COMMUNICATION_KINDS(OP_ENUMERATOR) OP_COUNT };
enum { OP_COMPUTE_COUNT = OP_COMPUTE_KINDS(OP_AND_ONE) };    // also the index of the first communication kind

// For "case OP_ANY_COMPUTE:" in switches that handle communication kinds one by one.
#define OP_AND_CASE(kind, name) kind: case
#define OP_ANY_COMPUTE OP_COMPUTE_KINDS(OP_AND_CASE) OP_COUNT
// clang-format on

// Ops on a stream run in the order of the plan. Streams run concurrently except for dependencies (op.wait).
enum stream {
    STREAM_COMPUTE,
    STREAM_WEIGHT_GATHER,
    STREAM_GRADIENT_REDUCE,
    STREAM_REPLICA_REDUCE,    // HSDP: all-reduces over dp; overlap with reduce-scatters over fsdp of other units
    STREAM_TENSOR,
    STREAM_CONTEXT,
    STREAM_EXPERT,
    STREAM_PIPELINE_SEND,
    STREAM_PIPELINE_RECEIVE,
    STREAM_COUNT
};

enum phase { PHASE_FORWARD, PHASE_RECOMPUTE, PHASE_BACKWARD, PHASE_REDUCE, PHASE_OPTIMIZER, PHASE_COUNT };

// Says what an op is for. Traces and messages print the tag, and predictions of other frameworks depend on it. role:
// name of the op in traces, NVTX ranges and messages. A layer, chunk or microbatch of -1 means that the op belongs to
// none.
struct op_tag {
    const char *role;    // "qkv", "fc1 weight gradient"
    int16_t     phase, layer, chunk;
    uint8_t     part, makes;    // enum model_part, enum model_value
    int32_t     microbatch;
};

enum { OP_WAITS = STREAM_COUNT - 1 };

struct op {
    uint8_t kind, stream, operand_count, wait_count;
    bool    accumulates;    // the op adds to its outputs with OP_USE_ADD (op_table.h) instead of overwriting them
    // The op computes weights, or their scales, from the optimizer state. It also runs once before the first step.
    bool is_initial;
    // FP8 GEMM with fast accumulation (enum fast_sums): its partial sums have a reduced precision.
    bool sums_fast;
    // Expert communication that overlaps with the compute of another microbatch.
    bool          is_aside;
    uint8_t       fused_scaling;    // enum scaling of fused quantization
    uint8_t       access[OP_OPERANDS];
    int32_t       operand[OP_OPERANDS];    // tensor index, -1: absent
    int32_t       wait[OP_WAITS];          // ops on other streams that must end first; at most one per stream
    struct op_tag tag;
    union {    // op_table says which member the op's kind uses
        struct gemm_shape          gemm;
        struct rows_shape          rows;
        struct attention_shape     attention;
        struct mamba_shape         mamba;
        struct routing_shape       routing;
        struct quantize_shape      quantize;
        struct rescale_shape       rescale;
        struct elements_shape      elements;
        struct communication_shape communication;
    } shape;
};

const char *op_name(enum op_kind kind);            // "gemm", "norm_forward"
const char *op_stream_name(enum stream stream);    // "compute", "gradient-reduce"
const char *op_phase_name(enum phase phase);       // "forward", "recompute"
bool        op_is_communication(enum op_kind kind);
bool        op_is_link(enum op_kind kind);        // whether the kind is point-to-point: send or receive
bool        op_stream_is_pipeline(int stream);    // whether the stream has pipeline sends or receives

// When an op ran, in seconds from the start of the step. In a run, a collective begins when its stream reaches it; in a
// simulation, when all members have reached it.
struct op_time {
    double begin, end;
};

// Returns whether the kind updates optimizer state from gradients.
bool op_is_optimizer(enum op_kind kind);

// Returns the elements of the operand in a slot, computed from the op's shape; -1 for communication, whose sizes depend
// on the group.
int64_t op_operand_elements(const struct op *op, int slot);

// Returns the elements of the operand in a slot, also for communication: `ranks` is the size of its group.
int64_t op_communication_elements(const struct op *op, int slot, int64_t ranks);

// Returns how the op accesses the operand in a slot; 0: the op's kind has no such operand.
enum access op_operand_access(const struct op *op, int slot);
bool        op_operand_is_optional(const struct op *op, int slot);

// The meaning of an operand's numbers for the op that reads it.
enum op_content {
    OP_HOLDS_VALUES,
    OP_HOLDS_INDICES,    // indices of rows; 0 is a valid row
    OP_HOLDS_PLACES,     // indices of rows; -1: no row
    OP_HOLDS_COUNTS,     // numbers of rows
};
enum op_content op_operand_content(const struct op *op, int slot);

int  op_fused_output(enum op_kind kind);    // output slot that an op of this kind can also quantize; -1: none
bool op_is_fused(const struct op *op);
// Returns an OP_QUANTIZE: the op itself, or the quantization that is fused into it.
struct op op_quantize_of(const struct op *op);
// Returns whether the op quantizes with a per-tensor scale that it computes itself.
bool op_finds_scale(const struct op *op);
// Returns whether the op reads the operand in a slot twice: to find a scale first, or to quantize an output that is not
// stored.
bool op_operand_is_read_twice(const struct op *op, int slot);

// Returns the FLOPs that the op executes: 2 per multiply-add of GEMMs, attention and scans; 0 for all other ops.
// Attention counts only unmasked pairs; its backward pass has 2.5 times the FLOPs of the forward pass if key and value
// heads have the same size. A scan counts the GEMMs of its chunks, with only the pairs of positions that the causal
// mask lets through.
double op_flops(const struct op *op);
