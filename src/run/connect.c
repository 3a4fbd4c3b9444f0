// SPDX-License-Identifier: MIT
// Which communicator carries what is in the devices' memory.
#include <inttypes.h>
#include <string.h>

#include "internal.h"

// Why this rank cannot have NCCL.
static status check_nccl(const struct backend *backend, int64_t sharers, bool is_auto)
{
    if (backend->ops->streams == NULL) {
        return fail_as(EXIT_LAUNCH, "it connects devices, but backend %s has none%s%s%s: take mpi or local",
                       backend->ops->name, backend->choice[0] != '\0' ? " (" : "", backend->choice,
                       backend->choice[0] != '\0' ? ")" : "");
    }
    if (is_auto && sharers > 1) {
        return fail_as(EXIT_LAUNCH, "%" PRId64 " ranks share a device", sharers);
    }
    return comm_detect_nccl();
}

status place_connect(struct comm *nccl, struct comm *comm, struct backend *backend, const struct run_config *run,
                     int64_t sharers)
{
    bool is_auto = strcmp(run->communicator, "auto") == 0;
    if (strcmp(run->communicator, "nccl") != 0 &&
        !(is_auto && comm->place.ranks > 1 && backend->ops->streams != NULL)) {
        return OK;
    }
    status checked = place_agree(comm, check_nccl(backend, sharers, is_auto));
    if (failed(&checked) && is_auto) {
        snprintf(comm->choice, sizeof(comm->choice), "not nccl: %.140s", checked.text);
        return OK;
    }
    if (failed(&checked)) {
        return fail_as(checked.exit_code, "[run] communicator = nccl: %.900s", checked.text);
    }
    const struct comm_nccl_setup setup = {.connect_seconds = (int)run->connect_seconds,
                                          .processors      = (int)run->spared_processors};
    return place_agree(comm, comm_open_nccl(nccl, comm, backend, &setup));
}
