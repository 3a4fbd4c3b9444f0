// SPDX-License-Identifier: MIT
// Weights of FSDP units: gathered before use, a bounded number of units ahead.
#include "gswbench/unit_ops.h"

void unit_gather_updated(struct builder *builder, int32_t unit, int32_t hold)
{
    assembly_transfer(&builder->assembly, &(struct transfer){.kind = OP_ALL_GATHER,
                                                             .role = "weight gather",
                                                             .axes = builder->plan->units[unit].update_axes,
                                                             .lane = LANE_WEIGHT_GATHER,
                                                             .in   = unit_updated_weight(builder, unit),
                                                             .out  = builder->plan->units[unit].weight,
                                                             .hold = hold});
}

static void gather_shards(struct builder *builder, int32_t unit)
{
    struct plan    *plan     = builder->plan;
    int32_t         whole    = assembly_tensor(&builder->assembly, "gathered weights", STORAGE_ACTIVATION,
                                               plan->tensors[plan->units[unit].weight].format, DIMS(plan->units[unit].elements));
    struct transfer transfer = {.kind = OP_ALL_GATHER,
                                .role = "weight gather",
                                .axes = plan->units[unit].shard_axes,
                                .lane = LANE_WEIGHT_GATHER,
                                .in   = plan->units[unit].weight,
                                .out  = whole,
                                .hold = builder->assembly.last_compute};
    assembly_transfer(&builder->assembly, &transfer);
    unit_point_weights(builder, unit, whole);
}

// The all-gather waits for the compute ops appended so far. Otherwise all units could be gathered at the start of the
// step.
static void gather(struct builder *builder, int32_t unit)
{
    struct op_tag tag = unit_enter(builder, unit, (enum phase)builder->assembly.tag.phase);

    assembly_set_part(&builder->assembly, PART_WEIGHTS);
    if (unit_is_sharded(builder, unit)) {
        gather_shards(builder, unit);
    } else {
        unit_gather_updated(builder, unit, builder->assembly.last_compute);
    }
    builder->states[unit].is_whole = true;
    builder->assembly.tag          = tag;
}

void unit_acquire(struct builder *builder, int32_t unit, int32_t direction)
{
    int32_t each  = builder->plan->precision.has_narrow_weights ? 2 : 1;    // a block and its linears count as one
    int32_t ahead = direction == 0 ? 0 : (int32_t)builder->prefetch * each;
    for (int32_t i = 0; i <= ahead; i++) {
        int32_t next = unit + i * direction;
        if (next < builder->first_unit || next >= builder->plan->unit_count || builder->states[next].is_whole) {
            continue;
        }
        // Sharded weights are prefetched only within the chunk. Weights updated under ZeRO-1 stay gathered, so other
        // chunks' are prefetched too.
        bool is_other     = next >= builder->end_unit && unit_is_sharded(builder, next);
        bool is_embedding = builder->plan->units[next].place == 0;
        if (!is_other && (direction >= 0 || !is_embedding)) {    // the backward pass does not need the embedding
            gather(builder, next);
        }
    }
    builder->states[unit].users++;
}

void unit_release(struct builder *builder, int32_t unit)
{
    if (unit_is_sharded(builder, unit) && builder->states[unit].users == 0) {
        unit_point_weights(builder, unit, -1);
        builder->states[unit].is_whole = false;
    }
}

void unit_leave(struct builder *builder, int32_t unit, bool stays)
{
    builder->states[unit].users--;
    if (!stays) {
        unit_release(builder, unit);
    }
}
