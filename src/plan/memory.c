// SPDX-License-Identifier: MIT
// Places activations in one arena by lifetime: best fit among the gaps, in the order in which they come to life.
//
// Lifetimes are counted in ops of the compute lane. An op of another lane may run beside several compute ops: a tensor
// that it touches lives from the first compute op that it may overlap to the first one that surely comes after it.
#include <stdlib.h>

#include "internal.h"

struct lifetime {
    int32_t tensor, begin, end;    // inclusive
    int64_t bytes;
};

struct gap {
    int64_t offset, bytes;
};

struct gaps {
    struct gap *list;    // by offset, never adjacent
    int32_t     count, capacity;
    int64_t     top;    // the arena ends here
};

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

// end[i]: the first compute op that surely starts after op i has ended; compute_ops when there is none.
static void find_ends(const struct plan *plan, const int32_t *clocks, const int32_t *position, int32_t *end)
{
    int32_t next[LANE_COUNT] = {0};    // per lane, the first list position whose end is not known yet
    int32_t compute_ops      = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        compute_ops += plan->ops[i].lane == LANE_COMPUTE;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        end[i] = plan->ops[i].lane == LANE_COMPUTE ? position[i] : compute_ops;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        for (int lane = 0; lane < LANE_COUNT && plan->ops[i].lane == LANE_COMPUTE; lane++) {
            int32_t ended = lane == LANE_COMPUTE ? 0 : clocks[(int64_t)i * LANE_COUNT + lane];
            for (; next[lane] < i && (plan->ops[next[lane]].lane != lane || position[next[lane]] < ended);
                 next[lane]++) {
                if (plan->ops[next[lane]].lane == lane && ended > 0) {
                    end[next[lane]] = position[i];
                }
            }
        }
    }
}

static int32_t find_lifetimes(const struct plan *plan, struct lifetime *lifetimes)
{
    int32_t *position = memory_allocate((size_t)plan->op_count * sizeof(*position));
    int32_t *end      = memory_allocate((size_t)plan->op_count * sizeof(*end));
    int32_t *clocks   = order_clocks(plan, position);
    int32_t *slot     = memory_allocate((size_t)plan->tensor_count * sizeof(*slot));
    int32_t  count    = 0;
    find_ends(plan, clocks, position, end);

    for (int32_t t = 0; t < plan->tensor_count; t++) {
        const struct tensor *tensor = &plan->tensors[t];
        slot[t]                     = -1;
        if (tensor->storage == STORAGE_ACTIVATION && tensor->whole == t) {
            int64_t bytes    = (tensor->bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
            slot[t]          = count;
            lifetimes[count] = (struct lifetime){.tensor = t, .begin = INT32_MAX, .end = -1, .bytes = bytes};
            count++;
        }
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        int32_t begin       = op->lane == LANE_COMPUTE ? position[i] : clocks[(int64_t)i * LANE_COUNT + LANE_COMPUTE];
        for (int o = 0; o < op->operand_count; o++) {
            int32_t whole = op->operand[o] >= 0 ? plan->tensors[op->operand[o]].whole : -1;
            if (whole >= 0 && slot[whole] >= 0) {
                struct lifetime *lifetime = &lifetimes[slot[whole]];
                lifetime->begin           = smaller(lifetime->begin, begin);
                lifetime->end             = larger(lifetime->end, end[i]);
            }
        }
    }
    free(slot);
    free(clocks);
    free(end);
    free(position);
    return count;
}

static void remove_gap(struct gaps *gaps, int32_t index)
{
    for (int32_t i = index + 1; i < gaps->count; i++) {
        gaps->list[i - 1] = gaps->list[i];
    }
    gaps->count--;
}

static int64_t take(struct gaps *gaps, int64_t bytes)
{
    int32_t best = -1;
    for (int32_t i = 0; i < gaps->count; i++) {
        if (gaps->list[i].bytes >= bytes && (best < 0 || gaps->list[i].bytes < gaps->list[best].bytes)) {
            best = i;
        }
    }
    // A gap at the end may grow, rather than new room behind it.
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

static void give_back(struct gaps *gaps, int64_t offset, int64_t bytes)
{
    int32_t at = 0;
    while (at < gaps->count && gaps->list[at].offset < offset) {
        at++;
    }
    bool joins_left  = at > 0 && gaps->list[at - 1].offset + gaps->list[at - 1].bytes == offset;
    bool joins_right = at < gaps->count && offset + bytes == gaps->list[at].offset;
    if (joins_left) {
        gaps->list[at - 1].bytes += bytes + (joins_right ? gaps->list[at].bytes : 0);
        if (joins_right) {
            remove_gap(gaps, at);
        }
    } else if (joins_right) {
        gaps->list[at].offset = offset;
        gaps->list[at].bytes += bytes;
    } else {
        if (gaps->count == gaps->capacity) {
            gaps->capacity = gaps->capacity * 2 + 64;
            gaps->list     = memory_resize(gaps->list, (size_t)gaps->capacity * sizeof(*gaps->list));
        }
        for (int32_t i = gaps->count; i > at; i--) {
            gaps->list[i] = gaps->list[i - 1];
        }
        gaps->list[at] = (struct gap){offset, bytes};
        gaps->count++;
    }
}

static int by_begin(const void *left, const void *right)
{
    const struct lifetime *a = left, *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->tensor < b->tensor ? -1 : 1;
}

static int by_end(const void *left, const void *right)
{
    const struct lifetime *a = left, *b = right;
    if (a->end != b->end) {
        return a->end < b->end ? -1 : 1;
    }
    return a->tensor < b->tensor ? -1 : 1;
}

void memory_place(struct plan *plan)
{
    size_t           bytes  = (size_t)plan->tensor_count * sizeof(struct lifetime);
    struct lifetime *births = memory_allocate(bytes), *deaths = memory_allocate(bytes);
    int32_t          count = find_lifetimes(plan, births);
    struct gaps      gaps  = {.list = NULL};
    int64_t          live  = 0;

    for (int32_t i = 0; i < count; i++) {
        deaths[i] = births[i];
    }
    qsort(births, (size_t)count, sizeof(*births), by_begin);
    qsort(deaths, (size_t)count, sizeof(*deaths), by_end);
    for (int32_t born = 0, dead = 0; born < count; born++) {
        for (; dead < count && deaths[dead].end < births[born].begin; dead++) {
            give_back(&gaps, plan->tensors[deaths[dead].tensor].offset, deaths[dead].bytes);
            live -= deaths[dead].bytes;
        }
        plan->tensors[births[born].tensor].offset = take(&gaps, births[born].bytes);
        live += births[born].bytes;
        plan->activation_live_bytes = live > plan->activation_live_bytes ? live : plan->activation_live_bytes;
    }
    for (int32_t t = 0; t < plan->tensor_count; t++) {
        struct tensor *tensor = &plan->tensors[t];
        tensor->offset        = plan->tensors[tensor->whole].offset + tensor->part_offset;
    }
    plan->storage_bytes[STORAGE_ACTIVATION] = gaps.top;
    free(gaps.list);
    free(deaths);
    free(births);
}
