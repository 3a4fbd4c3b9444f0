// SPDX-License-Identifier: MIT
// Builds attention as a graph of cuDNN operations. A cuDNN engine accepts only a graph that matches its pattern, so the
// order of operations and their types are cuDNN's.
#include "cudnn_graph.h"

// Layouts of the tensors. Dimensions are [batch, heads, rows, columns]; strides describe the order in memory.
struct layouts {
    struct cudnn_layout query, out, key, key_transposed, value, value_transposed, scores, scores_transposed, rows,
        key_of_heads, value_of_heads, query_sum;
    bool is_grouped, is_causal, has_earlier, has_window;
};

static struct layouts layouts_of(const struct attention_shape *shape)
{
    int64_t b = shape->batch, h = shape->heads, g = shape->kv_heads, d = shape->head_dim;
    int64_t s = shape->sequence, k = shape->earlier + shape->sequence;
    int64_t v = attention_value_dim(shape), pair = g * (d + v);
    return (struct layouts){
        .query             = {{b, h, s, d}, {s * h * d, d, h * d, 1}},
        .out               = {{b, h, s, v}, {s * h * v, v, h * v, 1}},
        .key               = {{b, g, k, d}, {k * pair, d, pair, 1}},
        .key_transposed    = {{b, g, d, k}, {k * pair, d, 1, pair}},
        .value             = {{b, g, k, v}, {k * pair, v, pair, 1}},
        .value_transposed  = {{b, g, v, k}, {k * pair, v, 1, pair}},
        .scores            = {{b, h, s, k}, {h * s * k, s * k, k, 1}},
        .scores_transposed = {{b, h, k, s}, {h * s * k, s * k, 1, k}},
        .rows              = {{b, h, s, 1}, {h * s, s, 1, 1}},
        .key_of_heads      = {{b, h, k, d}, {h * k * d, k * d, d, 1}},
        .value_of_heads    = {{b, h, k, v}, {h * k * v, k * v, v, 1}},
        .query_sum         = {{b, h, s, d}, {h * s * d, s * d, d, 1}},
        .is_grouped        = g<h, .is_causal = shape->causal, .has_earlier = shape->earlier> 0,
        .has_window        = shape->window > 0,
    };
}

// Appends a pointwise operation on one or two tensors.
static cudnn_tensor apply(struct cudnn_graph *graph, cudnnPointwiseMode_t mode, cudnnDataType_t precision,
                          const cudnn_tensor in[2], cudnn_tensor out)
{
    return cudnn_graph_pointwise(
        graph, &(struct cudnn_pointwise){.mode = mode, .precision = precision, .x = in[0], .b = in[1], .out = out});
}

// Appends an fp32 pointwise operation, whose output is a virtual tensor: it stays inside the engine.
static cudnn_tensor combine(struct cudnn_graph *graph, cudnnPointwiseMode_t mode, cudnn_tensor x, cudnn_tensor b,
                            const struct cudnn_layout *layout)
{
    return apply(graph, mode, CUDNN_DATA_FLOAT, (const cudnn_tensor[]){x, b},
                 cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, layout, 0));
}

static cudnn_tensor index_along(struct cudnn_graph *graph, int64_t axis, cudnn_tensor scores,
                                const struct layouts *layouts)
{
    return cudnn_graph_pointwise(
        graph, &(struct cudnn_pointwise){.mode      = CUDNN_POINTWISE_GEN_INDEX,
                                         .precision = CUDNN_DATA_FLOAT,
                                         .x         = scores,
                                         .axis      = axis,
                                         .out = cudnn_graph_tensor(graph, CUDNN_DATA_INT32, &layouts->scores, 0)});
}

// Appends the sum of a scalar and a tensor of row or column indices.
static cudnn_tensor shift(struct cudnn_graph *graph, cudnn_tensor index, enum cudnn_attention_id by,
                          const struct layouts *layouts)
{
    return apply(graph, CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32,
                 (const cudnn_tensor[]){index, cudnn_graph_scalar(graph, CUDNN_DATA_INT32, by)},
                 cudnn_graph_tensor(graph, CUDNN_DATA_INT32, &layouts->scores, 0));
}

// Appends a mask: scores become -infinity where the comparison of row and column index is false.
static cudnn_tensor keep_where(struct cudnn_graph *graph, cudnn_tensor scores, cudnnPointwiseMode_t comparison,
                               const cudnn_tensor compared[2], const struct layouts *layouts)
{
    cudnn_tensor is_seen  = apply(graph, comparison, CUDNN_DATA_BOOLEAN, compared,
                                  cudnn_graph_tensor(graph, CUDNN_DATA_BOOLEAN, &layouts->scores, 0));
    cudnn_tensor infinity = cudnn_graph_scalar(graph, CUDNN_DATA_FLOAT, CUDNN_ATTENTION_MINUS_INFINITY);
    return cudnn_graph_pointwise(
        graph, &(struct cudnn_pointwise){.mode      = CUDNN_POINTWISE_BINARY_SELECT,
                                         .precision = CUDNN_DATA_FLOAT,
                                         .x         = scores,
                                         .b         = infinity,
                                         .selector  = is_seen,
                                         .out = cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->scores, 0)});
}

// Appends the causal mask and the window mask. If keys precede the first query (`earlier`), their number is added to
// the row index.
static cudnn_tensor mask(struct cudnn_graph *graph, cudnn_tensor scores, const struct layouts *layouts)
{
    if (!layouts->is_causal) {
        return scores;
    }
    cudnn_tensor row    = index_along(graph, 2, scores, layouts);
    row                 = layouts->has_earlier ? shift(graph, row, CUDNN_ATTENTION_EARLIER, layouts) : row;
    cudnn_tensor column = index_along(graph, 3, scores, layouts);
    scores = keep_where(graph, scores, CUDNN_POINTWISE_CMP_GE, (const cudnn_tensor[]){row, column}, layouts);
    if (layouts->has_window) {
        cudnn_tensor end = shift(graph, column, CUDNN_ATTENTION_WINDOW, layouts);
        scores           = keep_where(graph, scores, CUDNN_POINTWISE_CMP_GT, (const cudnn_tensor[]){end, row}, layouts);
    }
    return scores;
}

// Appends scores = query key^T * scale.
static cudnn_tensor scaled_scores(struct cudnn_graph *graph, cudnn_tensor query, cudnn_tensor key, cudnn_tensor scale,
                                  const struct layouts *layouts)
{
    cudnn_tensor scores =
        cudnn_graph_gemm(graph, query, key, cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->scores, 0));
    return combine(graph, CUDNN_POINTWISE_MUL, scores, scale, &layouts->scores);
}

static void describe_forward(struct cudnn_graph *graph, const struct layouts *layouts)
{
    cudnn_tensor query = cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->query, CUDNN_ATTENTION_QUERY);
    cudnn_tensor key   = cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->key_transposed, CUDNN_ATTENTION_KEY);
    cudnn_tensor value = cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->value, CUDNN_ATTENTION_VALUE);
    cudnn_tensor scale = cudnn_graph_scalar(graph, CUDNN_DATA_FLOAT, CUDNN_ATTENTION_SCALE);

    cudnn_tensor scores    = mask(graph, scaled_scores(graph, query, key, scale, layouts), layouts);
    cudnn_tensor largest   = cudnn_graph_reduce(graph, CUDNN_REDUCE_TENSOR_MAX, scores,
                                                cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->rows, 0));
    cudnn_tensor shifted   = combine(graph, CUDNN_POINTWISE_SUB, scores, largest, &layouts->scores);
    cudnn_tensor power     = combine(graph, CUDNN_POINTWISE_EXP, shifted, NULL, &layouts->scores);
    cudnn_tensor sum       = cudnn_graph_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, power,
                                                cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->rows, 0));
    cudnn_tensor logarithm = combine(graph, CUDNN_POINTWISE_LOG, sum, NULL, &layouts->rows);
    apply(graph, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, (const cudnn_tensor[]){largest, logarithm},
          cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->rows, CUDNN_ATTENTION_STATISTICS));
    cudnn_tensor probability = apply(graph, CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT, (const cudnn_tensor[]){power, sum},
                                     cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->scores, 0));
    cudnn_graph_gemm(graph, probability, value,
                     cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->out, CUDNN_ATTENTION_OUT));
}

// Appends the gradient of keys or values: scores^T times rows of the queries or output gradients, summed over the query
// heads that share a key head.
static void key_gradient(struct cudnn_graph *graph, cudnn_tensor scores, cudnn_tensor rows, enum cudnn_attention_id id,
                         const struct layouts *layouts)
{
    cudnn_tensor transposed = cudnn_graph_reshape(
        graph, scores, cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->scores_transposed, 0));
    bool         is_value = id == CUDNN_ATTENTION_VALUE_GRADIENT;
    cudnn_tensor gradient =
        cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, is_value ? &layouts->value : &layouts->key, id);
    if (layouts->is_grouped) {
        cudnn_tensor by_head =
            cudnn_graph_gemm(graph, transposed, rows,
                             cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16,
                                                is_value ? &layouts->value_of_heads : &layouts->key_of_heads, 0));
        cudnn_graph_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, by_head, gradient);
    } else {
        cudnn_graph_gemm(graph, transposed, rows, gradient);
    }
}

static void describe_backward(struct cudnn_graph *graph, const struct layouts *layouts)
{
    cudnn_tensor query = cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->query, CUDNN_ATTENTION_QUERY);
    cudnn_tensor key   = cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->key_transposed, CUDNN_ATTENTION_KEY);
    cudnn_tensor value =
        cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->value_transposed, CUDNN_ATTENTION_VALUE);
    cudnn_tensor out   = cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->out, CUDNN_ATTENTION_OUT);
    cudnn_tensor d_out = cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->out, CUDNN_ATTENTION_OUT_GRADIENT);
    cudnn_tensor statistics = cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->rows, CUDNN_ATTENTION_STATISTICS);
    cudnn_tensor scale      = cudnn_graph_scalar(graph, CUDNN_DATA_FLOAT, CUDNN_ATTENTION_SCALE);

    // Row sums of dO * O. They cover all keys of a row, even if some keys are on other ranks, because O does.
    cudnn_tensor row_sum = combine(graph, CUDNN_POINTWISE_MUL, d_out, out, &layouts->out);
    row_sum              = cudnn_graph_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, row_sum,
                                              cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->rows, 0));
    cudnn_tensor one     = cudnn_graph_scalar(graph, CUDNN_DATA_FLOAT, CUDNN_ATTENTION_ONE);
    row_sum              = apply(graph, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, (const cudnn_tensor[]){row_sum, one},
                                 cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->rows, CUDNN_ATTENTION_ROW_SUM));

    cudnn_tensor scores = scaled_scores(graph, query, key, scale, layouts);
    scores = mask(graph, combine(graph, CUDNN_POINTWISE_SUB, scores, statistics, &layouts->scores), layouts);
    cudnn_tensor probability = combine(graph, CUDNN_POINTWISE_EXP, scores, NULL, &layouts->scores);
    key_gradient(graph, probability, d_out, CUDNN_ATTENTION_VALUE_GRADIENT, layouts);

    cudnn_tensor d_scores =
        cudnn_graph_gemm(graph, d_out, value, cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->scores, 0));
    d_scores = combine(graph, CUDNN_POINTWISE_SUB, d_scores, row_sum, &layouts->scores);
    d_scores = combine(graph, CUDNN_POINTWISE_MUL, d_scores, probability, &layouts->scores);
    d_scores = apply(graph, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, (const cudnn_tensor[]){d_scores, scale},
                     cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->scores, 0));
    key_gradient(graph, d_scores, query, CUDNN_ATTENTION_KEY_GRADIENT, layouts);

    cudnn_tensor plain_key =
        cudnn_graph_reshape(graph, key, cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->key, 0));
    cudnn_tensor query_sum =
        cudnn_graph_gemm(graph, d_scores, plain_key,
                         cudnn_graph_tensor(graph, CUDNN_DATA_FLOAT, &layouts->query_sum, CUDNN_ATTENTION_QUERY_SUM));
    apply(graph, CUDNN_POINTWISE_IDENTITY, CUDNN_DATA_FLOAT, (const cudnn_tensor[]){query_sum, NULL},
          cudnn_graph_tensor(graph, CUDNN_DATA_BFLOAT16, &layouts->query, CUDNN_ATTENTION_QUERY_GRADIENT));
}

void cudnn_attention_describe(struct cudnn_graph *graph, const struct op *op)
{
    struct layouts layouts = layouts_of(&op->shape.attention);
    if (op->kind == OP_ATTENTION_FORWARD) {
        describe_forward(graph, &layouts);
    } else {
        describe_backward(graph, &layouts);
    }
}
