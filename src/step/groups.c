// SPDX-License-Identifier: MIT
// Opens the step's communicators, and runs each distinct communication op once, in the same order on all ranks.
//
// NCCL connects two ranks only when an algorithm first needs the connection. Connecting takes device memory and blocks
// the host. So each distinct op runs once before the step's memory is allocated, while no other device work can wait
// for the op.
#include "internal.h"

#include "gswbench/connection.h"

static enum format format_of(const struct plan *plan, const struct op *op)
{
    int32_t out = op->operand[COMMUNICATION_OUT];
    return plan->tensors[out >= 0 ? out : op->operand[COMMUNICATION_IN]].format;
}

static bool are_alike(const struct plan *plan, const struct op *first, const struct op *second)
{
    const struct communication_shape *a = &first->shape.communication, *b = &second->shape.communication;
    return first->kind == second->kind && first->stream == second->stream && a->elements == b->elements &&
           a->group == b->group && a->peer == b->peer && a->channel == b->channel &&
           format_of(plan, first) == format_of(plan, second);
}

int64_t distinct_choose(const struct plan *plan, bool *is_chosen)
{
    int64_t  count  = 0;
    int32_t *chosen = memory_allocate((size_t)plan->op_count * sizeof(*chosen));
    for (int32_t i = 0; i < plan->op_count; i++) {
        bool is_new = op_is_communication((enum op_kind)plan->ops[i].kind);
        for (int64_t j = 0; j < count && is_new; j++) {
            is_new = !are_alike(plan, &plan->ops[i], &plan->ops[chosen[j]]);
        }
        is_chosen[i] = is_new;
        if (is_new) {
            chosen[count++] = i;
        }
    }
    free(chosen);
    return count;
}

// A group of ranks, and a stream on which it communicates. Each such pair has one communicator in step->groups.
struct seat {
    int     stream;
    int32_t group;
};

static int32_t find_group(const struct plan *plan, uint32_t axes)
{
    for (int32_t i = 0; i < plan->group_count; i++) {
        if (plan->groups[i].axes == axes) {
            return i;
        }
    }
    return -1;
}

static bool is_on_seat(const struct op *op, struct seat seat)
{
    return op_is_communication((enum op_kind)op->kind) && op->stream == seat.stream &&
           op->shape.communication.group == seat.group;
}

static bool is_used(const struct plan *plan, struct seat seat)
{
    bool has_ops = false;
    for (int32_t i = 0; i < plan->op_count && !has_ops; i++) {
        has_ops = is_on_seat(&plan->ops[i], seat);
    }
    return has_ops;
}

// Lists the pairs of stream and group that ops use, by stream, then by axes. So all ranks open communicators in the
// same order, even if their plans list groups in different orders. The caller frees the list.
static int list_seats(const struct plan *plan, struct seat **list)
{
    struct seat *seats = memory_allocate((size_t)(STREAM_COUNT * plan->group_count) * sizeof(*seats));
    int          count = 0;
    *list              = seats;
    for (uint32_t i = 0; i < (uint32_t)STREAM_COUNT << MESH_MASK_BITS; i++) {
        struct seat seat = {(int)(i >> MESH_MASK_BITS), find_group(plan, i & (MESH_ALL_AXES | MESH_HEAD_COPIES))};
        if (seat.group >= 0 && is_used(plan, seat)) {
            seats[count++] = seat;
        }
    }
    return count;
}

static struct comm_group **group_of(const struct step *step, struct seat seat)
{
    return &step->groups[seat.stream * step->plan->group_count + seat.group];
}

// Returns the maximum number of SMs that an op of this communicator takes. `connections` has one entry for the
// communicator, or one per neighbour if its stream is a pipeline stream.
static int processors_of(const struct plan_connections *connections, struct seat seat)
{
    int maximum = 1;
    for (int32_t i = 0; i < connections->count; i++) {
        const struct plan_connection *one = &connections->list[i];
        if (one->stream == seat.stream && one->group == seat.group && one->processors > maximum) {
            maximum = one->processors;
        }
    }
    return maximum;
}

static void open_all(struct step *step, const struct seat *seats, int count)
{
    const struct plan      *plan = step->plan;
    struct plan_connections connections;
    plan_connections(&connections, plan, step->comm->topology.local_ranks);
    for (int i = 0; i < count; i++) {
        const struct plan_group *group = &plan->groups[seats[i].group];
        *group_of(step, seats[i]) = step->comm->ops->group_open(step->comm, group->ranks, group->size, seats[i].stream,
                                                                processors_of(&connections, seats[i]));
    }
    free(connections.list);
}

// Returns the operand's buffer in the step's memory, or `scratch` if that memory is not allocated yet.
static struct buffer operand(const struct step *step, const struct op *op, int slot, void *scratch)
{
    if (slot >= op->operand_count || op->operand[slot] < 0) {
        return (struct buffer){.data = NULL};
    }
    struct buffer buffer = step_buffer(step, op->operand[slot]);
    buffer.data          = scratch != NULL ? scratch : buffer.data;
    return buffer;
}

static void use(const struct step *step, struct seat seat, const struct op *op, const struct buffer buffers[2])
{
    const struct buffer *in = &buffers[COMMUNICATION_IN], *out = &buffers[COMMUNICATION_OUT];
    step->comm->ops->run(*group_of(step, seat), op, in->data, out->data, out->data != NULL ? out->format : in->format);
    step->streams.device_streams->synchronize(step->backend, seat.stream);
}

// Runs an all-to-all through the code for separate sizes per peer, with equal sizes. The all-to-alls of dropless
// experts use this code of the library, which may need other connections.
static void use_parts(const struct step *step, struct seat seat, const struct op *op, const struct buffer buffers[2])
{
    int64_t   size  = step->plan->groups[seat.group].size;
    int64_t  *equal = memory_allocate((size_t)size * sizeof(*equal));
    struct op parts = *op;
    for (int64_t i = 0; i < size; i++) {
        equal[i] = op->shape.communication.elements / size;
    }
    parts.shape.communication.parts = &(struct communication_parts){.in = equal, .out = equal, .row = 1};
    use(step, seat, &parts, buffers);
    free(equal);
}

// Runs each op of this communicator that is_chosen marks. Skips sends and receives, because opening the group has
// already connected their peers.
static void use_seat(const struct step *step, struct seat seat, const bool *is_chosen, void *const scratch[2])
{
    const struct plan *plan = step->plan;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (is_chosen[i] && is_on_seat(op, seat) && !op_is_link((enum op_kind)op->kind)) {
            const struct buffer buffers[2] = {operand(step, op, COMMUNICATION_IN, scratch[COMMUNICATION_IN]),
                                              operand(step, op, COMMUNICATION_OUT, scratch[COMMUNICATION_OUT])};
            use(step, seat, op, buffers);
            if (step->chosen != NULL) {
                step->chosen[i] = step->comm->ops->chosen(step->comm);
            }
            if (plan_op_row_count(plan, op) != NULL) {
                use_parts(step, seat, op, buffers);
            }
        }
    }
}

static int64_t max_bytes(const struct plan *plan, int slot)
{
    int64_t maximum = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op_is_communication((enum op_kind)op->kind) && !op_is_link((enum op_kind)op->kind) &&
            slot < op->operand_count && op->operand[slot] >= 0) {
            int64_t bytes = plan->tensors[op->operand[slot]].bytes;
            maximum       = bytes > maximum ? bytes : maximum;
        }
    }
    return maximum;
}

static void use_all(const struct step *step, const struct seat *seats, int count, void *const scratch[2])
{
    bool *is_chosen = memory_allocate((size_t)step->plan->op_count * sizeof(*is_chosen));
    distinct_choose(step->plan, is_chosen);
    for (int i = 0; i < count; i++) {
        use_seat(step, seats[i], is_chosen, scratch);
    }
    free(is_chosen);
}

void groups_open(struct step *step)
{
    struct backend *backend = step->backend;
    struct seat    *seats;
    int64_t         before = backend->ops->available_bytes(backend);
    int             count  = list_seats(step->plan, &seats);
    step->groups = memory_allocate((size_t)(STREAM_COUNT * step->plan->group_count) * sizeof(struct comm_group *));
    if (step->comm->ops->chosen != NULL) {
        step->chosen = memory_allocate((size_t)step->plan->op_count * sizeof(*step->chosen));
    }
    open_all(step, seats, count);
    if (step->comm->ops->is_enqueued && count > 0) {
        // The scratch buffers fit in memory: they are no larger than the plan's operands, and the plan fits.
        int64_t bytes[2]   = {max_bytes(step->plan, COMMUNICATION_IN), max_bytes(step->plan, COMMUNICATION_OUT)};
        void   *scratch[2] = {backend_allocate(backend, bytes[0]), backend_allocate(backend, bytes[1])};
        use_all(step, seats, count, scratch);
        backend_release(backend, scratch[0], bytes[0]);
        backend_release(backend, scratch[1], bytes[1]);
        step->connection_bytes = before - backend->ops->available_bytes(backend);
    }
    free(seats);
}

void groups_share(struct step *step)
{
    if (step->comm->memory == NULL) {
        return;
    }
    struct backend *backend = step->backend;
    struct seat    *seats;
    int64_t         before = backend->ops->available_bytes(backend);
    int             count  = list_seats(step->plan, &seats);
    for (int i = 0; i < count; i++) {
        struct comm_buffer buffers[STORAGE_COUNT];
        for (int storage = 0; storage < STORAGE_COUNT; storage++) {
            buffers[storage] =
                (struct comm_buffer){.data   = step->storage[storage],
                                     .bytes  = step->storage_bytes[storage],
                                     .layout = plan_communication_layout(step->plan, seats[i].stream, seats[i].group,
                                                                         (enum storage)storage)};
        }
        step->comm->memory->share(*group_of(step, seats[i]), buffers, STORAGE_COUNT);
    }
    use_all(step, seats, count, (void *[2]){NULL, NULL});
    step->connection_bytes += before - backend->ops->available_bytes(backend);
    free(seats);
}

void groups_close(struct step *step)
{
    for (int32_t i = 0; i < STREAM_COUNT * step->plan->group_count; i++) {
        if (step->groups[i] != NULL) {
            step->comm->ops->group_close(step->groups[i]);
        }
    }
    free(step->groups);
    free(step->chosen);
}
