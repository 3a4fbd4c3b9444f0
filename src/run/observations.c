// SPDX-License-Identifier: MIT
// Samples each rank's device, unless ranks share it.
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>

static bool has_device(const struct steps *steps)
{
    return steps->backend->ops->device_id != NULL;
}

void observations_open(struct steps *steps, int64_t sharers)
{
    char name[64];
    if (has_device(steps) && sharers == 1) {
        steps->backend->ops->device_id(steps->backend, name, sizeof(name));
        const struct observe_setup setup = {
            .library = OBSERVE_LIBRARY, .device = name, .seconds = steps->benchmark->job.config.run.observe_seconds};
        steps->observer = observer_open(&setup);
    }
}

void observations_gather(struct steps *steps, int64_t sharers)
{
    const struct comm_topology *topology = &steps->comm->topology;
    struct result              *result   = steps->result;
    struct observation          own;
    char                        missing[64];
    if (!has_device(steps)) {    // the same on all ranks, which have one kind of backend
        return;
    }
    snprintf(missing, sizeof(missing), "%" PRId64 " ranks share the device", sharers);
    observation_init(&own, missing);
    if (steps->observer != NULL) {
        observer_close(steps->observer, &own);
        steps->observer = NULL;
    }
    own.rank                  = topology->rank;
    result->observations      = comm_gather(steps->comm, &own, sizeof(own));
    result->observation_count = topology->ranks;
}
