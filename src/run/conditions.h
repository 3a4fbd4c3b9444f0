// SPDX-License-Identifier: MIT
// What is found out about ranks and their machine before a run: what they agree on, and what is noted.
#ifndef GSWBENCH_RUN_CONDITIONS_H
#define GSWBENCH_RUN_CONDITIONS_H

#include "gswbench/place.h"
#include "gswbench/plan.h"

// place.c: place_agree, and which rank is the first that failed; -1: none.
status place_agree_first(struct comm *comm, status own, int *first);

// place_notes.c: a note of a place. note_ranks: of what some ranks say of themselves ("": nothing), by the first of
// them, its host and how many they are. Collective.
enum { PLACE_VOICE_BYTES = 160 };
void place_note(struct place_notes *notes, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void place_note_ranks(struct place_notes *notes, const char *id, struct comm *comm, const char *own);

// place.c: fails where the user wants no notes (enum run_conditions), and there is one.
status place_check_notes(const struct place_notes *notes, int64_t conditions);

// choices.c: step_prepare on all ranks, where each takes what one has chosen by timing; what differs all the same is
// noted. choices_share: of a plan that is not the job's, without a note. Collective; every rank returns the same.
status choices_share(const struct plan *plan, struct place *place);
status choices_prepare(const struct plan *plan, struct place *place, int64_t conditions);

// connect.c: notes where NCCL will go to other hosts by sockets, though InfiniBand is there or was asked for.
// Collective.
void place_check_network(struct place *place, struct comm *comm);

// connect.c: notes where transfers over NCCL may leave a device nothing to compute with. Collective; every rank returns
// the same.
status place_check_processors(struct place *place, const struct plan *plan, const struct run_config *run);

// peers.c: whether all processes run one program. Collective, and before all else: other programs know other structs.
status peers_check_program(struct comm *comm);

// Fails when one of the ranks runs another job. What else differs is added to the place's notes. Collective; every rank
// returns the same.
status peers_check_job(struct place *place, const struct config *config, bool writes_weights, struct comm *comm);

// Gathers all ranks, in a list that the caller frees, and notes who is another local rank to the launcher. Collective.
void peers_meet(struct place *place, struct comm *comm);

// What decides how ranks compute and is alike on them: of the backend, when it is open.
status peers_compare_backends(struct place *place, const struct run_config *run, struct comm *comm);

// How many cores this rank has for itself.
struct place_cores peers_share_cores(const struct place_peer *peers, const struct comm_place *place,
                                     int64_t requested_threads);

// devices.c: the PCI id of the device that place_open_backend would take; "" for none.
void place_locate_device(const struct config *config, const struct comm_place *place, char *text, size_t bytes);

// binding.c: binds a rank that its launcher left unbound to the cores beside its device, and notes who is bound
// elsewhere. Collective.
void place_bind(struct place *place, const struct config *config, struct comm *comm);

#endif
