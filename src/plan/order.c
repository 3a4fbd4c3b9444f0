// SPDX-License-Identifier: MIT
// What surely happens before what: lane order and waits, as vector clocks.
#include "internal.h"

int32_t *order_clocks(const struct plan *plan, int32_t *position)
{
    int32_t *clocks           = memory_allocate((size_t)plan->op_count * LANE_COUNT * sizeof(*clocks));
    int32_t  last[LANE_COUNT] = {0};
    int32_t  ended[LANE_COUNT][LANE_COUNT];    // [lane]: the clock at the end of that lane's latest op
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
