// SPDX-License-Identifier: MIT
// The axes along which ranks share the work, a row each: options, sweeps, layouts in text and JSON, comparisons, parts
// of a waterfall and checks of the machine are made of these rows.
#ifndef GSWBENCH_AXIS_H
#define GSWBENCH_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Rank order, fastest first.
enum axis { AXIS_TP, AXIS_CP, AXIS_EP, AXIS_FSDP, AXIS_DP, AXIS_PP, AXIS_COUNT };

// What a sweep tries on an axis: divisors of the ranks, within a node or up to the layers, or of the experts; or
// nothing, since the axis takes what the others leave.
enum axis_values { AXIS_OVER_RANKS, AXIS_OVER_NODE, AXIS_OVER_LAYERS, AXIS_OVER_EXPERTS, AXIS_REST };

// What the ranks of an axis share out among them.
enum axis_share {
    AXIS_SHARES_SEQUENCES = 1,     // of a step
    AXIS_SHARES_POSITIONS = 2,     // of each sequence
    AXIS_SHARES_WEIGHTS   = 4,     // in shards, which each gathers before it uses them
    AXIS_SHARES_MATRICES  = 8,     // of which each computes with its own part
    AXIS_SHARES_EXPERTS   = 16,    // which are at home on one of them
    AXIS_SHARES_LAYERS    = 32,
    AXIS_SHARES_TOKENS    = AXIS_SHARES_SEQUENCES | AXIS_SHARES_POSITIONS,
};

// clang-format off
// AXIS(NAME, key of [parallel], type of its option, largest size, help of its option, fields of struct axis_row), in the
// order in which options, JSON and waterfalls list them.
#define AXES(AXIS) \
    AXIS(DP, dp, AUTO_OPTION, 65536, \
         "replicas of the model; auto on one axis: what the other axes leave of the ranks", \
         .values = AXIS_REST, .shown = 1, .claim = 1, .shares = AXIS_SHARES_SEQUENCES) \
    AXIS(FSDP, fsdp, AUTO_OPTION, 65536, \
         "ranks over which weights, gradients and optimizer are sharded; with dp > 1 this is HSDP", \
         .values = AXIS_OVER_RANKS, .shown = 0, .claim = 0, .shares = AXIS_SHARES_SEQUENCES | AXIS_SHARES_WEIGHTS) \
    AXIS(TP, tp, AUTO_OPTION, 1024, \
         "ranks over which each matrix is sharded", \
         .values = AXIS_OVER_NODE, .shown = 2, .claim = 4, .shares = AXIS_SHARES_MATRICES, .stays_in_node = true, \
         .divides = {"model.heads", "model.ffn", "model.shared_ffn"}, .meets = "model.kv_heads") \
    AXIS(CP, cp, AUTO_OPTION, 1024, \
         "ranks over which each sequence is sharded, in two chunks per rank that balance causal attention", \
         .values = AXIS_OVER_NODE, .shown = 3, .claim = 3, .shares = AXIS_SHARES_POSITIONS, .pieces = 2, \
         .divides = {"train.sequence"}) \
    AXIS(EP, ep, INTEGER_OPTION, 1024, \
         "ranks over which the experts are distributed: data-parallel ones; with etp = 1 those of tp and cp first", \
         .values = AXIS_OVER_EXPERTS, .shown = 4, .claim = 2, .shares = AXIS_SHARES_SEQUENCES | AXIS_SHARES_EXPERTS, \
         .within = 1 << AXIS_FSDP | 1 << AXIS_DP, .divides = {"model.experts"}) \
    AXIS(PP, pp, AUTO_OPTION, 1024, \
         "pipeline stages", \
         .values = AXIS_OVER_LAYERS, .shown = 5, .claim = 5, .shares = AXIS_SHARES_LAYERS)
// clang-format on

enum { AXIS_DIVIDES = 4 };
struct axis_row {
    const char      *name;      // also the key of [parallel] and of JSON
    size_t           field;     // of struct parallel_config
    enum axis_values values;    // that a sweep tries
    int              shown;     // place in the text of a layout: "fsdp 128 dp 4"
    int              claim;     // of the axes of a transfer's group, the one with the lowest owns its exposed time
    uint32_t         shares;    // enum axis_share
    bool             stays_in_node;    // its transfers are in every layer: they need the links within a node
    uint32_t         within;           // 1 << axis: its ranks are some of those of the first of these that has several
    const char      *divides[AXIS_DIVIDES];    // "section.key" of the numbers that it has to divide; NULL: no more
    const char      *meets;                    // ... of one that it has to divide, or be a multiple of; NULL: none
    int64_t          pieces;                   // of these that each of its ranks holds; 0: one
};
extern const struct axis_row axis_rows[AXIS_COUNT];

// The axes in the order of the rows above, and in that of a layout's text.
extern const enum axis axis_listed[AXIS_COUNT];
enum axis              axis_shown(int place);

// 1 << axis of all whose ranks share out any of these.
uint32_t axis_sharing(uint32_t shares);

// The axes of a mask (1 << AXIS_DP | ...) as text, "fsdp x dp"; of a part of tp (mesh.h) "copies"; returns text.
const char *axis_names(uint32_t axes, char *text, size_t bytes);

// The axis of the mask (1 << AXIS_DP | ...) to which the exposed time of transfers along them belongs; AXIS_COUNT where
// there is none.
enum axis axis_claims(uint32_t axes);

#endif
