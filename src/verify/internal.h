// SPDX-License-Identifier: MIT
// Declares the state of a job's verification, which job.c, events.c, match.c and drain.c share. The whole plans would
// not fit in memory, so each built plan is reduced to its skeleton: its communication ops with their order.
#pragma once

#include "gswbench/verify.h"

enum { EVENT_END = INT32_MAX };

// An event: a communication op of a rank and its dependencies. Its fields are hashed together, so it has no padding
// bytes before the last field.
struct event {
    int64_t elements;
    int32_t op;                      // index in the rank's plan
    int32_t next;                    // next event on the stream; EVENT_END: none
    int32_t group, peer, channel;    // as in struct communication_shape
    int32_t rendezvous;              // index in match.rendezvous_list, set by match_create
    int32_t wait[OP_WAITS];          // events of other streams that must end first
    uint8_t kind, format;
    uint8_t stream, wait_count;
};

struct skeleton_group {
    uint32_t axes;
    int64_t  size;
    int64_t *ranks;       // [size]
    int32_t  first_op;    // first op that uses the group; -1: none
    uint64_t members;     // hash of ranks
    // The following fields depend on the current classes, so on verification.distinct_axes.
    int64_t *classes;    // [class_count]: classes of the members, ascending, without duplicates
    int32_t  class_count;
    uint64_t label;    // hash of axes, size and classes, which is equal on all members
};

struct skeleton {
    int64_t                rank;
    struct event          *events;
    int32_t                event_count, op_count;
    double                 flops;
    int32_t                first[STREAM_COUNT];    // first event per stream; EVENT_END: none
    struct skeleton_group *groups;
    int32_t                group_count;
    uint32_t signature_axes;    // value of verification.distinct_axes when signature was computed, with bit
                                // AXIS_COUNT set because the mask may be 0; 0: no signature yet
    uint64_t signature;
};

// State of a verification. An axis is distinct if the communication of ranks along it differs in more than the ranks'
// coordinates. Ranks with the same coordinates on the distinct axes form a class. The rank with coordinate 0 on all
// other axes represents the class. To compare ranks, a peer is described by its coordinate along distinct axes, and by
// its distance along the other axes.
struct verification {
    const struct job_plans *plans;
    struct job_proof       *proof;
    struct mesh             mesh;
    bool                    compares_all;
    uint32_t                distinct_axes;    // bit mask of axes
    struct arena            arena;            // memory of skeletons and the lists below
    struct skeleton       **skeletons;        // [world]; NULL: not built
    struct skeleton       **classes;          // [class_count], sorted by rank
    int32_t                 class_count;
    status                  errors;
};

// Adds a finding. The message starts with the rank and the op; op -1: no op.
void job_report(struct verification *job, int64_t rank, int32_t op, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
enum { JOB_NAME_BYTES = 256 };
// Formats the name of an op: "rank 3: op 12 send "forward", forward, microbatch 0".
const char *job_name(const struct verification *job, int64_t rank, int32_t op, char text[JOB_NAME_BYTES]);

int64_t job_class(const struct verification *job, int64_t rank);    // the rank that represents the class of `rank`
// Returns the position of rank `to` relative to rank `from`, as a rank number: on a distinct axis it has the
// coordinate of `to`, and on another axis the distance from `from` to `to`.
int64_t job_relation(const struct verification *job, int64_t from, int64_t to);
// Returns the rank that has this relation to rank `from`. The inverse of job_relation.
int64_t job_related(const struct verification *job, int64_t from, int64_t relation);

// Reduces a plan to its skeleton, and reports errors in the rank's communication (events.c).
struct skeleton *skeleton_create(struct verification *job, const struct plan *plan);
// Returns a hash of the communication as seen from the rank, which is equal for all ranks of a class.
uint64_t skeleton_signature(const struct verification *job, struct skeleton *skeleton);

static inline bool event_is_link(const struct event *event)
{
    return op_is_link((enum op_kind)event->kind);
}

// A rendezvous is a communicator, or a link from a sender to a receiver (match.c). Its participants are classes of
// ranks. A participant makes one call per op. The n-th calls of the participants form one operation, which runs when
// every participant has arrived.
struct call {
    uint64_t key;     // hash of the communicator or link
    int32_t  side;    // on a link: 0 sends, 1 receives
    int32_t class, event;
};
struct participant {
    int32_t class, first_call, calls;    // its calls are match.calls[first_call .. first_call + calls - 1]
    bool has_arrived;                    // waits for the other participants of the current operation
};
struct rendezvous {
    int32_t first_participant, participants;
    int32_t arrived;    // participants that wait for the current operation
    int32_t done;       // number of operations that have run
};
struct match {
    struct arena        arena;    // memory of the lists; the caller frees it
    struct call        *calls;
    struct participant *participants;
    struct rendezvous  *rendezvous_list;
    int32_t             call_count, participant_count, rendezvous_count;
};
void match_create(struct match *match, struct verification *job);    // reports mismatches

// Runs the streams of one rank of every class as queues, and reports a deadlock (drain.c).
void job_drain(struct verification *job, struct match *match);

// The errors in a rank's plan: their number, and the first one as a message (findings.c).
struct findings {
    const struct plan *plan;
    int32_t            count;
    status             first;
};

// Adds an error in an op. The message also names the tensor and the op `other`; -1: none.
void findings_add(struct findings *findings, int32_t op, int32_t tensor, const char *what, int32_t other);

// Checks one op by itself: its dependencies, and the presence, access and size of its operands.
void findings_check_op(struct findings *findings, int32_t op);
