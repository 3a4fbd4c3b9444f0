// SPDX-License-Identifier: MIT
// Cuts a contiguous range of an FSDP unit into slices, which are rectangles of whole tensors. A range may start and end
// within a row, so a tensor can yield the end of a row, whole rows, and the start of a row. Also lists the slices that
// a rank saves.
#include "slices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/text.h"
#include "internal.h"

const char *const state_prefixes[] = {[STATE_WEIGHT]        = "",
                                      [STATE_MASTER]        = "master.",
                                      [STATE_FIRST_MOMENT]  = "first_moment.",
                                      [STATE_SECOND_MOMENT] = "second_moment."};

int32_t state_tensor(const struct plan_unit *unit, enum state state)
{
    // A quantized weight is not saved, because it follows from its master.
    const int32_t tensors[] = {[STATE_WEIGHT]        = unit->is_low_precision ? -1 : unit->weight,
                               [STATE_MASTER]        = unit->master,
                               [STATE_FIRST_MOMENT]  = unit->first_moment,
                               [STATE_SECOND_MOMENT] = unit->second_moment};
    return tensors[state];
}

struct plan_slice state_range(const struct plan_unit *unit, enum state state)
{
    return state == STATE_WEIGHT ? unit->kept : unit->updated;
}

void scaling_list(const struct plan *plan, struct scaling_tensor tensors[SCALING_TENSORS])
{
    tensors[0] = (struct scaling_tensor){SCALING_PREFIX "scales", plan->scaling.scales};
    tensors[1] = (struct scaling_tensor){SCALING_PREFIX "factors", plan->scaling.factors};
    tensors[2] = (struct scaling_tensor){SCALING_PREFIX "magnitudes", plan->scaling.amaxes};
    tensors[3] = (struct scaling_tensor){SCALING_PREFIX "history", plan->scaling.history};
}

struct rectangle rectangle_common(const struct rectangle *a, const struct rectangle *b)
{
    struct rectangle common = {.row = number_max(a->row, b->row), .column = number_max(a->column, b->column)};
    common.rows             = number_max(number_min(a->row + a->rows, b->row + b->rows) - common.row, 0);
    common.columns          = number_max(number_min(a->column + a->columns, b->column + b->columns) - common.column, 0);
    return common;
}

// Appends slices for the elements begin to end - 1 of this rank's rows and columns of a part. first: index of their
// first element in the unit.
static void append_run(struct slice_list *list, const struct weight_part *part, int64_t first, int64_t begin,
                       int64_t end)
{
    const int64_t columns = part->local_columns;
    while (begin < end) {
        int64_t      row = begin / columns, column = begin % columns;
        int64_t      left  = number_min(end - begin, SLICE_ELEMENTS_MAX);
        struct slice slice = {.part = part, .first = first + begin};
        if (column == 0 && end - begin >= columns) {
            slice.at = (struct rectangle){.rows = number_max(left / columns, 1), .columns = columns};
        } else {
            slice.at = (struct rectangle){.rows = 1, .columns = number_min(columns - column, left)};
        }
        slice.at.row    = part->first_row + row;
        slice.at.column = part->first_column + column;
        LIST_APPEND(list->items, list->count, slice);
        begin += slice.at.rows * slice.at.columns;
    }
}

// Appends the slices of a part that are in the range. Padding rows belong to no tensor, so they are in no slice.
static void append_part(struct slice_list *list, const struct weight *weight, const struct weight_part *part,
                        struct plan_slice range)
{
    int64_t first = weight->first + part->offset;
    int64_t rows  = number_min(part->local_rows, part->rows - part->first_row);
    append_run(list, part, first, number_max(range.first - first, 0),
               number_min(range.first + range.elements - first, rows * part->local_columns));
}

// Lists the slices of a unit in a range. only_owned: if tp ranks have the same tensor, only the first of them lists it.
static struct slice_list list_slices(const struct plan *plan, const struct plan_unit *unit, struct plan_slice range,
                                     bool only_owned)
{
    struct slice_list list = {.count = 0};
    for (int32_t i = unit->first_weight; i < unit->first_weight + unit->weight_count; i++) {
        const struct weight *weight = &plan->weights[i];
        for (int32_t j = 0; j < weight->part_count; j++) {
            if (!only_owned || mesh_group_index(&plan->mesh, plan->rank, weight->part[j].replica_axes) == 0) {
                append_part(&list, weight, &weight->part[j], range);
            }
        }
    }
    return list;
}

struct slice_list slices_of(const struct plan *plan, const struct plan_unit *unit, struct plan_slice range)
{
    return list_slices(plan, unit, range, false);
}

struct slice_list slices_owned(const struct plan *plan, const struct plan_unit *unit)
{
    uint32_t          replica_axes = unit->replica_axes & ~unit->update_axes;
    int64_t           sharers      = mesh_group_size(&plan->mesh, replica_axes);
    int64_t           index        = mesh_group_index(&plan->mesh, plan->rank, replica_axes);
    int64_t           begin        = unit->updated.elements * index / sharers;
    int64_t           end          = unit->updated.elements * (index + 1) / sharers;
    struct plan_slice range        = {unit->updated.first + begin, unit->is_copy ? 0 : end - begin};
    return list_slices(plan, unit, range, true);
}

void slice_name(const struct slice *slice, enum state state, char name[SLICE_NAME_BYTES])
{
    const struct rectangle *at = &slice->at;
    int length                 = snprintf(name, SLICE_NAME_BYTES, "%s%s[", state_prefixes[state], slice->part->name);
    if (!slice->part->is_vector) {
        length += snprintf(name + length, (size_t)(SLICE_NAME_BYTES - length), "%" PRId64 ":%" PRId64 ",", at->row,
                           at->row + at->rows);
    }
    snprintf(name + length, (size_t)(SLICE_NAME_BYTES - length), "%" PRId64 ":%" PRId64 "]", at->column,
             at->column + at->columns);
}

// Parses "FIRST:END" in digits, which the character `after` must follow.
static bool parse_run(const char **text, char after, int64_t *first, int64_t *count)
{
    int64_t ends[2];
    for (int i = 0; i < 2; i++) {
        size_t digits = strspn(*text, "0123456789");
        if (digits == 0 || digits > 18 || (*text)[digits] != (i == 0 ? ':' : after)) {
            return false;
        }
        ends[i] = strtoll(*text, NULL, 10);
        *text += digits + 1;
    }
    *first = ends[0];
    *count = ends[1] - ends[0];
    return *count > 0;
}

bool slice_parse(const char *name, char tensor[SLICE_NAME_BYTES], struct rectangle *at, int32_t *dims)
{
    const char *open = strrchr(name, '[');
    if (open == NULL || open == name || !text_copy(tensor, SLICE_NAME_BYTES, name)) {
        return false;
    }
    tensor[open - name] = '\0';
    const char *text    = open + 1;
    *dims               = strchr(text, ',') != NULL ? 2 : 1;
    *at                 = (struct rectangle){.rows = 1};
    return (*dims == 1 || parse_run(&text, ',', &at->row, &at->rows)) &&
           parse_run(&text, ']', &at->column, &at->columns) && *text == '\0';
}

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

// Appends a tensor that is the same on all ranks, as one slice.
static void append_whole(struct shard *shard, const struct plan *plan, const char *name, int32_t index)
{
    const struct tensor *tensor = &plan->tensors[index];
    struct safetensor   *entry  = append(shard, index, 0);
    *entry                      = (struct safetensor){.format = tensor->format, .dims = 1, .dim = {tensor->elements}};
    snprintf(entry->name, sizeof(entry->name), "%s[0:%" PRId64 "]", name, tensor->elements);
    shard->bytes += tensor->bytes;
}

// Appends the state of delayed FP8 scaling. pass_entry replaces the current amaxes by their maxima over all ranks.
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
