// SPDX-License-Identifier: MIT
// A step as data: the immutable table of tensors and list of ops of one rank. Everything else reads it.
#ifndef GSWBENCH_PLAN_H
#define GSWBENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/arena.h"
#include "gswbench/json.h"
#include "gswbench/mesh.h"
#include "gswbench/model.h"
#include "gswbench/op.h"
#include "gswbench/precision.h"
#include "gswbench/schedule.h"
#include "gswbench/status.h"
#include "gswbench/train.h"
#include "gswbench/unit.h"

// Where a tensor lives. All but STORAGE_ACTIVATION keep their content between steps and have fixed places; activations
// share one arena by lifetime.
enum storage {
    STORAGE_WEIGHT,
    STORAGE_GRADIENT,
    STORAGE_OPTIMIZER,    // master weights, moments
    STORAGE_INPUT,        // tokens, targets, rope table, hyperparameters: filled by the host between steps
    STORAGE_RESULT,       // loss, gradient norm, partial sums
    STORAGE_ACTIVATION,
    STORAGE_COUNT
};

struct tensor {
    const char  *name;          // static text, unique with layer and microbatch
    int16_t      layer;         // -1: none
    int32_t      microbatch;    // -1: none
    enum format  format;
    enum storage storage;
    int32_t      dims;
    int64_t      dim[4];
    int64_t      elements, bytes;
    int64_t      offset;               // bytes from the start of its storage
    int32_t      whole;                // the tensor that this one is a part of; itself when it is none
    int64_t      part_offset;          // bytes from the start of the whole
    int32_t      first_op, last_op;    // list positions of its first and last use; -1: unused
    int32_t      tally;                // 1 + place in the plan's tallies: of its rows, only so many are there; 0: all
    bool         has_rows_across;      // ... and these are its columns: it is a transposed copy
    bool         is_packed;    // ... and they begin in its whole where the tally says, not where the part is placed
};

// How many rows there are of something that only a step knows, such as the tokens of an expert. Tensors have places for
// the most; an op is planned, counted and priced with the expected number, and the step gives it the real one. Tallies
// with one reader are those of a rank's experts: where they come from other ranks, each has one of the slots that its
// tokens leave from, and behind it one of the rows that arrive.
struct tally {
    int32_t reader;    // OP_READ_TALLIES, with which the host knows it
    int64_t expected, most;
};

struct plan_group {
    uint32_t axes;    // 1 << AXIS_DP | ...
    int64_t  size;
    int64_t *ranks;    // [size], in rank order
    int64_t  index;    // this rank's place
};

// How many nodes a group is on, whose ranks fill one after another, and whether this rank's is not the peer's.
int64_t plan_group_nodes(const struct plan_group *group, int64_t ranks_per_node);
bool    plan_group_is_apart(const struct plan_group *group, int64_t peer, int64_t ranks_per_node);

// What brings tensors into the range of FP8, of all linears of the model on every rank: f32 [slots], slot role *
// linears + linear.
struct plan_scaling {
    int64_t linears;
    int32_t scales, factors;    // what to multiply by, and its inverse: 1 before the first step; -1: none
    int32_t amaxes;             // largest magnitudes of the step: 0 before each
    int32_t history;            // [slots, steps] of these: 0 before the first
};

enum { PLAN_ALIGNMENT = 256 };

struct plan {
    // What it was built from.
    struct model_config  model;
    struct mesh          mesh;
    struct train_config  train;    // resolved
    struct precision     precision;
    struct schedule_deal deal;    // of the layers to pipeline chunks
    int64_t              rank;
    bool                 is_zero;        // the optimizer is sharded over replicas, too
    enum context         context;        // how attention has all positions under cp
    bool                 is_unplaced;    // activations have no places: only their bytes are counted

    struct tensor    *tensors;
    int32_t           tensor_count;
    struct op        *ops;
    int32_t           op_count;
    struct weight    *weights;
    int32_t           weight_count;
    struct plan_unit *units;    // of this rank's chunks: embedding, blocks in order, head with the final norm. A tied
                                // head of another stage than the embedding's is preceded by a copy of that
    int32_t            unit_count;
    struct plan_group *groups;
    int32_t            group_count;
    struct tally      *tallies;
    int32_t            tally_count;
    int64_t            storage_bytes[STORAGE_COUNT];
    int64_t            activation_live_bytes;    // largest sum of live activations: the arena's lower bound

    // What the host fills or reads; -1: on another stage. [accumulation] for tokens, and targets of each prediction.
    int32_t            *tokens, *targets;
    int32_t             positions;    // i32: of each row of the residual stream here, where they are learned; else -1
    int32_t             rope_table, hyper, gradient_norm, clip_scale;
    int32_t             loss, prediction_loss;    // the latter of further tokens, their mean; -1: none is predicted
    struct plan_scaling scaling;
    int32_t router_bias;    // f32 [layers, experts]: what is added to scores when experts are chosen, 0 before the
                            // first step, alike on all ranks; -1: none
    int32_t routing;        // f32 [layers, experts + 2]: a step's routing statistics, of all ranks; -1: no experts

    struct arena arena;
};

// The position in its sequence of row index of this rank's share of a sequence: under cp, the rank of index r holds
// chunks r and 2 cp - 1 - r of 2 cp.
int64_t plan_position(const struct plan *plan, int64_t index);

void plan_free(struct plan *plan);

// "layer 3 microbatch 0 qkv" into text; returns text.
const char *plan_tensor_name(const struct plan *plan, int32_t tensor, char *text, size_t bytes);
// "op 512 gemm fc1 weight gradient, backward, layer 3, microbatch 0"
const char                    *plan_op_name(const struct plan *plan, int32_t op, char *text, size_t bytes);
const char                    *plan_storage_name(enum storage storage);
extern const struct json_field plan_storage_fields[];    // of an array of the bytes of all storages

// The tally that the op's rows follow; NULL: they are always the same.
const struct tally *plan_op_tally(const struct plan *plan, const struct op *op);
// The op with that many rows, where its rows follow a tally.
struct op plan_op_of_rows(const struct plan *plan, const struct op *op, int64_t rows);
// Elements of its operand in that slot that the planned op handles.
int64_t plan_operand_elements(const struct plan *plan, const struct op *op, int slot);
// Elements of a row of a tensor whose rows follow a tally.
int64_t plan_row_elements(const struct plan *plan, int32_t tensor);

int64_t plan_total_bytes(const struct plan *plan);    // of all storages

// Bytes that an op which computes reads and writes, and those that a transfer's elements have. Reads by GEMMs and
// attention of what their caches no longer hold are not counted.
double plan_op_bytes(const struct plan *plan, const struct op *op);

#endif
