// SPDX-License-Identifier: MIT
// Checks of ranks and machine before a run.
#ifndef GSWBENCH_RUN_CONDITIONS_H
#define GSWBENCH_RUN_CONDITIONS_H

#include "gswbench/place.h"
#include "gswbench/plan.h"

// place.c: place_agree with the first failed rank; -1: none.
status place_agree_first(struct comm *comm, status own, int *first);

// place_notes.c: adds a note. note_ranks: adds the first nonempty text of the ranks, with its rank and host and their
// number. Collective.
enum { PLACE_VOICE_BYTES = 160 };
void place_note(struct place_notes *notes, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void place_note_ranks(struct place_notes *notes, const char *id, struct comm *comm, const char *own);

// place.c: fails on the first note if conditions is CONDITIONS_ERROR.
status place_check_notes(const struct place_notes *notes, int64_t conditions);

// choices.c: step_prepare where each algorithm is selected by one rank and shared. choices_prepare notes ranks that
// still differ; choices_share is for plans other than the job's. Collective, with the same status on every rank.
status choices_share(const struct plan *plan, struct place *place);
status choices_prepare(const struct plan *plan, struct place *place, int64_t conditions);

// connect.c: notes that NCCL will use sockets although InfiniBand is present or requested. Collective.
void place_check_network(struct place *place, struct comm *comm);

// connect.c: notes that NCCL's CTAs may leave no SMs for compute. Collective, with the same status on every rank.
status place_check_processors(struct place *place, const struct plan *plan, const struct run_config *run);

// peers.c: checks that all processes run the same build. Collective, and first: other builds exchange other structs.
status peers_check_program(struct comm *comm);

// Fails if ranks run different jobs; other differences are notes. Collective, with the same status on every rank.
status peers_check_job(struct place *place, const struct config *config, bool writes_weights, struct comm *comm);

// Gathers all peers (the caller frees them), and notes local ranks that differ from the launcher's. Collective.
void peers_meet(struct place *place, struct comm *comm);

// Compares libraries, driver and devices of the open backends.
status peers_compare_backends(struct place *place, const struct run_config *run, struct comm *comm);

// Cores and threads of this rank, and the ranks that share them.
struct place_cores peers_share_cores(const struct place_peer *peers, const struct comm_place *place,
                                     int64_t requested_threads);

// devices.c: PCI id of the device that place_open_backend selects; "": none.
void place_locate_device(const struct config *config, const struct comm_place *place, char *text, size_t bytes);

// binding.c: binds an unbound rank to its device's NUMA node, and notes ranks bound elsewhere. Collective.
void place_bind(struct place *place, const struct config *config, struct comm *comm);

#endif
