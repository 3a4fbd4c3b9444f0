// SPDX-License-Identifier: MIT
// A plan by hand: an op over and over, each time on other operands. Between two transfers the compute lane has an op of
// its own, that waits for the one and is waited for by the other, so that a transfer is met as a step meets it: by
// ranks that come from computing, and lanes that have gone to sleep.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fp8.h"
#include "gswbench/random.h"
#include "internal.h"

enum { SETS_MAX = 256 };

static int32_t add_tensor(struct plan *plan, enum dtype dtype, int64_t elements)
{
    int32_t        index  = plan->tensor_count++;
    int64_t        bytes  = elements * dtype_bytes(dtype);
    struct tensor *tensor = &plan->tensors[index];
    *tensor               = (struct tensor){.name     = "operand",
                                            .dtype    = dtype,
                                            .storage  = STORAGE_ACTIVATION,
                                            .elements = elements,
                                            .bytes    = bytes,
                                            .offset   = plan->storage_bytes[STORAGE_ACTIVATION],
                                            .whole    = index};
    plan->storage_bytes[STORAGE_ACTIVATION] += (bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
    return index;
}

static int32_t add_op(struct plan *plan, const struct op *op)
{
    plan->ops[plan->op_count] = *op;
    return plan->op_count++;
}

// Operands of different sets lie apart; elements of a set are as many as the op has.
static int32_t count_sets(const struct sample *sample, int64_t working_bytes)
{
    int64_t bytes = 1;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        bytes += sample->elements[slot] * dtype_bytes(sample->dtype[slot]);
    }
    int64_t sets = working_bytes / bytes + 1;
    return (int32_t)(sets < SETS_MAX ? sets : SETS_MAX);
}

// What a stage sends goes to the next one, what it receives comes from the one before it, at the same time.
static void add_links(struct drill *drill, const struct op *op, int32_t previous[2])
{
    static const struct {
        int kind, lane, distance, slot, access;
    } links[2] = {{OP_SEND, LANE_PIPELINE_SEND, 1, TRANSFER_IN, ACCESS_READ},
                  {OP_RECEIVE, LANE_PIPELINE_RECEIVE, -1, TRANSFER_OUT, ACCESS_WRITE}};
    for (int i = 0; i < 2; i++) {
        int64_t   peer              = drill->group.index + links[i].distance;
        struct op link              = {.kind           = (uint8_t)links[i].kind,
                                       .lane           = (uint8_t)links[i].lane,
                                       .operand_count  = TRANSFER_OUT + 1,
                                       .operand        = {-1, -1},
                                       .wait           = {op->wait[0]},
                                       .wait_count     = op->wait_count,
                                       .shape.transfer = {.elements = op->shape.transfer.elements, .peer = (int32_t)peer}};
        link.operand[links[i].slot] = op->operand[links[i].slot];
        link.access[links[i].slot]  = (uint8_t)links[i].access;
        if (peer >= 0 && peer < drill->group.size) {
            previous[i] = add_op(&drill->plan, &link);
        }
    }
}

// Its operands follow each other, as add_operands has added them, from that tensor on.
static struct op place_op(const struct sample *sample, int32_t tensor)
{
    struct op op  = sample->op;
    op.wait_count = 0;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        op.operand[slot] = sample->elements[slot] > 0 ? tensor++ : -1;
    }
    return op;
}

// previous: the transfers of the repeat before, -1 where there is none.
static void add_transfer(struct drill *drill, struct op op, struct op between, int32_t previous[2])
{
    for (int i = 0; i < 2 && drill->computes == 0; i++) {
        if (previous[i] >= 0) {
            between.wait[between.wait_count++] = previous[i];
        }
    }
    for (int32_t i = 1; i < drill->computes; i++) {
        add_op(&drill->plan, &between);
    }
    op.wait[0]              = add_op(&drill->plan, &between);
    op.wait_count           = 1;
    op.shape.transfer.group = 0;
    if (op.kind == OP_SEND || op.kind == OP_RECEIVE) {
        add_links(drill, &op, previous);
    } else {
        previous[0] = add_op(&drill->plan, &op);
    }
}

static int32_t add_operands(struct plan *plan, const struct sample *sample)
{
    int32_t first = plan->tensor_count;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (sample->elements[slot] > 0) {
            add_tensor(plan, sample->dtype[slot], sample->elements[slot]);
        }
    }
    return first;
}

static void add_ops(struct drill *drill, const struct sample *sample, const struct sample *between, int32_t sets)
{
    struct plan *plan        = &drill->plan;
    int32_t      previous[2] = {-1, -1};
    int32_t     *tensors     = memory_allocate((size_t)sets * sizeof(*tensors));    // the first of each set
    for (int32_t i = 0; i < sets; i++) {
        tensors[i] = add_operands(plan, sample);
    }
    int32_t computed = between != NULL ? add_operands(plan, between) : -1;
    for (int32_t i = 0; i < drill->repeats; i++) {
        struct op op = place_op(sample, tensors[i % sets]);
        if (between != NULL) {
            add_transfer(drill, op, place_op(between, computed), previous);
        } else {
            add_op(plan, &op);
        }
    }
    free(tensors);
}

static void draw(void *values, enum dtype dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float value = random_normal(0, (uint64_t)i);
        if (dtype == DTYPE_F32) {
            ((float *)values)[i] = value;
        } else if (dtype == DTYPE_BF16) {
            ((bf16 *)values)[i] = bf16_from_float(value);
        } else {
            ((uint8_t *)values)[i] = fp8_from_float(dtype, value);
        }
    }
}

// Large tensors repeat what is drawn.
static void fill(struct drill *drill)
{
    enum { DRAWN = 1 << 10 };
    for (int32_t i = 0; i < drill->plan.tensor_count; i++) {
        const struct tensor *tensor = &drill->plan.tensors[i];
        int64_t              count  = tensor->elements < DRAWN ? tensor->elements : DRAWN;
        int64_t              drawn  = count * dtype_bytes(tensor->dtype);
        char                *values = memory_allocate((size_t)tensor->bytes);
        draw(values, tensor->dtype, count);
        for (int64_t first = drawn; first < tensor->bytes; first += drawn) {
            int64_t left = tensor->bytes - first;
            memcpy(values + first, values, (size_t)(left < drawn ? left : drawn));
        }
        step_write(drill->step, i, values);
        free(values);
    }
}

status drill_open(struct drill *drill, const struct sample *sample, const struct sample *between,
                  const struct calibrate_setup *setup)
{
    int32_t      sets = count_sets(sample, setup->working_bytes);
    struct plan *plan = &drill->plan;
    plan->tensors     = arena_allocate(&plan->arena, (size_t)((sets + 1) * OP_OPERANDS) * sizeof(*plan->tensors));
    plan->ops = arena_allocate(&plan->arena, (size_t)(drill->repeats * (drill->computes + 3)) * sizeof(*plan->ops));
    if (between != NULL) {
        int64_t rank       = setup->comm->place.rank;
        drill->group       = (struct plan_group){.axes  = sample->axes,
                                                 .size  = mesh_group_size(setup->mesh, sample->axes),
                                                 .index = mesh_group_index(setup->mesh, rank, sample->axes)};
        drill->group.ranks = arena_allocate(&plan->arena, (size_t)drill->group.size * sizeof(int64_t));
        mesh_group_ranks(setup->mesh, rank, sample->axes, drill->group.ranks);
        plan->groups      = &drill->group;
        plan->group_count = 1;
    }
    add_ops(drill, sample, between, sets);
    TRY(step_prepare(plan, setup->backend));
    TRY(step_open(&drill->step, plan, setup->backend, setup->comm));
    fill(drill);
    return OK;
}

status drill_open_alone(struct drill *drill, const struct sample *between, const struct calibrate_setup *setup)
{
    struct calibrate_setup in_place = *setup;
    in_place.working_bytes          = 0;
    return drill_open(drill, between, NULL, &in_place);
}

void drill_close(struct drill *drill)
{
    if (drill->step != NULL) {
        step_close(drill->step);
    }
    arena_free(&drill->plan.arena);
}
