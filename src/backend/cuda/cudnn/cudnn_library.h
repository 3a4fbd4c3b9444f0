// SPDX-License-Identifier: MIT
// cuDNN, opened at run time: a machine without it loses fused attention and nothing else.
#ifndef GSWBENCH_CUDNN_LIBRARY_H
#define GSWBENCH_CUDNN_LIBRARY_H

#include <cudnn.h>

#include "gswbench/status.h"

// clang-format off
#define CUDNN_FUNCTIONS(X)                                                                                \
    X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString)                                  \
    X(cudnnCreate) X(cudnnDestroy) X(cudnnSetStream)                                                      \
    X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendFinalize)              \
    X(cudnnBackendSetAttribute) X(cudnnBackendGetAttribute) X(cudnnBackendExecute)
// clang-format on

struct cudnn {
#define CUDNN_MEMBER(function) __typeof__(function) *function;
    CUDNN_FUNCTIONS(CUDNN_MEMBER)
#undef CUDNN_MEMBER
};

status cudnn_open(struct cudnn *cudnn);

// What cuDNN says of its last failure in this thread.
status cudnn_failure(const struct cudnn *cudnn, const char *what, cudnnStatus_t code);

#endif
