// SPDX-License-Identifier: MIT
// Lists the distinct ops of a job, and builds a step that repeats one of them on changing operands. In a step for a
// communication op, compute runs before each repeat, and the repeat waits for it. Communication then starts as in
// training: right after compute, while the threads of communication streams sleep. Compute waits for the previous
// repeat, unless the two should overlap (bench->computes > 0).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/random.h"
#include "internal.h"

// Adds an op of the plan to the list, or increments the count of an op with the same key.
static void distinct_add(struct distinct_ops *list, const struct plan *plan, const struct op *op)
{
    struct distinct_op distinct = {.op = *op, .count = 1};
    op_key_init(&distinct.key, plan, op);
    for (int32_t i = 0; i < list->count; i++) {
        if (memcmp(&list->ops[i].key, &distinct.key, sizeof(distinct.key)) == 0) {
            list->ops[i].count++;
            return;
        }
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            distinct.format[slot]   = plan->tensors[op->operand[slot]].format;
            distinct.elements[slot] = plan_operand_elements(plan, op, slot);
        }
    }
    if (op_is_communication((enum op_kind)op->kind)) {
        distinct.axes = plan->groups[op->shape.communication.group].axes;
    }
    if (op_is_link((enum op_kind)op->kind)) {    // the microbenchmark sends and receives, so it needs two buffers
        int other                = op->operand[COMMUNICATION_IN] >= 0 ? COMMUNICATION_OUT : COMMUNICATION_IN;
        distinct.format[other]   = distinct.format[1 - other];
        distinct.elements[other] = distinct.elements[1 - other];
    }
    LIST_APPEND(list->ops, list->count, distinct);
}

void distinct_add_probe(struct distinct_ops *list, struct op op, const enum format *formats, int operands)
{
    struct tensor tensors[OP_OPERANDS];
    op.operand_count = (uint8_t)operands;
    for (int slot = 0; slot < operands; slot++) {
        op.operand[slot] = slot;
        op.access[slot]  = (uint8_t)op_operand_access(&op, slot);
        tensors[slot]    = (struct tensor){.format = formats[slot], .elements = op_operand_elements(&op, slot)};
    }
    distinct_add(list, &(struct plan){.tensors = tensors}, &op);
}

status calibrate_collect(struct distinct_ops *list, const struct plan_request *request, int64_t *bytes)
{
    status result = OK;
    *list         = (struct distinct_ops){.count = 0};
    *bytes        = 0;
    for (int64_t stage = 0; stage < request->mesh.size[AXIS_PP] && !failed(&result); stage++) {
        struct plan plan;
        result        = plan_build_stage(&plan, request, stage);
        int64_t total = plan_total_bytes(&plan);
        *bytes        = total > *bytes ? total : *bytes;
        for (int32_t i = 0; i < plan.op_count && !failed(&result); i++) {
            distinct_add(list, &plan, &plan.ops[i]);
        }
        plan_free(&plan);
    }
    return result;
}

void calibrate_free(struct distinct_ops *list)
{
    free(list->ops);
}

enum { SETS_MAX = 256 };

// Returns the number of operand sets that fill working_bytes, so that a repeat does not find its operands in the cache.
static int32_t count_sets(const struct distinct_op *distinct, int64_t working_bytes)
{
    int64_t bytes = 1;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        bytes += format_bytes(distinct->format[slot], distinct->elements[slot]);
    }
    int64_t sets = working_bytes / bytes + 1;
    return (int32_t)(sets < SETS_MAX ? sets : SETS_MAX);
}

// Adds a send to the next stage and a receive from the previous stage, which run at the same time.
static void add_links(struct microbenchmark *bench, const struct op *op, int32_t computed, int32_t previous[2])
{
    static const struct {
        int kind, stream, distance, slot;
    } links[2]                     = {{OP_SEND, STREAM_PIPELINE_SEND, 1, COMMUNICATION_IN},
                                      {OP_RECEIVE, STREAM_PIPELINE_RECEIVE, -1, COMMUNICATION_OUT}};
    const struct plan_group *group = &bench->plan.groups[op->shape.communication.group];
    for (int i = 0; i < 2; i++) {
        int64_t   peer                   = group->index + links[i].distance;
        struct op link                   = assembly_op(&bench->assembly, (enum op_kind)links[i].kind, op->tag.role);
        link.stream                      = (uint8_t)links[i].stream;
        link.shape.communication         = op->shape.communication;
        link.shape.communication.peer    = (int32_t)peer;
        link.shape.communication.channel = 0;
        assembly_operand(&link, links[i].slot, op->operand[links[i].slot]);
        assembly_hold(&bench->assembly, &link, computed);
        if (peer >= 0 && peer < group->size) {
            previous[i] = assembly_append(&bench->assembly, &link);
        }
    }
}

// Returns the op with its operands set to consecutive tensors from `tensor` on, as add_operands created them.
static struct op place_op(const struct distinct_op *distinct, int32_t tensor)
{
    struct op op  = distinct->op;
    op.wait_count = 0;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        op.operand[slot] = distinct->elements[slot] > 0 ? tensor++ : -1;
    }
    return op;
}

// Adds one repeat of a communication op, with compute before it. previous: indices of the previous repeat's ops (a send
// and a receive, or one collective); -1: none. They become the indices of this repeat's ops.
static void add_communication(struct microbenchmark *bench, struct op op, struct op between, int32_t previous[2])
{
    struct assembly *assembly = &bench->assembly;
    int32_t          computed = -1;
    for (int i = 0; i < 2 && bench->computes == 0; i++) {
        if (previous[i] >= 0) {
            assembly_hold(assembly, &between, previous[i]);
        }
    }
    for (int32_t i = 0; i < bench->computes || computed < 0; i++) {
        struct op compute = between;
        computed          = assembly_append(assembly, &compute);
    }
    op.shape.communication.group = bench->group;
    if (op_is_link((enum op_kind)op.kind)) {
        add_links(bench, &op, computed, previous);
    } else {
        assembly_hold(assembly, &op, computed);
        previous[0] = assembly_append(assembly, &op);
    }
}

// Adds tensors for the operands. They are inputs of the step, because inputs keep their addresses. Returns the first
// tensor.
static int32_t add_operands(struct microbenchmark *bench, const struct distinct_op *distinct)
{
    int32_t first = bench->plan.tensor_count;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (distinct->elements[slot] > 0) {
            assembly_tensor(&bench->assembly, "operand", STORAGE_INPUT, distinct->format[slot],
                            DIMS(distinct->elements[slot]));
        }
    }
    return first;
}

static void add_ops(struct microbenchmark *bench, const struct distinct_op *distinct, const struct distinct_op *between,
                    int32_t sets)
{
    int32_t  previous[2] = {-1, -1};
    int32_t *tensors     = memory_allocate((size_t)sets * sizeof(*tensors));    // [sets]: first tensor of each set
    for (int32_t i = 0; i < sets; i++) {
        tensors[i] = add_operands(bench, distinct);
    }
    int32_t computed = between != NULL ? add_operands(bench, between) : -1;
    for (int32_t i = 0; i < bench->repeats; i++) {
        struct op op = place_op(distinct, tensors[i % sets]);
        if (between != NULL) {
            add_communication(bench, op, place_op(between, computed), previous);
        } else {
            assembly_append(&bench->assembly, &op);
        }
    }
    free(tensors);
}

// Fills all operands with random values; large operands repeat 1,024 values.
static void fill_operands(struct microbenchmark *bench)
{
    enum { DRAWN = 1 << 10 };
    for (int32_t i = 0; i < bench->plan.tensor_count; i++) {
        const struct tensor *tensor = &bench->plan.tensors[i];
        int64_t              count  = tensor->elements < DRAWN ? tensor->elements : DRAWN;
        int64_t              drawn  = format_bytes(tensor->format, count);
        char                *values = memory_allocate((size_t)tensor->bytes);
        for (int64_t element = 0; element < count; element++) {
            element_write(tensor->format, values, element, random_normal(0, (uint64_t)element));
        }
        for (int64_t first = drawn; first < tensor->bytes; first += drawn) {
            int64_t left = tensor->bytes - first;
            memcpy(values + first, values, (size_t)(left < drawn ? left : drawn));
        }
        step_write(bench->step, i, values);
        free(values);
    }
}

status microbenchmark_open(struct microbenchmark *bench, const struct distinct_op *distinct,
                           const struct distinct_op *between, const struct calibrate_setup *setup)
{
    int32_t      sets = count_sets(distinct, setup->working_bytes);
    struct plan *plan = &bench->plan;
    *plan             = (struct plan){.mesh = setup->request->mesh, .rank = setup->comm->topology.rank};
    assembly_begin(&bench->assembly, plan);
    if (between != NULL) {
        bench->group = assembly_group(&bench->assembly, distinct->axes);
    }
    add_ops(bench, distinct, between, sets);
    assembly_finish(&bench->assembly);
    TRY(step_prepare(plan, setup->backend));
    TRY(step_open(&bench->step, plan, setup->backend, setup->comm));
    fill_operands(bench);
    return OK;
}

status microbenchmark_open_alone(struct microbenchmark *bench, const struct distinct_op *between,
                                 const struct calibrate_setup *setup)
{
    struct calibrate_setup in_place = *setup;
    in_place.working_bytes          = 0;
    return microbenchmark_open(bench, between, NULL, &in_place);
}

double microbenchmark_run(const struct microbenchmark *bench)
{
    double begin = clock_seconds();
    step_run(bench->step);
    double host = clock_seconds() - begin, device = step_device_seconds(bench->step);
    return (isnan(device) ? host : device) / bench->repeats;
}

void microbenchmark_close(struct microbenchmark *bench)
{
    if (bench->step != NULL) {
        step_close(bench->step);
    }
    plan_free(&bench->plan);
}
