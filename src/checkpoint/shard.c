// SPDX-License-Identifier: MIT
// Lists the slices that a rank saves, with names and sizes.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "shard.h"

void shard_free(struct shard *shard)
{
    free(shard->entries);
    free(shard->runs);
}

static struct safetensor *append(struct shard *shard, int32_t tensor, int64_t first)
{
    int32_t runs = shard->count;
    LIST_APPEND(shard->runs, runs, (struct shard_run){tensor, first});
    LIST_APPEND(shard->entries, shard->count, (struct safetensor){.name = ""});
    return &shard->entries[shard->count - 1];
}

static void append_slice(struct shard *shard, const struct plan *plan, const struct plan_unit *unit, enum state state,
                         const struct slice *slice)
{
    int32_t            tensor   = state_tensor(unit, state);
    struct safetensor *entry    = append(shard, tensor, slice->first - state_range(unit, state).first);
    entry->format               = plan->tensors[tensor].format;
    entry->dims                 = slice->part->is_vector ? 1 : 2;
    entry->dim[0]               = slice->at.rows;
    entry->dim[entry->dims - 1] = slice->at.columns;
    slice_name(slice, state, entry->name);
    shard->bytes += format_bytes(entry->format, slice->at.rows * slice->at.columns);
}

static void append_unit(struct shard *shard, const struct plan *plan, const struct plan_unit *unit)
{
    struct slice_list list = slices_owned(plan, unit);
    for (enum state state = 0; state < STATE_COUNT; state++) {
        for (int64_t i = 0; i < list.count && state_tensor(unit, state) >= 0; i++) {
            append_slice(shard, plan, unit, state, &list.items[i]);
        }
    }
    free(list.items);
}

// The tensor is the same on all ranks and saved in full.
static void append_whole(struct shard *shard, const struct plan *plan, const char *name, int32_t index)
{
    const struct tensor *tensor = &plan->tensors[index];
    struct safetensor   *entry  = append(shard, index, 0);
    *entry                      = (struct safetensor){.format = tensor->format, .dims = 1, .dim = {tensor->elements}};
    snprintf(entry->name, sizeof(entry->name), "%s[0:%" PRId64 "]", name, tensor->elements);
    shard->bytes += tensor->bytes;
}

// Amaxes of the current step are the maximum over all ranks.
static void append_scaling(struct shard *shard, const struct plan *plan)
{
    struct scaling_tensor tensors[SCALING_TENSORS];
    scaling_list(plan, tensors);
    for (int i = 0; i < SCALING_TENSORS; i++) {
        append_whole(shard, plan, tensors[i].name, tensors[i].tensor);
    }
}

struct shard shard_describe(const struct plan *plan)
{
    struct shard shard = {.count = 0};
    for (int32_t i = 0; i < plan->unit_count; i++) {
        append_unit(&shard, plan, &plan->units[i]);
    }
    if (plan->rank == 0 && plan->scaling.history >= 0) {
        append_scaling(&shard, plan);
    }
    if (plan->rank == 0 && plan->router_bias >= 0) {
        append_whole(&shard, plan, ROUTER_BIAS, plan->router_bias);
    }
    return shard;
}

int64_t checkpoint_whole_bytes(const struct plan *plan)
{
    const struct precision *precision = &plan->precision;
    struct export_list      list      = exports_list(plan, FORMAT_F32, INT64_MAX);
    int64_t                 bytes     = 0;
    for (int32_t i = 0; i < list.count; i++) {
        const struct export *export = &list.exports[i];
        int64_t elements            = export->part->rows * export->part->columns;
        bytes += export->is_low_precision ? 0 : format_bytes(precision->weight, elements);
        if (export->is_frozen) {
            continue;
        }
        bytes += precision->has_master ? format_bytes(FORMAT_F32, elements) : 0;
        bytes += (export->is_muon ? 1 : 2) * format_bytes(precision->moment, elements);
    }
    exports_free(&list);
    if (plan->scaling.history >= 0) {
        bytes += 3 * plan->tensors[plan->scaling.scales].bytes + plan->tensors[plan->scaling.history].bytes;
    }
    if (plan->router_bias >= 0) {
        bytes += plan->tensors[plan->router_bias].bytes;
    }
    return bytes;
}
