// SPDX-License-Identifier: MIT
// Opens a rank's environment. Stages that can fail on one rank end in an agreement, so no rank waits for one that has
// left.
#include "gswbench/environment.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"
#include "settings.h"

// Problems of the machine are notes, or end the run with conditions = error.
status environment_check_notes(const struct environment_notes *notes, int64_t conditions)
{
    return conditions == CONDITIONS_NOTE || notes->count == 0
               ? OK
               : fail_as(EXIT_LAUNCH, "[run] conditions = error: %s: %s", notes->list[0].id, notes->list[0].text);
}

uint64_t environment_fingerprint(struct backend *backend)
{
    struct {
        char                     device[256];
        struct backend_attention attention;
    } means;
    memset(&means, 0, sizeof(means));
    if (backend->ops->device_name != NULL) {
        backend->ops->device_name(backend, means.device, sizeof(means.device));
    } else {
        backend->ops->describe(backend, means.device, sizeof(means.device));
    }
    if (backend->ops->attention != NULL) {
        backend->ops->attention(backend, &means.attention);
    }
    return XXH3_64bits(&means, sizeof(means));
}

// Without stream-ordered collectives, each stream has a thread that communicates.
static status check_threads(const struct comm *comm)
{
    return comm->ops->is_enqueued || comm->is_threaded || comm->topology.ranks == 1
               ? OK
               : fail_as(EXIT_LAUNCH,
                         "%s does not support MPI_THREAD_MULTIPLE, which communicator %s needs: use a build that does",
                         comm->library, comm->ops->name);
}

status environment_open(struct rank_environment *environment, const struct config *config, bool writes_weights,
                        struct comm *comm, status own)
{
    const struct run_config *run = &config->run;
    environment->comm            = comm;
    TRY(peers_check_job(environment, config, writes_weights, comm));
    environment_bind(environment, config, comm);    // before the backend allocates memory
    peers_meet(environment, comm);
    environment->cores = peers_share_cores(environment->peers, &comm->topology, run->threads);
    if (!failed(&own)) {
        own = environment_open_backend(&environment->backend, config, &comm->topology, environment->cores.threads);
    }
    TRY(comm_agree(comm, own));
    TRY(comm_agree(
        comm, environment_share_devices(&environment->devices, comm, &environment->backend, run->ranks_per_device)));
    TRY(peers_compare_backends(environment, run, comm));
    TRY(environment_connect(&environment->nccl, comm, &environment->backend, run, environment->devices.sharers));
    environment->comm = environment->nccl.ops != NULL ? &environment->nccl : comm;
    TRY(comm_agree(comm, check_threads(environment->comm)));
    environment_check_network(environment, comm);
    return environment_check_notes(&environment->notes, run->conditions);
}

void environment_close(struct rank_environment *environment)
{
    free(environment->peers);
    free(environment->notes.list);
    free(environment->deviations);
    if (environment->settings != NULL) {
        settings_free(environment->settings);
        free(environment->settings);
    }
    free(environment->devices.names);
    if (environment->nccl.ops != NULL) {
        comm_close(&environment->nccl);
    }
    if (environment->backend.ops != NULL) {
        backend_close(&environment->backend);
    }
}

bool environment_is_alone(const struct rank_environment *environment)
{
    const struct environment_cores *cores = &environment->cores;
    return environment->backend.ops->device_id != NULL ? environment->devices.sharers == 1
                                                       : cores->threads * cores->sharers <= cores->cores;
}
