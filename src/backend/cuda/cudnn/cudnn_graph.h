// SPDX-License-Identifier: MIT
// A graph of cuDNN operations under construction, and the plan that executes it. After the first failure the functions
// do nothing, so that a graph is written down without looking at each; cudnn_graph_plan then says what failed.
#ifndef GSWBENCH_CUDNN_GRAPH_H
#define GSWBENCH_CUDNN_GRAPH_H

#include "cudnn_library.h"

enum { CUDNN_GRAPH_DESCRIPTORS = 192, CUDNN_GRAPH_OPERATIONS = 32 };

struct cudnn_graph {
    const struct cudnn      *cudnn;
    cudnnBackendDescriptor_t descriptor[CUDNN_GRAPH_DESCRIPTORS];    // all that were made
    int                      descriptor_count;
    cudnnBackendDescriptor_t operation[CUDNN_GRAPH_OPERATIONS];
    int                      operation_count;
    int64_t                  virtuals;    // tensors that only the graph knows
    status                   result;
};

typedef cudnnBackendDescriptor_t cudnn_tensor;

// A tensor of four dimensions and strides, in elements. id: what the caller binds a pointer to; 0: inside the graph
// only.
struct cudnn_layout {
    int64_t dim[4], stride[4];
};
cudnn_tensor cudnn_graph_tensor(struct cudnn_graph *graph, cudnnDataType_t type, const struct cudnn_layout *layout,
                                int64_t id);
cudnn_tensor cudnn_graph_scalar(struct cudnn_graph *graph, cudnnDataType_t type, int64_t id);    // on the host

// out = mode(x, b) in that precision; b and selector NULL where the mode has none. Each returns out.
struct cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t      precision;
    cudnn_tensor         x, b, selector, out;
    int64_t              axis;    // of CUDNN_POINTWISE_GEN_INDEX
};
cudnn_tensor cudnn_graph_pointwise(struct cudnn_graph *graph, const struct cudnn_pointwise *pointwise);
cudnn_tensor cudnn_graph_gemm(struct cudnn_graph *graph, cudnn_tensor a, cudnn_tensor b, cudnn_tensor out);
cudnn_tensor cudnn_graph_reduce(struct cudnn_graph *graph, cudnnReduceTensorOp_t reduction, cudnn_tensor x,
                                cudnn_tensor out);
cudnn_tensor cudnn_graph_reshape(struct cudnn_graph *graph, cudnn_tensor x, cudnn_tensor out);

// How many engines cuDNN proposes for the graph, on the device that the JSON text describes: needs no device.
status cudnn_graph_engines(struct cudnn_graph *graph, const char *device_json, int64_t *engines);

enum { CUDNN_PLANS = 8 };
struct cudnn_plan {
    cudnnBackendDescriptor_t descriptor;
    int64_t                  workspace_bytes;
    int64_t                  engine;    // cuDNN's number of it
};
// The proposed engines that can be made into plans, best guess first, and how many. Fails when none can. The plans are
// the graph's, and live as long.
status cudnn_graph_plan(struct cudnn_graph *graph, cudnnHandle_t handle, struct cudnn_plan plans[CUDNN_PLANS],
                        int *count);
void   cudnn_graph_free(struct cudnn_graph *graph);

#endif
