// SPDX-License-Identifier: MIT
// cuDNN for the emulator, opened by the name of the real one from a folder of its own. Descriptors keep what they are
// told; a plan is its graph, run by the interpreter. FAKE_CUDNN names what it refuses: version (it is too old), create,
// graph, engines, plan, first (the first engine's plan), execute; many: it counts more engines than were asked for.
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_interpreter.h"
#include "emulator.h"

namespace
{
const int64_t engines[] = {2, 1};    // their numbers, best guess first
enum { ENGINES = sizeof(engines) / sizeof(engines[0]) };

struct descriptor {
    cudnnBackendDescriptorType_t     type;
    std::map<int, std::vector<char>> values;    // by attribute
    int                              engine;    // of engines and what is made of them
};
struct handle {
    cudaStream_t stream;
};

bool refuses(const char *what)
{
    return emulator::is_told("FAKE_CUDNN", what);
}

descriptor *of(cudnnBackendDescriptor_t opaque)
{
    return (descriptor *)(void *)opaque;
}

template <typename T> T value_of(const descriptor *from, cudnnBackendAttributeName_t name, T otherwise)
{
    if (from != NULL && from->values.count(name) != 0) {
        memcpy(&otherwise, from->values.at(name).data(), sizeof(T));
    }
    return otherwise;
}

const descriptor *part_of(const descriptor *from, cudnnBackendAttributeName_t name)
{
    return of(value_of<cudnnBackendDescriptor_t>(from, name, NULL));
}

graph_tensor tensor_of(const descriptor *from)
{
    graph_tensor tensor = {};
    tensor.type         = value_of(from, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
    tensor.id           = value_of<int64_t>(from, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    tensor.is_virtual   = value_of(from, CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
    tensor.is_by_value  = value_of(from, CUDNN_ATTR_TENSOR_IS_BY_VALUE, false);
    memcpy(tensor.dim, from->values.at(CUDNN_ATTR_TENSOR_DIMENSIONS).data(), sizeof(tensor.dim));
    memcpy(tensor.stride, from->values.at(CUDNN_ATTR_TENSOR_STRIDES).data(), sizeof(tensor.stride));
    return tensor;
}

// The attributes that name an operation's tensors.
const struct operation_names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t  x, out, b;
} all_names[] = {
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
     CUDNN_ATTR_OPERATION_MATMUL_BDESC},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
     CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
     {}},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
     CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
     {}},
};

graph_operation operation_of(const descriptor *from)
{
    const operation_names *names = all_names;
    while (names->type != from->type) {
        names++;
    }
    const descriptor *b        = part_of(from, names->b);
    const descriptor *selector = part_of(from, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const descriptor *how      = part_of(from, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    graph_operation   made     = {};
    made.kind                  = from->type;
    made.mode                  = value_of(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
    made.axis                  = value_of<int64_t>(how, CUDNN_ATTR_POINTWISE_AXIS, -1);
    made.reduction = value_of(part_of(from, CUDNN_ATTR_OPERATION_REDUCTION_DESC), CUDNN_ATTR_REDUCTION_OPERATOR,
                              CUDNN_REDUCE_TENSOR_ADD);
    made.x         = tensor_of(part_of(from, names->x));
    made.out       = tensor_of(part_of(from, names->out));
    made.b         = b != NULL ? tensor_of(b) : made.x;
    made.selector  = selector != NULL ? tensor_of(selector) : made.x;
    return made;
}

template <typename T> std::vector<T> list_of(const descriptor *from, cudnnBackendAttributeName_t name)
{
    const std::vector<char> &bytes = from->values.at(name);
    std::vector<T>           list(bytes.size() / sizeof(T));
    memcpy(list.data(), bytes.data(), bytes.size());
    return list;
}

// Numbers on the host are read at once: the caller's may be gone when the stream's turn comes.
graph_bindings bindings_of(const std::vector<graph_operation> &operations, const descriptor *pack)
{
    graph_bindings       bindings;
    std::vector<int64_t> ids      = list_of<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    std::vector<void *>  pointers = list_of<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (size_t i = 0; i < ids.size(); i++) {
        bindings.memory[ids[i]] = pointers[i];
    }
    for (const graph_operation &operation : operations) {
        if (operation.b.is_by_value) {
            const void *number               = bindings.memory.at(operation.b.id);
            bool        is_int               = operation.b.type == CUDNN_DATA_INT32;
            bindings.numbers[operation.b.id] = is_int ? (float)*(const int32_t *)number : *(const float *)number;
        }
    }
    return bindings;
}
}    // namespace

extern "C" {

size_t cudnnGetVersion(void)
{
    return refuses("version") ? 90700 : CUDNN_VERSION;
}
const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "success" : "refused on command";
}
void cudnnGetLastErrorString(char *message, size_t bytes)
{
    snprintf(message, bytes, "%s", "");
}
cudnnStatus_t cudnnCreate(cudnnHandle_t *made)
{
    *made = (cudnnHandle_t)(void *)new handle{NULL};
    return refuses("create") ? CUDNN_STATUS_NOT_INITIALIZED : CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t made)
{
    delete (handle *)(void *)made;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t made, cudaStream_t stream)
{
    ((handle *)(void *)made)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *made)
{
    *made = (cudnnBackendDescriptor_t)(void *)new descriptor{type, {}, 0};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t made)
{
    delete of(made);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    size_t bytes = type == CUDNN_TYPE_CHAR || type == CUDNN_TYPE_BOOLEAN ? 1
                   : type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_BACKEND_DESCRIPTOR || type == CUDNN_TYPE_VOID_PTR ||
                           type == CUDNN_TYPE_HANDLE
                       ? 8
                       : 4;
    of(to)->values[name].assign((const char *)values, (const char *)values + (size_t)count * bytes);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t made)
{
    descriptor *one = of(made);
    if (one->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && refuses("graph")) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    if (one->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        one->engine = part_of(one, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine;
        return refuses("plan") || (refuses("first") && one->engine == 0) ? CUDNN_STATUS_NOT_SUPPORTED
                                                                         : CUDNN_STATUS_SUCCESS;
    }
    return CUDNN_STATUS_SUCCESS;
}

// An engine's configuration keeps the graph that it is for.
static cudnnStatus_t propose(const descriptor *heuristic, int64_t wanted, int64_t *count, void *configurations)
{
    *count = refuses("engines") ? 0 : refuses("many") ? 1000 : ENGINES;
    for (int i = 0; i < *count && i < wanted; i++) {
        descriptor *one = of(((cudnnBackendDescriptor_t *)configurations)[i]);
        one->engine     = i % ENGINES;
        one->values[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] =
            heuristic->values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t wanted, int64_t *count, void *values)
{
    *count = 1;
    switch ((int)name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return propose(of(from), wanted, count, values);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)values = 1000;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        of(*(cudnnBackendDescriptor_t *)values)->engine = of(from)->engine;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = engines[of(from)->engine];
        return CUDNN_STATUS_SUCCESS;
    default:
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t with, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    const descriptor *engine = part_of(of(plan), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const descriptor *graph  = part_of(engine, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    if (refuses("execute")) {
        return CUDNN_STATUS_EXECUTION_FAILED;
    }
    std::vector<graph_operation> operations;
    for (cudnnBackendDescriptor_t each : list_of<cudnnBackendDescriptor_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
        operations.push_back(operation_of(of(each)));
    }
    graph_bindings bindings = bindings_of(operations, of(pack));
    emulator::enqueue(((handle *)(void *)with)->stream, [=]() { graph_run(operations, bindings); });
    return CUDNN_STATUS_SUCCESS;
}
}
