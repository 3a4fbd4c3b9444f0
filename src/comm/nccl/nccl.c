// SPDX-License-Identifier: MIT
// The communicator with NCCL, for processes with one device each. Ops are enqueued on the backend's streams. A second
// communicator, over MPI, is the control plane. NCCL is loaded at run time, so that the program starts without it.
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/library.h"
#include "gswbench/text.h"
#include "../nccl_log.h"
#include "../nccl_job.h"
#include "nccl_internal.h"

// Loads the library. Fails with EXIT_LAUNCH if it is missing.
static status nccl_library_open(struct nccl_library *nccl)
{
    TRY(nccl_log_choose_file());
#define NCCL_SYMBOL(function)         {#function, &nccl->function, false},
#define NCCL_YOUNGER(function, takes) {#function, &nccl->function, true},
    const struct library_symbol symbols[] = {NCCL_FUNCTIONS(NCCL_SYMBOL) NCCL_OPTIONAL(NCCL_YOUNGER)};
#undef NCCL_SYMBOL
#undef NCCL_YOUNGER
    return library_open("libnccl.so.2", symbols, sizeof(symbols) / sizeof(symbols[0]));
}

void nccl_check(const struct nccl_library *nccl, ncclResult_t error, const char *call, const char *file, int line)
{
    if (error != ncclSuccess) {
        fatal_at(file, line, EXIT_LOST, "%s: %s: %s (NCCL_DEBUG=WARN says more)", call, nccl->ncclGetErrorString(error),
                 nccl->ncclGetLastError(NULL));
    }
}

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

static struct comm_extras extras(struct comm *comm)
{
    enum { STAT_TOTAL = 3 };    // ncclStatGpuMemTotal, missing from headers before 2.29.7
    const struct nccl_state   *state = comm->state;
    const struct nccl_library *nccl  = &state->library;
    struct comm_extras         sum   = {.allocates = comm->memory != NULL,
                                        .exchanges = state->exchanges,
                                        .bytes     = nccl->ncclCommMemStats != NULL ? 0 : NAN};
    for (const struct nccl_connection *one = state->watch.connections; one != NULL; one = one->next) {
        uint64_t bytes = 0;
        if (nccl->ncclCommMemStats != NULL) {
            NCCL_CHECK(nccl, ncclCommMemStats(one->handle, STAT_TOTAL, &bytes));
        }
        for (int i = 0; i < one->buffer_count; i++) {
            sum.windows += one->buffers[i].window != NULL;
            sum.registered += one->buffers[i].handle != NULL;
        }
        sum.refused += one->refused;
        sum.copying += one->is_copying;
        sum.putting += one->puts;
        sum.scalable += one->is_scalable;
        sum.bytes += (double)bytes;
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

// Checks that the ranks can connect with NCCL: equal versions, and no shared device. All ranks call it and return the
// same status.
static status check_ranks(struct nccl_state *state)
{
    struct comm     *control = state->control;
    int64_t          node    = control->topology.node;
    struct nccl_seat own     = {.version = state->version};
    const char      *host_id = getenv("NCCL_HOSTID");
    text_copy(own.host, sizeof(own.host), control->topology.host);
    text_copy(own.host_id, sizeof(own.host_id), host_id != NULL ? host_id : "");
    state->backend->ops->device_id(state->backend, own.device, sizeof(own.device));
    struct nccl_seat *seats  = comm_gather(control, &own, sizeof(own));
    status            result = nccl_check_seats(seats, control->topology.ranks);
    free(seats);
    state->nodes = comm_gather(control, &node, sizeof(node));
    return result;
}

static status open_state(struct comm *comm, struct nccl_state *state)
{
    char   text[NCCL_TEXT_BYTES];
    status own = state->setup.tells ? nccl_log_open(&state->log) : OK;
    own        = failed(&own) ? own : nccl_library_open(&state->library);
    TRY(comm_agree(state->control, own));    // all ranks fail if one fails; their environments may differ
    NCCL_CHECK(&state->library, ncclGetVersion(&state->version));
    TRY(check_ranks(state));
    snprintf(comm->library, sizeof(comm->library), "NCCL %s", nccl_print_version(state->version, text));
    return nccl_memory_open(comm, state);
}

status comm_open_nccl(struct comm *comm, struct comm *control, struct backend *backend,
                      const struct comm_nccl_setup *setup)
{
    struct nccl_state *state = memory_allocate(sizeof(*state));
    *comm                    = (struct comm){.ops = &nccl_ops, .state = state, .topology = control->topology};
    *state                   = (struct nccl_state){.comm    = comm,
                                                   .control = control,
                                                   .backend = backend,
                                                   .setup   = *setup,
                                                   .rank    = control->topology.rank,
                                                   .log     = -1};
    status result            = open_state(comm, state);
    if (failed(&result)) {
        *comm = (struct comm){.ops = NULL};
        free_state(state);
        return result;
    }
    nccl_watch_open(state);
    return OK;
}
