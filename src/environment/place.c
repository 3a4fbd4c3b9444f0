// SPDX-License-Identifier: MIT
// Opens a rank's environment. Stages that can fail on one rank end in an agreement, so no rank waits for one that has
// left.
#include "gswbench/place.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"
#include "settings.h"

// Keeps further lines of the error.
static status name_rank(int rank, const status *error)
{
    status result = {.exit_code = error->exit_code};
    int    length = snprintf(result.text, sizeof(result.text), "rank %d: ", rank);
    text_copy(result.text + length, sizeof(result.text) - (size_t)length, error->text);
    return result;
}

status place_agree_first(struct comm *comm, status own, int *first)
{
    status result = comm_find_failed(comm, own, first);
    return *first > 0 ? name_rank(*first, &result) : result;
}

status place_agree(struct comm *comm, status own)
{
    int first;
    return place_agree_first(comm, own, &first);
}

// Problems of the machine are notes, or end the run with conditions = error.
status place_check_notes(const struct place_notes *notes, int64_t conditions)
{
    return conditions == CONDITIONS_NOTE || notes->count == 0
               ? OK
               : fail_as(EXIT_LAUNCH, "[run] conditions = error: %s: %s", notes->list[0].id, notes->list[0].text);
}

uint64_t place_find_kin(struct backend *backend)
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
    return comm->ops->is_enqueued || comm->is_threaded || comm->place.ranks == 1
               ? OK
               : fail_as(EXIT_LAUNCH,
                         "%s does not support MPI_THREAD_MULTIPLE, which communicator %s needs: use a build that does",
                         comm->library, comm->ops->name);
}

status place_open(struct place *place, const struct config *config, bool writes_weights, struct comm *comm, status own)
{
    const struct run_config *run = &config->run;
    place->comm                  = comm;
    TRY(peers_check_job(place, config, writes_weights, comm));
    place_bind(place, config, comm);    // before the backend allocates memory
    peers_meet(place, comm);
    place->cores = peers_share_cores(place->peers, &comm->place, run->threads);
    if (!failed(&own)) {
        own = place_open_backend(&place->backend, config, &comm->place, place->cores.threads);
    }
    TRY(place_agree(comm, own));
    TRY(place_agree(comm, place_share_devices(&place->devices, comm, &place->backend, run->ranks_per_device)));
    TRY(peers_compare_backends(place, run, comm));
    TRY(place_connect(&place->nccl, comm, &place->backend, run, place->devices.sharers));
    place->comm = place->nccl.ops != NULL ? &place->nccl : comm;
    TRY(place_agree(comm, check_threads(place->comm)));
    place_check_network(place, comm);
    return place_check_notes(&place->notes, run->conditions);
}

void place_close(struct place *place)
{
    free(place->peers);
    free(place->notes.list);
    free(place->deviations);
    if (place->settings != NULL) {
        settings_free(place->settings);
        free(place->settings);
    }
    free(place->devices.names);
    if (place->nccl.ops != NULL) {
        comm_close(&place->nccl);
    }
    if (place->backend.ops != NULL) {
        backend_close(&place->backend);
    }
}

bool place_is_alone(const struct place *place)
{
    const struct place_cores *cores = &place->cores;
    return place->backend.ops->device_id != NULL ? place->devices.sharers == 1
                                                 : cores->threads * cores->sharers <= cores->cores;
}
