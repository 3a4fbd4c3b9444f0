// SPDX-License-Identifier: MIT
// Opens NCCL communicators: distributes unique ids over the control plane, and sets the configuration.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "nccl_internal.h"

void nccl_exchange(const struct comm_group *group, enum op_kind kind, int64_t words, const void *in, void *out)
{
    struct comm       *control = group->state->control;
    struct comm_group *meeting = control->ops->group_open(control, group->members, group->size, LANE_COMPUTE, 0);
    struct op          op      = {.kind = (uint8_t)kind, .shape.transfer.elements = words};
    control->ops->run(meeting, &op, in, out, FORMAT_I32);
    control->ops->group_close(meeting);
}

ncclUniqueId nccl_create_id(const struct nccl_state *state)
{
    ncclUniqueId id;
    NCCL_CHECK(&state->library, ncclGetUniqueId(&id));
    return id;
}

// The smaller of the plan's SM limit and the user's; 0: none.
static int bound_processors(int plan, int user)
{
    return user > 0 && (plan == 0 || user < plan) ? user : plan;
}

// Headers before 2.28 have the field, but not this value.
enum { CTA_POLICY_ZERO = 2 };

static ncclConfig_t configure(const struct nccl_state *state, struct nccl_connection *connection)
{
    ncclConfig_t config     = NCCL_CONFIG_INITIALIZER;
    int          processors = bound_processors(connection->processors, state->comm->processors);
    config.commName         = connection->name;
    if (processors > 0) {
        config.maxCTAs = processors;
    }
    connection->is_copying = state->setup.copies && connection->is_near;
    if (connection->is_copying) {
        config.CTAPolicy = CTA_POLICY_ZERO;
    }
    return config;
}

// Blocks until both members have joined.
void nccl_join_pair(struct nccl_state *state, struct nccl_connection *connection, ncclUniqueId id)
{
    ncclConfig_t config = configure(state, connection);
    NCCL_CHECK(&state->library, ncclCommInitRankConfig(&connection->handle, 2, id, connection->index, &config));
}

// Every rank of an id connects to the member that created it, so in a large group several members create ids.
static void join_by_many(const struct comm_group *group, struct nccl_connection *connection, int count)
{
    struct nccl_state *state  = group->state;
    ncclConfig_t       config = configure(state, connection);
    ncclUniqueId      *all    = memory_allocate((size_t)group->size * sizeof(*all)), own;
    memset(&own, 0, sizeof(own));
    for (int id = 0; id < count; id++) {
        own = nccl_id_owner(group->size, count, id) == group->index ? nccl_create_id(state) : own;
    }
    nccl_exchange(group, OP_ALL_GATHER, group->size * (int64_t)sizeof(*all) / 4, &own, all);
    for (int id = 0; id < count; id++) {
        all[id] = all[nccl_id_owner(group->size, count, id)];
    }
    NCCL_CHECK(&state->library,
               ncclCommInitRankScalable(&connection->handle, (int)group->size, connection->index, count, all, &config));
    connection->is_scalable = true;
    free(all);
}

// Blocks until all members have joined.
void nccl_join(const struct comm_group *group, struct nccl_connection *connection)
{
    struct nccl_state *state = group->state;
    int                count = nccl_ids(group->size, state->setup.ranks_per_id);
    ncclUniqueId       id;
    if (count > 1 && state->library.ncclCommInitRankScalable != NULL) {
        join_by_many(group, connection, count);
        return;
    }
    if (group->index == 0) {
        id = nccl_create_id(state);
    }
    nccl_exchange(group, OP_BROADCAST, (int64_t)sizeof(id) / 4, NULL, &id);
    ncclConfig_t config = configure(state, connection);
    NCCL_CHECK(&state->library,
               ncclCommInitRankConfig(&connection->handle, (int)group->size, id, connection->index, &config));
}

void nccl_disconnect(struct nccl_state *state, struct nccl_connection *connection)
{
    nccl_watch_remove(state, connection);
    nccl_memory_forget(state, connection);
    NCCL_CHECK(&state->library, ncclCommDestroy(connection->handle));
    free(connection);
}
