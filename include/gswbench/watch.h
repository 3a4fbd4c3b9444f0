// SPDX-License-Identifier: MIT
// Watchdog: detects that the job hangs, names the rank that blocks the others, and ends the job. Each rank has a
// watchdog thread. Ranks of a host share their progress in memory, without a library that may itself hang.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

// Phase of a rank. WATCH_STEP and WATCH_BETWEEN alternate. In all other phases the time limit is ten times as long.
enum watch_phase {
    WATCH_OPENING,    // setup and first step, in which memory is allocated and communicators connect
    WATCH_STEP,
    WATCH_BETWEEN,    // after a step: waiting for all ranks in MPI collectives
    WATCH_CLOSING,    // after the last step: writing traces, weights and files
    WATCH_FILE,       // between steps: reading or writing a file
    WATCH_FILES,      // between steps: waiting for files of other ranks
    WATCH_SAVING,     // between steps: saving a checkpoint, before or after its files
};

struct watch_setup {
    struct comm       *comm;
    const struct plan *plan;
    double             seconds;    // time limit in seconds without progress; 0: ten median steps, at least 60 s

    // caught: returns the signal that asks the process to end, or 0. is_asked: returns true once after each request to
    // print the state of every rank.
    int (*caught)(void);
    bool (*is_asked)(void);
    bool (*has_lost_launcher)(void);    // true if the launcher has ended, so that this process must end within 2 s
    // Saves the results so far and ends the process, because launchers kill it soon. The watchdog calls it if a step
    // runs on for `grace` seconds (0: 0.4 s) after a rank of this host got a signal. It also calls it, with signal 0,
    // when the launcher has ended. NULL: not on this rank.
    void (*leave)(void *context, int signal);
    // Ends the process with an INVALID result. The watchdog calls it when a rank has found a value with which its step
    // cannot continue. NULL: not on this rank.
    void (*invalidate)(void *context, int rank, int64_t step, const char *what);
    void  *context;    // first argument of leave and invalidate
    double grace;
};
struct watch;

// Starts the watchdog of a rank. Fails (EXIT_LAUNCH) if the host has no shared memory. Collective.
status watch_open(struct watch **watch, const struct watch_setup *setup);
// Accepts NULL (the watchdog is off), like the functions below except watch_progress and watch_claim_end.
void watch_close(struct watch *watch);

// Returns the progress counters for step_set_progress.
struct step_progress *watch_progress(struct watch *watch);

// Tells the watchdog that this rank enters a phase of this step. All ranks enter the same phases in the same order,
// except WATCH_FILE. So if a rank has entered fewer phases than other ranks, the others wait for this rank.
void watch_enter(struct watch *watch, enum watch_phase phase, int64_t step);
// Tells the watchdog about work outside the job's steps, which `words` describe. WATCH_STEP: the rank works, and waits
// for other ranks only in communication ops of `plan` (NULL: it has none), whose groups are groups of the mesh or any
// two ranks. WATCH_BETWEEN: the rank waits for all other ranks; every rank calls this equally often. The plan must stay
// valid until the next call.
void watch_enter_part(struct watch *watch, enum watch_phase phase, const struct plan *plan, const char *words);
// watch_enter_file: the rank starts to read or write the file at path; path NULL: it now waits for files of
// other ranks. watch_move: a thread of the rank has read or written some bytes. They count as progress only in
// WATCH_FILE. While any rank of the job reads or writes, the watchdog does not report a hang.
void watch_enter_file(struct watch *watch, const char *path);
void watch_move(struct watch *watch);
// Tells the watchdog about progress outside of ops.
void watch_beat(struct watch *watch);
// Tells the watchdog the duration of a step, from which it derives the automatic time limit.
void watch_learn(struct watch *watch, double seconds);

// Called after the last step. Returns whether the caller may write the result; after that the watchdog never calls
// leave.
bool watch_claim_end(struct watch *watch);
