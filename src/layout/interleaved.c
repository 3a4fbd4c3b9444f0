// SPDX-License-Identifier: MIT
// Interleaved 1F1B. Microbatches run in groups, one microbatch per stage. A group passes the first chunk of a stage,
// then the second, and so on, before the next group starts. The backward pass goes from the last chunk to the first.
#include "schedule_order.h"

static struct schedule_turn turn(const struct schedule_shape *shape, enum schedule_action action, int64_t index)
{
    int64_t group = index / (shape->stages * shape->chunks), place = index % (shape->stages * shape->chunks);
    int64_t chunk = place / shape->stages;
    return (struct schedule_turn){.action     = action,
                                  .microbatch = group * shape->stages + place % shape->stages,
                                  .chunk      = action == SCHEDULE_FORWARD ? chunk : shape->chunks - 1 - chunk};
}

// Warm-up: the forward passes of a group through all chunks but the last, plus two per later stage (there and back).
// With overlap one more, because each backward pass runs beside another microbatch's forward pass.
struct order interleaved(const struct schedule_shape *shape, int64_t stage)
{
    int64_t groups = (shape->microbatches + shape->stages - 1) / shape->stages;
    return (struct order){.warmup =
                              (shape->chunks - 1) * shape->stages + 2 * (shape->stages - stage - 1) + shape->overlaps,
                          .count = groups * shape->stages * shape->chunks,
                          .turn  = turn};
}
