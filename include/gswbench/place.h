// SPDX-License-Identifier: MIT
// Rank environment and topology: peers, cores, backend, devices, communicator.
#ifndef GSWBENCH_PLACE_H
#define GSWBENCH_PLACE_H

#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/config.h"
#include "gswbench/peak.h"
#include "gswbench/plan.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// Exchanged by all ranks first.
struct place_peer {
    struct comm_place place;
    char              profiler[40];    // environment variable set by a profiler; "": none
    uint64_t          machine,
        cores_hash;    // machine: equal on one machine; cores_hash: also the same affinity mask
    int64_t cores;
};

// CPU cores of a rank, shared by ranks with the same affinity mask.
struct place_cores {
    int64_t cores, sharers, threads;
    int64_t index;    // of the rank among the sharers
};

// Devices of the job's ranks.
struct place_devices {
    int64_t sharers;                     // ranks on this rank's device; 1 on the host backend
    int     kinds;                       // number of device models; 0: host backend
    char (*names)[DEVICE_NAME_BYTES];    // [kinds]
};

// A problem of the machine, found before the run.
struct place_note {
    const char *id;
    char        text[256];
};
struct place_notes {
    struct place_note *list;
    int                count;
};

// Settings of a rank, compared by name between all ranks.
//
// On a mismatch: an error, a note, or only a record of values that may differ.
enum setting_rule { SETTING_REQUIRED, SETTING_NOTED, SETTING_OWN };
struct setting_kind {
    enum setting_rule rule;
    bool              is_setting;    // printed as NAME = VALUE
    const char       *remedy;        // for SETTING_REQUIRED
};

// A value, compared by name; some ranks may not have it.
enum { SETTING_BYTES = 128, SETTING_TEXT_BYTES = 512 };
struct setting {
    char                name[64], value[SETTING_BYTES];    // value: truncated for display
    uint64_t            hash;                              // of the full value
    struct setting_kind kind;
};
struct setting_list {
    struct setting *rows;
    int             count;
};
void settings_free(struct setting_list *list);
void settings_print_name(char *text, size_t bytes, const char *name);    // of a row, as it was added

// Adds both for this process: NCCL reads NCCL_CONF_FILE, else ~/.nccl.conf, and then /etc/nccl.conf.
void settings_collect_variables(struct setting_list *list);

struct place {
    struct comm         *comm;     // the launch communicator, or nccl
    struct comm          nccl;     // ops is NULL unless it is open
    struct place_peer   *peers;    // [ranks]
    struct place_cores   cores;
    struct backend       backend;    // ops is NULL until it is open
    struct place_devices devices;
    struct place_notes   notes;

    struct setting_list     *settings;    // this rank's settings, as compared between ranks
    struct result_deviation *deviations;
    int64_t                  deviation_count;
    int64_t                  choice_counts[3];    // by enum gemm_origin, over all ranks
    char                     binding[64];         // "8 of NUMA node 1, bound by gswbench"
};

// Opens a zeroed place: compares ranks, then opens backend, devices and communicator. Fails if configurations differ or
// only some ranks write weights. own: this rank's earlier status; an error on one rank fails all. Collective, with the
// same status on every rank. Call place_close even after an error.
status place_open(struct place *place, const struct config *config, bool writes_weights, struct comm *comm, status own);
void   place_close(struct place *place);

// Whether this rank has its device, or its cores, to itself.
bool place_is_alone(const struct place *place);

// Collective. Returns the first failed rank's status on all ranks.
status place_agree(struct comm *comm, status own);

// Opens the configured backend with that many CPU threads.
status place_open_backend(struct backend *backend, const struct config *config, const struct comm_place *place,
                          int64_t threads);

// Fingerprint of device and attention implementation: ranks with the same one compute the same bits.
uint64_t place_find_kin(struct backend *backend);

// Fails (EXIT_LAUNCH) if more than `allowed` ranks use this rank's device, or backends differ. Collective, but may fail
// on single ranks. The caller frees names even after an error.
status place_share_devices(struct place_devices *devices, struct comm *comm, struct backend *backend, int64_t allowed);

// Opens NCCL over comm if configured, or for auto if ranks have their own devices; otherwise nccl->ops stays NULL.
// Collective, with the same status on every rank.
status place_connect(struct comm *nccl, struct comm *comm, struct backend *backend, const struct run_config *run,
                     int64_t sharers);

// Devices and cores of this host, without a job.
struct place_machine {
    int     devices;    // 0: the host backend
    char    device[DEVICE_NAME_BYTES];
    int64_t device_bytes;    // free on the first device
    int     cores;
};
status place_find_machine(struct place_machine *machine);

// place_agree with the first failed rank; -1: none.
status place_agree_first(struct comm *comm, status own, int *first);

// Checks that all processes run the same build. Collective, and first: other builds exchange other structs.
status peers_check_program(struct comm *comm);

// Cores and threads of this rank, and the ranks that share them.
struct place_cores peers_share_cores(const struct place_peer *peers, const struct comm_place *place,
                                     int64_t requested_threads);

// Adds notes to a result: tensor-parallel groups that span nodes; an attached profiler, whose result is not compared.
void peers_check_places(struct result *result, const struct place_peer *peers);
void peers_check_profilers(struct result *result, const struct place_peer *peers, int ranks);

// Records the attention implementation, and notes replaced cuDNN and differences between ranks.
// Collective.
void attention_gather(struct result *result, struct comm *comm, struct backend *backend);

// step_prepare where each algorithm is selected by one rank and shared. choices_prepare notes ranks that
// still differ; choices_share is for plans other than the job's. Collective, with the same status on every rank.
status choices_share(const struct plan *plan, struct place *place);
status choices_prepare(const struct plan *plan, struct place *place, int64_t conditions);

// With run.spared_processors = auto and NCCL: times some settings and applies the best to later ops. Fails if NCCL
// could then occupy a whole device. Collective.
status sm_margin_choose(struct place *place, const struct plan *plan, const struct run_config *run);

#endif
