// SPDX-License-Identifier: MIT
// Messages between the watchdogs of different hosts.
#ifndef GSWBENCH_WATCH_CHANNEL_H
#define GSWBENCH_WATCH_CHANNEL_H

#include "internal.h"

enum letter_kind {
    LETTER_ASK,        // asks for the state of the host's ranks
    LETTER_ANSWER,     // the answer
    LETTER_HANG,       // reports a hang and asks the host to investigate
    LETTER_VERDICT,    // the hang has been reported: exit
    LETTER_DAMAGE,     // to rank 0: rank and step of the first post cannot continue, for the reason in its text
};
enum { LETTER_POSTS = 60000 / sizeof(struct post) };    // limit of a datagram

struct letter {
    int32_t     kind;    // enum letter_kind
    int32_t     from;    // sending rank
    int32_t     count;
    struct post posts[LETTER_POSTS];    // [count]
};

// Collective.
struct channel *channel_open(struct comm *comm);
void            channel_close(struct channel *channel);
// The message may be lost. Fills in from.
void channel_send(struct channel *channel, int rank, struct letter *letter);
int  channel_node(const struct channel *channel, int rank);
int  channel_local_rank(const struct channel *channel, int rank);
// Returns the next message; false if there is none.
bool channel_receive(struct channel *channel, struct letter *letter);

#endif
