// SPDX-License-Identifier: MIT
// Happens-before relation of ops as vector clocks, and removal of redundant dependencies.
#include "gswbench/order.h"

int32_t *order_clocks(const struct plan *plan, int32_t *position)
{
    int32_t *clocks           = memory_allocate((size_t)plan->op_count * LANE_COUNT * sizeof(*clocks));
    int32_t  last[LANE_COUNT] = {0};
    int32_t  ended[LANE_COUNT][LANE_COUNT];    // [lane]: clock after the last op of that lane so far
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        for (int other = 0; other < LANE_COUNT; other++) {
            ended[lane][other] = 0;
        }
    }

    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op    = &plan->ops[i];
        int32_t         *clock = &clocks[(int64_t)i * LANE_COUNT];
        position[i]            = last[op->lane]++;
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            clock[lane] = ended[op->lane][lane];
        }
        for (int w = 0; w < op->wait_count; w++) {
            int32_t        waited = op->wait[w];
            const int32_t *other  = &clocks[(int64_t)waited * LANE_COUNT];
            int            lane_w = plan->ops[waited].lane;
            for (int lane = 0; lane < LANE_COUNT; lane++) {
                int32_t seen = lane == lane_w ? position[waited] + 1 : other[lane];
                clock[lane]  = seen > clock[lane] ? seen : clock[lane];
            }
        }
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            ended[op->lane][lane] = clock[lane];
        }
        ended[op->lane][op->lane] = position[i] + 1;
    }
    return clocks;
}

struct order {
    const struct plan *plan;
    const int32_t     *clocks, *position;
};

// Whether op starts after waited has ended.
static bool is_after(const struct order *order, int32_t op, int32_t waited)
{
    int lane = order->plan->ops[waited].lane;
    return order->clocks[(int64_t)op * LANE_COUNT + lane] > order->position[waited];
}

// Whether dependency w of an op follows from the previous op on its lane (before; -1: none) or from another of its
// dependencies.
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
    int32_t      latest[LANE_COUNT];
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        latest[lane] = -1;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        struct op *op     = &plan->ops[i];
        uint32_t   needed = 0;
        for (int w = 0; w < op->wait_count; w++) {
            needed |= is_implied(&order, op, w, latest[op->lane]) ? 0u : 1u << w;
        }
        int count      = op->wait_count;
        op->wait_count = 0;
        for (int w = 0; w < count; w++) {
            if (needed >> w & 1u) {
                op->wait[op->wait_count++] = op->wait[w];
            }
        }
        latest[op->lane] = i;
    }
}

void order_join_lanes(struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        plan->ops[i].lane       = LANE_COMPUTE;
        plan->ops[i].wait_count = 0;
    }
}
