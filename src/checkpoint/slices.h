// SPDX-License-Identifier: MIT
// Maps this rank's model state to rectangles of full tensors, so that checkpoints can be loaded under any layout. A
// unit is an FSDP unit of the plan; each rank has a range of its elements. A part of a weight is one tensor of the
// file: q, k and v are parts of "qkv".
#pragma once

#include "gswbench/plan.h"

// State kept per weight.
enum state { STATE_WEIGHT, STATE_MASTER, STATE_FIRST_MOMENT, STATE_SECOND_MOMENT, STATE_COUNT };
extern const char *const state_prefixes[];    // prefixes of tensor names in files; "" for weights

// Returns the plan's tensor that holds a unit's state (-1: none), and which of the unit's elements are in it.
int32_t           state_tensor(const struct plan_unit *unit, enum state state);
struct plan_slice state_range(const struct plan_unit *unit, enum state state);

// Delayed scaling state of FP8, with the tensor names used in files.
#define SCALING_PREFIX "scaling."
enum { SCALING_TENSORS = 4 };
struct scaling_tensor {
    const char *name;
    int32_t     tensor;
};
void scaling_list(const struct plan *plan, struct scaling_tensor tensors[SCALING_TENSORS]);
// Router biases of every expert layer, one tensor.
#define ROUTER_BIAS "router.bias"

// Rows and columns of a full tensor; a vector is one row.
struct rectangle {
    int64_t row, rows, column, columns;
};

// Intersection; empty if it has no rows or no columns.
struct rectangle rectangle_common(const struct rectangle *a, const struct rectangle *b);

// A rectangle whose elements are contiguous in a unit's range, row by row.
struct slice {
    const struct weight_part *part;
    struct rectangle          at;
    int64_t                   first;    // first element in the unit's range
};

struct slice_list {
    struct slice *items;
    int64_t       count;
};

// Maximum slice size, unless a row is larger: verifying a checksum needs the full slice.
enum { SLICE_ELEMENTS_MAX = 4 << 20 };

// All slices of a range of the unit's elements. The caller frees the items.
struct slice_list slices_of(const struct plan *plan, const struct plan_unit *unit, struct plan_slice range);

// The slices that this rank saves; ranks with the same data save disjoint shares.
struct slice_list slices_owned(const struct plan *plan, const struct plan_unit *unit);

// Formats and parses "master.model.norm.weight[0:64]" or "lm_head.weight[128:256,0:64]". Parsing returns false on
// malformed names.
enum { SLICE_NAME_BYTES = 128 };
void slice_name(const struct slice *slice, enum state state, char name[SLICE_NAME_BYTES]);
bool slice_parse(const char *name, char tensor[SLICE_NAME_BYTES], struct rectangle *at, int32_t *dims);

// The slices that one rank saves.
struct shard {
    struct safetensor *entries;    // [count], in file order
    struct shard_run {
        int32_t tensor;
        int64_t first;    // first element in that tensor
    } * runs;             // parallel to entries; runs of the same tensor are consecutive
    int32_t count;
    int64_t bytes;
};

struct shard shard_describe(const struct plan *plan);
void         shard_free(struct shard *shard);
