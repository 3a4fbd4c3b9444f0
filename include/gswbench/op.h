// SPDX-License-Identifier: MIT
// The ops that a step is made of, as every reader of a plan uses them; op_kind.h, op_operands.h and op_shape.h say what
// each kind takes.
#ifndef GSWBENCH_OP_H
#define GSWBENCH_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/op_kind.h"
#include "gswbench/op_operands.h"
#include "gswbench/op_shape.h"

// Ordered queues of ops. Ops of one lane run in list order; lanes run beside each other, held only by waits.
enum lane {
    LANE_COMPUTE,
    LANE_WEIGHT_GATHER,
    LANE_GRADIENT_REDUCE,
    LANE_REPLICA_REDUCE,    // of slices that the lane before has reduced: two networks may carry them at once
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

enum { OP_WAITS = LANE_COUNT - 1 };

struct op {
    uint8_t kind, lane, operand_count, wait_count;
    bool    accumulates;    // the gradient output is added to, not overwritten
    bool is_initial;    // makes weights, or scales of them, from what the optimizer keeps: before the first step, too
    bool sums_fast;     // FP8 GEMMs: partial sums may have fewer digits, where that is faster
    bool is_aside;      // transfers of experts: another microbatch computes beside it
    uint8_t       fused_scaling;    // enum scaling of copies that are fused
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
bool        op_is_link(enum op_kind kind);    // between two ranks: send and receive
bool        op_lane_is_pipeline(int lane);    // of the two on which links run

// When an op ran, in seconds from the begin of the step. A transfer begins in a run when its lane reaches it, in a
// simulation when all members have reached it.
struct op_time {
    double begin, end;
};

// Elements that the operand in that slot must have by the op's shape; -1 for transfers, whose groups say more.
int64_t op_operand_elements(const struct op *op, int slot);

// The same of a transfer among so many ranks.
int64_t op_transfer_elements(const struct op *op, int slot, int64_t ranks);

// How the op uses the operand in that slot, by the row of its kind; 0: the kind has no such operand.
enum access op_operand_access(const struct op *op, int slot);
bool        op_operand_is_optional(const struct op *op, int slot);

// What the numbers of an operand mean to the op that reads it.
enum op_content {
    OP_HOLDS_VALUES,
    OP_HOLDS_INDICES,    // the op looks up rows by them: 0 is one
    OP_HOLDS_PLACES,     // the same, but -1 means that there is none
    OP_HOLDS_COUNTS,     // of rows: 0 means that there is none
};
enum op_content op_operand_content(const struct op *op, int slot);

int  op_fused_output(enum op_kind kind);    // the slot of what FP8 copies may be fused to; -1: none
bool op_is_fused(const struct op *op);
// The OP_QUANTIZE that an op is, or that is fused into it.
struct op op_quantize_of(const struct op *op);
// Whether copies of a whole have a scale that follows from what they are made of, alone or fused.
bool op_finds_scale(const struct op *op);
// Whether the operand in that slot is read twice: for a scale, or once more for copies of what is made and not stored.
bool op_operand_is_read_twice(const struct op *op, int slot);

// Floating-point operations that the op executes: two a multiply-add of a GEMM or of attention (causal skipping
// counted, backward 2.5 times forward); zero for the rest.
double op_flops(const struct op *op);

#endif
