// SPDX-License-Identifier: MIT
// Shared by the files of the watchdog: the state that each rank publishes in shared memory, the search for the rank
// that blocks the others, and messages between hosts.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "gswbench/watch.h"

// A copy of the state of one stream of a rank. The last three fields describe the communication op in progress, as the
// rank's watchdog saw it at its last poll.
struct stream_slot {
    int32_t  op;      // index in the plan of the last op that was started, of any kind; -1: none
    uint32_t axes;    // mesh axes of the op's group; 0: no communication op is in progress
    uint32_t mark;    // hash of the op's kind and size
    int32_t  peer;    // the only rank with which the op exchanges data; -1: all ranks of the group
};

// The pipeline sends to another rank, and receives from it, that a rank has started in this step. Counted only while
// the rank makes no progress, else 0.
struct messages {
    int32_t peer, sent, received;
};

enum {
    SHOWN_BYTES = 160,    // size of a description
    NEIGHBOURS  = 2       // maximum number of pipeline stages with which a stage exchanges data
};

// A copy of a rank's state, which is searched for the cause of a hang.
struct slot {
    int32_t rank, pid;
    int32_t phase;    // enum watch_phase
    int64_t step;
    int64_t phases;    // number of phases entered so far, without WATCH_FILE
    double  still;     // seconds without progress
    double  age;       // seconds since its watchdog last polled
    char    state;     // state letter of its process in /proc (R, S, T, ...); '-': it has ended; '?': unknown
    char    host[64];
    char    where[SHOWN_BYTES];    // op or phase in words, from the last poll of its watchdog
    // Ranks with the same nonzero value enqueue the same ops on their devices, in the order of the plan. 1 + pipeline
    // stage: the job's own plan. -1: other work, the same on all ranks. 0: the communicator enqueues no ops, but
    // blocks the host.
    int32_t            sequence;
    struct stream_slot streams[STREAM_COUNT];
    struct messages    messages[NEIGHBOURS];
};

// The state of one rank in the shared memory of its host. The step writes progress; the rank's watchdog writes most
// other fields.
struct shown {
    struct step_progress progress;
    atomic_int           phase;
    atomic_llong         step, phases;
    _Atomic double       moved;     // time of the last progress, by clock_seconds
    _Atomic double       looked;    // time of its watchdog's last poll
    // time that counts as progress, set while another rank's file grows to extend the deadline; 0: none
    _Atomic double extended;
    atomic_int     pid, rank, sequence;
    atomic_uint    axes[STREAM_COUNT], marks[STREAM_COUNT];
    atomic_int     peers[STREAM_COUNT];
    struct {
        atomic_int peer, sent, received;
    } messages[NEIGHBOURS];
    _Atomic char where[SHOWN_BYTES];
};

// The shared memory of the ranks of one host.
struct segment {
    atomic_int  leader;        // local rank of the leader of a hang (alarm.c), plus 1; 0: none
    atomic_int  verdict;       // 1: the hang has been reported, so all ranks exit
    atomic_int  called;        // 1: another host has noticed a hang
    atomic_uint extensions;    // number of times that a leader has extended the deadlines
    atomic_int  signal;        // the signal that a rank of this host has caught; 0: none

    // The first damage (damage_note) that a rank of this host has found, or that another host has sent to rank 0.
    atomic_int   damage;    // state of the fields below. 0: no damage; 1: a rank writes them; 2: they are set
    atomic_int   damaged_rank;
    atomic_llong damaged_step;
    _Atomic char damage_text[SHOWN_BYTES];

    struct shown ranks[];    // [local ranks]
};

// segment.c: opens the shared memory of the host's ranks, filled with zeros. Collective.
status segment_open(struct segment **segment, struct comm *comm);
void   segment_close(struct segment *segment, const struct comm_topology *topology);

// segment.c: damage is a value with which a step cannot continue, such as a negative token count. damage_found records
// it; a step calls it, with a watch as context. damage_note records damage unless some is recorded already. Each poll
// calls damage_look: on rank 0's host, rank 0 ends the job with an INVALID result; on other hosts, the rank that found
// the damage tells rank 0.
void damage_note(struct segment *segment, int rank, int64_t step, const char *text);
void damage_look(struct watch *watch);
void damage_found(void *watch, int rank, const char *text);

// segment.c: copy a text to and from shared memory. A rank may write its text while another rank reads it, so a copy
// may have parts of two texts.
void shown_text_write(_Atomic char to[SHOWN_BYTES], const char from[SHOWN_BYTES]);
void shown_text_read(char to[SHOWN_BYTES], const _Atomic char from[SHOWN_BYTES]);

// slot_read copies a rank's state from shared memory. slot_show publishes the communication ops and the position of
// this rank.
void slot_read(struct slot *slot, const struct shown *shown, const char *host);
void slot_show(struct shown *shown, const struct plan *plan);
// Counts this rank's messages in its step, and publishes them; plan NULL: publishes 0.
void slot_count_messages(struct shown *shown, const struct plan *plan);
// Publishes the communication ops and the position of this rank during work outside the job's steps. words: description
// of the work; plan: the plan that it runs; NULL: none.
void slot_show_part(struct shown *shown, const struct plan *plan, const char *words);
// Returns the value of slot.sequence for a rank that enqueues this plan. plan NULL: the rank works outside the steps.
int slot_sequence(const struct plan *plan);
// Describes a rank's position, such as "step 7, op 12 all_gather ...". If the rank is on the same pipeline stage as
// this rank, it has the same ops, and `plan`, this rank's plan, names them. Otherwise, or if plan is NULL, copies the
// text that the rank has published, and adds the op's number if the text has none.
void slot_name_place(const struct slot *slot, const struct plan *plan, char *text, size_t bytes);

// Returns the plan index of the op that a rank executes; -1: none. If streams are inside of communication ops, it is
// the highest of their indices; else the compute stream's op, or the highest index that any stream has started.
int32_t slot_op(const struct slot *slot);

// blame.c: why a rank is to blame for a hang. The first reason that holds for a rank of the job is reported.
enum blame {
    BLAME_GONE,       // its process has ended
    BLAME_STOPPED,    // its process is stopped, as by SIGSTOP
    BLAME_DEAF,       // its watchdog no longer polls, so the process gets no CPU time
    BLAME_SILENT,     // no rank of its host answers
    BLAME_AWAITED,    // others wait for it, and it waits for none; if all wait in a cycle, the most advanced rank
    BLAME_NOBODY,     // not known: no rank waits for another, or the ranks that have not answered could be to blame
};
// Finds the rank to blame in slots [count], and sets *index to it. Sets *waiting to the number of other ranks that
// wait.
enum blame blame_find(const struct slot *slots, int64_t count, const struct mesh *mesh, int64_t *index,
                      int64_t *waiting);

// channel.c: messages between the watchdogs of different hosts.
enum datagram_kind {
    DATAGRAM_ASK,        // asks for the states of the host's ranks
    DATAGRAM_ANSWER,     // the states of the host's ranks
    DATAGRAM_HANG,       // a host has noticed a hang; the receiver searches for its cause, too
    DATAGRAM_VERDICT,    // the hang has been reported: all ranks exit
    DATAGRAM_DAMAGE,     // to rank 0: a rank found damage. slots[0] has the rank, the step, and a text in `where`
};
enum { DATAGRAM_SLOTS = 60000 / sizeof(struct slot) };    // maximum slots of a message, whose size UDP limits

struct datagram {
    int32_t     kind;    // enum datagram_kind
    int32_t     from;    // sending rank
    int32_t     count;
    struct slot slots[DATAGRAM_SLOTS];    // [count]
};

// Opens the socket of this rank and exchanges addresses with all ranks. Collective.
struct channel *channel_open(struct comm *comm);
void            channel_close(struct channel *channel);
// Sends a message to a rank and sets its field `from`. The message may be lost.
void        channel_send(struct channel *channel, int rank, struct datagram *datagram);
int         channel_node(const struct channel *channel, int rank);
int         channel_local_rank(const struct channel *channel, int rank);
const char *channel_host(const struct channel *channel, int rank);
// Receives the next message. Returns false if there is none.
bool channel_receive(struct channel *channel, struct datagram *datagram);

enum { WATCH_STEPS = 15 };
struct watch {
    struct watch_setup setup;
    struct segment    *segment;
    struct shown      *shown;
    struct channel    *channel;    // NULL if the job has only one host
    pthread_t          thread;
    pthread_mutex_t    mutex;    // protects is_closing, is_counted, part, words and file
    pthread_cond_t     closes;
    bool               is_closing;
    bool               is_counted;    // the messages of this step are counted (slot_count_messages)
    _Atomic double     limit;
    atomic_bool        is_claimed;            // a thread has taken the right to write the result
    double             caught;                // time at which a signal was noticed; 0: none
    atomic_uint        pieces;                // number of file pieces read or written
    atomic_uint        beats;                 // number of calls of watch_beat, which count as progress
    const struct plan *part;                  // the plan that runs outside the job's steps; NULL: none
    char               words[SHOWN_BYTES];    // description of the work outside steps; "": the job's steps run
    char               file[SHOWN_BYTES];     // description of the checkpoint file in WATCH_FILE
    double             steps[WATCH_STEPS];    // durations of the latest steps in seconds
    int64_t            learnt;                // number of calls of watch_learn
};

// watch.c: returns the plan whose op numbers the ranks publish; NULL if they run work outside the job's steps.
const struct plan *watch_named_plan(const struct watch *watch);

// alarm.c: alarm_answer handles messages from other hosts. If this rank has asked for states, `responses` collects the
// answers; else it is NULL. alarm_end_job handles a suspected hang. It ends the process when some rank of the job has
// reported the hang. It returns only if a checkpoint file is still being read or written, which is no hang.
struct responses;
void alarm_answer(struct watch *watch, struct responses *responses);
void alarm_end_job(struct watch *watch);

// watch.c: returns the maximum time without progress in a phase, in seconds.
double watch_limit(const struct watch *watch, int phase);
