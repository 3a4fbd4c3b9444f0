// SPDX-License-Identifier: MIT
// A plan's weights: what they are made of, and the units in which they are gathered, reduced and updated.
#ifndef GSWBENCH_UNIT_H
#define GSWBENCH_UNIT_H

#include <stdbool.h>
#include <stdint.h>

// One named matrix or vector inside a weight: what Hugging Face and the generator know (q, k and v are parts of "qkv").
struct weight_part {
    char     name[64];                       // exported name, "model.layers.3.self_attn.q_proj.weight"
    int64_t  stream;                         // number of its random stream, the same in every layout
    int64_t  rows, columns;                  // the whole tensor; a vector has rows 1 and is exported with one dimension
    int64_t  first_row, local_rows;          // this rank's rows of it
    int64_t  first_column, local_columns;    // ... and columns
    uint32_t alike;                          // 1 << axis, MESH_HEAD_COPIES: ranks that have the same of it
    int64_t  offset;                         // elements from the start of the weight
    bool     is_vector;
    float    deviation;    // of the initial values; 0: constant
    float    constant;     // initial value when deviation is 0
};

struct weight {
    const char        *name;    // static text: "qkv weight"
    int32_t            unit;
    int64_t            first;            // its place in the unit's range
    int64_t            rows, columns;    // of this rank, padding included
    int32_t            tensor;           // -1 when this rank keeps only a slice of the unit
    int32_t            gradient;         // likewise
    int32_t            linear;           // its number among the model's linears in FP8; -1: its GEMMs are in BF16
    int32_t            bias;             // the place of its bias in the plan's weights; -1: it has none
    int32_t            part_count;
    struct weight_part part[3];
};

struct plan_slice {
    int64_t first, elements;
};

// A unit is the weights that are gathered, reduced and updated together: the embedding, one block, its experts, or the
// head with the final norm. They lie in one range of elements, the same in every storage; a rank keeps a slice of it.
struct plan_unit {
    int64_t place;    // among all units of the model: embedding 0, block layer + 1, head layers + 1, then
                      // layers that predict further tokens, the experts of layers that have any, and
                      // linears that are apart
    bool              is_experts;    // sharded over ep
    bool              is_narrow;     // its weights are kept in FP8; only the masters have all digits
    bool              is_copy;    // the embedding's, of the stage whose head is tied to it or predicts further tokens
    uint32_t          shard_axes, replica_axes;    // over which its weights are sharded; replicated
    uint32_t          update_axes;                 // over which its optimizer is sharded
    int64_t           elements;
    int32_t           first_weight, weight_count;
    int64_t           replicated;          // leading elements that all ranks of tp hold alike
    int64_t           of_heads;            // ... of them the first, whose gradients each makes of its own heads
    struct plan_slice kept;                // by the weight and gradient tensors: a shard under FSDP, else all
    struct plan_slice updated;             // by this rank's optimizer: a shard under FSDP and ZeRO-1, else all
    int32_t           weight, gradient;    // tensors of the kept slice
    int32_t           master;              // of the updated slice; -1: the weights are their own master
    int32_t           first_moment, second_moment;
};

#endif
