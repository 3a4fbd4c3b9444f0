// SPDX-License-Identifier: MIT
// Builds a graph of cuDNN operations and plans for it. After a failure all functions do nothing, so callers check only
// once: cudnn_graph_plan returns the first failure.
#pragma once

#include <cudnn.h>

#include "gswbench/library.h"
#include "gswbench/op.h"
#include "gswbench/status.h"

// cuDNN is loaded at run time. A machine without it runs attention with the built-in kernels.
// clang-format off
#define CUDNN_FUNCTIONS(X)                                                                                \
    X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString)                                  \
    X(cudnnCreate) X(cudnnDestroy) X(cudnnSetStream)                                                      \
    X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendFinalize)              \
    X(cudnnBackendSetAttribute) X(cudnnBackendGetAttribute) X(cudnnBackendExecute)
// clang-format on

struct cudnn {
    CUDNN_FUNCTIONS(LIBRARY_MEMBER)
};

status cudnn_open(struct cudnn *library);
// Writes name and version: "cuDNN 9.19.0".
void cudnn_version(const struct cudnn *cudnn, char *text, size_t bytes);

// Returns cuDNN's error message for the last failure on this thread. what: the failed call.
status cudnn_failure(const struct cudnn *cudnn, const char *what, cudnnStatus_t code);

enum { CUDNN_GRAPH_DESCRIPTORS = 192, CUDNN_GRAPH_OPERATIONS = 32 };

struct cudnn_graph {
    const struct cudnn      *cudnn;
    cudnnBackendDescriptor_t descriptor[CUDNN_GRAPH_DESCRIPTORS];    // all descriptors, for cudnn_graph_free
    int                      descriptor_count;
    cudnnBackendDescriptor_t operation[CUDNN_GRAPH_OPERATIONS];
    int                      operation_count;
    int64_t                  virtuals;    // number of virtual tensors so far
    status                   result;
};

typedef cudnnBackendDescriptor_t cudnn_tensor;

// Dimensions of a tensor, and strides in elements. cudnn_graph_tensor creates a tensor with this layout. id: the caller
// binds a pointer to this id at execution; 0: a virtual tensor, which has no memory.
struct cudnn_layout {
    int64_t dim[4], stride[4];
};
cudnn_tensor cudnn_graph_tensor(struct cudnn_graph *graph, cudnnDataType_t type, const struct cudnn_layout *layout,
                                int64_t id);
cudnn_tensor cudnn_graph_scalar(struct cudnn_graph *graph, cudnnDataType_t type, int64_t id);    // host scalar

// Each of the following four functions appends an operation to the graph, and returns its output tensor `out`.
// cudnn_graph_pointwise appends out = mode(x, b), computed in `precision`; b and selector are NULL if the mode does not
// use them.
struct cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t      precision;
    cudnn_tensor         x, b, selector, out;
    int64_t              axis;    // for CUDNN_POINTWISE_GEN_INDEX
};
cudnn_tensor cudnn_graph_pointwise(struct cudnn_graph *graph, const struct cudnn_pointwise *pointwise);
cudnn_tensor cudnn_graph_gemm(struct cudnn_graph *graph, cudnn_tensor a, cudnn_tensor b, cudnn_tensor out);
cudnn_tensor cudnn_graph_reduce(struct cudnn_graph *graph, cudnnReduceTensorOp_t reduction, cudnn_tensor x,
                                cudnn_tensor out);
cudnn_tensor cudnn_graph_reshape(struct cudnn_graph *graph, cudnn_tensor x, cudnn_tensor out);

// Counts the engines that cuDNN proposes for a device, which device_json describes. Works on a machine without a
// device.
status cudnn_graph_engines(struct cudnn_graph *graph, const char *device_json, int64_t *engines);

enum { CUDNN_PLANS = 8 };
struct cudnn_plan {
    cudnnBackendDescriptor_t descriptor;
    int64_t                  workspace_bytes;
    int64_t                  engine;    // cuDNN's engine number
};
// Makes plans from the proposed engines, best guess first, and sets *count. Fails if no engine works. The graph owns
// the plans.
status cudnn_graph_plan(struct cudnn_graph *graph, cudnnHandle_t handle, struct cudnn_plan plans[CUDNN_PLANS],
                        int *count);
void   cudnn_graph_free(struct cudnn_graph *graph);

// Ids of the tensors in the attention graph (cudnn_attention_graph.c).
enum cudnn_attention_id {
    CUDNN_ATTENTION_QUERY = 1,
    CUDNN_ATTENTION_KEY,
    CUDNN_ATTENTION_VALUE,
    CUDNN_ATTENTION_OUT,
    CUDNN_ATTENTION_STATISTICS,
    CUDNN_ATTENTION_OUT_GRADIENT,
    CUDNN_ATTENTION_QUERY_GRADIENT,
    CUDNN_ATTENTION_KEY_GRADIENT,
    CUDNN_ATTENTION_VALUE_GRADIENT,
    CUDNN_ATTENTION_QUERY_SUM,    // f32 [batch, heads, sequence, head_dim]: scratch
    CUDNN_ATTENTION_ROW_SUM,      // f32 [batch, heads, sequence]: scratch
    CUDNN_ATTENTION_SCALE,
    CUDNN_ATTENTION_MINUS_INFINITY,
    CUDNN_ATTENTION_ONE,
    CUDNN_ATTENTION_EARLIER,
    CUDNN_ATTENTION_WINDOW,
    CUDNN_ATTENTION_ID_COUNT
};

// Builds the attention graph of an op. Works on a machine without a device.
void cudnn_attention_describe(struct cudnn_graph *graph, const struct op *op);
