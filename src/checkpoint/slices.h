// SPDX-License-Identifier: MIT
// What of a model's state a rank holds, as rectangles of the whole tensors: how a checkpoint is cut, and read back
// under any other layout.
#ifndef GSWBENCH_CHECKPOINT_SLICES_H
#define GSWBENCH_CHECKPOINT_SLICES_H

#include "gswbench/plan.h"

// What there is of each weight.
enum state { STATE_WEIGHT, STATE_MASTER, STATE_FIRST_MOMENT, STATE_SECOND_MOMENT, STATE_COUNT };
extern const char *const state_prefixes[];    // of the names that they have in files; "" of weights themselves

// The tensor that holds this state of the unit, or -1; and which of the unit's elements.
int32_t           state_tensor(const struct plan_unit *unit, enum state state);
struct plan_slice state_range(const struct plan_unit *unit, enum state state);

// What brings tensors into the range of FP8 when scales are delayed, under the names that it has in files.
#define SCALING_PREFIX "scaling."
enum { SCALING_TENSORS = 4 };
struct scaling_tensor {
    const char *name;
    int32_t     tensor;
};
void scaling_list(const struct plan *plan, struct scaling_tensor tensors[SCALING_TENSORS]);
// What routers add to their scores, of all layers with experts, likewise.
#define ROUTER_BIAS "router.bias"

// Rows and columns of a whole tensor; those of a vector are one row.
struct rectangle {
    int64_t row, rows, column, columns;
};

// What both have; without rows or columns where that is nothing.
struct rectangle rectangle_common(const struct rectangle *a, const struct rectangle *b);

// A rectangle whose elements lie one after the other in a unit's range, row by row.
struct slice {
    const struct weight_part *part;
    struct rectangle          at;
    int64_t                   first;    // in the range
};

struct slice_list {
    struct slice *items;
    int64_t       count;
};

// At most so many elements, unless a row has more: the checksum of a slice is known only when all of it is read.
enum { SLICE_ELEMENTS_MAX = 4 << 20 };

// All slices of a run of the unit's elements. The caller frees the items.
struct slice_list slices_of(const struct plan *plan, const struct plan_unit *unit, struct plan_slice range);

// Those that this rank saves: of ranks that hold the same, each a share.
struct slice_list slices_owned(const struct plan *plan, const struct plan_unit *unit);

// "master.model.norm.weight[0:64]", "lm_head.weight[128:256,0:64]"; and back, false where it is none.
enum { SLICE_NAME_BYTES = 128 };
void slice_name(const struct slice *slice, enum state state, char name[SLICE_NAME_BYTES]);
bool slice_parse(const char *name, char tensor[SLICE_NAME_BYTES], struct rectangle *at, int32_t *dims);

#endif
