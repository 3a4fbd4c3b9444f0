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

// clang-format off
// AXIS(NAME, key of [parallel], type of its option, largest size, help of its option, fields of struct axis_row), in the
// order in which options, JSON and waterfalls list them.
#define AXES(AXIS) \
    AXIS(DP, dp, AUTO_OPTION, 65536, \
         "replicas of the model; auto on one axis: what the other axes leave of the ranks", \
         .values = AXIS_REST, .shown = 1, .claim = 1) \
    AXIS(FSDP, fsdp, AUTO_OPTION, 65536, \
         "ranks that share weights, gradients and optimizer; with dp > 1 this is HSDP", \
         .values = AXIS_OVER_RANKS, .shown = 0, .claim = 0) \
    AXIS(TP, tp, AUTO_OPTION, 1024, \
         "ranks that share each matrix", \
         .values = AXIS_OVER_NODE, .shown = 2, .claim = 4, .stays_in_node = true) \
    AXIS(CP, cp, AUTO_OPTION, 1024, \
         "ranks that share each sequence, in two chunks each that balance causal attention", \
         .values = AXIS_OVER_NODE, .shown = 3, .claim = 3) \
    AXIS(EP, ep, INTEGER_OPTION, 1024, \
         "data-parallel ranks that share the experts", \
         .values = AXIS_OVER_EXPERTS, .shown = 4, .claim = 2, .is_within = true) \
    AXIS(PP, pp, AUTO_OPTION, 1024, \
         "pipeline stages", \
         .values = AXIS_OVER_LAYERS, .shown = 5, .claim = 5)
// clang-format on

struct axis_row {
    const char      *name;      // also the key of [parallel] and of JSON
    size_t           field;     // of struct parallel_config
    enum axis_values values;    // that a sweep tries
    int              shown;     // place in the text of a layout: "fsdp 128 dp 4"
    int              claim;     // of the axes of a transfer's group, the one with the least owns its exposed time
    bool             stays_in_node;    // its transfers are in every layer: they want the links within a node
    bool             is_within;        // its ranks are some of those of fsdp or, where that is 1, of dp
};
extern const struct axis_row axis_rows[AXIS_COUNT];

// The axes in the order of the rows above, and in that of a layout's text.
extern const enum axis axis_listed[AXIS_COUNT];
enum axis              axis_shown(int place);

// The axis of the mask (1 << AXIS_DP | ...) to which the exposed time of transfers along them belongs; AXIS_COUNT where
// there is none.
enum axis axis_claims(uint32_t axes);

#endif
