// SPDX-License-Identifier: MIT
// Allocates device memory with NCCL, and registers it with communicators. If all members of a group have the same
// layout of a buffer, it is registered as a symmetric window: a member finds other members' data at the same offset as
// its own. Otherwise each member registers its buffer alone, which still saves copies. All members register windows in
// the same order.
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "nccl_internal.h"

static void *allocate(struct comm *comm, int64_t bytes)
{
    const struct nccl_state *state = comm->state;
    void                    *data;
    NCCL_CHECK(&state->library, ncclMemAlloc(&data, (size_t)bytes));
    return data;
}

static void release(struct comm *comm, void *data)
{
    const struct nccl_state *state = comm->state;
    NCCL_CHECK(&state->library, ncclMemFree(data));
}

// Registers a buffer with a communicator, as a symmetric window or for this member alone. If NCCL cannot register the
// memory, it returns no error, but also no handle.
static void register_buffer(struct nccl_state *state, struct nccl_connection *connection,
                            const struct comm_buffer *buffer, bool is_window)
{
    const struct nccl_library *nccl  = &state->library;
    struct nccl_buffer         known = {.data = buffer->data, .bytes = buffer->bytes};
    size_t                     bytes = (size_t)buffer->bytes;
    if (is_window) {
        NCCL_CHECK(nccl, ncclCommWindowRegister(connection->handle, buffer->data, bytes, &known.window,
                                                NCCL_WIN_COLL_SYMMETRIC));
    } else if (nccl->ncclCommRegister != NULL && connection != NULL) {
        NCCL_CHECK(nccl, ncclCommRegister(connection->handle, buffer->data, bytes, &known.handle));
    } else {
        return;
    }
    if (known.window != NULL || known.handle != NULL) {
        connection->buffers[connection->buffer_count++] = known;
    } else if (state->setup.must_register) {
        FATAL(EXIT_LAUNCH,
              "[run] registered_buffers or zero_cta = yes: NCCL did not register memory for %s: it needs a driver with "
              "cuMem and neither NCCL_CUMEM_ENABLE = 0 nor NCCL_LOCAL_REGISTER = 0; auto runs without it",
              connection->name);
    } else {
        connection->refused++;
    }
}

// Returns whether all members have the same layout of a buffer. all: [size][count], the layout of each member's
// buffers.
static bool is_equal(const struct comm_group *group, const uint64_t *all, int buffer, int count)
{
    bool is = true;
    for (int64_t member = 1; member < group->size; member++) {
        is &= all[member * count + buffer] == all[buffer];
    }
    return is && all[buffer] != 0;
}

static void share_with_all(struct comm_group *group, const struct comm_buffer *buffers, int count)
{
    struct nccl_state *state = group->state;
    uint64_t           own[NCCL_BUFFERS];
    uint64_t          *all = memory_allocate((size_t)(group->size * count) * sizeof(*all));
    for (int i = 0; i < count; i++) {
        own[i] = buffers[i].layout;
    }
    nccl_exchange(group, OP_ALL_GATHER, group->size * count * (int64_t)sizeof(*all) / 4, own, all);
    for (int i = 0; i < count; i++) {
        bool is_window = state->library.ncclCommWindowRegister != NULL && is_equal(group, all, i, count);
        if (own[i] != 0) {
            register_buffer(state, group->connection, &buffers[i], is_window);
        }
    }
    free(all);
}

static void share(struct comm_group *group, const struct comm_buffer *buffers, int count)
{
    if (count > NCCL_BUFFERS) {
        FATAL(EXIT_INTERNAL, "%d buffers of a group", count);
    }
    if (group->links == NULL) {
        share_with_all(group, buffers, count);
        return;
    }
    // Buffers of pipeline stages have different layouts, so they cannot be windows.
    struct nccl_connection *const *ends =
        group->stream == STREAM_PIPELINE_SEND ? group->links->send : group->links->receive;
    for (int i = 0; i < count; i++) {
        for (int direction = 0; direction < NCCL_DIRECTIONS && buffers[i].layout != 0; direction++) {
            register_buffer(group->state, ends[direction], &buffers[i], false);
        }
    }
}

static const struct comm_memory memory = {.allocate = allocate, .release = release, .share = share};

void nccl_memory_forget(struct nccl_state *state, struct nccl_connection *connection)
{
    for (int i = 0; i < connection->buffer_count; i++) {
        const struct nccl_buffer *buffer = &connection->buffers[i];
        if (buffer->window != NULL) {
            NCCL_CHECK(&state->library, ncclCommWindowDeregister(connection->handle, buffer->window));
        } else {
            NCCL_CHECK(&state->library, ncclCommDeregister(connection->handle, buffer->handle));
        }
    }
}

status nccl_memory_open(struct comm *comm, struct nccl_state *state)
{
    enum { VERSION_ZERO = 22800 };    // first version with zero-CTA collectives
    const struct nccl_library *nccl      = &state->library;
    bool                       registers = nccl->ncclCommWindowRegister != NULL || nccl->ncclCommRegister != NULL;
    if (state->setup.must_register && (nccl->ncclMemAlloc == NULL || !registers)) {
        return fail_as(EXIT_LAUNCH,
                       "[run] registered_buffers or zero_cta = yes: %s has no ncclMemAlloc or ncclCommRegister: 2.19 "
                       "or newer has them, 2.27 also windows; auto runs without them",
                       comm->library);
    }
    if (state->setup.registers && nccl->ncclMemAlloc != NULL && registers) {
        comm->memory = &memory;
    }
    if (!state->setup.copies || (state->version >= VERSION_ZERO && comm->memory != NULL)) {
        return OK;
    }
    return fail_as(EXIT_LAUNCH, "[run] zero_cta = yes: %s: leave it out",
                   state->version < VERSION_ZERO ? "it needs NCCL 2.28 or newer"
                                                 : "it needs registered buffers, but registered_buffers = no");
}
