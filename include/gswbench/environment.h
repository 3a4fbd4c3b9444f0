// SPDX-License-Identifier: MIT
// Opens and compares the environment of ranks: settings, topology, cores, backend, devices, communicator.
#pragma once

#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/config.h"
#include "gswbench/peak.h"
#include "gswbench/plan.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// What all ranks tell each other first.
struct environment_peer {
    struct comm_topology topology;
    char                 profiler[40];    // environment variable set by a profiler; "": none
    uint64_t             machine;         // hash that is equal for ranks on one machine
    uint64_t             cores_hash;      // ... and with the same affinity mask
    int64_t              cores;
};

// CPU cores of a rank, shared by ranks with the same affinity mask.
struct environment_cores {
    int64_t cores, sharers;    // cores in the mask; ranks with this mask
    int64_t threads;           // CPU threads of each of these ranks
    int64_t index;             // of the rank among the sharers
};

// Devices of the job's ranks.
struct environment_devices {
    int64_t sharers;                     // ranks on this rank's device; 1 on the host backend
    int     kinds;                       // number of device models; 0: host backend
    char (*names)[DEVICE_NAME_BYTES];    // [kinds]
};

// A problem of the machine, found before the run, such as different drivers on two ranks.
struct environment_note {
    const char *id;
    char        text[256];
};
struct environment_notes {
    struct environment_note *list;
    int                      count;
};

// Settings of a rank, such as NCCL_ALGO, compared by name between all ranks. The rule says what a difference causes: an
// error (REQUIRED), a note (NOTED), or only a record in the result, because the value may differ (OWN).
enum setting_rule { SETTING_REQUIRED, SETTING_NOTED, SETTING_OWN };
struct setting_kind {
    enum setting_rule rule;
    bool              is_setting;    // printed as NAME = VALUE
    const char       *remedy;        // what to do; SETTING_REQUIRED only
};

// One setting; a rank may lack it.
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
void settings_print_name(char *text, size_t bytes, const char *name);    // name of a row without " ="

// Adds this process's environment variables, and the settings in the files that NCCL reads: the file that
// NCCL_CONF_FILE names or, without it, ~/.nccl.conf; then /etc/nccl.conf.
void settings_collect_variables(struct setting_list *list);

struct rank_environment {
    struct comm               *comm;     // the launch communicator, or nccl
    struct comm                nccl;     // ops is NULL unless it is open
    struct environment_peer   *peers;    // [ranks]
    struct environment_cores   cores;
    struct backend             backend;    // ops is NULL until it is open
    struct environment_devices devices;
    struct environment_notes   notes;

    struct setting_list     *settings;      // this rank's settings, as compared between ranks
    struct result_deviation *deviations;    // values that differ from rank 0's, with their ranks
    int64_t                  deviation_count;
    int64_t                  choice_counts[3];    // by enum gemm_origin, over all ranks
    char                     binding[64];         // "8 of NUMA node 1, bound by gswbench"
};

// Opens a zeroed environment: compares ranks, then opens backend, devices and communicator. Fails if configurations
// differ or only some ranks write weights. own: this rank's status so far; if it is an error on any rank, the call
// fails. Collective, with the same status on every rank. Call environment_close even after an error.
status environment_open(struct rank_environment *environment, const struct config *config, bool writes_weights,
                        struct comm *comm, status own);
void   environment_close(struct rank_environment *environment);

// Whether no other rank uses this rank's device. Host backend: whether all threads on its cores have a core each.
bool environment_is_alone(const struct rank_environment *environment);

// Opens the configured backend with that many CPU threads.
status environment_open_backend(struct backend *backend, const struct config *config,
                                const struct comm_topology *topology, int64_t threads);

// Hash of device model and attention implementation. Ranks with equal hashes compute the same bits.
uint64_t environment_fingerprint(struct backend *backend);

// Counts the ranks on this rank's device. Fails (EXIT_LAUNCH) if they are more than `allowed`, or backends differ.
// Collective, but the status may differ between ranks. The caller frees names even after an error.
status environment_share_devices(struct environment_devices *devices, struct comm *comm, struct backend *backend,
                                 int64_t allowed);

// Opens NCCL, with comm as control plane, if [run] communicator is nccl, or if it is auto and each of several ranks has
// a device of its own. If not, nccl->ops stays NULL. Collective, with the same status on every rank.
status environment_connect(struct comm *nccl, struct comm *comm, struct backend *backend, const struct run_config *run,
                           int64_t sharers);

// Devices and cores of this host, without a job.
struct environment_machine {
    int     devices;    // 0: the host backend
    char    device[DEVICE_NAME_BYTES];
    int64_t device_bytes;    // free on the first device
    int     cores;
};
status environment_find_machine(struct environment_machine *machine);

// Checks that all processes run the same build. Collective. Call it first: other builds exchange other structs.
status peers_check_program(struct comm *comm);

// Counts cores and threads of this rank, and the ranks that share its cores.
struct environment_cores peers_share_cores(const struct environment_peer *peers, const struct comm_topology *topology,
                                           int64_t requested_threads);

// Add notes to a result: peers_check_topology if tensor-parallel groups span nodes, peers_check_profilers if a profiler
// is attached, because its overhead makes the result unfit for comparison.
void peers_check_topology(struct result *result, const struct environment_peer *peers);
void peers_check_profilers(struct result *result, const struct environment_peer *peers, int ranks);

// Records the attention implementation of rank 0 in the result. Adds a note if the built-in kernels replace cuDNN on a
// rank, or if a rank's implementation differs from rank 0's. Collective.
void attention_gather(struct result *result, struct comm *comm, struct backend *backend);

// Like step_prepare, but for each GEMM problem one rank times the algorithms and the others use its choice. Adds a note
// if a rank's library refuses the choice. Collective, with the same status on every rank.
status choices_prepare(const struct plan *plan, struct rank_environment *environment, int64_t conditions);

// Adds a note if NCCL's CTAs may leave no SMs for compute. Collective, with the same status on every rank.
status environment_check_processors(struct rank_environment *environment, const struct plan *plan,
                                    const struct run_config *run);
