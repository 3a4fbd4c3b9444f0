// SPDX-License-Identifier: MIT
// The weights of a plan, and the FSDP units (parameter groups) that are gathered, reduced and updated together.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A named matrix or vector inside a weight, as Hugging Face and the weight generator see it: q, k and v are parts of
// "qkv".
struct weight_part {
    char     name[64];                       // exported name, "model.layers.3.self_attn.q_proj.weight"
    int64_t  stream;                         // random stream of its initial values, the same in every layout
    int64_t  rows, columns;                  // of the whole tensor; 1 row for a vector
    int64_t  first_row, local_rows;          // rows on this rank
    int64_t  first_column, local_columns;    // columns on this rank
    uint32_t alike;                          // 1 << axis, MESH_HEAD_COPIES: axes that it is replicated over
    int64_t  offset;                         // elements from the start of the weight
    bool     is_vector;
    float    deviation;    // of the initial values; 0: constant
    float    constant;     // initial value if deviation is 0
};

struct weight {
    const char        *name;    // static text: "qkv weight"
    int32_t            unit;
    int64_t            first;            // offset in the unit, in elements
    int64_t            rows, columns;    // on this rank, with padding
    int32_t            tensor;           // -1 if this rank keeps only a slice of the unit
    int32_t            gradient;         // -1 if this rank keeps only a slice of the unit
    int32_t            linear;           // index among the model's FP8 linears; -1: its GEMMs run in BF16
    int32_t            bias;             // index of its bias in plan->weights; -1: none
    int32_t            part_count;
    struct weight_part part[3];
};

struct plan_slice {
    int64_t first, elements;
};

// An FSDP unit: the embedding, one block, the experts of a block, or the head with the final norm. Its weights have
// consecutive elements, with the same offsets in every storage. A rank keeps a slice of them.
struct plan_unit {
    int64_t place;    // index in the model: embedding 0, block layer + 1, head layers + 1, then MTP modules, experts of
                      // each layer that has any, separate FP8 linears
    bool              is_experts;          // sharded over the expert-parallel group
    bool              is_low_precision;    // weights are kept in FP8, and only master weights in full precision
    bool              is_copy;             // a copy of the embedding, on a stage with a tied head or MTP modules
    uint32_t          shard_axes, replica_axes;    // axes over which the weights are sharded, and replicated
    uint32_t          update_axes;                 // axes over which the optimizer is sharded
    int64_t           elements;
    int32_t           first_weight, weight_count;
    int64_t           replicated;          // leading elements that all ranks of tp have in common
    int64_t           of_heads;            // the first of them, whose gradients each rank computes for its own heads
    struct plan_slice kept;                // in the weight and gradient tensors: a shard under FSDP, else all
    struct plan_slice updated;             // by this rank's optimizer: a shard under FSDP and ZeRO-1, else all
    int32_t           weight, gradient;    // tensors of the kept slice
    int32_t           master;              // tensor of the updated slice; -1: no separate master weights
    int32_t           first_moment, second_moment;
};
