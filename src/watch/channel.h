// SPDX-License-Identifier: MIT
// How the watches of different hosts speak with each other.
#ifndef GSWBENCH_WATCH_CHANNEL_H
#define GSWBENCH_WATCH_CHANNEL_H

#include "internal.h"

enum letter_kind {
    LETTER_ASK,        // where are the ranks of your host?
    LETTER_ANSWER,     // there
    LETTER_HANG,       // nothing moves here: find out why
    LETTER_VERDICT,    // who it is has been said: end
};
enum { LETTER_POSTS = 60000 / sizeof(struct post) };    // a datagram has no more

struct letter {
    int32_t     kind;    // enum letter_kind
    int32_t     from;    // the rank that sent it
    int32_t     count;
    struct post posts[LETTER_POSTS];    // [count]
};

// Collective.
struct channel *channel_open(struct comm *comm);
void            channel_close(struct channel *channel);
// May be lost. from is filled in.
void channel_send(struct channel *channel, int rank, struct letter *letter);
int  channel_node(const struct channel *channel, int rank);
int  channel_local_rank(const struct channel *channel, int rank);
// The next that has come; false: none has.
bool channel_receive(struct channel *channel, struct letter *letter);

#endif
