// SPDX-License-Identifier: MIT
// Declares connections (NCCL communicators) and their monitoring thread for the files of this folder.
#pragma once

#include <nccl.h>
#include <pthread.h>

#include "gswbench/backend.h"
#include "../internal.h"
#include "../nccl_job.h"

// Argument of ncclWaitSignal: the number of signals to wait for from a peer. Declared here, because headers before NCCL
// 2.29 lack it.
struct nccl_signals {
    int count, peer, signal, context;
};

// clang-format off
#define NCCL_FUNCTIONS(X)                                                                   \
    X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId)          \
    X(ncclCommInitRankConfig) X(ncclCommDestroy) X(ncclCommGetAsyncError)                   \
    X(ncclAllReduce) X(ncclAllGather) X(ncclReduceScatter) X(ncclBroadcast)                 \
    X(ncclSend) X(ncclRecv) X(ncclGroupStart) X(ncclGroupEnd)
// Functions that the oldest supported library lacks, with the NCCL version that added them. Their prototypes are
// declared here, because the oldest supported header lacks some of them, too.
#define NCCL_OPTIONAL(X)                                                                                               \
    X(ncclMemAlloc, (void **data, size_t bytes))                                                             /* 2.19 */ \
    X(ncclMemFree, (void *data))                                                                                       \
    X(ncclCommRegister, (ncclComm_t connection, void *data, size_t bytes, void **handle))                              \
    X(ncclCommDeregister, (ncclComm_t connection, void *handle))                                                       \
    X(ncclCommWindowRegister,                                                                                /* 2.27 */ \
      (ncclComm_t connection, void *data, size_t bytes, ncclWindow_t *window, int flags))                              \
    X(ncclCommWindowDeregister, (ncclComm_t connection, ncclWindow_t window))                                          \
    X(ncclAlltoAll, (const void *in, void *out, size_t share, ncclDataType_t type, ncclComm_t connection,    /* 2.28 */ \
                     cudaStream_t cuda_stream))                                                                             \
    X(ncclCommInitRankScalable, (ncclComm_t *made, int size, int index, int id_count, ncclUniqueId *ids,     /* 2.23 */ \
                                 ncclConfig_t *config))                                                                \
    X(ncclPutSignal, (const void *in, size_t elements, ncclDataType_t type, int peer, ncclWindow_t window,   /* 2.29 */ \
                      size_t offset, int signal, int context, unsigned flags, ncclComm_t connection,                   \
                      cudaStream_t cuda_stream))                                                                            \
    X(ncclSignal, (int peer, int signal, int context, unsigned flags, ncclComm_t connection, cudaStream_t cuda_stream))     \
    X(ncclWaitSignal, (int count, struct nccl_signals *awaited, ncclComm_t connection, cudaStream_t cuda_stream))           \
    X(ncclCommMemStats, (ncclComm_t connection, int stat, uint64_t *value))    /* 2.29.7 */
// clang-format on

struct nccl_library {
#define NCCL_MEMBER(function) __typeof__(function) *function;
    NCCL_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
#define NCCL_MEMBER(function, parameters) ncclResult_t(*function) parameters;    // NULL: missing from the library
    NCCL_OPTIONAL(NCCL_MEMBER)
#undef NCCL_MEMBER
};

// Calls a function of NCCL, and ends the job if it fails.
#define NCCL_CHECK(nccl, call) nccl_check((nccl), (nccl)->call, #call, __FILE__, __LINE__)
void nccl_check(const struct nccl_library *nccl, ncclResult_t error, const char *call, const char *file, int line);

// A registered buffer: a symmetric window that all members registered, or a buffer that only this member registered.
enum { NCCL_BUFFERS = 8 };
struct nccl_buffer {
    void        *handle;
    ncclWindow_t window;
    const char  *data;
    int64_t      bytes;
};

// A connection: one NCCL communicator.
struct nccl_connection {
    struct nccl_connection *next;    // list of monitored connections
    ncclComm_t              handle;
    char                    name[96];
    int                     index;                      // this rank's index among the members
    int                     processors;                 // SM limit per op; 0: none
    bool                    is_near;                    // all members are on one node
    bool                    is_copying, is_scalable;    // uses copy engines (zero-CTA); opened with several unique ids
    bool                    puts;                       // has executed one-sided ring shifts
    int                     refused;                    // number of buffers that NCCL did not register
    double                  lost_seconds;               // when the failure was found; 0: no failure
    int                     buffer_count;
    struct nccl_buffer      buffers[NCCL_BUFFERS];
};

// A rank's connections to its pipeline neighbours. Both pipeline streams use them.
struct nccl_links {
    struct nccl_links      *next;
    int64_t                *members;    // [size]
    int64_t                 size;
    int                     users;
    struct nccl_connection *send[NCCL_DIRECTIONS], *receive[NCCL_DIRECTIONS];    // index: the sender's direction
    struct nccl_connection *opened[2 * NCCL_DIRECTIONS];                         // all connections, in order of opening
    int                     opened_count;
};

struct comm_group {
    struct nccl_state      *state;
    int64_t                *members;    // [size]
    int64_t                 size, index;
    int                     stream;
    int                     processors;    // SM limit per op; 0: none
    cudaStream_t            cuda_stream;
    struct nccl_connection *connection;    // NULL on pipeline streams
    struct nccl_links      *links;         // NULL on other streams
};

struct nccl_watch {
    pthread_t               thread;
    pthread_mutex_t         mutex;    // protects all fields below
    pthread_cond_t          closes;
    struct nccl_connection *connections;
    const char             *opening;    // connection that the main thread is opening; NULL: none
    int                     opening_index;
    double                  opened_seconds;
    bool                    is_closing;
};

struct nccl_state {
    struct nccl_library    library;
    struct comm           *comm;    // the communicator that has this state
    struct comm           *control;
    struct backend        *backend;
    struct comm_nccl_setup setup;
    int                    rank, version;
    int64_t               *nodes;    // [ranks]: node of each rank
    struct nccl_links     *pipelines;
    bool                   exchanges;       // has executed ncclAlltoAll
    int                    log;             // file descriptor; -1: not used
    int64_t                log_position;    // read position
    struct nccl_watch      watch;
};

// A thread in nccl_connect.c ends the job if a connection fails or is not opened in time. nccl_watch_open starts it,
// nccl_watch_close stops it. nccl_watch_begin begins the opening of a connection, nccl_watch_add ends it.
void nccl_watch_open(struct nccl_state *state);
void nccl_watch_close(struct nccl_state *state);
void nccl_watch_begin(struct nccl_state *state, const char *opening, int64_t index);
void nccl_watch_add(struct nccl_state *state, struct nccl_connection *connection);

// Functions to open and close connections. nccl_exchange all-gathers 4-byte words in host memory, or broadcasts them
// from the first member of a group. nccl_join connects the members of a group. nccl_join_id connects `size` ranks with
// the same unique id. Both block until all ranks have joined. nccl_disconnect may wait for the other members.
void         nccl_exchange(const struct comm_group *group, enum op_kind kind, int64_t words, const void *in, void *out);
ncclUniqueId nccl_create_id(const struct nccl_state *state);
void         nccl_join(const struct comm_group *group, struct nccl_connection *connection);
void         nccl_join_id(struct nccl_state *state, struct nccl_connection *connection, int64_t size, ncclUniqueId id);
void         nccl_disconnect(struct nccl_state *state, struct nccl_connection *connection);

// nccl_memory.c registers memory. nccl_memory_open fails with EXIT_LAUNCH if the library lacks a required feature. Call
// nccl_memory_forget before a connection closes.
status nccl_memory_open(struct comm *comm, struct nccl_state *state);
void   nccl_memory_forget(struct nccl_state *state, struct nccl_connection *connection);

// Groups and their ops (nccl_group.c).
struct comm_group *nccl_group_open(struct comm *comm, const int64_t *members, int64_t size, int stream, int processors);
void               nccl_group_close(struct comm_group *group);
void nccl_run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format);
