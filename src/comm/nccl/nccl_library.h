// SPDX-License-Identifier: MIT
// NCCL, loaded at run time, so that the program starts without it.
#ifndef GSWBENCH_COMM_NCCL_LIBRARY_H
#define GSWBENCH_COMM_NCCL_LIBRARY_H

#include <nccl.h>
#include <stdint.h>

#include "gswbench/status.h"

// Argument of ncclWaitSignal: number of signals to wait for from a peer.
struct nccl_signals {
    int count, peer, signal, context;
};

// clang-format off
#define NCCL_FUNCTIONS(X)                                                                   \
    X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId)          \
    X(ncclCommInitRankConfig) X(ncclCommDestroy) X(ncclCommGetAsyncError)                   \
    X(ncclAllReduce) X(ncclAllGather) X(ncclReduceScatter) X(ncclBroadcast)                 \
    X(ncclSend) X(ncclRecv) X(ncclGroupStart) X(ncclGroupEnd)
// Functions that are newer than the oldest supported library. Some are newer than the oldest header, so prototypes are
// declared here.
#define NCCL_OPTIONAL(X)                                                                                               \
    X(ncclMemAlloc, (void **data, size_t bytes))                                                             /* 2.19 */ \
    X(ncclMemFree, (void *data))                                                                                       \
    X(ncclCommRegister, (ncclComm_t connection, void *data, size_t bytes, void **handle))                              \
    X(ncclCommDeregister, (ncclComm_t connection, void *handle))                                                       \
    X(ncclCommWindowRegister,                                                                                /* 2.27 */ \
      (ncclComm_t connection, void *data, size_t bytes, ncclWindow_t *window, int flags))                              \
    X(ncclCommWindowDeregister, (ncclComm_t connection, ncclWindow_t window))                                          \
    X(ncclAlltoAll, (const void *in, void *out, size_t share, ncclDataType_t type, ncclComm_t connection,    /* 2.28 */ \
                     cudaStream_t stream))                                                                             \
    X(ncclCommInitRankScalable, (ncclComm_t *made, int size, int index, int id_count, ncclUniqueId *ids,     /* 2.23 */ \
                                 ncclConfig_t *config))                                                                \
    X(ncclPutSignal, (const void *in, size_t elements, ncclDataType_t type, int peer, ncclWindow_t window,   /* 2.29 */ \
                      size_t offset, int signal, int context, unsigned flags, ncclComm_t connection,                   \
                      cudaStream_t stream))                                                                            \
    X(ncclSignal, (int peer, int signal, int context, unsigned flags, ncclComm_t connection, cudaStream_t stream))     \
    X(ncclWaitSignal, (int count, struct nccl_signals *awaited, ncclComm_t connection, cudaStream_t stream))           \
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

// Fails with EXIT_LAUNCH if the library is missing.
status nccl_library_open(struct nccl_library *nccl);

// Ends the job if a call fails.
#define NCCL_CHECK(nccl, call) nccl_check((nccl), (nccl)->call, #call, __FILE__, __LINE__)
void nccl_check(const struct nccl_library *nccl, ncclResult_t error, const char *call, const char *file, int line);

#endif
