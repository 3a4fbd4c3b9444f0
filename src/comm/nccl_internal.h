// SPDX-License-Identifier: MIT
// What the parts of the nccl communicator share: the rank's connections, and the thread that watches them.
#ifndef GSWBENCH_COMM_NCCL_INTERNAL_H
#define GSWBENCH_COMM_NCCL_INTERNAL_H

#include <pthread.h>

#include "gswbench/backend.h"
#include "internal.h"
#include "nccl_library.h"

// One of NCCL's communicators.
struct nccl_connection {
    struct nccl_connection *next;    // of those that are watched
    ncclComm_t              handle;
    char                    name[96];
    int                     index;           // of this rank among its members
    double                  lost_seconds;    // when it was found to be lost; 0: it is not
};

struct nccl_watch {
    pthread_t               thread;
    pthread_mutex_t         mutex;    // of all below
    pthread_cond_t          closes;
    struct nccl_connection *connections;
    const char             *opening;           // what the main thread connects now; NULL: nothing
    int                     opening_index;     // of this rank among those that connect
    double                  opened_seconds;    // when it began
    bool                    is_closing;
};

struct nccl_state {
    struct nccl_library    library;
    struct comm           *control;
    struct backend        *backend;
    struct comm_nccl_setup setup;
    int                    rank;
    struct nccl_links     *pipelines;
    struct nccl_watch      watch;
};

// nccl_watch.c: a thread that ends the job when a connection fails, or cannot be opened in time.
void nccl_watch_open(struct nccl_state *state);
void nccl_watch_close(struct nccl_state *state);
void nccl_watch_begin(struct nccl_state *state, const char *opening, int64_t index);
void nccl_watch_end(struct nccl_state *state);
void nccl_watch_add(struct nccl_state *state, struct nccl_connection *connection);
void nccl_watch_remove(struct nccl_state *state, const struct nccl_connection *connection);

// nccl_group.c
struct comm_group *nccl_group_open(struct comm *comm, const int64_t *members, int64_t size, int lane, int processors);
void               nccl_group_close(struct comm_group *group);
void nccl_run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format);

#endif
