// SPDX-License-Identifier: MIT
// Where a rank runs: its peers, the cores that it has, its backend, and the communicator over which it meets the
// others.
#ifndef GSWBENCH_PLACE_H
#define GSWBENCH_PLACE_H

#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/config.h"
#include "gswbench/peak.h"
#include "gswbench/result_parts.h"
#include "gswbench/status.h"

// What every rank tells the others before anything else.
struct place_peer {
    struct comm_place place;
    char              profiler[40];           // the environment variable of one; "": none
    uint64_t          machine, cores_hash;    // equal on ranks of one machine; of them, with the same cores
    int64_t           cores;
};

// The cores of a rank. Ranks of a machine that may use the same cores share them.
struct place_cores {
    int64_t cores, sharers, threads;
    int64_t index;    // of the rank among the sharers
};

// The devices of the job's ranks.
struct place_devices {
    int64_t sharers;                     // ranks that use this rank's device; 1 on the host
    int     kinds;                       // 0: ranks compute on their hosts
    char (*names)[DEVICE_NAME_BYTES];    // [kinds]
};

// What is to be said of the machine before a run begins on it.
struct place_note {
    const char *id;
    char        text[256];
};
struct place_notes {
    struct place_note *list;
    int                count;
};

struct place {
    struct comm         *comm;     // that the rank is started with, or nccl
    struct comm          nccl;     // ops is NULL unless it is open
    struct place_peer   *peers;    // [ranks]
    struct place_cores   cores;
    struct backend       backend;    // ops is NULL until it is open
    struct place_devices devices;
    struct place_notes   notes;

    struct likeness_list    *environment;    // of this rank, as it was compared
    struct result_deviation *deviations;
    int64_t                  deviation_count;
    int64_t                  choice_counts[3];    // by enum gemm_origin, of all ranks
    char                     binding[64];         // "8 of NUMA node 1, bound by gswbench"
};

// Fills a zeroed place. Ranks whose configurations differ, or of which not all write weights, run no job together. own:
// the status of what this rank did before; a failure then is one of all ranks. Collective; every rank returns the same.
// place_close follows, after an error too.
status place_open(struct place *place, const struct config *config, bool writes_weights, struct comm *comm, status own);
void   place_close(struct place *place);

// Whether no other rank of the job computes where this one does: on its device, or on its processors.
bool place_is_alone(const struct place *place);

// The first failing rank's status, on all ranks. Collective.
status place_agree(struct comm *comm, status own);

// The backend that the configuration asks for, with so many threads of the processor.
status place_open_backend(struct backend *backend, const struct config *config, const struct comm_place *place,
                          int64_t threads);

// A number that ranks have alike which compute alike: of the device, its libraries and kernels of attention.
uint64_t place_find_kin(struct backend *backend);

// Fails (EXIT_LAUNCH) when more ranks than allowed use this rank's device, or ranks differ in their backends.
// Collective; ranks may fail alone. The caller frees names, after an error too.
status place_share_devices(struct place_devices *devices, struct comm *comm, struct backend *backend, int64_t allowed);

// Opens nccl over the rank's communicator where the configuration wants it, or wants the best and ranks have devices of
// their own; else leaves nccl->ops NULL. Collective; every rank returns the same.
status place_connect(struct comm *nccl, struct comm *comm, struct backend *backend, const struct run_config *run,
                     int64_t sharers);

// What this host has to compute on; no rank of a job is asked.
struct place_machine {
    int     devices;    // 0: it computes on its cores
    char    device[DEVICE_NAME_BYTES];
    int64_t device_bytes;    // that are free on the first one
    int     cores;
};
status place_find_machine(struct place_machine *machine);

#endif
