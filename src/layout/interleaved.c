// SPDX-License-Identifier: MIT
// Interleaved 1F1B: a group of as many microbatches as there are stages passes a stage's first chunk, then its second,
// and so on, before the next group; backward likewise, from the last chunk to the first.
#include "schedule_order.h"

static struct schedule_turn turn(const struct schedule_shape *shape, enum schedule_action action, int64_t index)
{
    int64_t group = index / (shape->stages * shape->chunks), place = index % (shape->stages * shape->chunks);
    int64_t chunk = place / shape->stages;
    return (struct schedule_turn){.action     = action,
                                  .microbatch = group * shape->stages + place % shape->stages,
                                  .chunk      = action == SCHEDULE_FORWARD ? chunk : shape->chunks - 1 - chunk};
}

// The first backward turn waits for the group's way through all chunks before the last, and through the stages after
// this one and back; beside it, another microbatch goes forward.
struct order interleaved(const struct schedule_shape *shape, int64_t stage)
{
    int64_t groups = (shape->microbatches + shape->stages - 1) / shape->stages;
    return (struct order){.warmup =
                              (shape->chunks - 1) * shape->stages + 2 * (shape->stages - stage - 1) + shape->overlaps,
                          .count = groups * shape->stages * shape->chunks,
                          .turn  = turn};
}
