// SPDX-License-Identifier: MIT
// Steps round a ring that one member writes into the next one's memory. Within a node copy engines move what is put and
// the stream itself waits for signals, so that no multiprocessor takes part; sends and receives are kernels.
//
// A put asks nobody whether its place is free. So each member first signals to the one that it receives from, and
// awaits the same of the one that it sends to. All members take these steps in one order on one stream, in which the
// signals between two of them pair.
#include "nccl_internal.h"

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

static bool has_puts(const struct nccl_library *nccl)
{
    return nccl->ncclPutSignal != NULL && nccl->ncclSignal != NULL && nccl->ncclWaitSignal != NULL;
}

static void await(const struct comm_group *group, int member)
{
    struct nccl_signals one = {.count = 1, .peer = member};
    NCCL_CHECK(&group->state->library, ncclWaitSignal(1, &one, group->connection->handle, group->stream));
}

// Members have the window, and so take this way, alike.
bool nccl_put_round(const struct comm_group *group, const struct transfer_shape *shape, const void *in, const void *out,
                    enum format format)
{
    const struct nccl_library *nccl       = &group->state->library;
    struct nccl_connection    *connection = group->connection;
    const struct nccl_buffer  *window     = NULL;
    if (connection->is_copying && has_puts(nccl)) {
        window = find_window(connection, out, format_bytes(format, shape->elements));
    }
    if (window == NULL) {
        return false;
    }
    int     to     = (int)comm_ring_member(group->index + shape->peer, group->size);
    int     from   = (int)comm_ring_member(group->index - shape->peer, group->size);
    int64_t offset = (const char *)out - window->data + shape->ahead * format_bytes(format, 1);
    NCCL_CHECK(nccl, ncclSignal(from, 0, 0, 0, connection->handle, group->stream));
    await(group, to);
    NCCL_CHECK(nccl, ncclPutSignal(in, (size_t)shape->elements, nccl_type(format), to, window->window, (size_t)offset,
                                   0, 0, 0, connection->handle, group->stream));
    await(group, from);
    connection->puts = true;
    return true;
}
