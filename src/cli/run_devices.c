// SPDX-License-Identifier: MIT
// The device of a rank, and who has which: all ranks the same kind of backend, and none a device of another's without
// being told so.
#include "run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"

status run_open_backend(struct backend *backend, const struct config *config, const struct comm_place *place,
                        int64_t threads)
{
    const struct run_config   *run   = &config->run;
    const struct backend_setup setup = {.local_rank        = place->local_rank,
                                        .threads           = (int)threads,
                                        .attention         = run->attention,
                                        .is_deterministic  = run->deterministic != 0,
                                        .is_fp32           = config->precision.compute == COMPUTE_FP32,
                                        .spared_processors = (int)run->spared_processors,
                                        .cache             = run->cache};
    return backend_open(backend, run->backend, &setup);
}

// What ranks tell each other.
struct seat {
    int64_t node;
    char    backend[16], device[64];    // device "": the host itself
};

static struct seat own_seat(const struct comm *comm, struct backend *backend)
{
    struct seat seat = {.node = comm->place.node};
    text_copy(seat.backend, sizeof(seat.backend), backend->ops->name);
    if (backend->ops->device_name != NULL) {
        backend->ops->device_name(backend, seat.device, sizeof(seat.device));
    }
    return seat;
}

status run_share_devices(struct comm *comm, struct backend *backend, int64_t allowed, int64_t *sharers)
{
    struct seat  own    = own_seat(comm, backend);
    struct seat *all    = memory_allocate((size_t)comm->place.ranks * sizeof(*all));
    status       result = OK;
    comm->ops->gather_all(comm, &own, all, sizeof(own));
    *sharers = own.device[0] == '\0';
    for (int rank = 0; rank < comm->place.ranks; rank++) {
        if (strcmp(all[rank].backend, own.backend) != 0) {
            result = fail_as(EXIT_LAUNCH, "backend %s here, but %s on rank %d: name one in run.backend", own.backend,
                             all[rank].backend, rank);
        }
        *sharers += own.device[0] != '\0' && all[rank].node == own.node && strcmp(all[rank].device, own.device) == 0;
    }
    free(all);
    if (*sharers > allowed) {
        result = fail_as(EXIT_LAUNCH,
                         "%" PRId64 " ranks of host %s share the device %s: launch one rank for each device (or, for a "
                         "test, let them with run.ranks_per_device = %" PRId64 ")",
                         *sharers, comm->place.host, own.device, *sharers);
    }
    return result;
}
