// SPDX-License-Identifier: MIT
// Computes the happens-before relation of ops as vector clocks, and removes redundant dependencies.
#include "gswbench/plan.h"

#include <string.h>

int32_t *order_clocks(const struct plan *plan, int32_t *position)
{
    int32_t *clocks             = memory_allocate((size_t)plan->op_count * STREAM_COUNT * sizeof(*clocks));
    int32_t  last[STREAM_COUNT] = {0};
    int32_t  ended[STREAM_COUNT][STREAM_COUNT] = {{0}};    // [stream]: clock after the stream's last op so far
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op    = &plan->ops[i];
        int32_t         *clock = &clocks[(int64_t)i * STREAM_COUNT];
        position[i]            = last[op->stream]++;
        memcpy(clock, ended[op->stream], sizeof(ended[0]));
        for (int w = 0; w < op->wait_count; w++) {
            int32_t        waited        = op->wait[w];
            const int32_t *other         = &clocks[(int64_t)waited * STREAM_COUNT];
            int            waited_stream = plan->ops[waited].stream;
            for (int stream = 0; stream < STREAM_COUNT; stream++) {
                int32_t seen  = stream == waited_stream ? position[waited] + 1 : other[stream];
                clock[stream] = seen > clock[stream] ? seen : clock[stream];
            }
        }
        memcpy(ended[op->stream], clock, sizeof(ended[0]));
        ended[op->stream][op->stream] = position[i] + 1;
    }
    return clocks;
}

struct order {
    const struct plan *plan;
    const int32_t     *clocks, *position;
};

// Returns whether `op` starts only after the op `waited` has ended.
static bool is_after(const struct order *order, int32_t op, int32_t waited)
{
    int stream = order->plan->ops[waited].stream;
    return order->clocks[(int64_t)op * STREAM_COUNT + stream] > order->position[waited];
}

// Returns whether dependency w of an op is redundant: the previous op on its stream (before; -1: none), or an op of
// another dependency, already waits for the same op.
static bool is_implied(const struct order *order, const struct op *op, int w, int32_t before)
{
    if (before >= 0 && is_after(order, before, op->wait[w])) {
        return true;
    }
    for (int other = 0; other < op->wait_count; other++) {
        if (other != w && is_after(order, op->wait[other], op->wait[w])) {
            return true;
        }
    }
    return false;
}

void order_prune(struct plan *plan, const int32_t *clocks, const int32_t *position)
{
    struct order order = {plan, clocks, position};
    int32_t      latest[STREAM_COUNT];
    memset(latest, 0xff, sizeof(latest));    // sets every index to -1
    for (int32_t i = 0; i < plan->op_count; i++) {
        struct op *op     = &plan->ops[i];
        uint32_t   needed = 0;
        for (int w = 0; w < op->wait_count; w++) {
            needed |= is_implied(&order, op, w, latest[op->stream]) ? 0u : 1u << w;
        }
        int count      = op->wait_count;
        op->wait_count = 0;
        for (int w = 0; w < count; w++) {
            if (needed >> w & 1u) {
                op->wait[op->wait_count++] = op->wait[w];
            }
        }
        latest[op->stream] = i;
    }
}

void order_join_streams(struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        plan->ops[i].stream     = STREAM_COMPUTE;
        plan->ops[i].wait_count = 0;
    }
}
