// SPDX-License-Identifier: MIT
// Selects a rank's device. Checks that backends agree and that devices are shared only if allowed.
#define _GNU_SOURCE    // sched_getaffinity
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"
#include "internal.h"

static struct backend_setup setup_of(const struct config *config, const struct comm_topology *topology, int64_t threads)
{
    const struct run_config *run = &config->run;
    return (struct backend_setup){.local_rank       = topology->local_rank,
                                  .threads          = (int)threads,
                                  .attention        = run->attention,
                                  .is_deterministic = run->deterministic != 0,
                                  .is_fp32          = config->precision.compute == COMPUTE_FP32,
                                  .sm_margin        = run->sm_margin > 0 ? (int)run->sm_margin : 0,
                                  .cache            = run->cache};
}

status environment_open_backend(struct backend *backend, const struct config *config,
                                const struct comm_topology *topology, int64_t threads)
{
    const struct backend_setup setup = setup_of(config, topology, threads);
    return backend_open(backend, config->run.backend, &setup);
}

void environment_locate_device(const struct config *config, const struct comm_topology *topology, char *text,
                               size_t bytes)
{
    const struct backend_setup setup = setup_of(config, topology, 1);
    backend_locate(config->run.backend, &setup, text, bytes);
}

// Exchanged between ranks.
struct device_seat {
    int64_t node;
    char    backend[16], device[64];    // device "": the host itself
    char    name[DEVICE_NAME_BYTES];
};

static void add_kind(struct environment_devices *devices, const char *name)
{
    for (int kind = 0; kind < devices->kinds; kind++) {
        if (strcmp(devices->names[kind], name) == 0) {
            return;
        }
    }
    size_t bytes   = (size_t)(devices->kinds + 1) * sizeof(*devices->names);
    devices->names = memory_resize(devices->names, bytes);
    text_copy(devices->names[devices->kinds++], sizeof(*devices->names), name);
}

status environment_share_devices(struct environment_devices *devices, struct comm *comm, struct backend *backend,
                                 int64_t allowed)
{
    struct device_seat own = {.node = comm->topology.node};
    text_copy(own.backend, sizeof(own.backend), backend->ops->name);
    if (backend->ops->device_id != NULL) {
        backend->ops->device_id(backend, own.device, sizeof(own.device));
        backend->ops->device_name(backend, own.name, sizeof(own.name));
    }
    status              result  = OK;
    bool                is_host = own.device[0] == '\0';
    struct device_seat *all     = comm_gather(comm, &own, sizeof(own));
    *devices                    = (struct environment_devices){.sharers = is_host};
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        if (strcmp(all[rank].backend, own.backend) != 0) {
            result = fail_as(EXIT_LAUNCH, "backend %s here, but %s on rank %d: set run.backend to one of them",
                             own.backend, all[rank].backend, rank);
        }
        if (!is_host) {
            devices->sharers += all[rank].node == own.node && strcmp(all[rank].device, own.device) == 0;
            add_kind(devices, all[rank].name);
        }
    }
    free(all);
    if (devices->sharers > allowed) {
        result = fail_as(EXIT_LAUNCH,
                         "%" PRId64 " ranks of host %s share the device %s: launch one rank per device (for a test, "
                         "set run.ranks_per_device = %" PRId64 ")",
                         devices->sharers, comm->topology.host, own.device, devices->sharers);
    }
    return result;
}

status environment_find_machine(struct environment_machine *machine)
{
    struct backend backend;
    cpu_set_t      cores;
    TRY(backend_open(&backend, "auto", &(struct backend_setup){.threads = 1}));
    *machine = (struct environment_machine){.cores = 1};
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        machine->cores = CPU_COUNT(&cores);
    }
    if (backend.ops->device_name != NULL) {
        backend.ops->device_name(&backend, machine->device, sizeof(machine->device));
        machine->device_bytes = backend.ops->available_bytes(&backend);
        // Ranks take devices round-robin, so the first one repeats after the last.
        char first[64], next[64];
        backend_locate("auto", &(struct backend_setup){.local_rank = 0}, first, sizeof(first));
        do {
            machine->devices++;
            backend_locate("auto", &(struct backend_setup){.local_rank = machine->devices}, next, sizeof(next));
        } while (strcmp(first, next) != 0);
    }
    backend_close(&backend);
    return OK;
}
