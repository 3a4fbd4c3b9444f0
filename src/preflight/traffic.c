// SPDX-License-Identifier: MIT
// A plan of collectives among ranks that form no group of the mesh.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "internal.h"

// size 0: a plan without ops, since opening is collective.
void traffic_begin(struct traffic *traffic, const struct flight *flight, const int64_t *members, int64_t size)
{
    struct plan *plan = &traffic->plan;
    *traffic          = (struct traffic){.step = NULL};
    *plan             = (struct plan){.mesh = flight->setup.request->mesh, .rank = flight->comm->topology.rank};
    assembly_begin(&traffic->assembly, plan);
    plan->groups             = memory_allocate(sizeof(*plan->groups));
    struct plan_group *group = &plan->groups[0];
    *group                   = (struct plan_group){.axes = 1, .size = size};
    if (size > 0) {
        plan->group_count = 1;
        group->ranks      = arena_allocate(&plan->arena, (size_t)size * sizeof(*members));
        memcpy(group->ranks, members, (size_t)size * sizeof(*members));
        while (members[group->index] != plan->rank) {
            group->index++;
        }
    }
}

void traffic_add(struct traffic *traffic, enum op_kind kind, int32_t in, int32_t out, int32_t peer)
{
    const struct tensor *tensors  = traffic->plan.tensors;
    struct op            op       = assembly_op(&traffic->assembly, kind, "preflight");
    int64_t              elements = tensors[out].elements;
    op.lane                       = LANE_WEIGHT_GATHER;
    op.shape.transfer             = (struct transfer_shape){.elements = elements, .peer = peer};
    if (in >= 0) {
        assembly_operand(&op, TRANSFER_IN, ACCESS_READ, in);
    }
    assembly_operand(&op, TRANSFER_OUT, op_operand_access(&op, TRANSFER_OUT), out);
    assembly_append(&traffic->assembly, &op);
}

status traffic_open(struct traffic *traffic, struct flight *flight)
{
    struct plan *plan = &traffic->plan;
    assembly_finish(&traffic->assembly);
    TRY(step_open(&traffic->step, plan, &flight->environment.backend, flight->comm));
    traffic->times = memory_allocate((size_t)plan->op_count * sizeof(*traffic->times));
    step_trace(traffic->step, traffic->times);
    return OK;
}

void traffic_close(struct traffic *traffic)
{
    if (traffic->step != NULL) {
        step_close(traffic->step);
    }
    free(traffic->times);
    plan_free(&traffic->plan);
}
