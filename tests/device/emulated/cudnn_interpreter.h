// SPDX-License-Identifier: MIT
// What a graph of cuDNN operations computes, element by element, with no engine in mind: whether a graph is attention
// and its tensors are bound to what they stand for shows here. How an engine rounds does not.
#ifndef GSWBENCH_TESTS_CUDNN_INTERPRETER_H
#define GSWBENCH_TESTS_CUDNN_INTERPRETER_H

#include <cudnn.h>
#include <stdint.h>

#include <map>
#include <vector>

struct graph_tensor {
    cudnnDataType_t type;
    int64_t         dim[4], stride[4];
    int64_t         id;
    bool            is_virtual, is_by_value;
};

// out = kind(x, b), or for a selection selector ? x : b; b and selector are x where a kind has none.
struct graph_operation {
    cudnnBackendDescriptorType_t kind;
    cudnnPointwiseMode_t         mode;
    cudnnReduceTensorOp_t        reduction;
    int64_t                      axis;
    graph_tensor                 x, b, selector, out;
};

// What ids are bound to: memory, or for a number on the host its value.
struct graph_bindings {
    std::map<int64_t, void *> memory;
    std::map<int64_t, float>  numbers;
};

void graph_run(const std::vector<graph_operation> &operations, const graph_bindings &bindings);

#endif
