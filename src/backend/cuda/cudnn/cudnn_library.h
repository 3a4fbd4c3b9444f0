// SPDX-License-Identifier: MIT
// cuDNN, loaded at run time. Without it a machine only lacks fused attention.
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

// cuDNN's error message of the last failure on this thread.
status cudnn_failure(const struct cudnn *cudnn, const char *what, cudnnStatus_t code);

#endif
