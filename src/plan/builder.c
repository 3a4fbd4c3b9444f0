// SPDX-License-Identifier: MIT
// Appends tensors and ops; finds what each op must wait for.
#include "internal.h"

static int64_t align(int64_t bytes)
{
    return (bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
}

static void grow_tensors(struct builder *builder)
{
    struct plan *plan = builder->plan;
    if (plan->tensor_count < builder->tensor_capacity) {
        return;
    }
    builder->tensor_capacity = builder->tensor_capacity * 2 + 1024;
    size_t capacity          = (size_t)builder->tensor_capacity;
    plan->tensors            = memory_resize(plan->tensors, capacity * sizeof(*plan->tensors));
    builder->usage           = memory_resize(builder->usage, capacity * sizeof(*builder->usage));
}

// Appends a tensor that has no place yet.
static int32_t append_tensor(struct builder *builder, struct tensor tensor, const int64_t dim[4])
{
    grow_tensors(builder);
    int32_t index     = builder->plan->tensor_count++;
    tensor.layer      = builder->tag.layer;
    tensor.microbatch = builder->tag.microbatch;
    tensor.elements   = 1;
    tensor.first_op   = -1;
    tensor.last_op    = -1;
    for (int i = 0; i < 4 && dim[i] > 0; i++) {
        tensor.dim[tensor.dims++] = dim[i];
        tensor.elements *= dim[i];
    }
    tensor.bytes = tensor.elements * dtype_bytes(tensor.dtype);

    builder->plan->tensors[index] = tensor;
    builder->usage[index]         = (struct usage){.writer = -1, .quantizer = -1, .factor = -1};
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        builder->usage[index].reader[lane] = -1;
    }
    return index;
}

int32_t builder_tensor(struct builder *builder, const char *name, enum storage storage, enum dtype dtype,
                       const int64_t dim[4])
{
    int32_t      index = append_tensor(builder, (struct tensor){.name = name, .dtype = dtype, .storage = storage}, dim);
    struct plan *plan  = builder->plan;
    struct tensor *tensor = &plan->tensors[index];
    tensor->whole         = index;
    if (storage != STORAGE_ACTIVATION) {
        tensor->offset = plan->storage_bytes[storage];
        plan->storage_bytes[storage] += align(tensor->bytes);
    }
    return index;
}

int32_t builder_part(struct builder *builder, const char *name, int32_t whole, int64_t first_element,
                     const int64_t dim[4])
{
    struct tensor of   = builder->plan->tensors[whole];
    struct tensor part = {.name = name, .dtype = of.dtype, .storage = of.storage, .whole = of.whole};
    part.part_offset   = of.part_offset + first_element * dtype_bytes(of.dtype);
    part.offset        = of.offset + first_element * dtype_bytes(of.dtype);
    int32_t index      = append_tensor(builder, part, dim);

    builder->usage[index].factor = builder->usage[whole].factor;
    return index;
}

int32_t builder_activation(struct builder *builder, const char *name, const int64_t dim[4])
{
    return builder_tensor(builder, name, STORAGE_ACTIVATION, builder->plan->precision.activation, dim);
}

void builder_set_apart(struct builder *builder, int32_t part)
{
    builder->usage[part].is_apart = true;
}

struct op builder_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    struct op op = {
        .kind = (uint8_t)kind, .lane = LANE_COMPUTE, .tag = builder->tag, .is_initial = builder->is_initial};
    op.tag.role = role;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        op.operand[slot] = -1;
    }
    return op;
}

void builder_operand(struct op *op, int slot, enum access access, int32_t tensor)
{
    op->operand[slot] = tensor;
    op->access[slot]  = (uint8_t)access;
    if (slot >= op->operand_count) {
        op->operand_count = (uint8_t)(slot + 1);
    }
}

static struct usage *usage_of(const struct builder *builder, int32_t tensor)
{
    struct usage *own = &builder->usage[tensor];
    return own->is_apart ? own : &builder->usage[builder->plan->tensors[tensor].whole];
}

static void depend(const struct plan *plan, int32_t latest[LANE_COUNT], int32_t op)
{
    if (op >= 0 && op > latest[plan->ops[op].lane]) {
        latest[plan->ops[op].lane] = op;
    }
}

// The op waits for another, before its own append.
static void hold(struct op *op, const struct builder *builder, int32_t until)
{
    const struct op *ops = builder->plan->ops;
    for (int w = 0; w < op->wait_count; w++) {
        if (ops[op->wait[w]].lane == ops[until].lane) {
            op->wait[w] = op->wait[w] > until ? op->wait[w] : until;
            return;
        }
    }
    op->wait[op->wait_count++] = until;
}

// The latest op of each other lane that wrote what this op touches, or read what it writes.
static void find_waits(const struct builder *builder, struct op *op)
{
    int32_t latest[LANE_COUNT];
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        latest[lane] = -1;
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] < 0) {
            continue;
        }
        const struct usage *usage = usage_of(builder, op->operand[slot]);
        depend(builder->plan, latest, usage->writer);
        for (int lane = 0; lane < LANE_COUNT && (op->access[slot] & ACCESS_WRITE); lane++) {
            depend(builder->plan, latest, usage->reader[lane]);
        }
    }
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (lane != op->lane && latest[lane] >= 0) {
            hold(op, builder, latest[lane]);
        }
    }
}

static void record(struct builder *builder, const struct op *op, int32_t index)
{
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] < 0) {
            continue;
        }
        struct tensor *tensor = &builder->plan->tensors[op->operand[slot]];
        struct usage  *usage  = usage_of(builder, op->operand[slot]);
        tensor->first_op      = tensor->first_op < 0 ? index : tensor->first_op;
        tensor->last_op       = index;
        if (op->access[slot] & ACCESS_WRITE) {
            usage->writer = index;
        }
        if (op->access[slot] & ACCESS_READ) {
            usage->reader[op->lane] = index;
        }
    }
}

void builder_hold_compute(struct builder *builder, int32_t until)
{
    int32_t *pending = &builder->pending[builder->plan->ops[until].lane];
    *pending         = *pending > until ? *pending : until;
}

int32_t builder_append(struct builder *builder, struct op *op)
{
    struct plan *plan = builder->plan;
    if (plan->op_count == builder->op_capacity) {
        builder->op_capacity = builder->op_capacity * 2 + 1024;
        plan->ops            = memory_resize(plan->ops, (size_t)builder->op_capacity * sizeof(*plan->ops));
    }
    find_waits(builder, op);
    for (int lane = 0; lane < LANE_COUNT && op->lane == LANE_COMPUTE; lane++) {
        if (builder->pending[lane] >= 0) {
            hold(op, builder, builder->pending[lane]);
            builder->pending[lane] = -1;
        }
    }
    int32_t index         = plan->op_count++;
    plan->ops[index]      = *op;
    builder->last_compute = op->lane == LANE_COMPUTE ? index : builder->last_compute;
    record(builder, op, index);
    return index;
}

static int32_t later(int32_t one, int32_t other)
{
    return one > other ? one : other;
}

void builder_add_operand(struct builder *builder, int32_t op, int slot, enum access access, int32_t tensor)
{
    struct op     *to    = &builder->plan->ops[op];
    struct tensor *added = &builder->plan->tensors[tensor];
    struct usage  *usage = usage_of(builder, tensor);
    builder_operand(to, slot, access, tensor);
    added->first_op = added->first_op < 0 || op < added->first_op ? op : added->first_op;
    added->last_op  = later(added->last_op, op);
    if (access & ACCESS_WRITE) {
        usage->writer = later(usage->writer, op);
    }
    if (access & ACCESS_READ) {
        usage->reader[to->lane] = later(usage->reader[to->lane], op);
    }
}

bool builder_is_unread(const struct builder *builder, int32_t tensor)
{
    const struct usage *usage = usage_of(builder, tensor);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (usage->reader[lane] >= 0) {
            return false;
        }
    }
    return true;
}

bool builder_is_current(const struct builder *builder, int32_t op, int32_t tensor)
{
    return op >= usage_of(builder, tensor)->writer;
}

int32_t builder_transfer(struct builder *builder, const struct transfer *transfer)
{
    const struct tensor *tensors  = builder->plan->tensors;
    struct op            op       = builder_op(builder, transfer->kind, transfer->role);
    bool                 is_pair  = transfer->kind == OP_SEND || transfer->kind == OP_RECEIVE;
    int64_t              elements = 0;
    op.lane                       = (uint8_t)transfer->lane;
    if (transfer->in >= 0) {
        builder_operand(&op, TRANSFER_IN, ACCESS_READ, transfer->in);
        elements = tensors[transfer->in].elements;
    }
    if (transfer->out >= 0) {
        bool is_update = transfer->in < 0 && !is_pair;
        builder_operand(&op, TRANSFER_OUT, is_update ? ACCESS_UPDATE : ACCESS_WRITE, transfer->out);
        elements = tensors[transfer->out].elements > elements ? tensors[transfer->out].elements : elements;
    }
    op.shape.transfer = (struct transfer_shape){.elements = elements,
                                                .group    = builder_group(builder, transfer->axes),
                                                .peer     = transfer->peer,
                                                .channel  = transfer->channel};
    if (transfer->hold >= 0) {
        hold(&op, builder, transfer->hold);
    }
    return builder_append(builder, &op);
}

void builder_clear(struct builder *builder, const char *role, int32_t tensor)
{
    struct op op = builder_op(builder, OP_CLEAR, role);
    builder_operand(&op, CLEAR_OUT, ACCESS_WRITE, tensor);
    op.shape.elements.elements = builder->plan->tensors[tensor].elements;
    builder_append(builder, &op);
}

void builder_cast(struct builder *builder, const char *role, int32_t from, int32_t to, bool adds)
{
    struct op op   = builder_op(builder, OP_CAST, role);
    op.accumulates = adds;
    builder_operand(&op, CAST_IN, ACCESS_READ, from);
    builder_operand(&op, CAST_OUT, adds ? ACCESS_UPDATE : ACCESS_WRITE, to);
    op.shape.elements.elements = builder->plan->tensors[from].elements;
    builder_append(builder, &op);
}

int32_t builder_group(struct builder *builder, uint32_t axes)
{
    struct plan *plan = builder->plan;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        axes &= plan->mesh.size[axis] > 1 ? ~0u : ~(1u << axis);    // equal groups have equal masks
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
