// SPDX-License-Identifier: MIT
// Notices that a run no longer moves, finds the rank that holds up the others, and ends the job. A thread of each rank
// looks at what the rank itself has done; ranks of a host see each other through shared memory, which no library that
// may hang has a part in.
#ifndef GSWBENCH_WATCH_H
#define GSWBENCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

// Where a rank is in the run, in this order.
enum watch_phase {
    WATCH_OPENING,    // before the first step, and that step: memory, communicators, algorithms
    WATCH_STEP,
    WATCH_BETWEEN,    // after a step, where ranks tell each other of it
    WATCH_CLOSING,    // traces, weights, files
    WATCH_FILE,       // between steps, at a file of a checkpoint
    WATCH_FILES,      // likewise, where it waits for others' files
};

struct watch_setup {
    struct comm       *comm;
    const struct plan *plan;
    double             seconds;    // in which something has to move; 0: ten times the median step, 60 at least

    // The signal that asks the process to end soon, 0 where none has come; and whether the state of all ranks is asked
    // for, which is told once.
    int (*caught)(void);
    bool (*is_asked)(void);
    // Ends the process with what is known, when a step takes longer than so many seconds after a signal to a rank of
    // this host: launchers do not wait. NULL: this rank does not; 0 seconds: 0.4.
    void (*leave)(void *context, int signal);
    void  *context;
    double grace;
};
struct watch;

// Collective. A host without shared memory is an error (EXIT_LAUNCH).
status watch_open(struct watch **watch, const struct watch_setup *setup);
void   watch_close(struct watch *watch);

// For step_set_progress.
struct step_progress *watch_progress(struct watch *watch);

// The rank goes over to a phase of that step.
void watch_enter(struct watch *watch, enum watch_phase phase, int64_t step);
// Likewise where ranks do something else than steps of one plan: words say what. WATCH_STEP: it does so, and waits in
// transfers of this plan alone, of groups of the mesh or of two; NULL: in none. WATCH_BETWEEN: it waits for all others,
// which come there, too; every rank has as many of these. The plan stays until the next call.
void watch_enter_part(struct watch *watch, enum watch_phase phase, const struct plan *plan, const char *words);
// The rank is at a file of a checkpoint, from now on or again: bytes move (watch_move, by any thread), and as long as
// any of the job's do, nothing hangs. NULL: it waits for all others. The step stays. What moves while the rank is
// elsewhere says nothing of it.
void watch_enter_file(struct watch *watch, const char *path);
void watch_move(struct watch *watch);
// The rank goes on with what no op shows.
void watch_beat(struct watch *watch);
// A step took so long, which the limit follows where it is automatic.
void watch_learn(struct watch *watch, double seconds);

// Whether the caller may write the result, and leave will not any more; called where the steps end.
bool watch_claim_end(struct watch *watch);

#endif
