// SPDX-License-Identifier: MIT
// Shared by the files of this folder, which check ranks and machine before a run. If a function is marked Collective,
// all ranks of the job must call it.
#pragma once

#include "gswbench/environment.h"
#include "gswbench/plan.h"

// environment.c: a note is a problem of the machine, which by default does not stop the run. environment_note adds one.
// environment_note_ranks gathers a text from each rank ("": no problem). If there are problems, it adds one note with
// the text of the first affected rank and the number of affected ranks. Collective.
enum { NOTE_TEXT_BYTES = 160 };
void environment_note(struct environment_notes *notes, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void environment_note_ranks(struct environment_notes *notes, const char *id, struct comm *comm, const char *own);

// Fails with the first note if `conditions`, the value of [run] conditions, is CONDITIONS_ERROR.
status environment_check_notes(const struct environment_notes *notes, int64_t conditions);

// connect.c: adds a note if NCCL will use sockets although InfiniBand is present or requested. Collective.
void environment_check_network(struct rank_environment *environment, struct comm *comm);

// peers.c: compares the configuration and the environment variables between ranks. Fails if a setting differs that must
// be equal; other differences become notes. Collective, with the same status on every rank.
status peers_check_job(struct rank_environment *environment, const struct config *config, bool writes_weights,
                       struct comm *comm);

// peers.c: fails on all ranks if the ranks' values are not equal, and names a rank that differs. reason: why this rank
// has its value; "": no reason. Collective.
status peers_require_equal(struct comm *comm, const char *name, const char *value, const char *reason,
                           const char *remedy);

// peers.c: gathers environment->peers from all ranks; the caller frees it. Adds a note if a rank's local rank differs
// from the launcher's. Collective.
void peers_meet(struct rank_environment *environment, struct comm *comm);

// peers.c: compares libraries, driver and devices between ranks after their backends are open. Collective.
status peers_compare_backends(struct rank_environment *environment, const struct run_config *run, struct comm *comm);

// peers.c: finds the driver version, which is the first word of a line that starts with a digit: "NVRM version: NVIDIA
// UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5 ...". Sets text to "" without such a word.
void peers_find_driver(char *text, size_t bytes, const char *line);

// devices.c: finds the PCI id of the device that environment_open_backend will select; "": no device.
void environment_locate_device(const struct config *config, const struct comm_topology *topology, char *text,
                               size_t bytes);

// devices.c: reads the first line of a file. Returns false if the file cannot be read.
bool environment_read_line(const char *path, char *line, int bytes);

// devices.c: binds a rank to the cores of its device's NUMA node, unless the launcher has bound it. Adds a note if a
// rank is bound to another node. Collective.
void environment_bind(struct rank_environment *environment, const struct config *config, struct comm *comm);

// variables.c: collects environment variables that are on an allow-list, also from NCCL's configuration files.
// variables_add adds those in an array of "NAME=VALUE" that ends with NULL, unless the list already has the name.
void variables_add(struct setting_list *list, char *const *variables);

// Adds the hash of an NCCL configuration file, and the variables that it sets. Variables that the list already has keep
// their value. A missing file is ignored.
void variables_add_file(struct setting_list *list, const char *path);

// connect.c: explains why NCCL will use sockets although InfiniBand or RoCE is present or requested. Sets text to "" if
// this is not so, or if a network plugin decides. root: prefix of /sys and /dev, "" except in tests; verbs: name of the
// InfiniBand library that NCCL loads.
void network_explain_sockets(char *text, size_t bytes, const char *root, const char *verbs);

// settings.c: adds a named value of this rank, which settings_compare then compares with the other ranks' values.
void settings_add(struct setting_list *list, const struct setting_kind *kind, const char *name, const char *value);

// Compares a list of settings over all ranks. Fails (EXIT_LAUNCH) at the first setting that differs but must be equal.
// For other differences it adds notes, and the ranks that differ from rank 0, to the environment. Collective, with the
// same status on every rank.
status settings_compare(const struct setting_list *list, struct comm *comm, struct rank_environment *environment);

// One rank's value of a setting. mismatch_describe describes how ranks differ: "rank 3 on h2 has NCCL_ALGO Ring, 7 of 8
// ranks, such as 0 on h1, Tree". values: [ranks].
struct rank_value {
    char    host[64], value[SETTING_BYTES];
    char    name[64], remedy[200];    // name: "" if the rank does not have the setting
    int64_t rule;
};
void mismatch_describe(char *text, size_t bytes, const char *name, const struct rank_value *values, int ranks);
