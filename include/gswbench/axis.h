// SPDX-License-Identifier: MIT
// The parallel axes, one row each. Options, sweeps, layouts in text and JSON, comparisons, waterfall parts and machine
// checks are generated from these rows.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// In rank order; ranks of the first axis are adjacent.
enum axis { AXIS_TP, AXIS_CP, AXIS_EP, AXIS_FSDP, AXIS_DP, AXIS_PP, AXIS_COUNT };

// The sizes that a sweep tries on an axis.
enum axis_values {
    AXIS_OVER_RANKS,      // divisors of the number of ranks
    AXIS_OVER_NODE,       // ... up to an NVLink domain
    AXIS_OVER_LAYERS,     // ... up to the number of layers
    AXIS_OVER_EXPERTS,    // divisors of the number of experts
    AXIS_REST             // one size: the remaining ranks
};

// How the work is sharded along an axis.
enum axis_share {
    AXIS_SHARES_SEQUENCES = 1,     // each rank has some sequences of a step
    AXIS_SHARES_POSITIONS = 2,     // each rank has some positions of every sequence
    AXIS_SHARES_WEIGHTS   = 4,     // each rank keeps a shard of the weights and gathers them before use
    AXIS_SHARES_MATRICES  = 8,     // each rank computes with its part of every matrix
    AXIS_SHARES_EXPERTS   = 16,    // each rank has some of the experts
    AXIS_SHARES_LAYERS    = 32,
    AXIS_SHARES_TOKENS    = AXIS_SHARES_SEQUENCES | AXIS_SHARES_POSITIONS,
};

// clang-format off
// AXIS(NAME, key in [parallel], option type, maximum, help, fields of struct axis_row), in the order of options, JSON
// and waterfalls.
#define AXES(AXIS) \
    AXIS(DP, dp, AUTO_OPTION, 65536, \
         "data-parallel replicas; auto (on one axis only): all remaining ranks", \
         .values = AXIS_REST, .shown = 1, .claim = 1, .shares = AXIS_SHARES_SEQUENCES) \
    AXIS(FSDP, fsdp, AUTO_OPTION, 65536, \
         "ranks that shard weights, gradients and optimizer state; with dp > 1 this is HSDP", \
         .values = AXIS_OVER_RANKS, .shown = 0, .claim = 0, .shares = AXIS_SHARES_SEQUENCES | AXIS_SHARES_WEIGHTS) \
    AXIS(TP, tp, AUTO_OPTION, 1024, \
         "tensor-parallel ranks; they shard each weight matrix", \
         .values = AXIS_OVER_NODE, .shown = 2, .claim = 4, .shares = AXIS_SHARES_MATRICES, .stays_in_node = true, \
         .divides = {"model.heads", "model.ffn", "model.shared_ffn"}, .meets = "model.kv_heads") \
    AXIS(CP, cp, AUTO_OPTION, 1024, \
         "context-parallel ranks; each has two chunks of every sequence, which balances causal attention", \
         .values = AXIS_OVER_NODE, .shown = 3, .claim = 3, .shares = AXIS_SHARES_POSITIONS, .pieces = 2, \
         .divides = {"train.sequence"}) \
    AXIS(EP, ep, INTEGER_OPTION, 1024, \
         "expert-parallel ranks, taken from the data-parallel ranks; with etp = 1 from the tp and cp ranks first", \
         .values = AXIS_OVER_EXPERTS, .shown = 4, .claim = 2, .shares = AXIS_SHARES_SEQUENCES | AXIS_SHARES_EXPERTS, \
         .within = 1 << AXIS_FSDP | 1 << AXIS_DP, .divides = {"model.experts"}) \
    AXIS(PP, pp, AUTO_OPTION, 1024, \
         "pipeline stages", \
         .values = AXIS_OVER_LAYERS, .shown = 5, .claim = 5, .shares = AXIS_SHARES_LAYERS)
// clang-format on

enum { AXIS_DIVIDES = 4 };
struct axis_row {
    const char      *name;      // also the key in [parallel] and JSON
    size_t           field;     // offset in struct parallel_config
    enum axis_values values;    // for sweeps
    int              shown;     // position in the layout text: "fsdp 128 dp 4"
    int              claim;     // exposed communication along several axes counts for the axis with the lowest claim
    uint32_t         shares;    // enum axis_share
    bool             stays_in_node;    // every layer communicates along it, so it needs the links within a node
    uint32_t         within;    // 1 << axis: it takes its ranks from the first of these axes with more than one rank
    const char      *divides[AXIS_DIVIDES];    // "section.key" of numbers that its size must divide; NULL: no more
    const char      *meets;                    // ... that its size must divide or be a multiple of; NULL: none
    int64_t          pieces;                   // parts of each such number that a rank holds; 0: one
};
extern const struct axis_row axis_rows[AXIS_COUNT];

// The axes in the order of AXES, and in the order of the layout text.
extern const enum axis axis_listed[AXIS_COUNT];
enum axis              axis_shown(int place);

// 1 << axis for every axis with one of these shares (enum axis_share).
uint32_t axis_sharing(uint32_t shares);

// Formats a mask of axes (1 << AXIS_DP | ...) as "fsdp x dp", or MESH_HEAD_COPIES (mesh.h) as "copies". Returns text.
const char *axis_names(uint32_t axes, char *text, size_t bytes);

// The axis in the mask (1 << AXIS_DP | ...) that exposed communication counts for; AXIS_COUNT if the mask is empty.
enum axis axis_claims(uint32_t axes);
