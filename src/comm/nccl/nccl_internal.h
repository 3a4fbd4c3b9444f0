// SPDX-License-Identifier: MIT
// What the parts of the nccl communicator share: the rank's connections, and the thread that watches them.
#ifndef GSWBENCH_COMM_NCCL_INTERNAL_H
#define GSWBENCH_COMM_NCCL_INTERNAL_H

#include <pthread.h>

#include "gswbench/backend.h"
#include "../internal.h"
#include "../nccl_job.h"
#include "nccl_library.h"

// Memory that a connection knows. Members have a window alike, the other each for itself.
enum { NCCL_BUFFERS = 8 };
struct nccl_buffer {
    void        *handle;
    ncclWindow_t window;
    const char  *data;
    int64_t      bytes;
};

// One of NCCL's communicators.
struct nccl_connection {
    struct nccl_connection *next;    // of those that are watched
    ncclComm_t              handle;
    char                    name[96];
    int                     index;                      // of this rank among its members
    int                     processors;                 // of the device that a transfer may take; 0: no bound
    bool                    is_near;                    // its members are on one node
    bool                    is_copying, is_scalable;    // with zero CTAs; opened by several ids
    bool                    puts;                       // steps round a ring have been one-sided
    int                     refused;                    // storages that NCCL would not register
    double                  lost_seconds;               // when it was found to be lost; 0: it is not
    int                     buffer_count;
    struct nccl_buffer      buffers[NCCL_BUFFERS];
};

// What a rank sends and receives along one pipeline; of both lanes.
struct nccl_links {
    struct nccl_links      *next;
    int64_t                *members;    // [size]
    int64_t                 size;
    int                     users;
    struct nccl_connection *send[NCCL_DIRECTIONS], *receive[NCCL_DIRECTIONS];    // by the sender's direction
    struct nccl_connection *opened[2 * NCCL_DIRECTIONS];                         // the same, in order
    int                     opened_count;
};

struct comm_group {
    struct nccl_state      *state;
    int64_t                *members;    // [size]
    int64_t                 size, index;
    int                     lane;
    int                     processors;    // of the device that one of its transfers may take; 0: no bound
    cudaStream_t            stream;
    struct nccl_connection *connection;    // of all members; NULL on the pipeline's lanes
    struct nccl_links      *links;         // NULL on other lanes
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
    struct comm           *comm;    // itself
    struct comm           *control;
    struct backend        *backend;
    struct comm_nccl_setup setup;
    int                    rank;
    int64_t               *nodes;    // [ranks]
    struct nccl_links     *pipelines;
    bool                   exchanges;    // all-to-alls have been one call
    int                    log;          // a file; -1: it is not read
    int64_t                log_place;    // up to which it was
    struct nccl_watch      watch;
};

// nccl_watch.c: a thread that ends the job when a connection fails, or cannot be opened in time.
void nccl_watch_open(struct nccl_state *state);
void nccl_watch_close(struct nccl_state *state);
void nccl_watch_begin(struct nccl_state *state, const char *opening, int64_t index);
void nccl_watch_end(struct nccl_state *state);
void nccl_watch_add(struct nccl_state *state, struct nccl_connection *connection);
void nccl_watch_remove(struct nccl_state *state, const struct nccl_connection *connection);

// nccl_connect.c: NCCL's communicators. exchange: a broadcast from the first member or a gather of words of 4 bytes,
// between the members of a group in host memory. close may have to wait for the other members.
void         nccl_exchange(const struct comm_group *group, enum op_kind kind, int64_t words, const void *in, void *out);
ncclUniqueId nccl_create_id(const struct nccl_state *state);
void         nccl_join(const struct comm_group *group, struct nccl_connection *connection);
void         nccl_join_pair(struct nccl_state *state, struct nccl_connection *connection, ncclUniqueId id);
void         nccl_disconnect(struct nccl_state *state, struct nccl_connection *connection);

// nccl_memory.c: fails (EXIT_LAUNCH) where the setup wants what the library lacks. forget: before a connection closes.
status nccl_memory_open(struct comm *comm, struct nccl_state *state);
void   nccl_memory_forget(struct nccl_state *state, struct nccl_connection *connection);

// nccl_put.c: a step round a ring without multiprocessors; false: it cannot, on any member.
bool nccl_put_round(const struct comm_group *group, const struct transfer_shape *shape, const void *in, const void *out,
                    enum format format);

// nccl_group.c
ncclDataType_t     nccl_type(enum format format);
struct comm_group *nccl_group_open(struct comm *comm, const int64_t *members, int64_t size, int lane, int processors);
void               nccl_group_close(struct comm_group *group);
void nccl_run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format);

#endif
