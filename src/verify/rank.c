// SPDX-License-Identifier: MIT
// Verifies a rank's plan (plan_verify): findings.c checks each op, and this file the memory accesses. The starts and
// ends of tensors divide each storage into segments. For each segment, the verifier tracks the last write and the reads
// after it. Every access must be ordered after the write, and a write after these reads. The segment must have been
// written, and still hold the op's tensor.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/plan.h"
#include "internal.h"

struct segment {
    int32_t owner;                   // tensor whose value the segment holds; -1: none
    int32_t writer;                  // op that wrote the segment last; -1: none in this step
    int32_t reader[STREAM_COUNT];    // latest op per stream that read it since the write; -1: none
};

struct verifier {
    const struct plan *plan;
    struct arena       arena;                   // memory of the lists, except position and clocks
    int32_t           *position, *clocks;       // results of order_clocks
    uint8_t           *stream;                  // [op]: its stream, a compact copy for random access
    int64_t           *edges[STORAGE_COUNT];    // ascending offsets; segment i is [edges[i], edges[i + 1])
    int32_t            edge_count[STORAGE_COUNT];
    struct segment    *segments[STORAGE_COUNT];
    int32_t           *first_segment, *end_segment;    // [tensor]: its segments are first_segment .. end_segment - 1
    struct findings    findings;
};

static int compare_offsets(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static int32_t find_edge(const struct verifier *verifier, enum storage storage, int64_t offset)
{
    const int64_t *found = bsearch(&offset, verifier->edges[storage], (size_t)verifier->edge_count[storage],
                                   sizeof(offset), compare_offsets);
    return (int32_t)(found - verifier->edges[storage]);
}

// Lists the starts and ends of the tensors. Most of them occur many times; skipping recently seen ones makes the later
// sort cheap.
static void collect_edges(struct verifier *verifier)
{
    enum { RECENT_BITS = 12 };
    const struct plan *plan   = verifier->plan;
    size_t             bytes  = STORAGE_COUNT * sizeof(int64_t) << RECENT_BITS;
    int64_t           *recent = arena_allocate(&verifier->arena, bytes);    // 0: empty, so edge 0 is always added
    for (int32_t t = 0; t < plan->tensor_count; t++) {
        const struct tensor *tensor  = &plan->tensors[t];
        enum storage         storage = tensor->storage;
        for (int end = 0; end < 2 && tensor->first_op >= 0; end++) {
            int64_t  edge  = tensor->offset + (end == 0 ? 0 : tensor->bytes);
            int64_t *known = &recent[((uint64_t)storage << RECENT_BITS) +
                                     ((uint64_t)edge * 0x9e3779b97f4a7c15u >> (64 - RECENT_BITS))];
            if (edge == 0 || *known != edge) {
                verifier->edges[storage][verifier->edge_count[storage]++] = *known = edge;
            }
        }
    }
}

static void cut_segments(struct verifier *verifier)
{
    const struct plan *plan = verifier->plan;
    for (int s = 0; s < STORAGE_COUNT; s++) {
        verifier->edges[s] = arena_allocate(&verifier->arena, (size_t)plan->tensor_count * 2 * sizeof(int64_t));
    }
    collect_edges(verifier);
    for (int s = 0; s < STORAGE_COUNT; s++) {
        int64_t *edges = verifier->edges[s];
        int32_t  count = verifier->edge_count[s], kept = 0;
        qsort(edges, (size_t)count, sizeof(*edges), compare_offsets);
        for (int32_t i = 0; i < count; i++) {
            if (kept == 0 || edges[kept - 1] != edges[i]) {
                edges[kept++] = edges[i];
            }
        }
        verifier->edge_count[s] = kept;
        verifier->segments[s]   = arena_allocate(&verifier->arena, (size_t)kept * sizeof(struct segment));
        // Sets every index to -1.
        memset(verifier->segments[s], 0xff, (size_t)kept * sizeof(struct segment));
    }
    verifier->first_segment = arena_allocate(&verifier->arena, (size_t)plan->tensor_count * sizeof(int32_t));
    verifier->end_segment   = arena_allocate(&verifier->arena, (size_t)plan->tensor_count * sizeof(int32_t));
    for (int32_t t = 0; t < plan->tensor_count; t++) {
        const struct tensor *tensor = &plan->tensors[t];
        if (tensor->first_op >= 0) {
            verifier->first_segment[t] = find_edge(verifier, tensor->storage, tensor->offset);
            verifier->end_segment[t]   = find_edge(verifier, tensor->storage, tensor->offset + tensor->bytes);
        }
    }
}

// Marks the padding between the weights in accumulated gradients as valid to read. No op writes this padding, because
// ops write the gradients of single weights, so it stays zero. Sharded gradients are written as whole slices, including
// padding.
static void mark_gradient_padding(struct verifier *verifier)
{
    const struct plan *plan     = verifier->plan;
    struct segment    *segments = verifier->segments[STORAGE_GRADIENT];
    for (int32_t i = 0; i < verifier->edge_count[STORAGE_GRADIENT]; i++) {
        segments[i].owner = plan->tensor_count;
    }
    for (int32_t w = 0; w < plan->weight_count; w++) {
        const struct weight *weight = &plan->weights[w];
        int32_t              tensor = weight->gradient >= 0 ? weight->gradient : plan->units[weight->unit].gradient;
        if (tensor < 0) {    // frozen weights have no gradients
            continue;
        }
        for (int32_t i = verifier->first_segment[tensor];
             plan->tensors[tensor].first_op >= 0 && i < verifier->end_segment[tensor]; i++) {
            segments[i].owner = -1;
        }
    }
}

static bool is_after(const struct verifier *verifier, int32_t op, int32_t earlier)
{
    int stream = verifier->stream[earlier];
    if (stream == verifier->stream[op]) {
        return earlier < op;
    }
    return verifier->position[earlier] < verifier->clocks[(int64_t)op * STREAM_COUNT + stream];
}

// Checks a read of a segment. Returns true if it reported an error; one finding per access is enough.
static bool check_read(struct verifier *verifier, int32_t op, int32_t tensor, const struct segment *segment)
{
    enum storage storage = verifier->plan->tensors[tensor].storage;
    bool         is_kept = storage == STORAGE_WEIGHT || storage == STORAGE_OPTIMIZER || storage == STORAGE_INPUT;
    if (segment->owner < 0 && !is_kept) {
        findings_add(&verifier->findings, op, tensor, "reads what nothing has written:", -1);
        return true;
    }
    if (storage == STORAGE_ACTIVATION && segment->owner != verifier->plan->tensors[tensor].whole) {
        findings_add(&verifier->findings, op, tensor, "reads what was overwritten since:", segment->writer);
        return true;
    }
    return false;
}

static bool check_order(struct verifier *verifier, int32_t op, int32_t tensor, const struct segment *segment,
                        bool writes)
{
    if (segment->writer >= 0 && segment->writer != op && !is_after(verifier, op, segment->writer)) {
        findings_add(&verifier->findings, op, tensor, "is not ordered after the write of", segment->writer);
        return true;
    }
    for (int stream = 0; stream < STREAM_COUNT && writes; stream++) {
        int32_t reader = segment->reader[stream];
        if (reader >= 0 && reader != op && !is_after(verifier, op, reader)) {
            findings_add(&verifier->findings, op, tensor, "overwrites bytes that may still be read: writes", reader);
            return true;
        }
    }
    return false;
}

// Returns whether an output may be overwritten before an op reads it. This holds for the zeros of OP_CLEAR, and for
// gathered weights, whose padding no op reads.
static bool may_stay_unread(const struct op *writer, const struct tensor *written)
{
    return writer->kind == OP_CLEAR || (writer->kind == OP_ALL_GATHER && written->storage == STORAGE_WEIGHT);
}

// Reports an op that sets a tensor a second time. It may do so if it reads the old value itself, or if the old value
// may stay unread. If the tensor is no activation, it may also do so after another op has read the old value: a
// reduction reads an accumulated gradient, and later replaces it.
static bool check_loss(struct verifier *verifier, int32_t op, int32_t tensor, const struct segment *segment)
{
    const struct plan   *plan    = verifier->plan;
    const struct tensor *written = &plan->tensors[tensor];
    bool                 is_lost = segment->writer >= 0 && segment->owner == written->whole;
    for (int stream = 0; stream < STREAM_COUNT && is_lost; stream++) {
        int32_t reader = segment->reader[stream];
        is_lost        = reader != op && (reader < 0 || written->storage == STORAGE_ACTIVATION);
    }
    is_lost = is_lost && !may_stay_unread(&plan->ops[segment->writer], written);
    if (is_lost) {
        findings_add(&verifier->findings, op, tensor, "sets a second time", segment->writer);
    }
    return is_lost;
}

static void check_access(struct verifier *verifier, int32_t op, int slot)
{
    const struct op *checked  = &verifier->plan->ops[op];
    int32_t          tensor   = checked->operand[slot];
    struct segment  *segments = verifier->segments[verifier->plan->tensors[tensor].storage];
    bool             writes   = (checked->access[slot] & ACCESS_WRITE) != 0;
    bool             reads    = (checked->access[slot] & ACCESS_READ) != 0;
    bool             reported = false;

    for (int32_t i = verifier->first_segment[tensor]; i < verifier->end_segment[tensor]; i++) {
        struct segment *segment = &segments[i];
        reported                = reported || (reads && check_read(verifier, op, tensor, segment)) ||
                   (!reads && check_loss(verifier, op, tensor, segment)) ||
                   check_order(verifier, op, tensor, segment, writes);
        if (writes) {
            memset(segment->reader, 0xff, sizeof(segment->reader));
            segment->writer = op;
            segment->owner  = verifier->plan->tensors[tensor].whole;
        } else {
            segment->reader[checked->stream] = op;
        }
    }
}

// Returns the axes over which amaxes must be reduced before scales are computed from them. Scales of BF16 weights
// (current scaling) need the axes that shard the optimizer, because AdamW computes amaxes on the slices that a rank
// updates; all other scales need all axes.
static uint32_t scaled_axes(const struct plan *plan)
{
    bool is_of_slices = plan->precision.recipe == RECIPE_CURRENT && !plan->precision.has_low_precision_weights;
    return is_of_slices ? plan->units[0].update_axes : MESH_ALL_AXES;
}

// Checks that amaxes were reduced before scales are computed from them: ranks that share a tensor agree on its scale
// only if an all-reduce has taken the maximum over them.
static void check_magnitudes(struct verifier *verifier, int32_t op)
{
    const struct plan    *plan     = verifier->plan;
    int32_t               tensor   = plan->ops[op].operand[RESCALE_AMAX];
    const struct segment *segments = verifier->segments[plan->tensors[tensor].storage];
    for (int32_t i = verifier->first_segment[tensor]; i < verifier->end_segment[tensor]; i++) {
        const struct op *writer = segments[i].writer >= 0 ? &plan->ops[segments[i].writer] : NULL;
        if (writer == NULL || writer->kind != OP_ALL_REDUCE_MAXIMUM ||
            plan->groups[writer->shape.communication.group].size < mesh_group_size(&plan->mesh, scaled_axes(plan))) {
            findings_add(&verifier->findings, op, tensor,
                         "scales by what is not the largest of all ranks:", segments[i].writer);
            return;
        }
    }
}

static void check_operands(struct verifier *verifier, int32_t op)
{
    const struct op *checked = &verifier->plan->ops[op];
    if (checked->kind == OP_RESCALE && mesh_group_size(&verifier->plan->mesh, scaled_axes(verifier->plan)) > 1) {
        check_magnitudes(verifier, op);
    }
    const struct row_count *row_count = plan_op_row_count(verifier->plan, checked);
    if (row_count != NULL && (row_count->reader >= op || !is_after(verifier, op, row_count->reader))) {
        findings_add(&verifier->findings, op, -1, "is not ordered after its rows are counted", -1);
    }
    // An op reads all its operands before it writes any.
    for (int writes = 0; writes <= 1; writes++) {
        for (int slot = 0; slot < checked->operand_count; slot++) {
            bool is_write = (checked->access[slot] & ACCESS_WRITE) != 0;
            if (checked->operand[slot] >= 0 && is_write == (writes == 1)) {
                check_access(verifier, op, slot);
            }
        }
    }
}

status plan_verify(const struct plan *plan, int32_t *findings)
{
    struct verifier verifier = {.plan = plan, .findings = {.plan = plan, .first = OK}};
    for (int32_t op = 0; op < plan->op_count; op++) {
        findings_check_op(&verifier.findings, op);
    }
    if (verifier.findings.count == 0) {
        verifier.position = memory_allocate((size_t)plan->op_count * sizeof(int32_t));
        verifier.clocks   = order_clocks(plan, verifier.position);
        verifier.stream   = arena_allocate(&verifier.arena, (size_t)plan->op_count);
        for (int32_t op = 0; op < plan->op_count; op++) {
            verifier.stream[op] = plan->ops[op].stream;
        }
        cut_segments(&verifier);
        mark_gradient_padding(&verifier);
        for (int32_t op = 0; op < plan->op_count; op++) {
            check_operands(&verifier, op);
        }
    }
    arena_free(&verifier.arena);
    free(verifier.clocks);
    free(verifier.position);
    if (findings != NULL) {
        *findings = verifier.findings.count;
    }
    return verifier.findings.first;
}
