// SPDX-License-Identifier: MIT
// Opens a rank's environment: backend, communicator, and the checks of this folder. Each stage that can fail on one
// rank ends with comm_agree, which then fails on all ranks. Otherwise ranks would wait for a rank that has left. All
// ranks have the same notes.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/environment.h"
#include "gswbench/text.h"
#include "internal.h"

void environment_note(struct environment_notes *notes, const char *id, const char *format, ...)
{
    va_list                  arguments;
    struct environment_note *note = LIST_ADD(notes->list, notes->count);
    note->id                      = id;
    va_start(arguments, format);
    vsnprintf(note->text, sizeof(note->text), format, arguments);
    va_end(arguments);
}

struct rank_text {
    char host[64], text[NOTE_TEXT_BYTES];
};

void environment_note_ranks(struct environment_notes *notes, const char *id, struct comm *comm, const char *own)
{
    int              ranks = comm->topology.ranks, count = 0, first = ranks;
    struct rank_text mine;
    memset(&mine, 0, sizeof(mine));
    text_copy(mine.host, sizeof(mine.host), comm->topology.host);
    text_copy(mine.text, sizeof(mine.text), own);
    struct rank_text *all = comm_gather(comm, &mine, sizeof(mine));
    for (int rank = ranks - 1; rank >= 0; rank--) {
        if (all[rank].text[0] != '\0') {
            first = rank;
            count++;
        }
    }
    char more[48] = "";
    if (count > 1) {
        snprintf(more, sizeof(more), " (as %d of %d ranks)", count, ranks);
    }
    if (count > 0) {
        environment_note(notes, id, "rank %d on %.40s%s: %s", first, all[first].host, more, all[first].text);
    }
    free(all);
}

// By default notes are only printed; with [run] conditions = error a note ends the run.
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
    } hashed;
    memset(&hashed, 0, sizeof(hashed));
    if (backend->ops->device_name != NULL) {
        backend->ops->device_name(backend, hashed.device, sizeof(hashed.device));
    } else {
        backend->ops->describe(backend, hashed.device, sizeof(hashed.device));
    }
    if (backend->ops->attention != NULL) {
        backend->ops->attention(backend, &hashed.attention);
    }
    return XXH3_64bits(&hashed, sizeof(hashed));
}

status environment_open(struct rank_environment *environment, const struct config *config, bool writes_weights,
                        struct comm *comm, status own)
{
    const struct run_config *run = &config->run;
    environment->comm            = comm;
    TRY(peers_check_job(environment, config, writes_weights, comm));
    // Binding comes before the backend allocates memory, because the first touch decides the memory's NUMA node.
    environment_bind(environment, config, comm);
    peers_meet(environment, comm);
    environment->cores = peers_share_cores(environment->peers, &comm->topology, run->threads);
    if (!failed(&own)) {
        own = environment_open_backend(&environment->backend, config, &comm->topology, environment->cores.threads);
    }
    TRY(comm_agree(comm, own));
    TRY(peers_require_equal(comm, "backend", environment->backend.ops->name, environment->backend.choice,
                            "set run.backend to one of them"));
    TRY(comm_agree(
        comm, environment_share_devices(&environment->devices, comm, &environment->backend, run->ranks_per_device)));
    TRY(peers_compare_backends(environment, run, comm));
    TRY(environment_connect(&environment->nccl, comm, &environment->backend, run, environment->devices.sharers));
    environment->comm = environment->nccl.ops != NULL ? &environment->nccl : comm;
    if (!environment->comm->ops->is_enqueued && !environment->comm->is_threaded && comm->topology.ranks > 1) {
        // Without stream-ordered collectives, each stream has a thread that calls the communicator.
        own = fail_as(EXIT_LAUNCH,
                      "%s does not support MPI_THREAD_MULTIPLE, which communicator %s needs: use a build that does",
                      environment->comm->library, environment->comm->ops->name);
    }
    TRY(comm_agree(comm, own));
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
