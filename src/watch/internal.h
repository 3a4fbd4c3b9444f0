// SPDX-License-Identifier: MIT
// What ranks show of themselves, and what follows from it.
#ifndef GSWBENCH_WATCH_INTERNAL_H
#define GSWBENCH_WATCH_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "gswbench/watch.h"

// What a lane does as far as others can tell: a transfer that it is in, with whom.
struct lane_post {
    int32_t  op;      // in the list of its rank, the last that it began; -1: none
    uint32_t axes;    // of the transfer's group; 0: it is in none
    uint32_t mark;    // of what kind and how much it moves
    int32_t  peer;    // the rank that it sends to or receives from; -1: all of the group
};

// What is known of a rank when nothing moves.
struct post {
    int32_t          rank, pid;
    int32_t          phase;    // enum watch_phase
    int64_t          step;
    double           still;    // seconds in which nothing of it moved
    double           age;      // seconds since its own thread looked
    char             state;    // of the process, as /proc has it: R, S, T, ...; '-': it is gone; '?': not known
    char             host[64];
    char             where[160];    // in words, as its own thread last saw it
    struct lane_post lanes[LANE_COUNT];
};

// A rank's place in the shared memory of its host: the first part is written by the step itself.
struct shown {
    struct step_progress progress;
    atomic_int           phase;
    atomic_llong         step;
    _Atomic double       moved;    // when its thread last saw it move, and when it last looked, by the host's clock
    _Atomic double       looked;
    _Atomic double       excused;    // when another rank last moved a file, while this one waited
    atomic_int           pid, rank;
    atomic_uint          axes[LANE_COUNT], marks[LANE_COUNT];
    atomic_int           peers[LANE_COUNT];
    _Atomic char         where[160];
};

// The memory of all ranks of a host.
struct board {
    atomic_int   speaker;    // the first of them that noticed, + 1; 0: none has
    atomic_int   verdict;    // it has spoken: all end
    atomic_int   called;     // nothing moves on another host
    atomic_uint  excuses;    // how often a speaker has found that nothing hangs
    atomic_int   signal;     // that a rank of them caught; 0: none
    struct shown ranks[];    // [local ranks]
};

// board.c: of this host, zeroed, shared by its ranks. Collective.
status board_open(struct board **board, struct comm *comm);
void   board_close(struct board *board, const struct comm_place *place);

// post.c: what a place of the board says now. Of this rank's plan, what the op of a lane waits for, and where it is.
void post_read(struct post *post, const struct shown *shown, const char *host);
void post_show(struct shown *shown, const struct plan *plan);
// Likewise of a part, in these words, and of the plan that it runs; NULL: none.
void post_show_part(struct shown *shown, const struct plan *plan, const char *words);
// "step 7, op 12 all_gather ...", of any rank, beside one with this plan: ranks of its stage have the same ops. NULL:
// as the rank itself has said.
void post_name_place(const struct post *post, const struct plan *plan, char *text, size_t bytes);

// The op of its list that a rank is at: of the transfers that it is in the furthest, else what it computes; -1: none
// yet.
int32_t post_op(const struct post *post);

// blame.c: why a rank is the one that holds up the others.
enum blame {
    BLAME_GONE,       // its process is no more
    BLAME_STOPPED,    // its process is stopped
    BLAME_DEAF,       // its own watch does not look any more
    BLAME_SILENT,     // nobody of its host answers
    BLAME_AWAITED,    // others wait for it, it waits for nobody
    BLAME_NOBODY,     // all wait for each other
};
// The rank to blame among posts [count], of this mesh; posts[*index] is it, and so many others wait.
enum blame blame_find(const struct post *posts, int64_t count, const struct mesh *mesh, int64_t *index,
                      int64_t *waiting);

// The watch of a rank.
struct channel;
enum { WATCH_STEPS = 15 };
struct watch {
    struct watch_setup setup;
    struct board      *board;
    struct shown      *shown;      // of this rank
    struct channel    *channel;    // to other hosts; NULL: there are none
    pthread_t          thread;
    pthread_mutex_t    mutex;
    pthread_cond_t     closes;
    bool               is_closing;
    _Atomic double     limit;
    atomic_bool        is_claimed;            // who writes the result
    double             caught;                // when a signal was seen; 0: none was
    atomic_uint        pieces;                // of files, that have moved
    atomic_uint        beats;                 // of work that no op shows
    const struct plan *part;                  // that runs beside the steps of setup.plan; NULL: none
    char               words[160];            // what ranks do then; "": they run steps
    char               file[160];             // where it is, in the phase of files
    double             steps[WATCH_STEPS];    // seconds of the latest
    int64_t            learnt;
};

// watch.c: the plan by whose ops ranks are named; NULL: they run other ones.
const struct plan *watch_named_plan(const struct watch *watch);

// alarm.c: answers what other hosts' watches ask; and ends the process, after the rank that holds up the others was
// named by one of all. It comes back where some rank's file moves.
void alarm_answer(struct watch *watch);
void alarm_end_job(struct watch *watch);

// watch.c: the seconds in which something of a rank has to move in that phase.
double watch_limit(const struct watch *watch, int phase);

#endif
