// SPDX-License-Identifier: MIT
// Device memory allocated by NCCL and registered with its communicators. If all members of a group have the same layout
// of a storage, it is registered as a symmetric window, and a member finds other members' data at its own offset.
// Otherwise each member registers its own buffer, which still saves copies. Members register windows in the same order.
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

// NCCL returns no handle, and no error, if it cannot register the memory.
static void keep(const struct nccl_state *state, struct nccl_connection *connection, struct nccl_buffer buffer)
{
    if (buffer.window != NULL || buffer.handle != NULL) {
        connection->buffers[connection->buffer_count++] = buffer;
    } else if (state->setup.must_register) {
        FATAL(EXIT_LAUNCH,
              "[run] registered_buffers or zero_cta = yes: NCCL did not register memory for %s: it needs a driver with "
              "cuMem and neither NCCL_CUMEM_ENABLE = 0 nor NCCL_LOCAL_REGISTER = 0; auto runs without it",
              connection->name);
    } else {
        connection->refused++;
    }
}

static void register_window(struct nccl_state *state, struct nccl_connection *connection,
                            const struct comm_buffer *buffer)
{
    struct nccl_buffer known = {.data = buffer->data, .bytes = buffer->bytes};
    NCCL_CHECK(&state->library, ncclCommWindowRegister(connection->handle, buffer->data, (size_t)buffer->bytes,
                                                       &known.window, NCCL_WIN_COLL_SYMMETRIC));
    keep(state, connection, known);
}

static void register_own(struct nccl_state *state, struct nccl_connection *connection, const struct comm_buffer *buffer)
{
    struct nccl_buffer known = {.data = buffer->data, .bytes = buffer->bytes};
    if (state->library.ncclCommRegister != NULL && connection != NULL) {
        NCCL_CHECK(&state->library,
                   ncclCommRegister(connection->handle, buffer->data, (size_t)buffer->bytes, &known.handle));
        keep(state, connection, known);
    }
}

// all: [size][count], layouts of every member.
static bool is_alike(const struct comm_group *group, const uint64_t *all, int buffer, int count)
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
        if (state->library.ncclCommWindowRegister != NULL && is_alike(group, all, i, count)) {
            register_window(state, group->connection, &buffers[i]);
        } else if (own[i] != 0) {
            register_own(state, group->connection, &buffers[i]);
        }
    }
    free(all);
}

// Pipeline stages have different layouts, so windows are not possible.
static void share_with_neighbours(struct comm_group *group, const struct comm_buffer *buffers, int count)
{
    struct nccl_connection *const *ends =
        group->lane == LANE_PIPELINE_SEND ? group->links->send : group->links->receive;
    for (int i = 0; i < count; i++) {
        for (int direction = 0; direction < NCCL_DIRECTIONS && buffers[i].layout != 0; direction++) {
            register_own(group->state, ends[direction], &buffers[i]);
        }
    }
}

static void share(struct comm_group *group, const struct comm_buffer *buffers, int count)
{
    if (count > NCCL_BUFFERS) {
        FATAL(EXIT_INTERNAL, "%d buffers of a group", count);
    }
    if (group->links != NULL) {
        share_with_neighbours(group, buffers, count);
    } else {
        share_with_all(group, buffers, count);
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
    return OK;
}
