// SPDX-License-Identifier: MIT
// Groups and collectives over NCCL. Each group has a connection (an NCCL communicator) per stream. Its members exchange
// the unique id over the control plane, so opening a group involves no other rank.
//
// The pipeline streams have one connection per pair of neighbours and direction. NCCL matches the sends and receives of
// a connection in the order in which each rank enqueues them. The plan is verified to have both in the same order.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "nccl_internal.h"

static ncclDataType_t type_of(enum format format)
{
    return format == FORMAT_F32    ? ncclFloat32
           : format == FORMAT_BF16 ? ncclBfloat16
           : format == FORMAT_I32  ? ncclInt32
                                   : ncclUint8;    // FP8 data is sent, never reduced
}

static const struct nccl_buffer *find_window(const struct nccl_connection *connection, const char *data, int64_t bytes)
{
    for (int i = 0; i < connection->buffer_count; i++) {
        const struct nccl_buffer *one = &connection->buffers[i];
        if (one->window != NULL && data >= one->data && data + bytes <= one->data + one->bytes) {
            return one;
        }
    }
    return NULL;
}

static void await(const struct comm_group *group, int member)
{
    struct nccl_signals one = {.count = 1, .peer = member};
    NCCL_CHECK(&group->state->library, ncclWaitSignal(1, &one, group->connection->handle, group->cuda_stream));
}

// Shifts data around a ring with one-sided puts. Returns false if it is not supported; all members then return false,
// because they have the same windows. Within a node, copy engines move the data and the stream itself waits for
// signals, so no SM is used. A send and a receive would be kernels.
//
// A put does not check that the target memory is free. So each member first signals the member that it receives from,
// and waits for this signal from the member that it sends to. All members take these steps in the same order on one
// stream, so signals between two members match.
static bool put_round(const struct comm_group *group, const struct communication_shape *shape, const void *in,
                      const void *out, enum format format)
{
    const struct nccl_library *nccl       = &group->state->library;
    struct nccl_connection    *connection = group->connection;
    const struct nccl_buffer  *window     = NULL;
    bool has_puts = nccl->ncclPutSignal != NULL && nccl->ncclSignal != NULL && nccl->ncclWaitSignal != NULL;
    if (connection->is_copying && has_puts) {
        window = find_window(connection, out, format_bytes(format, shape->elements));
    }
    if (window == NULL) {
        return false;
    }
    int     to     = (int)comm_ring_member(group->index + shape->peer, group->size);
    int     from   = (int)comm_ring_member(group->index - shape->peer, group->size);
    int64_t offset = (const char *)out - window->data + shape->ahead * format_bytes(format, 1);
    NCCL_CHECK(nccl, ncclSignal(from, 0, 0, 0, connection->handle, group->cuda_stream));
    await(group, to);
    NCCL_CHECK(nccl, ncclPutSignal(in, (size_t)shape->elements, type_of(format), to, window->window, (size_t)offset, 0,
                                   0, 0, connection->handle, group->cuda_stream));
    await(group, from);
    connection->puts = true;
    return true;
}

static bool is_on_one_node(const struct comm_group *group)
{
    const int64_t *nodes = group->state->nodes;
    bool           is    = true;
    for (int64_t i = 1; i < group->size; i++) {
        is &= nodes[group->members[i]] == nodes[group->members[0]];
    }
    return is;
}

static struct nccl_connection *open_collective(struct nccl_state *state, const struct comm_group *group,
                                               const int64_t *members, int stream)
{
    struct nccl_connection *connection = memory_allocate(sizeof(*connection));
    snprintf(connection->name, sizeof(connection->name), "the %s stream of %d ranks from %d to %d",
             op_stream_name((enum stream)stream), (int)group->size, (int)members[0], (int)members[group->size - 1]);
    connection->index      = (int)group->index;
    connection->processors = group->processors;
    connection->is_near    = is_on_one_node(group);
    nccl_watch_begin(state, connection->name, group->index);
    nccl_join(group, connection);
    nccl_watch_add(state, connection);
    return connection;
}

// Uses a pair's connection once, before the first step. NCCL connects two ranks when they first use the connection, and
// blocks each of them until the other one uses it. Here all ranks use their connections in the same order. During a
// step, they would connect in the order of their plans and could deadlock.
static void pass_first(const struct nccl_state *state, const struct nccl_connection *connection, bool sends)
{
    struct backend *backend     = state->backend;
    int             stream      = sends ? STREAM_PIPELINE_SEND : STREAM_PIPELINE_RECEIVE;
    cudaStream_t    cuda_stream = backend->ops->streams->handle(backend, stream);
    int64_t         bytes       = format_bytes(FORMAT_F32, 1);
    void           *data        = backend_allocate(backend, bytes);
    if (sends) {
        NCCL_CHECK(&state->library, ncclSend(data, 1, ncclFloat32, 1, connection->handle, cuda_stream));
    } else {
        NCCL_CHECK(&state->library, ncclRecv(data, 1, ncclFloat32, 0, connection->handle, cuda_stream));
    }
    backend->ops->streams->synchronize(backend, stream);
    backend_release(backend, data, bytes);
}

// Opens the connection from one pipeline neighbour to another. The sender is rank 0 of the connection.
static struct nccl_connection *open_link(struct nccl_state *state, ncclUniqueId id, int64_t sender, int64_t receiver,
                                         int processors)
{
    struct nccl_connection *connection = memory_allocate(sizeof(*connection));
    bool                    sends      = sender == state->rank;
    snprintf(connection->name, sizeof(connection->name), "the pipeline from rank %d to rank %d", (int)sender,
             (int)receiver);
    connection->index      = sends ? 0 : 1;
    connection->processors = processors;
    nccl_watch_begin(state, connection->name, connection->index);
    nccl_join_id(state, connection, 2, id);
    pass_first(state, connection, sends);
    nccl_watch_add(state, connection);
    return connection;
}

// Opens the connections of a pipeline. Both members of a pair open theirs, and all members visit the pairs in the same
// order, to avoid a deadlock.
static void open_links(struct nccl_state *state, struct nccl_links *links, const struct comm_group *group,
                       const ncclUniqueId *ids)
{
    for (int direction = 0; direction < nccl_directions(links->size); direction++) {
        for (int64_t sender = 0; sender < links->size; sender++) {
            int64_t receiver = nccl_receiver(links->size, sender, (enum nccl_direction)direction);
            if (sender != group->index && receiver != group->index) {
                continue;
            }
            struct nccl_connection **ends = sender == group->index ? links->send : links->receive;
            ends[direction] = open_link(state, ids[sender * NCCL_DIRECTIONS + direction], links->members[sender],
                                        links->members[receiver], group->processors);
            links->opened[links->opened_count++] = ends[direction];
        }
    }
}

static struct nccl_links *create_links(struct nccl_state *state, const struct comm_group *group, const int64_t *members)
{
    struct nccl_links *links = memory_allocate(sizeof(*links));
    ncclUniqueId      *ids   = memory_allocate((size_t)group->size * NCCL_DIRECTIONS * sizeof(*ids));
    ncclUniqueId       own[NCCL_DIRECTIONS];
    *links = (struct nccl_links){
        .next = state->pipelines, .members = comm_copy_members(members, group->size), .size = group->size};
    state->pipelines = links;

    nccl_watch_begin(state, "the ranks of a pipeline", group->index);
    memset(own, 0, sizeof(own));
    for (int direction = 0; direction < nccl_directions(group->size); direction++) {
        own[direction] = nccl_create_id(state);
    }
    nccl_exchange(group, OP_ALL_GATHER, group->size * NCCL_DIRECTIONS * (int64_t)sizeof(*ids) / 4, own, ids);
    open_links(state, links, group, ids);
    free(ids);
    return links;
}

static struct nccl_links *find_links(const struct nccl_state *state, const int64_t *members, int64_t size)
{
    struct nccl_links *links = state->pipelines;
    while (links != NULL &&
           (links->size != size || memcmp(links->members, members, (size_t)size * sizeof(*members)) != 0)) {
        links = links->next;
    }
    return links;
}

// Closes the connections of a pipeline in the order of opening, because closing may wait for the other member.
static void release_links(struct nccl_state *state, struct nccl_links *links)
{
    if (--links->users > 0) {
        return;
    }
    struct nccl_links **next = &state->pipelines;
    while (*next != links) {
        next = &(*next)->next;
    }
    *next = links->next;
    for (int i = 0; i < links->opened_count; i++) {
        nccl_disconnect(state, links->opened[i]);
    }
    free(links->members);
    free(links);
}

struct comm_group *nccl_group_open(struct comm *comm, const int64_t *members, int64_t size, int stream, int processors)
{
    struct nccl_state *state = comm->state;
    struct comm_group *group = memory_allocate(sizeof(*group));
    *group                   = (struct comm_group){.state       = state,
                                                   .members     = comm_copy_members(members, size),
                                                   .size        = size,
                                                   .stream      = stream,
                                                   .processors  = processors,
                                                   .cuda_stream = state->backend->ops->streams->handle(state->backend, stream)};
    while (members[group->index] != state->rank) {
        group->index++;
    }
    if (op_stream_is_pipeline(stream)) {
        struct nccl_links *links = find_links(state, members, size);
        group->links             = links != NULL ? links : create_links(state, group, members);
        group->links->users++;
    } else {
        group->connection = open_collective(state, group, members, stream);
    }
    return group;
}

void nccl_group_close(struct comm_group *group)
{
    if (group->links != NULL) {
        release_links(group->state, group->links);
    } else {
        nccl_disconnect(group->state, group->connection);
    }
    free(group->members);
    free(group);
}

static void send_to(const struct comm_group *group, int64_t member, const void *in, int64_t elements,
                    enum format format)
{
    NCCL_CHECK(&group->state->library, ncclSend(in, (size_t)elements, type_of(format), (int)member,
                                                group->connection->handle, group->cuda_stream));
}

static void receive_from(const struct comm_group *group, int64_t member, void *out, int64_t elements,
                         enum format format)
{
    NCCL_CHECK(&group->state->library, ncclRecv(out, (size_t)elements, type_of(format), (int)member,
                                                group->connection->handle, group->cuda_stream));
}

static void all_to_all(const struct comm_group *group, const char *in, char *out, int64_t share, enum format format)
{
    int64_t bytes = format_bytes(format, share);
    if (group->state->library.ncclAlltoAll != NULL) {
        group->state->exchanges = true;
        NCCL_CHECK(&group->state->library, ncclAlltoAll(in, out, (size_t)share, type_of(format),
                                                        group->connection->handle, group->cuda_stream));
        return;
    }
    NCCL_CHECK(&group->state->library, ncclGroupStart());
    for (int64_t i = 0; i < group->size; i++) {
        send_to(group, i, in + i * bytes, share, format);
        receive_from(group, i, out + i * bytes, share, format);
    }
    NCCL_CHECK(&group->state->library, ncclGroupEnd());
}

// Executes an all-to-all with a row count per member. Sends no empty messages.
static void exchange_parts(const struct comm_group *group, const struct communication_parts *parts, const char *in,
                           char *out, enum format format)
{
    NCCL_CHECK(&group->state->library, ncclGroupStart());
    for (int64_t i = 0; i < group->size; i++) {
        int64_t sent = parts->in[i] * parts->row, received = parts->out[i] * parts->row;
        if (sent > 0) {
            send_to(group, i, in, sent, format);
        }
        if (received > 0) {
            receive_from(group, i, out, received, format);
        }
        in += format_bytes(format, sent);
        out += format_bytes(format, received);
    }
    NCCL_CHECK(&group->state->library, ncclGroupEnd());
}

static void rotate(const struct comm_group *group, const struct communication_shape *shape, const void *in, void *out,
                   enum format format)
{
    if (put_round(group, shape, in, out, format)) {
        return;
    }
    NCCL_CHECK(&group->state->library, ncclGroupStart());
    send_to(group, comm_ring_member(group->index + shape->peer, group->size), in, shape->elements, format);
    receive_from(group, comm_ring_member(group->index - shape->peer, group->size), out, shape->elements, format);
    NCCL_CHECK(&group->state->library, ncclGroupEnd());
}

static void pass(const struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    const struct nccl_library *nccl     = &group->state->library;
    size_t                     elements = (size_t)op->shape.communication.elements;
    int64_t                    peer     = op->shape.communication.peer;
    if (op->kind == OP_SEND) {
        const struct nccl_connection *link = group->links->send[nccl_direction(group->size, group->index, peer)];
        NCCL_CHECK(nccl, ncclSend(in, elements, type_of(format), 1, link->handle, group->cuda_stream));
    } else {
        const struct nccl_connection *link = group->links->receive[nccl_direction(group->size, peer, group->index)];
        NCCL_CHECK(nccl, ncclRecv(out, elements, type_of(format), 0, link->handle, group->cuda_stream));
    }
}

static void run_collective(const struct comm_group *group, const struct op *op, const void *in, void *out,
                           enum format format)
{
    const struct nccl_library *nccl        = &group->state->library;
    ncclComm_t                 connection  = group->connection->handle;
    cudaStream_t               cuda_stream = group->cuda_stream;
    ncclDataType_t             type        = type_of(format);
    int64_t                    elements    = op->shape.communication.elements;
    int64_t                    share       = elements / group->size;
    ncclRedOp_t                reduction   = op->kind == OP_ALL_REDUCE_MAXIMUM ? ncclMax : ncclSum;
    switch ((enum op_kind)op->kind) {
    case OP_ALL_REDUCE:
    case OP_ALL_REDUCE_MAXIMUM:
        NCCL_CHECK(nccl, ncclAllReduce(out, out, (size_t)elements, type, reduction, connection, cuda_stream));
        break;
    case OP_REDUCE_SCATTER:
        NCCL_CHECK(nccl, ncclReduceScatter(in, out, (size_t)share, type, ncclSum, connection, cuda_stream));
        break;
    case OP_ALL_GATHER:
        NCCL_CHECK(nccl, ncclAllGather(in, out, (size_t)share, type, connection, cuda_stream));
        break;
    case OP_ALL_TO_ALL:
        if (op->shape.communication.parts != NULL) {
            exchange_parts(group, op->shape.communication.parts, in, out, format);
        } else {
            all_to_all(group, in, out, share, format);
        }
        break;
    case OP_ROTATE:
        rotate(group, &op->shape.communication, in, out, format);
        break;
    case OP_BROADCAST: {
        int root = op->shape.communication.peer;
        NCCL_CHECK(nccl, ncclBroadcast(out, out, (size_t)elements, type, root, connection, cuda_stream));
        break;
    }
    case OP_SEND:
    case OP_RECEIVE:
    case OP_ANY_COMPUTE:
        FATAL(EXIT_INTERNAL, "%s is not a collective", op_name((enum op_kind)op->kind));
    }
}

void nccl_run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    if (group->links != NULL) {
        pass(group, op, in, out, format);
    } else {
        run_collective(group, op, in, out, format);
    }
}
