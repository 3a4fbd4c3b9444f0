// SPDX-License-Identifier: MIT
// Loops over the elements of each operation's result.
#include "cudnn_interpreter.h"

#include <math.h>
#include <stdio.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "emulator.h"
#include "gswbench/arithmetic.h"

namespace
{
struct index4 {
    int64_t at[4];
};

// A tensor's elements as numbers, from its first to its last in memory. Writes round, and go to memory as well.
struct view {
    const graph_tensor *tensor;
    void               *memory;    // NULL: inside the graph
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

// Where a view has the elements of a result whose sizes are these: a size of one is taken for all, and heads share
// groups.
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

typedef std::map<int64_t, std::vector<float>> buffers;    // elements of tensors, by id

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
    return std::bit_cast<float>((std::bit_cast<uint32_t>(sum) + 16) & ~31u);
}

// A sum in fp32 that lies in memory is one that blocks add to; sums inside the graph stay in registers.
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

// FAKE_DQ: what is wrong with the gradient of queries each time: "percent", it is off by 1 % of its norm in a direction
// that is drawn; "head", that of the last head is zero; "flip", the highest bit of the exponent of an element below 2
// is set.
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
        for (int64_t i = 0; i < count; i++) {    // of zeros there may be nothing else, where an engine is tried
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
}    // namespace

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
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:    // the same memory in another order of dimensions
            for (int64_t i = 0; i < (int64_t)x.elements->size(); i++) {
                out.write(i, x.read(i));
            }
            break;
        default:
            combine_all(operation, x, b, selector, out);
        }
    }
}
