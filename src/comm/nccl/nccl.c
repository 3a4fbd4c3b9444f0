// SPDX-License-Identifier: MIT
// NCCL between processes with one device each. Ops are enqueued on the backend's streams. The control plane is another
// communicator.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "nccl_internal.h"
#include "../nccl_job.h"
#include "../nccl_log.h"

static void barrier(struct comm *comm)
{
    const struct nccl_state *state = comm->state;
    state->control->ops->barrier(state->control);
}

static void gather_all(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    const struct nccl_state *state = comm->state;
    state->control->ops->gather_all(state->control, in, out, bytes);
}

static void share(struct comm *comm, void *data, int64_t bytes, int from)
{
    const struct nccl_state *state = comm->state;
    state->control->ops->share(state->control, data, bytes, from);
}

static void free_state(struct nccl_state *state)
{
    if (state->log >= 0) {
        close(state->log);
    }
    free(state->nodes);
    free(state);
}

static void close_nccl(struct comm *comm)
{
    nccl_watch_close(comm->state);
    free_state(comm->state);
}

static void count(const struct nccl_library *nccl, const struct nccl_connection *connection, struct comm_extras *sum)
{
    enum { STAT_TOTAL = 3 };    // ncclStatGpuMemTotal, missing from headers before 2.29.7
    uint64_t bytes = 0;
    if (nccl->ncclCommMemStats != NULL) {
        NCCL_CHECK(nccl, ncclCommMemStats(connection->handle, STAT_TOTAL, &bytes));
    }
    for (int i = 0; i < connection->buffer_count; i++) {
        sum->windows += connection->buffers[i].window != NULL;
        sum->registered += connection->buffers[i].handle != NULL;
    }
    sum->refused += connection->refused;
    sum->copying += connection->is_copying;
    sum->putting += connection->puts;
    sum->scalable += connection->is_scalable;
    sum->bytes += (double)bytes;
}

static struct comm_extras extras(struct comm *comm)
{
    const struct nccl_state   *state = comm->state;
    const struct nccl_library *nccl  = &state->library;
    struct comm_extras         sum   = {.allocates = comm->memory != NULL,
                                        .exchanges = state->exchanges,
                                        .bytes     = nccl->ncclCommMemStats != NULL ? 0 : NAN};
    for (const struct nccl_connection *one = state->watch.connections; one != NULL; one = one->next) {
        count(nccl, one, &sum);
    }
    return sum;
}

static struct comm_choice chosen(struct comm *comm)
{
    struct nccl_state *state = comm->state;
    return state->log >= 0 ? nccl_log_read(state->log, &state->log_position) : (struct comm_choice){.algorithm = ""};
}

static const struct comm_ops nccl_ops = {
    .name        = "nccl",
    .is_enqueued = true,
    .sums_vary   = true,
    .close       = close_nccl,
    .group_open  = nccl_group_open,
    .group_close = nccl_group_close,
    .run         = nccl_run,
    .extras      = extras,
    .chosen      = chosen,
    .barrier     = barrier,
    .gather_all  = gather_all,
    .share       = share,
};

status comm_detect_nccl(void)
{
    struct nccl_library nccl;
    int                 version;
    TRY(nccl_library_open(&nccl));
    ncclResult_t answer = nccl.ncclGetVersion(&version);
    if (answer != ncclSuccess) {
        return fail_as(EXIT_LAUNCH, "ncclGetVersion: %s", nccl.ncclGetErrorString(answer));
    }
    return nccl_check_version(version);
}

// Collective: all ranks return the same status.
static status check_ranks(struct nccl_state *state)
{
    struct comm     *control = state->control;
    int64_t          node    = control->topology.node;
    struct nccl_seat own     = {0};
    const char      *host_id = getenv("NCCL_HOSTID");
    NCCL_CHECK(&state->library, ncclGetVersion(&own.version));
    text_copy(own.host, sizeof(own.host), control->topology.host);
    text_copy(own.host_id, sizeof(own.host_id), host_id != NULL ? host_id : "");
    state->backend->ops->device_id(state->backend, own.device, sizeof(own.device));
    struct nccl_seat *seats  = comm_gather(control, &own, sizeof(own));
    status            result = nccl_check_seats(seats, control->topology.ranks);
    free(seats);
    state->nodes = comm_gather(control, &node, sizeof(node));
    return result;
}

// Zero-CTA collectives need a newer NCCL, which no optional function indicates.
static status check_copies(const struct nccl_state *state, const struct comm *comm)
{
    enum { VERSION_ZERO = 22800 };
    int version;
    NCCL_CHECK(&state->library, ncclGetVersion(&version));
    if (!state->setup.copies || (version >= VERSION_ZERO && comm->memory != NULL)) {
        return OK;
    }
    return fail_as(EXIT_LAUNCH, "[run] zero_cta = yes: %s: leave it out",
                   version < VERSION_ZERO ? "it needs NCCL 2.28 or newer"
                                          : "it needs registered buffers, but registered_buffers = no");
}

status comm_open_nccl(struct comm *comm, struct comm *control, struct backend *backend,
                      const struct comm_nccl_setup *setup)
{
    struct nccl_state *state = memory_allocate(sizeof(*state));
    *state =
        (struct nccl_state){.control = control, .backend = backend, .setup = *setup, .rank = control->topology.rank};
    state->log    = -1;
    status result = setup->tells ? nccl_log_open(&state->log) : OK;
    if (!failed(&result)) {
        result = nccl_library_open(&state->library);
    }
    if (!failed(&result)) {
        result = check_ranks(state);
    }
    if (failed(&result)) {
        free_state(state);
        return result;
    }
    int  version;
    char text[NCCL_TEXT_BYTES];
    NCCL_CHECK(&state->library, ncclGetVersion(&version));
    *comm       = (struct comm){.ops = &nccl_ops, .state = state, .topology = control->topology};
    state->comm = comm;
    snprintf(comm->library, sizeof(comm->library), "NCCL %s", nccl_print_version(version, text));
    result = nccl_memory_open(comm, state);
    if (!failed(&result)) {
        result = check_copies(state, comm);
    }
    if (failed(&result)) {
        *comm = (struct comm){.ops = NULL};
        free_state(state);
        return result;
    }
    nccl_watch_open(state);
    return OK;
}
