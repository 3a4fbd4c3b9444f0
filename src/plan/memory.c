// SPDX-License-Identifier: MIT
// Assigns offsets in the activation memory to tensors by lifetime: best fit, in the order of first use.
//
// Lifetimes are measured in compute ops. An op of another stream can overlap with several compute ops. So a tensor that
// such an op uses lives from the first compute op that can overlap with the op to the first that surely runs after it.
//
// clocks[i * STREAM_COUNT + s] is the number of ops of stream s that have surely ended before op i starts, position[i]
// the index of op i in its stream (order_clocks).
#include <stdlib.h>
#include <string.h>

#include "gswbench/assembly.h"
#include "gswbench/number.h"

struct lifetime {
    int32_t tensor, begin, end;      // begin, end: indices of compute ops; end is included
    int32_t next_begin, next_end;    // next lifetime in the list of its begin, of its end; -1: none
    int64_t bytes;
};

struct lifetimes {
    struct lifetime *list;
    int32_t          count, times;               // times: number of compute ops + 1, for ends after the last compute op
    int32_t         *first_begin, *first_end;    // [times]: first lifetime that begins, ends at each op; -1: none
};

struct gap {
    int64_t offset, bytes;
};

struct gaps {
    struct gap *list;    // sorted by offset, never adjacent
    int32_t     count;
    int64_t     top;    // end of the activation memory
};

// Returns the indices of the ops sorted by stream, in the order of each stream. The ops of a stream start at
// first[stream]; first[STREAM_COUNT] is the total.
static int32_t *sort_by_stream(const struct plan *plan, const int32_t *position, int32_t first[STREAM_COUNT + 1])
{
    int32_t *sorted = memory_allocate((size_t)plan->op_count * sizeof(*sorted));
    memset(first, 0, (STREAM_COUNT + 1) * sizeof(*first));
    for (int32_t i = 0; i < plan->op_count; i++) {
        first[plan->ops[i].stream + 1]++;
    }
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        first[stream + 1] += first[stream];
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        sorted[first[plan->ops[i].stream] + position[i]] = i;
    }
    return sorted;
}

// Sets end[i] to an index among the compute ops. For a compute op i, this is its own index. For an op of another
// stream, it is the index of the first compute op that surely starts after op i has ended, or the number of compute ops
// if there is none. Returns the number of compute ops.
static int32_t find_ends(const struct plan *plan, const int32_t *clocks, const int32_t *position, int32_t *end)
{
    int32_t  first[STREAM_COUNT + 1], next[STREAM_COUNT] = {0};    // next: per stream, the first op without a known end
    int32_t *sorted      = sort_by_stream(plan, position, first);
    int32_t  compute_ops = first[STREAM_COMPUTE + 1] - first[STREAM_COMPUTE];
    for (int32_t i = 0; i < plan->op_count; i++) {
        end[i] = compute_ops;
    }
    for (int32_t c = 0; c < compute_ops; c++) {
        const int32_t *ended = &clocks[(int64_t)sorted[first[STREAM_COMPUTE] + c] * STREAM_COUNT];
        for (int stream = 0; stream < STREAM_COUNT; stream++) {
            for (; stream != STREAM_COMPUTE && next[stream] < ended[stream]; next[stream]++) {
                end[sorted[first[stream] + next[stream]]] = c;
            }
        }
        end[sorted[first[STREAM_COMPUTE] + c]] = c;
    }
    free(sorted);
    return compute_ops;
}

static void find_lifetimes(const struct plan *plan, const int32_t *clocks, const int32_t *position,
                           struct lifetimes *lifetimes)
{
    // index: [tensor], its lifetime in the list; -1: none. A part has the index of its whole, an earlier tensor.
    int32_t *end     = memory_allocate((size_t)plan->op_count * sizeof(*end));
    int32_t *index   = memory_allocate((size_t)plan->tensor_count * sizeof(*index));
    lifetimes->list  = memory_allocate((size_t)plan->tensor_count * sizeof(*lifetimes->list));
    lifetimes->times = find_ends(plan, clocks, position, end) + 1;

    for (int32_t t = 0; t < plan->tensor_count; t++) {
        const struct tensor *tensor = &plan->tensors[t];
        index[t]                    = tensor->whole == t ? -1 : index[tensor->whole];
        if (tensor->storage == STORAGE_ACTIVATION && tensor->whole == t) {
            int64_t bytes             = number_round_up(tensor->bytes, PLAN_ALIGNMENT);
            index[t]                  = lifetimes->count++;
            lifetimes->list[index[t]] = (struct lifetime){.tensor = t, .begin = INT32_MAX, .bytes = bytes};
        }
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        int32_t begin = op->stream == STREAM_COMPUTE ? position[i] : clocks[(int64_t)i * STREAM_COUNT + STREAM_COMPUTE];
        for (int o = 0; o < op->operand_count; o++) {
            if (op->operand[o] >= 0 && index[op->operand[o]] >= 0) {
                struct lifetime *lifetime = &lifetimes->list[index[op->operand[o]]];
                lifetime->begin           = (int32_t)number_min(lifetime->begin, begin);
                lifetime->end             = (int32_t)number_max(lifetime->end, end[i]);
            }
        }
    }
    free(index);
    free(end);
}

// Links the lifetimes that begin at the same compute op into a list, and the lifetimes that end at the same op into
// another list. Tensors that begin together get their offsets in order of size, the largest first; equal sizes keep the
// list's order.
static void list_lifetimes(struct lifetimes *lifetimes)
{
    size_t bytes           = (size_t)lifetimes->times * sizeof(int32_t);
    lifetimes->first_begin = memset(memory_allocate(bytes), 0xff, bytes);
    lifetimes->first_end   = memset(memory_allocate(bytes), 0xff, bytes);
    for (int32_t i = lifetimes->count - 1; i >= 0; i--) {
        struct lifetime *lifetime = &lifetimes->list[i];
        if (lifetime->begin == INT32_MAX) {
            continue;
        }
        int32_t *place = &lifetimes->first_begin[lifetime->begin];
        while (*place >= 0 && lifetimes->list[*place].bytes > lifetime->bytes) {
            place = &lifetimes->list[*place].next_begin;
        }
        lifetime->next_begin                = *place;
        *place                              = i;
        lifetime->next_end                  = lifetimes->first_end[lifetime->end];
        lifetimes->first_end[lifetime->end] = i;
    }
}

static void remove_gap(struct gaps *gaps, int32_t index)
{
    gaps->count--;
    memmove(&gaps->list[index], &gaps->list[index + 1], (size_t)(gaps->count - index) * sizeof(*gaps->list));
}

// Returns the offset of these bytes, which it takes from the smallest gap that fits, or else from the end.
static int64_t take(struct gaps *gaps, int64_t bytes)
{
    int32_t best = -1;
    for (int32_t i = 0; i < gaps->count && (best < 0 || gaps->list[best].bytes > bytes); i++) {    // until exact
        if (gaps->list[i].bytes >= bytes && (best < 0 || gaps->list[i].bytes < gaps->list[best].bytes)) {
            best = i;
        }
    }
    // If no gap fits, a gap at the end of the memory grows instead of being left unused.
    int32_t last = gaps->count - 1;
    if (best < 0 && last >= 0 && gaps->list[last].offset + gaps->list[last].bytes == gaps->top) {
        gaps->top              = gaps->list[last].offset + bytes;
        gaps->list[last].bytes = bytes;
        best                   = last;
    }
    if (best < 0) {
        gaps->top += bytes;
        return gaps->top - bytes;
    }
    int64_t offset = gaps->list[best].offset;
    gaps->list[best].offset += bytes;
    gaps->list[best].bytes -= bytes;
    if (gaps->list[best].bytes == 0) {
        remove_gap(gaps, best);
    }
    return offset;
}

// Returns the index of the first gap at or after the offset.
static int32_t find_gap(const struct gaps *gaps, int64_t offset)
{
    int32_t first = 0, end = gaps->count;
    while (first < end) {
        int32_t middle = (first + end) / 2;
        if (gaps->list[middle].offset < offset) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

static void give_back(struct gaps *gaps, int64_t offset, int64_t bytes)
{
    int32_t at          = find_gap(gaps, offset);
    bool    joins_left  = at > 0 && gaps->list[at - 1].offset + gaps->list[at - 1].bytes == offset;
    bool    joins_right = at < gaps->count && offset + bytes == gaps->list[at].offset;
    if (joins_left) {
        gaps->list[at - 1].bytes += bytes + (joins_right ? gaps->list[at].bytes : 0);
        if (joins_right) {
            remove_gap(gaps, at);
        }
    } else if (joins_right) {
        gaps->list[at].offset = offset;
        gaps->list[at].bytes += bytes;
    } else {
        LIST_APPEND(gaps->list, gaps->count, (struct gap){0});
        memmove(&gaps->list[at + 1], &gaps->list[at], (size_t)(gaps->count - 1 - at) * sizeof(*gaps->list));
        gaps->list[at] = (struct gap){offset, bytes};
    }
}

// Returns the maximum of the bytes that are live at the same time.
static int64_t count_live(const struct lifetimes *lifetimes)
{
    int64_t *change = memory_allocate((size_t)(lifetimes->times + 1) * sizeof(*change)), live = 0, maximum = 0;
    for (int32_t i = 0; i < lifetimes->count; i++) {
        const struct lifetime *lifetime = &lifetimes->list[i];
        if (lifetime->begin != INT32_MAX) {
            change[lifetime->begin] += lifetime->bytes;
            change[lifetime->end + 1] -= lifetime->bytes;
        }
    }
    for (int32_t op = 0; op < lifetimes->times; op++) {
        live += change[op];
        maximum = live > maximum ? live : maximum;
    }
    free(change);
    return maximum;
}

// Assigns an offset to every activation, and to parts of tensors in all storages. Returns the total size of the
// activations in bytes.
static int64_t place_all(struct plan *plan, struct lifetimes *lifetimes)
{
    struct gaps gaps = {.list = NULL};
    list_lifetimes(lifetimes);
    for (int32_t op = 0; op < lifetimes->times; op++) {
        for (int32_t i = lifetimes->first_begin[op]; i >= 0; i = lifetimes->list[i].next_begin) {
            plan->tensors[lifetimes->list[i].tensor].offset = take(&gaps, lifetimes->list[i].bytes);
        }
        for (int32_t i = lifetimes->first_end[op]; i >= 0; i = lifetimes->list[i].next_end) {
            give_back(&gaps, plan->tensors[lifetimes->list[i].tensor].offset, lifetimes->list[i].bytes);
        }
    }
    for (int32_t t = 0; t < plan->tensor_count; t++) {
        struct tensor *tensor = &plan->tensors[t];
        tensor->offset        = plan->tensors[tensor->whole].offset + tensor->part_offset;
    }
    free(gaps.list);
    free(lifetimes->first_begin);
    free(lifetimes->first_end);
    return gaps.top;
}

// A plan that is only predicted (is_unplaced) gets no offsets. Its live bytes are a lower limit of the size.
void memory_place(struct plan *plan, const int32_t *clocks, const int32_t *position)
{
    struct lifetimes lifetimes = {.count = 0};
    find_lifetimes(plan, clocks, position, &lifetimes);
    plan->activation_live_bytes = count_live(&lifetimes);
    plan->storage_bytes[STORAGE_ACTIVATION] =
        plan->is_unplaced ? plan->activation_live_bytes : place_all(plan, &lifetimes);
    free(lifetimes.list);
}
