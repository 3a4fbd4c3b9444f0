// SPDX-License-Identifier: MIT
// Where the threads of a group meet on one lane, and what they leave there for each other.
#ifndef GSWBENCH_COMM_LOCAL_MEETING_H
#define GSWBENCH_COMM_LOCAL_MEETING_H

#include <pthread.h>

#include "internal.h"

// What one member brings to a transfer. All of a group must bring the same kind, elements, format and peer.
struct post {
    enum op_kind kind;
    enum format  format;
    int32_t      peer;
    int64_t      elements;
    const void  *in;
    void        *out;

    const struct transfer_parts *parts;    // NULL: equal ones
};

// What one member is sending. It waits until the receiver has taken it.
struct letter {
    bool        is_waiting;
    int32_t     to, channel;
    int64_t     bytes;
    const void *data;
};

// The meeting place of a group's members on one lane. Lives as long as the hub.
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
    int64_t         index;      // the caller's place among the members
    const void    **sources;    // [size]
};

// local_letters.c: between two members, of whom each waits for the other.
void letter_send(struct comm_group *group, const struct transfer_shape *shape, const void *data, int64_t bytes);
void letter_receive(struct comm_group *group, const struct transfer_shape *shape, void *data, int64_t bytes);

#endif
