// SPDX-License-Identifier: MIT
// 1F1B: a stage starts as many microbatches as there are stages after it, and from then on ends one for each it starts.
#include "schedule_order.h"

static struct schedule_turn turn(const struct schedule_shape *shape, enum schedule_action action, int64_t index)
{
    (void)shape;
    return (struct schedule_turn){.action = action, .microbatch = index};
}

struct order one_forward_one_backward(const struct schedule_shape *shape, int64_t stage)
{
    return (struct order){.warmup = shape->stages - stage - 1, .count = shape->microbatches, .turn = turn};
}
