// SPDX-License-Identifier: MIT
// NCCL, opened at run time: the program starts where it is missing.
#ifndef GSWBENCH_COMM_NCCL_LIBRARY_H
#define GSWBENCH_COMM_NCCL_LIBRARY_H

#include <nccl.h>

#include "gswbench/status.h"

// clang-format off
#define NCCL_FUNCTIONS(X)                                                                   \
    X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId)          \
    X(ncclCommInitRankConfig) X(ncclCommDestroy) X(ncclCommGetAsyncError)                   \
    X(ncclAllReduce) X(ncclAllGather) X(ncclReduceScatter) X(ncclBroadcast)                 \
    X(ncclSend) X(ncclRecv) X(ncclGroupStart) X(ncclGroupEnd)
// clang-format on

struct nccl_library {
#define NCCL_MEMBER(function) __typeof__(function) *function;
    NCCL_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
};

// Fails (EXIT_LAUNCH) when the library is missing.
status nccl_library_open(struct nccl_library *nccl);

// Ends the job when a call fails.
#define NCCL_CHECK(nccl, call) nccl_check((nccl), (nccl)->call, #call, __FILE__, __LINE__)
void nccl_check(const struct nccl_library *nccl, ncclResult_t error, const char *call, const char *file, int line);

#endif
