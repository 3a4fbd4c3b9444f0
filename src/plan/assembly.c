// SPDX-License-Identifier: MIT
// Appends tensors and ops to a plan, and derives the dependencies of each op. row_count.c has the row counts of
// dropless experts; memory.c assigns memory to activations.
#include "gswbench/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/plan.h"

void assembly_begin(struct assembly *assembly, struct plan *plan)
{
    *assembly = (struct assembly){.plan         = plan,
                                  .tag          = {.phase = PHASE_FORWARD, .layer = -1, .chunk = -1, .microbatch = -1},
                                  .last_compute = -1,
                                  .last_reader  = -1};
    memset(assembly->pending, 0xff, sizeof(assembly->pending));    // sets every index to -1
}

void assembly_free(struct assembly *assembly)
{
    free(assembly->usage);
    assembly->usage = NULL;
}

void assembly_finish(struct assembly *assembly)
{
    struct plan *plan     = assembly->plan;
    int32_t     *position = memory_allocate((size_t)plan->op_count * sizeof(*position));
    int32_t     *clocks   = order_clocks(plan, position);
    assembly_free(assembly);
    memory_place(plan, clocks, position);
    order_prune(plan, clocks, position);
    free(clocks);
    free(position);
}

static void grow_tensors(struct assembly *assembly)
{
    struct plan *plan = assembly->plan;
    if (plan->tensor_count < assembly->tensor_capacity) {
        return;
    }
    assembly->tensor_capacity = assembly->tensor_capacity * 4 + 1024;
    size_t capacity           = (size_t)assembly->tensor_capacity;
    plan->tensors             = memory_resize(plan->tensors, capacity * sizeof(*plan->tensors));
    assembly->usage           = memory_resize(assembly->usage, capacity * sizeof(*assembly->usage));
}

// Appends a tensor to the plan. Does not assign an offset.
static int32_t append_tensor(struct assembly *assembly, struct tensor tensor, const int64_t dim[4])
{
    grow_tensors(assembly);
    int32_t index     = assembly->plan->tensor_count++;
    tensor.layer      = assembly->tag.layer;
    tensor.microbatch = assembly->tag.microbatch;
    tensor.elements   = 1;
    tensor.first_op   = -1;
    tensor.last_op    = -1;
    for (int i = 0; i < 4 && dim[i] > 0; i++) {
        tensor.dim[tensor.dims++] = dim[i];
        tensor.elements *= dim[i];
    }
    tensor.bytes = format_bytes(tensor.format, tensor.elements);

    assembly->plan->tensors[index] = tensor;
    assembly->usage[index] = (struct usage){.writer = -1, .quantizer = -1, .inverse_scales = -1, .tensor_scale = -1};
    memset(assembly->usage[index].reader, 0xff, sizeof(assembly->usage[index].reader));    // sets every index to -1
    return index;
}

int32_t assembly_tensor(struct assembly *assembly, const char *name, enum storage storage, enum format format,
                        const int64_t dim[4])
{
    int32_t index = append_tensor(assembly, (struct tensor){.name = name, .format = format, .storage = storage}, dim);
    struct plan   *plan   = assembly->plan;
    struct tensor *tensor = &plan->tensors[index];
    tensor->whole         = index;
    if (storage != STORAGE_ACTIVATION) {
        tensor->offset = plan->storage_bytes[storage];
        plan->storage_bytes[storage] += number_round_up(tensor->bytes, PLAN_ALIGNMENT);
    }
    return index;
}

int32_t assembly_part(struct assembly *assembly, const char *name, int32_t whole, int64_t first_element,
                      const int64_t dim[4])
{
    struct tensor of    = assembly->plan->tensors[whole];
    struct tensor part  = {.name = name, .format = of.format, .storage = of.storage, .whole = of.whole};
    int64_t       begin = format_offset(of.format, first_element);
    part.part_offset    = of.part_offset + begin;
    part.offset         = of.offset + begin;
    int32_t index       = append_tensor(assembly, part, dim);

    assembly->usage[index].inverse_scales = assembly->usage[whole].inverse_scales;
    return index;
}

int32_t assembly_activation(struct assembly *assembly, const char *name, const int64_t dim[4])
{
    return assembly_tensor(assembly, name, STORAGE_ACTIVATION, assembly->plan->precision.activation, dim);
}

void assembly_set_apart(struct assembly *assembly, int32_t part)
{
    assembly->usage[part].is_apart = true;
}

void assembly_set_part(struct assembly *assembly, enum model_part part)
{
    assembly->tag.part = (uint8_t)part;
}

struct op assembly_op(const struct assembly *assembly, enum op_kind kind, const char *role)
{
    struct op op = {
        .kind = (uint8_t)kind, .stream = STREAM_COMPUTE, .tag = assembly->tag, .is_initial = assembly->is_initial};
    op.tag.role  = role;
    op.tag.makes = op.tag.phase == PHASE_BACKWARD ? MAKES_INPUT_GRADIENT : MAKES_OUTPUT;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        op.operand[slot] = -1;
    }
    return op;
}

void assembly_operand(struct op *op, int slot, int32_t tensor)
{
    if (tensor < 0) {
        return;
    }
    op->operand[slot] = tensor;
    if (slot >= op->operand_count) {
        op->operand_count = (uint8_t)(slot + 1);
    }
}

static struct usage *usage_of(const struct assembly *assembly, int32_t tensor)
{
    struct usage *own = &assembly->usage[tensor];
    return own->is_apart ? own : &assembly->usage[assembly->plan->tensors[tensor].whole];
}

// Adds a dependency on the op with index `op`. Keeps only the latest op of each stream, since a stream runs its ops in
// order.
static void depend(const struct plan *plan, int32_t latest[STREAM_COUNT], int32_t op)
{
    if (op >= 0 && op > latest[plan->ops[op].stream]) {
        latest[plan->ops[op].stream] = op;
    }
}

void assembly_hold(const struct assembly *assembly, struct op *op, int32_t until)
{
    const struct op *ops = assembly->plan->ops;
    for (int w = 0; w < op->wait_count; w++) {
        if (ops[op->wait[w]].stream == ops[until].stream) {
            op->wait[w] = (int32_t)number_max(op->wait[w], until);
            return;
        }
    }
    op->wait[op->wait_count++] = until;
}

// Makes an op depend on ops of other streams: on the last op that wrote one of its operands, and on the last op of each
// stream that read a tensor which this op writes.
static void find_waits(const struct assembly *assembly, struct op *op)
{
    int32_t latest[STREAM_COUNT];
    memset(latest, 0xff, sizeof(latest));    // sets every index to -1
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] < 0) {
            continue;
        }
        const struct usage *usage = usage_of(assembly, op->operand[slot]);
        depend(assembly->plan, latest, usage->writer);
        for (int stream = 0; stream < STREAM_COUNT && (op->access[slot] & ACCESS_WRITE); stream++) {
            depend(assembly->plan, latest, usage->reader[stream]);
        }
    }
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (stream != op->stream && latest[stream] >= 0) {
            assembly_hold(assembly, op, latest[stream]);
        }
    }
}

static void record(struct assembly *assembly, const struct op *op, int32_t index)
{
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] < 0) {
            continue;
        }
        struct tensor *tensor = &assembly->plan->tensors[op->operand[slot]];
        struct usage  *usage  = usage_of(assembly, op->operand[slot]);
        tensor->first_op      = tensor->first_op < 0 ? index : tensor->first_op;
        tensor->last_op       = index;
        if (op->access[slot] & ACCESS_WRITE) {
            usage->writer = index;
        }
        if (op->access[slot] & ACCESS_READ) {
            usage->reader[op->stream] = index;
        }
    }
}

void assembly_hold_compute(struct assembly *assembly, int32_t until)
{
    int32_t *pending = &assembly->pending[assembly->plan->ops[until].stream];
    *pending         = *pending > until ? *pending : until;
}

int32_t assembly_append_with(struct assembly *assembly, struct op *op, const struct operand *operands, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assembly_operand(op, operands[i].slot, operands[i].tensor);
    }
    return assembly_append(assembly, op);
}

int32_t assembly_append(struct assembly *assembly, struct op *op)
{
    struct plan *plan = assembly->plan;
    if (plan->op_count == assembly->op_capacity) {
        assembly->op_capacity = assembly->op_capacity * 4 + 1024;
        plan->ops             = memory_resize(plan->ops, (size_t)assembly->op_capacity * sizeof(*plan->ops));
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        op->access[slot] = (uint8_t)(op->operand[slot] >= 0 ? op_operand_access(op, slot) : 0);
    }
    find_waits(assembly, op);
    for (int stream = 0; stream < STREAM_COUNT && op->stream == STREAM_COMPUTE; stream++) {
        if (assembly->pending[stream] >= 0) {
            assembly_hold(assembly, op, assembly->pending[stream]);
            assembly->pending[stream] = -1;
        }
    }
    // If one host thread issues all streams, it issues nothing while it blocks in OP_READ_TOKEN_COUNTS. So each later
    // op of another stream depends on this op in the plan. Compute ops follow it in their own stream.
    if (op->stream != STREAM_COMPUTE && assembly->last_reader >= 0) {
        assembly_hold(assembly, op, assembly->last_reader);
    }
    int32_t index          = plan->op_count++;
    plan->ops[index]       = *op;
    assembly->last_reader  = op->kind == OP_READ_TOKEN_COUNTS ? index : assembly->last_reader;
    assembly->last_compute = op->stream == STREAM_COMPUTE ? index : assembly->last_compute;
    record(assembly, op, index);
    return index;
}

void assembly_add_operand(struct assembly *assembly, int32_t op, int slot, int32_t tensor)
{
    struct op     *to    = &assembly->plan->ops[op];
    struct tensor *added = &assembly->plan->tensors[tensor];
    struct usage  *usage = usage_of(assembly, tensor);
    assembly_operand(to, slot, tensor);
    enum access access = op_operand_access(to, slot);
    to->access[slot]   = (uint8_t)access;
    added->first_op    = added->first_op < 0 || op < added->first_op ? op : added->first_op;
    added->last_op     = (int32_t)number_max(added->last_op, op);
    if (access & ACCESS_WRITE) {
        usage->writer = (int32_t)number_max(usage->writer, op);
    }
    if (access & ACCESS_READ) {
        usage->reader[to->stream] = (int32_t)number_max(usage->reader[to->stream], op);
    }
}

bool assembly_is_unread(const struct assembly *assembly, int32_t tensor)
{
    const struct usage *usage = usage_of(assembly, tensor);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (usage->reader[stream] >= 0) {
            return false;
        }
    }
    return true;
}

bool assembly_is_current(const struct assembly *assembly, int32_t op, int32_t tensor)
{
    return op >= usage_of(assembly, tensor)->writer;
}

int32_t assembly_communication(struct assembly *assembly, const struct communication *communication)
{
    struct op op       = assembly_op(assembly, communication->kind, communication->role);
    int64_t   elements = 0;
    op.stream          = (uint8_t)communication->stream;
    op.tag.makes       = communication->makes != MAKES_OUTPUT ? communication->makes : op.tag.makes;
    op.is_aside        = assembly->is_aside && communication->stream == STREAM_EXPERT;
    assembly_operand(&op, COMMUNICATION_IN, communication->in);
    if (communication->in >= 0) {
        elements = assembly_elements(assembly, communication->in);
    }
    if (communication->out >= 0) {
        assembly_operand(&op, COMMUNICATION_OUT, communication->out);
        elements = number_max(elements, assembly_elements(assembly, communication->out));
    }
    op.shape.communication = (struct communication_shape){.elements = elements,
                                                          .group    = assembly_group(assembly, communication->axes),
                                                          .peer     = communication->peer,
                                                          .channel  = communication->channel,
                                                          .ahead    = communication->ahead};
    if (communication->hold >= 0) {
        assembly_hold(assembly, &op, communication->hold);
    }
    return assembly_append(assembly, &op);
}

void assembly_clear(struct assembly *assembly, const char *role, int32_t tensor)
{
    struct op op               = assembly_op(assembly, OP_CLEAR, role);
    op.shape.elements.elements = assembly->plan->tensors[tensor].elements;
    assembly_append_with(assembly, &op, SLOTS({CLEAR_OUT, tensor}));
}

void assembly_cast(struct assembly *assembly, const char *role, int32_t from, int32_t to, bool adds)
{
    struct op op               = assembly_op(assembly, OP_CAST, role);
    op.accumulates             = adds;
    op.shape.elements.elements = assembly->plan->tensors[from].elements;
    assembly_append_with(assembly, &op, SLOTS({CAST_IN, from}, {CAST_OUT, to}));
}

int32_t assembly_group(struct assembly *assembly, uint32_t axes)
{
    struct plan *plan = assembly->plan;
    for (int bit = 0; bit < MESH_MASK_BITS; bit++) {
        // Axes of size 1 are dropped, so that equal groups have equal masks.
        axes &= mesh_group_size(&plan->mesh, 1u << bit) > 1 ? ~0u : ~(1u << bit);
    }
    for (int32_t i = 0; i < plan->group_count; i++) {
        if (plan->groups[i].axes == axes) {
            return i;
        }
    }
    plan->groups             = memory_resize(plan->groups, (size_t)(plan->group_count + 1) * sizeof(*plan->groups));
    struct plan_group *group = &plan->groups[plan->group_count];
    group->axes              = axes;
    group->size              = mesh_group_size(&plan->mesh, axes);
    group->index             = mesh_group_index(&plan->mesh, plan->rank, axes);
    group->ranks             = arena_allocate(&plan->arena, (size_t)group->size * sizeof(int64_t));
    mesh_group_ranks(&plan->mesh, plan->rank, axes, group->ranks);
    return plan->group_count++;
}
