// SPDX-License-Identifier: MIT
// Who has which device: all ranks the same kind of backend, and none a device of another's without being told so.
#include "run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"

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
