// SPDX-License-Identifier: MIT
// Watchdog: detects a hang, names the rank that blocks the others, and ends the job. Each rank has a watchdog thread.
// Ranks of a host share their progress through shared memory, without any library that may hang.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

// Position of a rank in the run, in this order.
enum watch_phase {
    WATCH_OPENING,    // setup and the first step: memory, communicators, algorithms
    WATCH_STEP,
    WATCH_BETWEEN,    // after a step, in its collectives of the control plane
    WATCH_CLOSING,    // traces, weights, files
    WATCH_FILE,       // between steps, reading or writing a checkpoint file
    WATCH_FILES,      // between steps, waiting for other ranks' files
};

struct watch_setup {
    struct comm       *comm;
    const struct plan *plan;
    double             seconds;    // maximum time without progress, s; 0: ten median steps, at least 60 s

    // caught returns the signal that asks the process to end, or 0. is_asked returns whether to print every rank's
    // state, once per request.
    int (*caught)(void);
    bool (*is_asked)(void);
    bool (*has_lost_launcher)(void);    // true: the process ends within two seconds
    // Saves the results so far and ends the process, because launchers do not wait. Called if a step runs longer than
    // grace seconds (0: 0.4 s) after a signal to any rank of this host, or at once, with signal 0, when the launcher
    // has ended. NULL: not on this rank.
    void (*leave)(void *context, int signal);
    // Ends the process after a rank has found a damaged number with which its step cannot continue (DAMAGE). NULL: not
    // on this rank.
    void (*invalidate)(void *context, int rank, int64_t step, const char *what);
    void  *context;    // of leave and invalidate
    double grace;
};
struct watch;

// Collective. Fails with EXIT_LAUNCH if the host has no shared memory.
status watch_open(struct watch **watch, const struct watch_setup *setup);
void   watch_close(struct watch *watch);

// Progress counters for step_set_progress.
struct step_progress *watch_progress(struct watch *watch);

// Enters a phase of a step.
void watch_enter(struct watch *watch, enum watch_phase phase, int64_t step);
// Enters a phase of work outside the job's steps, which words describe. WATCH_STEP: the rank works, and waits only in
// communication ops of `plan` (NULL: none), in groups of the mesh or of two ranks. WATCH_BETWEEN: the rank waits for
// all others; every rank enters it equally often. The plan must stay valid until the next call.
void watch_enter_part(struct watch *watch, enum watch_phase phase, const struct plan *plan, const char *words);
// watch_enter_file: the rank reads or writes the checkpoint file at path; path NULL: it waits for other ranks' files.
// watch_move: some bytes have moved, on any thread; it counts as progress only in WATCH_FILE. While any rank of the job
// moves bytes, the job does not count as hung.
void watch_enter_file(struct watch *watch, const char *path);
void watch_move(struct watch *watch);
// Reports progress that no op shows.
void watch_beat(struct watch *watch);
// Reports the seconds of a step, for the automatic limit.
void watch_learn(struct watch *watch, double seconds);

// Called at the end of the steps. Returns whether the caller may write the result; leave then no longer will.
bool watch_claim_end(struct watch *watch);
