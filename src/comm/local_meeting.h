// SPDX-License-Identifier: MIT
// Rendezvous of a group's threads on one stream.
#ifndef GSWBENCH_COMM_LOCAL_MEETING_H
#define GSWBENCH_COMM_LOCAL_MEETING_H

#include <pthread.h>

#include "internal.h"

// A member's arguments to a collective. kind, elements, format and peer must agree in the group.
struct post {
    enum op_kind kind;
    enum format  format;
    int32_t      peer;
    int64_t      elements;
    const void  *in;
    void        *out;

    const struct transfer_parts *parts;    // NULL: equal parts
    const struct op             *op;       // NULL: control plane
};

// A pending send of a member.
struct letter {
    bool        is_waiting;
    int32_t     to, channel;
    int64_t     bytes;
    const void *data;
};

// The rendezvous of a group on one stream. Lives as long as the hub.
struct meeting {
    struct meeting *next;
    int64_t        *members;    // [size]
    int64_t         size;
    int             lane;
    pthread_mutex_t mutex;
    pthread_cond_t  changed;
    int64_t         arrived;
    uint64_t        generation;
    struct post    *posts;      // [size]
    struct letter  *letters;    // [size], by sender
};

struct comm_group {
    struct meeting *meeting;
    int64_t         index;      // the caller's index in the group
    const void    **sources;    // [size]
};

// local_letters.c: blocking send and receive between two members.
void letter_send(struct comm_group *group, const struct transfer_shape *shape, const void *data, int64_t bytes);
void letter_receive(struct comm_group *group, const struct transfer_shape *shape, void *data, int64_t bytes);

#endif
