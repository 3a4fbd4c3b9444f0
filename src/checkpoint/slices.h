// SPDX-License-Identifier: MIT
// Maps the state of this rank to slices, which are rectangles of whole tensors, so that a job with another layout can
// load them. A unit is an FSDP unit of the plan; a rank has a range of its elements. A part of a weight is one tensor
// of the file: q, k and v are parts of "qkv".
#pragma once

#include "gswbench/plan.h"

// The states of a weight that a checkpoint has.
enum state { STATE_WEIGHT, STATE_MASTER, STATE_FIRST_MOMENT, STATE_SECOND_MOMENT, STATE_COUNT };
extern const char *const state_prefixes[];    // prefixes of tensor names in files; "" for weights

// state_tensor returns the index of the plan's tensor that has a state of the unit's weights; -1: none. state_range
// returns the range of the unit's elements in that tensor.
int32_t           state_tensor(const struct plan_unit *unit, enum state state);
struct plan_slice state_range(const struct plan_unit *unit, enum state state);

// The tensors of FP8's delayed scaling, with their names in files.
#define SCALING_PREFIX "scaling."
enum { SCALING_TENSORS = 4 };
struct scaling_tensor {
    const char *name;
    int32_t     tensor;
};
void scaling_list(const struct plan *plan, struct scaling_tensor tensors[SCALING_TENSORS]);
// Name of the tensor with the router biases of every expert layer.
#define ROUTER_BIAS "router.bias"

// A range of rows and columns of a whole tensor. A vector is one row.
struct rectangle {
    int64_t row, rows, column, columns;
};

// Returns the intersection of two rectangles. It is empty if it has no rows or no columns.
struct rectangle rectangle_common(const struct rectangle *a, const struct rectangle *b);

// A rectangle of a tensor whose elements are contiguous in a unit, row by row.
struct slice {
    const struct weight_part *part;
    struct rectangle          at;
    int64_t                   first;    // index of its first element in the unit
};

struct slice_list {
    struct slice *items;
    int64_t       count;
};

// Maximum elements of a slice, unless a row has more. A checksum covers a whole slice, so a reader must read all of it.
enum { SLICE_ELEMENTS_MAX = 4 << 20 };

// Returns the slices of a range of a unit's elements. The caller frees the items.
struct slice_list slices_of(const struct plan *plan, const struct plan_unit *unit, struct plan_slice range);

// Returns the slices of a unit that this rank saves. Ranks with the same data save different parts of it.
struct slice_list slices_owned(const struct plan *plan, const struct plan_unit *unit);

// slice_name makes a name such as "master.model.norm.weight[0:64]" or "lm_head.weight[128:256,0:64]". slice_parse
// parses it, and returns false if it is malformed.
enum { SLICE_NAME_BYTES = 128 };
void slice_name(const struct slice *slice, enum state state, char name[SLICE_NAME_BYTES]);
bool slice_parse(const char *name, char tensor[SLICE_NAME_BYTES], struct rectangle *at, int32_t *dims);

// The file of one rank: all slices that it saves.
struct shard {
    struct safetensor *entries;    // [count]: in the order of the file
    struct shard_run {
        int32_t tensor;
        int64_t first;    // index of the slice's first element in the plan's tensor `tensor`
    } * runs;             // [count]: where each entry's data are; entries of one tensor are consecutive
    int32_t count;
    int64_t bytes;
};

struct shard shard_describe(const struct plan *plan);
void         shard_free(struct shard *shard);
