// SPDX-License-Identifier: MIT
// Selects the communicator for device memory. Ranks with their own devices need NCCL unless the user names another:
// staging through host memory would measure something else.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/connection.h"
#include "internal.h"

// Fails on all ranks with the first rank's reason and host.
static status check_nccl(struct comm *comm, const struct backend *backend)
{
    if (backend->ops->streams == NULL) {
        return fail_as(EXIT_LAUNCH, "it connects devices, but backend %s has none%s%s%s: use mpi or local",
                       backend->ops->name, backend->choice[0] != '\0' ? " (" : "", backend->choice,
                       backend->choice[0] != '\0' ? ")" : "");
    }
    int    first;
    status own = comm_detect_nccl();
    if (failed(&own)) {
        own = fail_as(own.exit_code, "rank %d on %s has its own device, but cannot use NCCL: %.600s",
                      comm->topology.rank, comm->topology.host, own.text);
    }
    return comm_find_failed(comm, own, &first);
}

static status check_sharing(struct comm *comm, int64_t sharers)
{
    return comm_agree(comm, sharers > 1 ? fail("%" PRId64 " ranks share a device", sharers) : OK);
}

// Rejects options that only NCCL implements.
static status check_plain(const struct comm *comm, const struct run_config *run)
{
    const char *asked = run->registered_buffers == REGISTERED_YES ? "registered_buffers = yes"
                        : run->zero_cta != 0                      ? "zero_cta = yes"
                        : run->transfer_algorithms != 0           ? "transfer_algorithms = yes"
                                                                  : NULL;
    return asked == NULL
               ? OK
               : fail_as(EXIT_LAUNCH, "[run] %s: communicator %s does not support it%s%s: leave it out", asked,
                         comm->ops->name, comm->choice[0] != '\0' ? ", and was chosen because " : "", comm->choice);
}

status environment_connect(struct comm *nccl, struct comm *comm, struct backend *backend, const struct run_config *run,
                           int64_t sharers)
{
    bool is_auto = strcmp(run->communicator, "auto") == 0;
    if (strcmp(run->communicator, "nccl") != 0 &&
        !(is_auto && comm->topology.ranks > 1 && backend->ops->streams != NULL)) {
        return check_plain(comm, run);
    }
    status shared = is_auto ? check_sharing(comm, sharers) : OK;
    if (failed(&shared)) {
        snprintf(comm->choice, sizeof(comm->choice), "not nccl: %.140s", shared.text);
        return check_plain(comm, run);
    }
    status checked = check_nccl(comm, backend);
    if (failed(&checked)) {
        return fail_as(checked.exit_code, "[run] communicator = %s: %.800s%s", run->communicator, checked.text,
                       is_auto ? "; or use --comm mpi, which is slower: data goes through host memory" : "");
    }
    const struct comm_nccl_setup setup = {.connect_seconds = (int)run->connect_seconds,
                                          .ranks_per_id    = (int)run->ranks_per_id,
                                          .tells           = run->transfer_algorithms != 0,
                                          .registers       = run->registered_buffers != REGISTERED_NO,
                                          .must_register =
                                              run->registered_buffers == REGISTERED_YES || run->zero_cta != 0,
                                          .copies = run->zero_cta != 0};
    TRY(comm_agree(comm, comm_open_nccl(nccl, comm, backend, &setup)));
    nccl->processors = backend->spared_processors;
    return OK;
}

void environment_check_network(struct rank_environment *environment, struct comm *comm)
{
    char own[NOTE_TEXT_BYTES] = "";
    if (environment->nccl.ops != NULL && comm->topology.nodes > 1) {
        network_explain_sockets(own, sizeof(own), "", "libibverbs.so.1");
    }
    environment_note_ranks(&environment->notes, "sockets", comm, own);
}

status environment_check_processors(struct rank_environment *environment, const struct plan *plan,
                                    const struct run_config *run)
{
    struct plan_connections connections;
    char                    own[NOTE_TEXT_BYTES] = "";
    if (environment->nccl.ops == NULL) {
        return OK;
    }
    plan_connections(&connections, plan, environment->comm->topology.local_ranks);
    plan_connections_excess(&connections, environment->backend.ops->processors(&environment->backend),
                            environment->comm->processors, own, sizeof(own));
    free(connections.list);
    environment_note_ranks(&environment->notes, "ctas", environment->comm, own);
    return environment_check_notes(&environment->notes, run->conditions);
}
