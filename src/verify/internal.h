// SPDX-License-Identifier: MIT
// A job under verification: what is left of each built rank's plan when only order between lanes and ranks counts.
#ifndef GSWBENCH_VERIFY_INTERNAL_H
#define GSWBENCH_VERIFY_INTERNAL_H

#include "gswbench/verify.h"

enum { EVENT_END = INT32_MAX };

// A transfer, and which others of its rank it begins after. No padding: it is hashed whole.
struct event {
    int64_t elements;
    int32_t op;      // in the rank's plan
    int32_t next;    // event on the same lane; EVENT_END: none
    int32_t group, peer, channel;
    int32_t meeting;           // set when it is matched: where it meets the other ranks
    int32_t wait[OP_WAITS];    // events of other lanes that end first
    uint8_t kind, format;
    uint8_t lane, wait_count;
};

struct skeleton_group {
    uint32_t axes;
    int64_t  size;
    int64_t *ranks;
    int32_t  first_op;    // that uses it; -1: none
    uint64_t members;     // hash of the ranks
    // Under the distinct axes of now:
    int64_t *classes;    // of the members, ascending, each once
    int32_t  class_count;
    uint64_t label;    // the same on all members, another for every other group of the distinct ranks
};

struct skeleton {
    int64_t                rank;
    struct event          *events;
    int32_t                event_count, op_count;
    double                 flops;
    int32_t                first[LANE_COUNT];    // events; EVENT_END: none
    struct skeleton_group *groups;
    int32_t                group_count;
    int32_t                place;             // among the distinct ranks
    uint32_t               signature_axes;    // for which the signature was made, and one bit more
    uint64_t               signature;
};

// Ranks that differ only along axes that are not distinct have one class: the rank at 0 on all those axes stands for
// them. Seen from it, others are at distances along those axes and at places along the distinct ones.
struct verification {
    const struct job_plans *plans;
    struct job_proof       *proof;
    struct mesh             mesh;
    bool                    compares_all;
    uint32_t                distinct;     // axes
    struct skeleton       **skeletons;    // [world]; NULL: not built
    struct skeleton       **classes;      // [class_count], rising ranks
    int32_t                 class_count;
    status                  errors;
};

// job.c
void job_report(struct verification *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum { JOB_NAME_BYTES = 256 };
// "rank 3: op 12 send "forward", forward, microbatch 0"
const char *job_name(const struct verification *job, int64_t rank, int32_t op, char text[JOB_NAME_BYTES]);

int64_t job_class(const struct verification *job, int64_t rank);
// Where rank to lies, seen from rank from: a rank number whose coordinates are places on distinct axes and distances on
// the others.
int64_t job_relation(const struct verification *job, int64_t from, int64_t to);
int64_t job_related(const struct verification *job, int64_t from, int64_t relation);    // the inverse

// events.c: reports what is wrong with the transfers of this rank alone.
struct skeleton *skeleton_create(struct verification *job, const struct plan *plan);
void             skeleton_free(struct skeleton *skeleton);
// What the job's order depends on, seen from the rank: equal on two ranks that have one class.
uint64_t skeleton_signature(const struct verification *job, struct skeleton *skeleton);

static inline bool event_is_link(const struct event *event)
{
    return op_is_link((enum op_kind)event->kind);
}

// match.c: where the ranks meet: on a communicator, or on a link from a sender to a receiver. Their n-th calls
// there belong together.
struct call {
    uint64_t key;
    int32_t  side;    // of a link: 0 sends, 1 receives
    int32_t class, event;
};
struct party {
    int32_t class, first_call, calls;
    bool has_arrived;
};
struct meeting {
    int32_t first_party, parties;
    int32_t arrived;    // parties that are at call number done
    int32_t done;
};
struct match {
    struct call    *calls;
    struct party   *parties;
    struct meeting *meetings;
    int32_t         call_count, party_count, meeting_count;
};
void match_create(struct match *match, struct verification *job);    // reports what does not match
void match_free(struct match *match);

// drain.c: runs the lanes of all classes as queues; reports a deadlock.
void job_drain(struct verification *job, struct match *match);

#endif
