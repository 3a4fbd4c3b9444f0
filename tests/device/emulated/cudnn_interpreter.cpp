// SPDX-License-Identifier: MIT
// Loops over the elements of each operation's result.
#include "cudnn_interpreter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "gswbench/arithmetic.h"

namespace
{
typedef std::map<int64_t, std::vector<float>> buffers;    // of tensors inside the graph, by id

struct index4 {
    int64_t at[4];
};

int64_t extent(const graph_tensor &tensor)
{
    int64_t last = 0;
    for (int i = 0; i < 4; i++) {
        last += (tensor.dim[i] - 1) * tensor.stride[i];
    }
    return last + 1;
}

// A tensor with what its elements lie in.
struct view {
    const graph_tensor *tensor;
    void               *memory;    // NULL: inside
    float              *inside;
    float               number;

    float read(int64_t offset) const
    {
        if (tensor->is_by_value) {
            return number;
        }
        if (memory == NULL) {
            return inside[offset];
        }
        return tensor->type == CUDNN_DATA_BFLOAT16 ? bf16_to_float(((const bf16 *)memory)[offset])
                                                   : ((const float *)memory)[offset];
    }
    void write(int64_t offset, float value) const
    {
        if (memory == NULL) {
            bool is_rounded = tensor->type == CUDNN_DATA_BFLOAT16;
            inside[offset]  = is_rounded ? bf16_to_float(bf16_from_float(value)) : value;
        } else if (tensor->type == CUDNN_DATA_BFLOAT16) {
            ((bf16 *)memory)[offset] = bf16_from_float(value);
        } else {
            ((float *)memory)[offset] = value;
        }
    }
    // Of an element of a result whose sizes are these: a size of one is taken for all, and heads share groups.
    int64_t offset(const index4 &of, const int64_t dim[4]) const
    {
        int64_t offset = 0;
        for (int i = 0; i < 4; i++) {
            int64_t own = tensor->dim[i];
            offset += (own == dim[i] ? of.at[i] : own == 1 ? 0 : of.at[i] / (dim[i] / own)) * tensor->stride[i];
        }
        return offset;
    }
};

view view_of(const graph_tensor &tensor, const graph_bindings &bindings, buffers &inside)
{
    view seen = {&tensor, NULL, NULL, 0};
    if (tensor.is_by_value) {
        seen.number = bindings.numbers.at(tensor.id);
    } else if (tensor.is_virtual) {
        std::vector<float> &elements = inside[tensor.id];
        elements.resize((size_t)extent(tensor));
        seen.inside = elements.data();
    } else {
        seen.memory = bindings.memory.at(tensor.id);
    }
    return seen;
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

// The order in which the real one's blocks of keys add to rows of a sum in memory: that in which they arrive, other in
// each call and for each block of rows.
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

// A sum of which 18 of 23 digits are kept: so one number in a thousand is rounded otherwise in bf16 when the order is
// another, and a small tensor shows what a real one does, whose numbers are millions.
float coarse(float sum)
{
    uint32_t bits;
    memcpy(&bits, &sum, sizeof(bits));
    bits = (bits + 16) & ~31u;
    memcpy(&sum, &bits, sizeof(bits));
    return sum;
}

// A sum in fp32 that lies in memory is one that blocks add to; sums inside the graph stay in registers.
bool is_added_to(const view &out)
{
    return out.memory != NULL && out.tensor->type == CUDNN_DATA_FLOAT;
}

void multiply(const view &x, const view &b, const view &out)
{
    int64_t depth = x.tensor->dim[3], tile = is_added_to(out) ? (int64_t)arrival::TILE : depth;
    int64_t tiles = (depth + tile - 1) / tile;
    arrival arrives;
    for_each(out.tensor->dim, [&](const index4 &at) {
        const int64_t *dim = out.tensor->dim;
        index4         row = {{at.at[0], at.at[1], at.at[2], 0}}, column = {{at.at[0], at.at[1], 0, at.at[3]}};
        const int64_t  left[4] = {dim[0], dim[1], dim[2], depth}, right[4] = {dim[0], dim[1], depth, dim[3]};
        int64_t        from = x.offset(row, left), by = b.offset(column, right);
        float          sum = 0;
        for (int64_t first : arrives.of(at, dim, tiles)) {
            float part = 0;
            for (int64_t k = first * tile; k < std::min(depth, (first + 1) * tile); k++) {
                part += x.read(from + k * x.tensor->stride[3]) * b.read(by + k * b.tensor->stride[2]);
            }
            sum = tiles > 1 ? coarse(sum + part) : part;
        }
        out.write(out.offset(at, dim), sum);
    });
}

// FAKE_DQ: what is wrong with the gradient of queries each time: "percent", it is off by 1 % of its norm in a direction
// that is drawn; "head", that of the last head is zero; "flip", the highest bit of the exponent of an element below 2
// is set.
void spoil(const view &out)
{
    static std::mt19937 draw{std::random_device()()};
    const char         *told  = getenv("FAKE_DQ");
    int64_t             count = extent(*out.tensor), head = out.tensor->dim[1] - 1;
    if (told == NULL || !is_added_to(out)) {
        return;
    }
    if (strcmp(told, "head") == 0) {
        for_each(out.tensor->dim, [&](const index4 &at) {
            if (at.at[1] == head) {
                out.write(out.offset(at, out.tensor->dim), 0);
            }
        });
    } else if (strcmp(told, "flip") == 0) {
        const uint32_t highest = 1u << 30;
        int64_t        first   = (int64_t)(draw() % (uint64_t)count);
        for (int64_t i = 0; i < count; i++) {    // of zeros there may be nothing else, where an engine is tried
            uint32_t bits;
            int64_t  at    = (first + i) % count;
            float    value = out.read(at);
            memcpy(&bits, &value, sizeof(bits));
            if (value != 0 && (bits & highest) == 0) {
                bits |= highest;
                memcpy(&value, &bits, sizeof(bits));
                out.write(at, value);
                break;
            }
        }
    } else if (strcmp(told, "percent") == 0) {
        double squares = 0;
        for (int64_t i = 0; i < count; i++) {
            squares += (double)out.read(i) * (double)out.read(i);
        }
        std::normal_distribution<float> noise(0, (float)(0.01 * sqrt(squares / (double)count)));
        for (int64_t i = 0; i < count; i++) {
            out.write(i, out.read(i) + noise(draw));
        }
    } else {
        fprintf(stderr, "FAKE_DQ has no '%s'\n", told);
        abort();
    }
}

void reduce(const graph_operation &operation, const view &x, const view &out)
{
    bool               is_maximum = operation.reduction == CUDNN_REDUCE_TENSOR_MAX;
    std::vector<float> sums((size_t)extent(*out.tensor), is_maximum ? -INFINITY : 0.0f);
    for_each(x.tensor->dim, [&](const index4 &at) {
        float  value = x.read(x.offset(at, x.tensor->dim));
        float &sum   = sums[(size_t)out.offset(at, x.tensor->dim)];
        sum          = is_maximum ? std::max(sum, value) : sum + value;
    });
    for_each(out.tensor->dim, [&](const index4 &at) {
        int64_t offset = out.offset(at, out.tensor->dim);
        out.write(offset, sums[(size_t)offset]);
    });
}
}    // namespace

void graph_run(const std::vector<graph_operation> &operations, const graph_bindings &bindings)
{
    buffers inside;
    for (const graph_operation &operation : operations) {
        view x = view_of(operation.x, bindings, inside), out = view_of(operation.out, bindings, inside);
        view b = operation.has_b ? view_of(operation.b, bindings, inside) : x;
        switch (operation.kind) {
        case GRAPH_GEMM:
            multiply(x, b, out);
            spoil(out);
            break;
        case GRAPH_REDUCTION:
            reduce(operation, x, out);
            break;
        case GRAPH_RESHAPE:    // the same memory in another order of dimensions
            for (int64_t i = 0; i < extent(operation.x); i++) {
                out.write(i, x.read(i));
            }
            break;
        case GRAPH_POINTWISE: {
            bool selects  = operation.mode == CUDNN_POINTWISE_BINARY_SELECT;
            view selector = selects ? view_of(operation.selector, bindings, inside) : x;
            for_each(operation.out.dim, [&](const index4 &at) {
                const int64_t *dim       = operation.out.dim;
                float          values[3] = {x.read(x.offset(at, dim)), b.read(b.offset(at, dim)),
                                            selector.read(selector.offset(at, dim))};
                out.write(out.offset(at, dim), combine(operation, values, at));
            });
        }
        }
    }
}
