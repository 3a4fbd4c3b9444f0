// SPDX-License-Identifier: MIT
// NCCL's communicators: their ids, which members learn through the control plane, and their configuration.
#include <stdlib.h>

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

// The plan's bound for the connection, or the user's for all, where that is less.
static int bound_processors(int plan, int user)
{
    return user > 0 && (plan == 0 || user < plan) ? user : plan;
}

// Headers before 2.28 have the field but not the value.
enum { CTA_POLICY_ZERO = 2 };

// Blocks until all members have come.
void nccl_join(struct nccl_state *state, struct nccl_connection *connection, ncclUniqueId id, int size)
{
    ncclConfig_t config     = NCCL_CONFIG_INITIALIZER;
    int          processors = bound_processors(connection->processors, state->comm->processors);
    config.commName         = connection->name;
    if (processors > 0) {
        config.maxCTAs = processors;
    }
    if (state->setup.copies && connection->is_near) {
        config.CTAPolicy = CTA_POLICY_ZERO;
        state->extras.copying++;
    }
    NCCL_CHECK(&state->library, ncclCommInitRankConfig(&connection->handle, size, id, connection->index, &config));
}

void nccl_disconnect(struct nccl_state *state, struct nccl_connection *connection)
{
    nccl_watch_remove(state, connection);
    nccl_memory_forget(state, connection);
    NCCL_CHECK(&state->library, ncclCommDestroy(connection->handle));
    free(connection);
}
