// SPDX-License-Identifier: MIT
// The environment of a rank: settings, topology, cores, backend, devices and communicator. Opens it, and compares it
// with the other ranks.
#pragma once

#include <stdint.h>

#include "gswbench/backend.h"
#include "gswbench/comm.h"
#include "gswbench/config.h"
#include "gswbench/peak.h"
#include "gswbench/plan.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// Description of a rank, which all ranks exchange before they open a backend.
struct environment_peer {
    struct comm_topology topology;
    char                 profiler[40];    // environment variable that a profiler has set; "": none
    uint64_t             machine;         // equal for ranks on the same machine
    uint64_t             cores_hash;      // equal for ranks on the same machine with the same affinity mask
    int64_t              cores;
};

// CPU cores of a rank. Ranks with the same affinity mask share them.
struct environment_cores {
    int64_t cores, sharers;    // cores in the mask, and number of ranks with this mask
    int64_t threads;           // CPU threads of each rank with this mask
    int64_t index;             // index of this rank among the ranks with this mask
};

// The device of this rank, and the device models of the job.
struct environment_devices {
    int64_t sharers;                     // ranks that use this rank's device; 1 on the host backend
    int     kinds;                       // number of device models; 0: host backend
    char (*names)[DEVICE_NAME_BYTES];    // [kinds]
};

// A problem of the machine that was found before the run, such as different drivers on two ranks.
struct environment_note {
    const char *id;
    char        text[256];
};
struct environment_notes {
    struct environment_note *list;
    int                      count;
};

// A setting of a rank, such as NCCL_ALGO, is compared by name over all ranks. If it differs, REQUIRED fails, NOTED adds
// a note, and OWN only records the values in the result, because each rank may have its own.
enum setting_rule { SETTING_REQUIRED, SETTING_NOTED, SETTING_OWN };
struct setting_kind {
    enum setting_rule rule;
    bool              is_setting;    // messages print the setting as NAME = VALUE
    const char       *remedy;        // advice to the user, in the error; only for SETTING_REQUIRED
};

// One setting of this rank. Other ranks may not have it.
enum { SETTING_BYTES = 128, SETTING_TEXT_BYTES = 512 };
struct setting {
    char                name[64], value[SETTING_BYTES];    // value: truncated for display
    uint64_t            hash;                              // hash of the full value
    struct setting_kind kind;
};
struct setting_list {
    struct setting *rows;
    int             count;
};
void settings_free(struct setting_list *list);
void settings_print_name(char *text, size_t bytes, const char *name);    // writes a setting's name without " ="

// Adds the environment variables of this process that are on gswbench's allow-list, and the variables in NCCL's
// configuration files. These are the file named by NCCL_CONF_FILE, or ~/.nccl.conf without it, and /etc/nccl.conf.
void settings_collect_variables(struct setting_list *list);

struct rank_environment {
    struct comm               *comm;     // &nccl if NCCL is open, else the communicator from launch_ranks
    struct comm                nccl;     // ops is NULL unless NCCL is open
    struct environment_peer   *peers;    // [ranks]
    struct environment_cores   cores;
    struct backend             backend;    // ops is NULL until the backend is open
    struct environment_devices devices;
    struct environment_notes   notes;

    struct setting_list     *settings;      // this rank's settings, which were compared with the other ranks'
    struct result_deviation *deviations;    // settings that differ from rank 0's on some ranks, and these ranks
    int64_t                  deviation_count;
    // [enum gemm_origin]: number of autotuned algorithms of this origin, summed over ranks
    int64_t choice_counts[3];
    char    binding[64];    // cores of this rank, such as "8 of NUMA node 1, bound by gswbench"
};

// Compares the ranks, then opens backend, device and communicator. The environment must be zeroed. Fails if the ranks'
// configurations or backends differ, or if only some ranks write weights. own: an error of this rank, with which the
// call fails on all ranks. Collective, with the same status on every rank. Call environment_close even after an error.
status environment_open(struct rank_environment *environment, const struct config *config, bool writes_weights,
                        struct comm *comm, status own);
void   environment_close(struct rank_environment *environment);

// Returns whether this rank has its device to itself. On the host backend: whether every thread on its cores has its
// own core.
bool environment_is_alone(const struct rank_environment *environment);

// Opens the backend of the configuration with this number of CPU threads.
status environment_open_backend(struct backend *backend, const struct config *config,
                                const struct comm_topology *topology, int64_t threads);

// Returns a hash of the device model (on the host backend: processor, threads and library) and of the attention
// implementation. Ranks with equal hashes compute bit-identical results.
uint64_t environment_fingerprint(struct backend *backend);

// Counts the ranks that use this rank's device, and lists the device models of the job. Fails (EXIT_LAUNCH) if more
// than `allowed` ranks share the device. Collective, but the status may differ between ranks. The caller frees
// `names`, even after an error.
status environment_share_devices(struct environment_devices *devices, struct comm *comm, struct backend *backend,
                                 int64_t allowed);

// Opens NCCL if [run] communicator is "nccl", or if it is "auto", there are several ranks, and each has its own device.
// NCCL then uses comm to connect. Otherwise nccl->ops stays NULL. Collective, with the same status on every rank.
status environment_connect(struct comm *nccl, struct comm *comm, struct backend *backend, const struct run_config *run,
                           int64_t sharers);

// Devices and cores of this host, found without a job.
struct environment_machine {
    int     devices;    // 0: no device, so the host backend is used
    char    device[DEVICE_NAME_BYTES];
    int64_t device_bytes;    // free memory of the first device
    int     cores;
};
status environment_find_machine(struct environment_machine *machine);

// Checks that all processes run the same build of this program. Collective. Call it before other collectives, because
// builds differ in the structs that they exchange.
status peers_check_program(struct comm *comm);

// Finds the cores and CPU threads of this rank, and the ranks that share its cores. requested_threads 0: divides the
// cores evenly among these ranks.
struct environment_cores peers_share_cores(const struct environment_peer *peers, const struct comm_topology *topology,
                                           int64_t requested_threads);

// peers_check_topology adds a note to the result if groups that should stay within a node (such as tp) span nodes.
// peers_check_profilers adds one if a profiler is attached to a rank, because its overhead changes step times.
void peers_check_topology(struct result *result, const struct environment_peer *peers);
void peers_check_profilers(struct result *result, const struct environment_peer *peers, int ranks);

// Records rank 0's attention implementation in the result. Adds a note if a rank uses the built-in kernels instead of
// cuDNN, or an implementation that differs from rank 0's. Collective.
void attention_gather(struct result *result, struct comm *comm, struct backend *backend);

// Prepares the ops of the plan like step_prepare. For each distinct GEMM or attention op, only one rank times the
// algorithms, and the other ranks use its choice. Adds a note if a rank's library refuses the choice. conditions: enum
// run_conditions. Collective, with the same status on every rank.
status choices_prepare(const struct plan *plan, struct rank_environment *environment, int64_t conditions);

// Adds a note if NCCL's CTAs may occupy all SMs, so that none is left to compute. Collective, with the same status on
// every rank.
status environment_check_processors(struct rank_environment *environment, const struct plan *plan,
                                    const struct run_config *run);
