// SPDX-License-Identifier: MIT
// Shared by the files of this folder, which check ranks and machine before a run. All ranks of the job must call a
// function that is marked Collective.
#pragma once

#include "gswbench/environment.h"
#include "gswbench/plan.h"

// environment.c: environment_note adds a note. For environment_note_ranks each rank gives a text ("": none); the note
// has the first text, its rank and host, and the number of ranks with a text. Collective.
enum { NOTE_TEXT_BYTES = 160 };
void environment_note(struct environment_notes *notes, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void environment_note_ranks(struct environment_notes *notes, const char *id, struct comm *comm, const char *own);

// Fails on the first note if conditions is CONDITIONS_ERROR.
status environment_check_notes(const struct environment_notes *notes, int64_t conditions);

// connect.c: notes that NCCL will use sockets although InfiniBand is present or requested. Collective.
void environment_check_network(struct rank_environment *environment, struct comm *comm);

// Fails if ranks run different jobs; other differences are notes. Collective, with the same status on every rank.
status peers_check_job(struct rank_environment *environment, const struct config *config, bool writes_weights,
                       struct comm *comm);

// Gathers all peers (the caller frees them), and notes local ranks that differ from the launcher's. Collective.
void peers_meet(struct rank_environment *environment, struct comm *comm);

// Compares libraries, driver and devices of the open backends.
status peers_compare_backends(struct rank_environment *environment, const struct run_config *run, struct comm *comm);

// devices.c: PCI id of the device that environment_open_backend selects; "": none.
void environment_locate_device(const struct config *config, const struct comm_topology *topology, char *text,
                               size_t bytes);

// devices.c: reads the first line of a file; false if there is none.
bool environment_read_line(const char *path, char *line, int bytes);

// Binds an unbound rank to its device's NUMA node, and notes ranks bound elsewhere. Collective.
void environment_bind(struct rank_environment *environment, const struct config *config, struct comm *comm);

// variables.c: environment variables on an allow-list, and those in NCCL's configuration files.
// Adds listed variables ("NAME=VALUE", NULL-terminated), each once.
void variables_add(struct setting_list *list, char *const *variables);

// Adds the hash of an NCCL configuration file, if it exists, and its variables, except those that are set already.
void variables_add_file(struct setting_list *list, const char *path);

// Explains why NCCL will use sockets although InfiniBand or RoCE is present or requested; "" if it will not, or if a
// network plugin decides. root: prefix of /sys and /dev; verbs: the library that NCCL loads.
void network_explain_sockets(char *text, size_t bytes, const char *root, const char *verbs);

// settings.c: consistency check, which compares named values between ranks.
void settings_add(struct setting_list *list, const struct setting_kind *kind, const char *name, const char *value);

// Fails (EXIT_LAUNCH) at the first setting that must be equal and is not. Adds notes, and the ranks that differ from
// rank 0, to the environment. Collective, with the same status on every rank.
status settings_compare(const struct setting_list *list, struct comm *comm, struct rank_environment *environment);

// Describes a mismatch: "rank 3 on h2 has NAME this, 7 of 8 ranks, such as 0 on h1, that".
struct rank_value {
    char    host[64], value[SETTING_BYTES];
    char    name[64], remedy[96];    // "": missing on the rank
    int64_t rule;
};
void mismatch_describe(char *text, size_t bytes, const char *name, const struct rank_value *values, int ranks);
