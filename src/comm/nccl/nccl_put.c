// SPDX-License-Identifier: MIT
// Ring shift by one-sided puts. Within a node, copy engines move the data and the stream itself waits for signals, so
// no SM is used. Send and receive would be kernels.
//
// A put does not check that the target memory is free. So each member first signals the member that it receives from,
// and waits for this signal from its own target. All members take these steps in the same order on one stream, so
// signals between two members pair.
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

// All members have the same windows, so they make the same choice.
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
