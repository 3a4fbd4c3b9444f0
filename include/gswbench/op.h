// SPDX-License-Identifier: MIT
// The kinds of work a step is made of: their operands, shapes, FLOPs and bytes. Every reader of the plan speaks this.
// Matrices are row-major and contiguous. T: tokens of a microbatch on this rank.
#ifndef GSWBENCH_OP_H
#define GSWBENCH_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/fp8.h"

enum op_kind {
    OP_EMBEDDING_FORWARD,
    OP_EMBEDDING_BACKWARD,
    OP_NORM_FORWARD,
    OP_NORM_BACKWARD,
    OP_GEMM,
    OP_ROPE_FORWARD,
    OP_ROPE_BACKWARD,
    OP_ATTENTION_FORWARD,
    OP_ATTENTION_BACKWARD,
    OP_ATTENTION_MERGE,
    OP_ACTIVATION_FORWARD,
    OP_ACTIVATION_BACKWARD,
    OP_ROUTE_FORWARD,
    OP_ROUTE_BACKWARD,
    OP_DISPATCH,
    OP_COMBINE,
    OP_COMBINE_BACKWARD,
    OP_LOGIT_STATISTICS,
    OP_CROSS_ENTROPY,
    OP_LOSS_SUM,
    OP_CAST,
    OP_QUANTIZE,
    OP_TRANSPOSE,
    OP_MAGNITUDE,
    OP_RESCALE,
    OP_CLEAR,
    OP_SQUARE_SUM,
    OP_CLIP,
    OP_ADAMW,
    OP_ALL_REDUCE,
    OP_ALL_REDUCE_MAXIMUM,
    OP_ALL_GATHER,
    OP_REDUCE_SCATTER,
    OP_ALL_TO_ALL,
    OP_ROTATE,
    OP_SEND,
    OP_RECEIVE,
    OP_BROADCAST,
    OP_COUNT
};

// Ordered queues of ops. Ops of one lane run in list order; lanes run beside each other, held only by waits.
enum lane {
    LANE_COMPUTE,
    LANE_PARAMETER_GATHER,
    LANE_GRADIENT_REDUCE,
    LANE_TENSOR,
    LANE_CONTEXT,
    LANE_EXPERT,
    LANE_PIPELINE_SEND,
    LANE_PIPELINE_RECEIVE,
    LANE_COUNT
};

enum phase { PHASE_FORWARD, PHASE_RECOMPUTE, PHASE_BACKWARD, PHASE_REDUCE, PHASE_OPTIMIZER, PHASE_COUNT };

// Names an op everywhere: trace, waterfall, NVTX, messages. -1: does not apply.
struct op_tag {
    const char *role;    // static text: "qkv", "fc1 weight gradient"
    int16_t     phase, layer, chunk;
    int32_t     microbatch;
};

enum access { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_UPDATE = 3 };

// Operand slots by kind; an absent optional operand is tensor -1. [shape] and access stand beside each slot.
// clang-format off
enum { EMBEDDING_TOKENS, EMBEDDING_TABLE, EMBEDDING_OUT };       // forward: i32 [T] r, [vocab, columns] r, [T, columns] w
enum { EMBEDDING_GRADIENT_TOKENS, EMBEDDING_GRADIENT_OUT,        // backward: i32 [T] r, d out [T, columns] r,
       EMBEDDING_GRADIENT_TABLE };                               //           d table w, or rw when it accumulates
enum { NORM_IN, NORM_BRANCH, NORM_WEIGHT, NORM_BIAS, NORM_SUM, NORM_OUT, NORM_STATISTICS };
// forward: x = IN r [T, columns] (+ BRANCH r, then SUM w receives x); OUT w = normalised x; WEIGHT r [columns]; BIAS r
// (layer norms); STATISTICS w f32 [T, 2]: mean (0 for RMS) and 1/deviation. All [T, columns] but those named.
enum { NORM_GRADIENT_OUT, NORM_GRADIENT_X, NORM_GRADIENT_WEIGHT_IN, NORM_GRADIENT_STATISTICS, NORM_GRADIENT_RESIDUAL,
       NORM_GRADIENT_IN, NORM_GRADIENT_WEIGHT, NORM_GRADIENT_BIAS };
// backward: d OUT r, x r (SUM, or IN without a branch), weight r, STATISTICS r, RESIDUAL r (added to the result, may be
// absent), d x w, d WEIGHT and d BIAS w or rw.
enum { GEMM_A, GEMM_B, GEMM_C, GEMM_FACTOR_A, GEMM_FACTOR_B };   // C [m, n] = op(A) op(B), or += when it accumulates;
// FACTOR_A, FACTOR_B r f32: what FP8 numbers of A and B are multiplied by, as many as the scaling says; absent where A and
// B are not FP8. FP8 products are always of A as it is and B transposed: devices multiply rows of one by rows of the other.
enum { ROPE_TABLE, ROPE_PACKED, ROPE_QUERY, ROPE_KEY_VALUE };
// forward: TABLE r f32 [sequence, rotary/2, 2] (cos, sin), PACKED r [T, heads + 2 kv_heads, head_dim] (q, k, v), QUERY w
// [T, heads, head_dim], KEY_VALUE w [T, 2, kv_heads, head_dim]. backward: QUERY, KEY_VALUE r hold gradients, PACKED w.
enum { ATTENTION_QUERY, ATTENTION_KEY_VALUE, ATTENTION_OUT, ATTENTION_STATISTICS };
// forward: r, r, w [T, heads, head_dim], w f32 [batch, heads, sequence]: log-sum-exp of the scaled scores.
enum { ATTENTION_GRADIENT_OUT, ATTENTION_GRADIENT_QUERY_IN, ATTENTION_GRADIENT_KEY_VALUE_IN, ATTENTION_GRADIENT_OUT_IN,
       ATTENTION_GRADIENT_STATISTICS, ATTENTION_GRADIENT_QUERY, ATTENTION_GRADIENT_KEY_VALUE };
// backward: d OUT r, q r, kv r, OUT r, STATISTICS r, d q w, d kv w.
// backward adds to d kv when it accumulates, and to d q when the shape adds_query.
enum { ATTENTION_MERGE_OUT, ATTENTION_MERGE_STATISTICS, ATTENTION_MERGE_PART, ATTENTION_MERGE_PART_STATISTICS };
// OUT rw [T, heads, head_dim] and STATISTICS rw take in the PART r of the same queries over other keys, and its r.
enum { ACTIVATION_IN, ACTIVATION_OUT };                          // [T, 2 columns] (gate, up) or [T, columns] r; w
enum { ACTIVATION_GRADIENT_OUT, ACTIVATION_GRADIENT_IN_IN, ACTIVATION_GRADIENT_IN };    // d OUT r, IN r, d IN w
// Experts: a token's choices are the top_k largest of its logits, its gates their softmax. Each expert has capacity places
// in the dispatch buffer, slots = experts * capacity in all; a choice beyond what an expert takes is dropped: it has no
// slot (-1). A slot's source is the choice that fills it (row * top_k + choice), or -1.
enum { ROUTE_LOGITS, ROUTE_CHOICES, ROUTE_SLOTS, ROUTE_GATES, ROUTE_SOURCES, ROUTE_COUNTS, ROUTE_STATISTICS };
// forward: LOGITS f32 [total, experts] r; of the own rows: CHOICES i32 [rows, top_k] w (experts), SLOTS i32 [rows, top_k] w,
// GATES f32 [rows, top_k] w; SOURCES i32 [slots] w; COUNTS f32 [sequences, experts] w: choices of all rows before any is
// dropped; STATISTICS f32 [experts + 2] w or rw, or absent: += own choices by expert, own dropped choices, own auxiliary
// loss with its weight.
enum { ROUTE_GRADIENT_LOGITS_IN, ROUTE_GRADIENT_CHOICES, ROUTE_GRADIENT_GATES_IN, ROUTE_GRADIENT_COUNTS,
       ROUTE_GRADIENT_GATES, ROUTE_GRADIENT_LOGITS };
// backward: LOGITS r, CHOICES r, GATES r, COUNTS r, d GATES f32 [rows, top_k] r, d LOGITS w [rows, experts].
enum { DISPATCH_IN, DISPATCH_SOURCES, DISPATCH_OUT };            // [rows, columns] r, r, [slots, columns] w: empty slots zero
enum { COMBINE_IN, COMBINE_SLOTS, COMBINE_GATES, COMBINE_OUT };  // [slots, columns] r, r, r or absent (all 1), [rows, columns]
                                                                 // w, or rw when it accumulates: the sum over choices
enum { COMBINE_GRADIENT_OUT, COMBINE_GRADIENT_IN_IN, COMBINE_GRADIENT_SLOTS, COMBINE_GRADIENT_SOURCES,
       COMBINE_GRADIENT_GATES_IN, COMBINE_GRADIENT_IN, COMBINE_GRADIENT_GATES };
// backward: d OUT r, IN r, SLOTS r, SOURCES r, GATES r, d IN w (empty slots zero), d GATES w (dropped choices zero).
enum { LOGIT_STATISTICS_LOGITS, LOGIT_STATISTICS_TARGETS, LOGIT_STATISTICS_OUT };
// LOGITS r, TARGETS r i32 [T]; OUT w f32 [T, 3]: largest logit, sum of exp(logit - largest), the target's logit or 0.
enum { CROSS_ENTROPY_LOGITS, CROSS_ENTROPY_TARGETS, CROSS_ENTROPY_LOSS, CROSS_ENTROPY_STATISTICS };
// LOGITS rw [T, columns]: replaced by scale * d loss / d logits; TARGETS r i32 [T]; LOSS w f32 [T]: unscaled, a token.
// STATISTICS r f32 [parts, T, 3]: of every part of a vocabulary that is shared out; absent when all of it is here.
enum { LOSS_SUM_IN, LOSS_SUM_OUT };                              // f32 [rows] r; f32 [1] w or rw: += scale * sum
enum { CAST_IN, CAST_OUT };                                      // [elements] r, w; or rw: OUT += IN when it accumulates
enum { QUANTIZE_IN, QUANTIZE_OUT, QUANTIZE_TRANSPOSED, QUANTIZE_FACTOR, QUANTIZE_TRANSPOSED_FACTOR, QUANTIZE_SCALE,
       QUANTIZE_AMAX };
// IN r [rows, columns]; FP8 copies of IN * scale: OUT w [rows, columns] and TRANSPOSED w [columns, rows], of which one may
// be absent; FACTOR w f32 [1]: 1 / scale, by which both are to be multiplied; TRANSPOSED_FACTOR: absent. SCALE r f32 [1]:
// then FACTOR may be absent; or absent: scale = largest number of the format / largest magnitude of IN. AMAX rw f32 [1]:
// raised to the largest magnitude of IN, or absent. Scaled by runs or squares, each of which has a scale as its own
// magnitude demands: FACTOR w f32 those of OUT, TRANSPOSED_FACTOR w f32 those of TRANSPOSED; SCALE and AMAX absent.
// Fused: NORM_FORWARD, ACTIVATION_FORWARD and ACTIVATION_BACKWARD may make the FP8 copies of their output themselves, if
// its scales are known before it is, or are of parts. The slots behind OP_FUSED are then those of OP_QUANTIZE, the same
// number further on, and the copies are made of the output as it is stored; itself it may be absent.
enum { TRANSPOSE_IN, TRANSPOSE_OUT };                            // FP8 [rows, columns] r, [columns, rows] w
enum { MAGNITUDE_IN, MAGNITUDE_AMAX };                           // [elements] r; f32 [1] rw: raised to the largest magnitude
enum { RESCALE_AMAX, RESCALE_HISTORY, RESCALE_SCALE, RESCALE_FACTOR };
// AMAX rw f32 [slots]: of the step, becomes 0. HISTORY rw f32 [slots, history]: takes it in at the front of each row, whose
// oldest falls out; or absent. SCALE rw f32 [slots]: target / the largest there (or AMAX), kept where that is 0 or not
// finite; FACTOR w f32 [slots]: 1 / SCALE.
enum { CLEAR_OUT };                                      // [elements] w: zeros
enum { SQUARE_SUM_IN, SQUARE_SUM_OUT };                          // [elements] r; f32 [1] w
enum { CLIP_PARTIALS, CLIP_NORM, CLIP_SCALE };                   // f32 [elements] r; f32 [1] w: norm; f32 [1] w: factor
enum { ADAMW_HYPER, ADAMW_SCALE, ADAMW_GRADIENT, ADAMW_MASTER, ADAMW_FIRST, ADAMW_SECOND, ADAMW_WEIGHT };
// HYPER r f32 [HYPER_COUNT], SCALE r f32 [1], GRADIENT r, MASTER rw f32 (absent: WEIGHT is rw), m rw, v rw, WEIGHT w, or
// absent beside a MASTER.
enum { HYPER_LEARNING_RATE, HYPER_BETA1, HYPER_BETA2, HYPER_EPSILON, HYPER_DECAY,
       HYPER_CORRECTION1, HYPER_CORRECTION2, HYPER_COUNT };      // corrections: 1 - beta^step
enum { TRANSFER_IN, TRANSFER_OUT };
// ALL_REDUCE, ALL_REDUCE_MAXIMUM (f32): OUT rw. ALL_GATHER: IN r [n], OUT w [size * n]. REDUCE_SCATTER: IN r [size * n], OUT w [n].
// ALL_TO_ALL: IN r, OUT w [size * n]. ROTATE: the group is a ring, in which OUT w receives the IN r of the member that is
// peer places before. SEND: IN r. RECEIVE: OUT w. BROADCAST: OUT rw, from the group's root.
// clang-format on

enum { OP_FUSED = NORM_STATISTICS + 1, OP_OPERANDS = OP_FUSED + QUANTIZE_AMAX + 1, OP_WAITS = LANE_COUNT - 1 };

struct gemm_shape {
    int64_t m, n, k;
    bool    transpose_a, transpose_b;    // A is stored [k, m], B is stored [n, k]
    int32_t scaling_a, scaling_b;        // enum fp8_scaling of A [m, k] and B [n, k]
};
struct rows_shape {
    int64_t rows, columns;
    int64_t valid_columns;     // cross entropy: columns beyond are padding; embedding: rows of the table
    int64_t first, total;      // both: the vocabulary's entries first .. first + valid_columns - 1 of total are here
    int64_t parts;             // cross entropy: over which the vocabulary is shared out
    float   epsilon, scale;    // norm; cross entropy and loss sum
    int32_t variant;           // enum norm, enum activation
};
struct attention_shape {
    int64_t batch, sequence, heads, kv_heads, head_dim;
    int64_t rotary;    // rope: leading elements of each head that rotate, even
    float   scale;
    bool    causal;
    bool    adds_query;    // backward: d q is added to, not overwritten
    int64_t earlier;       // keys beyond the queries' own number: all seen, and before them when causal
};
// Rows of all parts of the microbatch compete for an expert sequence by sequence: row r of all is of sequence
// r / sequence_rows % sequences.
struct routing_shape {
    int64_t rows, columns;               // of this rank's part of the residual stream
    int64_t first, total;                // the own rows are first .. first + rows - 1 of so many
    int64_t sequences, sequence_rows;    // 1 and total: all rows compete
    int64_t experts, top_k;
    int64_t owners;       // ranks that share the experts out: expert e is number e % (experts / owners) of owner
                          // e / (experts / owners), and its slots follow number * owners + owner runs of capacity
    int64_t capacity;     // slots of an expert
    int64_t taken;        // choices that an expert takes of a sequence at most: the most probable, then the first
    bool    balanced;     // choice j of row r is expert (r * top_k + j) % experts, whatever the logits say
    float   auxiliary;    // weight of a sequence's auxiliary loss: experts * sum over experts of (share of the choices
                          // * mean probability); an own row brings its part of it
};
struct quantize_shape {
    int64_t rows, columns;
    int32_t scaling;    // enum fp8_scaling of both copies
};
struct rescale_shape {
    int64_t slots, history;
    float   target;    // what the largest magnitude becomes
};
struct elements_shape {
    int64_t elements;
    float   limit;    // clip: largest norm; 0: measured, never clipped
};
struct transfer_shape {
    int64_t elements;    // of the whole buffer: size * n above
    int32_t group;       // index in the plan's groups
    int32_t peer;        // send, receive, broadcast: index in the group; rotate: places that it goes on, or back if < 0
    int32_t channel;     // send and receive pair in order within (group, lane pair, channel)
};

struct op {
    uint8_t       kind, lane, operand_count, wait_count;
    bool          accumulates;      // the gradient output is added to, not overwritten
    bool          is_initial;       // makes weights of what the optimizer keeps: runs before the first step, too
    bool          sums_fast;        // FP8 products: partial sums may have fewer digits, where that is faster
    uint8_t       fused_scaling;    // enum fp8_scaling of copies that are fused
    uint8_t       access[OP_OPERANDS];
    int32_t       operand[OP_OPERANDS];    // tensor index, -1: absent
    int32_t       wait[OP_WAITS];          // ops on other lanes that end first; at most one a lane
    struct op_tag tag;
    union {
        struct gemm_shape      gemm;
        struct rows_shape      rows;         // embedding, norm, activation, cross entropy, loss sum, transpose
        struct attention_shape attention;    // rope, attention
        struct routing_shape   routing;      // route, dispatch, combine
        struct quantize_shape  quantize;
        struct rescale_shape   rescale;
        struct elements_shape  elements;    // cast, magnitude, clear, square sum, clip, adamw
        struct transfer_shape  transfer;
    } shape;
};

const char *op_name(enum op_kind kind);         // "gemm", "norm_forward"
const char *op_lane_name(enum lane lane);       // "compute", "gradient-reduce"
const char *op_phase_name(enum phase phase);    // "forward", "recompute"
bool        op_is_transfer(enum op_kind kind);

// When an op ran, in seconds from the step's begin. Of a transfer, begin is in a run when its lane comes to it, in a
// simulation when all members have.
struct op_time {
    double begin, end;
};

// Elements that the operand in that slot must have by the op's shape; -1 for transfers, whose groups say more.
int64_t op_operand_elements(const struct op *op, int slot);

// How the op uses the operand in that slot, by what stands above; 0: its kind has no such operand.
enum access op_operand_access(const struct op *op, int slot);
bool        op_operand_is_optional(const struct op *op, int slot);

int  op_fused_output(enum op_kind kind);    // the slot of what FP8 copies may be fused to; -1: none
bool op_is_fused(const struct op *op);
// The OP_QUANTIZE that an op is, or that is fused into it.
struct op op_quantize_of(const struct op *op);

// Floating-point operations that the op executes: two a multiply-add of a GEMM or of attention (causal skipping
// counted, backward 2.5 times forward); zero for the rest.
double op_flops(const struct op *op);

#endif
