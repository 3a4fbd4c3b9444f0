// SPDX-License-Identifier: MIT
// An emulated cuDNN, in a library folder of its own. Descriptors store their attributes, and a plan is executed by
// interpreting its graph. FAKE_CUDNN selects a failure: version (too old), create, graph, engines, plan, first (plan of
// the first engine) or execute. With "many", the heuristic counts more engines than requested.
#include <cudnn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "emulator.h"
#include "gswbench/arithmetic.h"

namespace
{
struct graph_tensor {
    cudnnDataType_t type;
    int64_t         dim[4], stride[4];
    int64_t         id;
    bool            is_virtual, is_by_value;
};

// An operation of a graph: out = kind(x, b), or out = selector ? x : b. An operation without b or selector has x there.
struct graph_operation {
    cudnnBackendDescriptorType_t kind;
    cudnnPointwiseMode_t         mode;
    cudnnReduceTensorOp_t        reduction;
    int64_t                      axis;
    graph_tensor                 x, b, selector, out;
};

// The device memory or the host scalar that each tensor id is bound to.
struct graph_bindings {
    std::map<int64_t, void *> memory;
    std::map<int64_t, float>  numbers;
};

struct index4 {
    int64_t at[4];
};

// The elements of a tensor in fp32, in memory order. A write rounds to the tensor's type, and also writes the memory
// that is bound to it.
struct view {
    const graph_tensor *tensor;
    void               *memory;    // NULL: the tensor exists only inside the graph
    std::vector<float> *elements;

    float read(int64_t offset) const
    {
        return (*elements)[(size_t)offset];
    }
    void write(int64_t offset, float value) const
    {
        if (tensor->type == CUDNN_DATA_BFLOAT16) {
            bf16 rounded = bf16_from_float(value);
            value        = bf16_to_float(rounded);
            if (memory != NULL) {
                ((bf16 *)memory)[offset] = rounded;
            }
        } else if (memory != NULL) {
            ((float *)memory)[offset] = value;
        }
        (*elements)[(size_t)offset] = value;
    }
};

// The offsets of a tensor's elements if it is used for a result with these dimensions. A dimension of 1 is broadcast.
// If the tensor has fewer heads than the result, several heads share one.
struct offsets {
    std::vector<int64_t> along[4];

    offsets(const graph_tensor &tensor, const int64_t dim[4])
    {
        for (int i = 0; i < 4; i++) {
            int64_t own = tensor.dim[i];
            for (int64_t at = 0; at < dim[i]; at++) {
                along[i].push_back((own == dim[i] ? at : own == 1 ? 0 : at / (dim[i] / own)) * tensor.stride[i]);
            }
        }
    }
    int64_t of(const index4 &index) const
    {
        int64_t sum = 0;
        for (int i = 0; i < 4; i++) {
            sum += along[i][(size_t)index.at[i]];
        }
        return sum;
    }
};

typedef std::map<int64_t, std::vector<float>> buffers;    // elements of tensors by tensor id

view view_of(const graph_tensor &tensor, const graph_bindings &bindings, buffers &all)
{
    std::vector<float> &elements = all[tensor.id];
    size_t              count    = 1;
    for (int i = 0; i < 4; i++) {
        count += (size_t)((tensor.dim[i] - 1) * tensor.stride[i]);
    }
    if (tensor.is_by_value) {
        elements.assign(count, bindings.numbers.at(tensor.id));
    }
    elements.resize(count);
    if (tensor.is_by_value || tensor.is_virtual) {
        return {&tensor, NULL, &elements};
    }
    void *memory = bindings.memory.at(tensor.id);
    for (size_t i = 0; i < count; i++) {
        elements[i] =
            tensor.type == CUDNN_DATA_BFLOAT16 ? bf16_to_float(((const bf16 *)memory)[i]) : ((const float *)memory)[i];
    }
    return {&tensor, memory, &elements};
}

template <typename Body> void for_each(const int64_t dim[4], Body body)
{
    index4 at;
    for (at.at[0] = 0; at.at[0] < dim[0]; at.at[0]++) {
        for (at.at[1] = 0; at.at[1] < dim[1]; at.at[1]++) {
            for (at.at[2] = 0; at.at[2] < dim[2]; at.at[2]++) {
                for (at.at[3] = 0; at.at[3] < dim[3]; at.at[3]++) {
                    body(at);
                }
            }
        }
    }
}

float combine(const graph_operation &operation, const float values[3], const index4 &at)
{
    switch ((int)operation.mode) {
    case CUDNN_POINTWISE_ADD:
        return values[0] + values[1];
    case CUDNN_POINTWISE_SUB:
        return values[0] - values[1];
    case CUDNN_POINTWISE_MUL:
        return values[0] * values[1];
    case CUDNN_POINTWISE_DIV:
        return values[0] / values[1];
    case CUDNN_POINTWISE_EXP:
        return expf(values[0]);
    case CUDNN_POINTWISE_LOG:
        return logf(values[0]);
    case CUDNN_POINTWISE_IDENTITY:
        return values[0];
    case CUDNN_POINTWISE_GEN_INDEX:
        return (float)at.at[operation.axis];
    case CUDNN_POINTWISE_CMP_GE:
        return values[0] >= values[1] ? 1.0f : 0.0f;
    case CUDNN_POINTWISE_CMP_GT:
        return values[0] > values[1] ? 1.0f : 0.0f;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return values[2] != 0 ? values[0] : values[1];
    default:
        fprintf(stderr, "emulated cuDNN: no pointwise operation %d\n", (int)operation.mode);
        abort();
    }
}

// The order in which blocks of keys add to the rows of a sum in memory. On a real GPU blocks add in the order in which
// they finish. So the order here is drawn anew for each call and each block of rows.
struct arrival {
    enum { TILE = 4 };
    std::vector<int64_t> order;
    unsigned             seed = std::random_device()();
    int64_t              rows = -1;

    const std::vector<int64_t> &of(const index4 &at, const int64_t dim[4], int64_t tiles)
    {
        int64_t wanted = (at.at[0] * dim[1] + at.at[1]) * dim[2] + at.at[2] / TILE;
        if (rows != wanted) {
            std::mt19937 draw(seed + (unsigned)wanted);
            order.resize((size_t)tiles);
            std::iota(order.begin(), order.end(), 0);
            std::shuffle(order.begin(), order.end(), draw);
            rows = wanted;
        }
        return order;
    }
};

// Keeps 18 of the 23 mantissa bits of a sum. Another order of summation then changes about one bf16 result in a
// thousand, so small tensors vary as much as large ones on a real GPU.
float coarse(float sum)
{
    return std::bit_cast<float>((std::bit_cast<uint32_t>(sum) + 16) & ~31u);
}

// Returns whether blocks add to this tensor in memory. That is so for fp32 outputs; a sum inside the graph stays in
// registers.
bool is_added_to(const view &out)
{
    return out.memory != NULL && out.tensor->type == CUDNN_DATA_FLOAT;
}

void multiply(const view &x, const view &b, const view &out)
{
    const int64_t *dim   = out.tensor->dim;
    int64_t        depth = x.tensor->dim[3], tile = is_added_to(out) ? (int64_t)arrival::TILE : depth;
    int64_t        tiles = (depth + tile - 1) / tile, x_step = x.tensor->stride[3], b_step = b.tensor->stride[2];
    const int64_t  left_dim[4] = {dim[0], dim[1], dim[2], depth}, right_dim[4] = {dim[0], dim[1], depth, dim[3]};
    const offsets  left(*x.tensor, left_dim), right(*b.tensor, right_dim), result(*out.tensor, dim);
    arrival        arrives;
    for_each(dim, [&](const index4 &at) {
        const float *from = x.elements->data() + left.of({{at.at[0], at.at[1], at.at[2], 0}});
        const float *by   = b.elements->data() + right.of({{at.at[0], at.at[1], 0, at.at[3]}});
        float        sum  = 0;
        for (int64_t first : arrives.of(at, dim, tiles)) {
            float part = 0;
            for (int64_t k = first * tile; k < std::min(depth, (first + 1) * tile); k++) {
                part += from[k * x_step] * by[k * b_step];
            }
            sum = tiles > 1 ? coarse(sum + part) : part;
        }
        out.write(result.of(at), sum);
    });
}

// FAKE_DQ damages each query gradient. "percent" adds random noise with 1 % of its norm. "head" sets the last head to
// zero. "flip" sets the highest exponent bit of an element smaller than 2.
void spoil(const view &out)
{
    static std::mt19937 draw{std::random_device()()};
    int64_t             count = (int64_t)out.elements->size();
    if (getenv("FAKE_DQ") == NULL || !is_added_to(out)) {
        return;
    }
    if (emulator::is_told("FAKE_DQ", "head")) {
        const offsets result(*out.tensor, out.tensor->dim);
        for_each(out.tensor->dim, [&](const index4 &at) {
            if (at.at[1] == out.tensor->dim[1] - 1) {
                out.write(result.of(at), 0);
            }
        });
    } else if (emulator::is_told("FAKE_DQ", "flip")) {
        const uint32_t highest = 1u << 30;
        int64_t        first   = (int64_t)(draw() % (uint64_t)count);
        for (int64_t i = 0; i < count; i++) {    // all elements may be zero while an engine is tried
            int64_t  at   = (first + i) % count;
            uint32_t bits = std::bit_cast<uint32_t>(out.read(at));
            if (out.read(at) != 0 && (bits & highest) == 0) {
                out.write(at, std::bit_cast<float>(bits | highest));
                break;
            }
        }
    } else if (emulator::is_told("FAKE_DQ", "percent")) {
        double squares = 0;
        for (float each : *out.elements) {
            squares += (double)each * (double)each;
        }
        std::normal_distribution<float> noise(0, (float)(0.01 * sqrt(squares / (double)count)));
        for (int64_t i = 0; i < count; i++) {
            out.write(i, out.read(i) + noise(draw));
        }
    } else {
        fprintf(stderr, "FAKE_DQ has no '%s'\n", getenv("FAKE_DQ"));
        abort();
    }
}

void reduce(const graph_operation &operation, const view &x, const view &out)
{
    bool               is_maximum = operation.reduction == CUDNN_REDUCE_TENSOR_MAX;
    const offsets      from(*x.tensor, x.tensor->dim), to(*out.tensor, x.tensor->dim);
    std::vector<float> sums(out.elements->size(), is_maximum ? -INFINITY : 0.0f);
    for_each(x.tensor->dim, [&](const index4 &at) {
        float value = x.read(from.of(at)), &sum = sums[(size_t)to.of(at)];
        sum = is_maximum ? std::max(sum, value) : sum + value;
    });
    const offsets result(*out.tensor, out.tensor->dim);
    for_each(out.tensor->dim, [&](const index4 &at) { out.write(result.of(at), sums[(size_t)result.of(at)]); });
}

void combine_all(const graph_operation &operation, const view &x, const view &b, const view &selector, const view &out)
{
    const int64_t *dim = operation.out.dim;
    const offsets  of_x(*x.tensor, dim), of_b(*b.tensor, dim), of_selector(*selector.tensor, dim), to(*out.tensor, dim);
    for_each(dim, [&](const index4 &at) {
        const float values[3] = {x.read(of_x.of(at)), b.read(of_b.of(at)), selector.read(of_selector.of(at))};
        out.write(to.of(at), combine(operation, values, at));
    });
}
// Computes a graph element by element. This tests that the graph computes attention and that its tensors are bound
// correctly. It does not round as a real engine does.
void graph_run(const std::vector<graph_operation> &operations, const graph_bindings &bindings)
{
    buffers all;
    for (const graph_operation &operation : operations) {
        view x = view_of(operation.x, bindings, all), b = view_of(operation.b, bindings, all);
        view selector = view_of(operation.selector, bindings, all), out = view_of(operation.out, bindings, all);
        switch ((int)operation.kind) {
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
            multiply(x, b, out);
            spoil(out);
            break;
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            reduce(operation, x, out);
            break;
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:    // changes only the order of dimensions, not the memory
            for (int64_t i = 0; i < (int64_t)x.elements->size(); i++) {
                out.write(i, x.read(i));
            }
            break;
        default:
            combine_all(operation, x, b, selector, out);
        }
    }
}

const int64_t engines[] = {2, 1};    // engine numbers that the heuristic proposes, the best guess first
enum { ENGINES = sizeof(engines) / sizeof(engines[0]) };

struct descriptor {
    cudnnBackendDescriptorType_t     type;
    std::map<int, std::vector<char>> values;    // values by attribute
    int                              engine;    // index into `engines`, for engines, their configurations and plans
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

// For each kind of operation, the attributes that have its tensors.
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

// Reads host scalars when the plan is enqueued, because they may be out of scope when the stream runs the graph.
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

// Proposes engines. The configuration of an engine stores the graph.
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
