// SPDX-License-Identifier: MIT
// Shared by the files of the watchdog: the state that ranks publish, the search for the rank that blocks the others,
// and messages between hosts.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "gswbench/watch.h"

// Communication on a stream, as other ranks see it.
struct stream_slot {
    int32_t  op;      // list index of the last started op; -1: none
    uint32_t axes;    // axes of the op's group; 0: not in a communication op
    uint32_t mark;    // identifies its kind and size
    int32_t  peer;    // rank that it sends to or receives from; -1: the whole group
};

enum { SHOWN_BYTES = 160 };    // of a description

// State of a rank during a hang.
struct slot {
    int32_t            rank, pid;
    int32_t            phase;    // enum watch_phase
    int64_t            step;
    double             still;    // seconds without progress
    double             age;      // seconds since its watchdog last polled
    char               state;    // process state from /proc (R, S, T, ...); '-': gone; '?': unknown
    char               host[64];
    char               where[SHOWN_BYTES];    // description, as of its last poll
    struct stream_slot streams[STREAM_COUNT];
};

// A rank's slot in the shared memory of its host. The step itself writes progress.
struct shown {
    struct step_progress progress;
    atomic_int           phase;
    atomic_llong         step;
    _Atomic double       moved;    // times on the host's clock: last progress, and last poll
    _Atomic double       looked;
    _Atomic double       excused;    // 0, or a time that counts as progress, because files of other ranks grow
    atomic_int           pid, rank;
    atomic_uint          axes[STREAM_COUNT], marks[STREAM_COUNT];
    atomic_int           peers[STREAM_COUNT];
    _Atomic char         where[SHOWN_BYTES];
};

// Shared memory of a host's ranks.
struct segment {
    atomic_int  leader;     // local rank of the leader, plus 1; 0: none
    atomic_int  verdict;    // 1: the hang has been reported, and all ranks exit
    atomic_int  called;     // another host reports a hang
    atomic_uint excuses;    // how often a leader has found that nothing hangs
    atomic_int  signal;     // signal that a rank of this host caught; 0: none

    // The first damage that a rank of this host found, or that rank 0 was told of.
    atomic_int   damage;    // 0: none; 1: being written; 2: set
    atomic_int   damaged_rank;
    atomic_llong damaged_step;
    _Atomic char damage_text[SHOWN_BYTES];

    struct shown ranks[];    // [local ranks]
};

// segment.c: opens zeroed shared memory. Collective.
status segment_open(struct segment **segment, struct comm *comm);
void   segment_close(struct segment *segment, const struct comm_topology *topology);

// segment.c: damage is a number with which a step cannot continue. damage_note records it unless there is one already.
// damage_look runs on every poll: rank 0 ends the job with a result; a rank on another host tells rank 0 first. A step
// calls damage_found (context: a watch) when it finds damage.
void damage_note(struct segment *segment, int rank, int64_t step, const char *text);
void damage_look(struct watch *watch);
void damage_found(void *watch, int rank, const char *text);

// segment.c: copy a text to and from shared memory, which its rank may change meanwhile.
void shown_text_write(_Atomic char to[SHOWN_BYTES], const char from[SHOWN_BYTES]);
void shown_text_read(char to[SHOWN_BYTES], const _Atomic char from[SHOWN_BYTES]);

// slot_read reads a slot. slot_show publishes this rank's communication and position.
void slot_read(struct slot *slot, const struct shown *shown, const char *host);
void slot_show(struct shown *shown, const struct plan *plan);
// Like slot_show, for work other than steps, with its description and plan; plan NULL: none.
void slot_show_part(struct shown *shown, const struct plan *plan, const char *words);
// Describes a rank's position, such as "step 7, op 12 all_gather ...". plan, this rank's, names the ops of ranks on its
// pipeline stage. For other ranks, or if plan is NULL, it copies the text that the rank published.
void slot_name_place(const struct slot *slot, const struct plan *plan, char *text, size_t bytes);

// List index of the op that a rank is in: the last communication op if any, else the compute op; -1: none.
int32_t slot_op(const struct slot *slot);

// blame.c: why a rank blocks the others.
enum blame {
    BLAME_GONE,
    BLAME_STOPPED,
    BLAME_DEAF,       // its watchdog no longer polls
    BLAME_SILENT,     // no rank of its host answers
    BLAME_AWAITED,    // others wait for it, and it waits for none
    BLAME_NOBODY,     // unknown: some ranks have not answered, and each awaited rank waits for another rank
};
// Finds the rank to blame, slots[*index], among slots [count]. Sets *waiting to the number of others that wait.
enum blame blame_find(const struct slot *slots, int64_t count, const struct mesh *mesh, int64_t *index,
                      int64_t *waiting);

// channel.c: messages between the watchdogs of different hosts.
enum datagram_kind {
    DATAGRAM_ASK,        // asks for the state of the host's ranks
    DATAGRAM_ANSWER,     // the answer
    DATAGRAM_HANG,       // reports a hang and asks the host to investigate
    DATAGRAM_VERDICT,    // the hang has been reported: exit
    DATAGRAM_DAMAGE,     // to rank 0: rank and step of the first slot cannot continue, for the reason in its text
};
enum { DATAGRAM_SLOTS = 60000 / sizeof(struct slot) };    // limit of a datagram

struct datagram {
    int32_t     kind;    // enum datagram_kind
    int32_t     from;    // sending rank
    int32_t     count;
    struct slot slots[DATAGRAM_SLOTS];    // [count]
};

// Collective.
struct channel *channel_open(struct comm *comm);
void            channel_close(struct channel *channel);
// The message may be lost. Fills in from.
void channel_send(struct channel *channel, int rank, struct datagram *datagram);
int  channel_node(const struct channel *channel, int rank);
int  channel_local_rank(const struct channel *channel, int rank);
// Returns the next message; false if there is none.
bool channel_receive(struct channel *channel, struct datagram *datagram);

enum { WATCH_STEPS = 15 };
struct watch {
    struct watch_setup setup;
    struct segment    *segment;
    struct shown      *shown;
    struct channel    *channel;    // NULL: only one host
    pthread_t          thread;
    pthread_mutex_t    mutex;
    pthread_cond_t     closes;
    bool               is_closing;
    _Atomic double     limit;
    atomic_bool        is_claimed;            // a writer of the result has been chosen
    double             caught;                // when a signal was seen; 0: none
    atomic_uint        pieces;                // pieces of files moved
    atomic_uint        beats;                 // calls of watch_beat
    const struct plan *part;                  // plan of other work than setup.plan's steps; NULL: none
    char               words[SHOWN_BYTES];    // description of that work; "": steps
    char               file[SHOWN_BYTES];     // description of the file, in the file phases
    double             steps[WATCH_STEPS];    // seconds of the latest steps
    int64_t            learnt;
};

// watch.c: the plan that names the ranks' ops; NULL: the ranks run other work.
const struct plan *watch_named_plan(const struct watch *watch);

// alarm.c: alarm_answer handles messages of other hosts; roll collects the answers to this rank's question, NULL if it
// has not asked. alarm_end_job ends the process once a rank of the job has reported the rank to blame. It returns only
// if a checkpoint file is still being read or written.
struct roll;
void alarm_answer(struct watch *watch, struct roll *roll);
void alarm_end_job(struct watch *watch);

// watch.c: maximum seconds without progress in a phase.
double watch_limit(const struct watch *watch, int phase);
