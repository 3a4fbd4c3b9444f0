// SPDX-License-Identifier: MIT
// Attention, blocked: a block of query rows at a time against the keys it sees. The threads share the heads of keys and
// values; each is worked on by one thread, in one order, so that the result does not depend on the number of threads.
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "internal.h"

// Query rows of a block: enough to make the products efficient, few enough to keep their scores in the cache.
enum { BLOCK = 96 };

// One head of keys and values, widened, and what a thread works with on one block of queries.
struct head {
    const struct work            *work;
    const struct attention_shape *shape;
    struct panel                  key, value;                       // [sequence, head_dim]
    float                        *key_gradient, *value_gradient;    // [sequence, head_dim]
    float                        *scores, *score_gradient;          // [BLOCK, sequence]
    float                        *space[4];                         // [BLOCK, head_dim]
    int64_t                       batch, group;                     // which head
};

// A block of queries of one head.
struct block {
    int64_t first, rows;    // within the sequence
    int64_t keys;           // leading keys that some row sees
    int64_t at, leading;    // of QUERY and OUT
    int64_t statistics_at;
};

static int64_t forward_floats(const struct attention_shape *shape)
{
    return (2 * shape->sequence + 4 * BLOCK) * shape->head_dim + BLOCK * shape->sequence;
}

int64_t host_attention_floats(const struct op *op, int threads)
{
    (void)threads;
    return forward_floats(&op->shape.attention);
}

int64_t host_attention_backward_floats(const struct op *op, int threads)
{
    (void)threads;
    const struct attention_shape *shape = &op->shape.attention;
    return forward_floats(shape) + (2 * shape->head_dim + BLOCK) * shape->sequence;
}

// Widens the keys and values of one head, and lays out the thread's scratch.
static struct head open_head(const struct work *work, int64_t index, int operand, float *space)
{
    const struct attention_shape *shape = &work->op->shape.attention;
    const struct buffer          *pairs = &work->buffers[operand];
    int64_t     size = shape->sequence * shape->head_dim, leading = 2 * shape->kv_heads * shape->head_dim;
    struct head head = {.work = work, .shape = shape};
    head.batch       = index / shape->kv_heads;
    head.group       = index % shape->kv_heads;
    int64_t at       = head.batch * shape->sequence * leading + head.group * shape->head_dim;
    head.key         = panel_read(pairs, at, leading, shape->sequence, shape->head_dim, space);
    head.value       = panel_read(pairs, at + leading / 2, leading, shape->sequence, shape->head_dim, space + size);
    space += 2 * size;
    for (int i = 0; i < 4; i++) {
        head.space[i] = space;
        space += BLOCK * shape->head_dim;
    }
    head.scores         = space;
    head.score_gradient = head.scores + BLOCK * shape->sequence;
    head.key_gradient   = head.score_gradient + BLOCK * shape->sequence;
    head.value_gradient = head.key_gradient + size;
    return head;
}

static struct block open_block(const struct head *head, int64_t query_head, int64_t first)
{
    const struct attention_shape *shape = head->shape;
    struct block                  block = {.first = first, .rows = host_minimum(BLOCK, shape->sequence - first)};
    block.keys                          = shape->causal ? first + block.rows : shape->sequence;
    block.leading                       = shape->heads * shape->head_dim;
    block.at            = (head->batch * shape->sequence + first) * block.leading + query_head * shape->head_dim;
    block.statistics_at = (head->batch * shape->heads + query_head) * shape->sequence + first;
    return block;
}

// Keys that a row of the block sees.
static int64_t visible(const struct head *head, const struct block *block, int64_t row)
{
    return head->shape->causal ? block->first + row + 1 : head->shape->sequence;
}

// out[rows, columns] = factor * a[rows, depth] * op(b)
static void multiply(float *out, int leading, const struct panel *a, const struct panel *b, bool transpose_b,
                     const int64_t size[3], float factor)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, (int)size[0], (int)size[1],
                (int)size[2], factor, a->data, a->leading, b->data, b->leading, 0.0f, out, leading);
}

// sum[depth, columns] += a^T[rows, depth] * b[rows, columns]
static void add_transposed(float *sum, const struct panel *a, const struct panel *b, const int64_t size[3])
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)size[1], (int)size[2], (int)size[0], 1.0f, a->data,
                a->leading, b->data, b->leading, 1.0f, sum, (int)size[2]);
}

static struct panel read_rows(const struct head *head, const struct block *block, int operand, float *space)
{
    return panel_read(&head->work->buffers[operand], block->at, block->leading, block->rows, head->shape->head_dim,
                      space);
}

static void write_rows(const struct buffer *to, int64_t at, int64_t leading, int64_t rows, int64_t columns,
                       const float *values)
{
    for (int64_t row = 0; row < rows; row++) {
        row_close(to, at + row * leading, columns, values + row * columns);
    }
}

static void forward_block(const struct head *head, const struct block *block)
{
    int64_t      width = head->shape->head_dim, stride = head->shape->sequence;
    float       *statistics = (float *)head->work->buffers[ATTENTION_STATISTICS].data + block->statistics_at;
    struct panel query      = read_rows(head, block, ATTENTION_QUERY, head->space[0]);
    struct panel scores     = {head->scores, (int)stride};
    float       *out        = head->space[1];
    double       sums[BLOCK];
    multiply(head->scores, (int)stride, &query, &head->key, true, (int64_t[]){block->rows, block->keys, width},
             head->shape->scale);
    for (int64_t row = 0; row < block->rows; row++) {
        int64_t seen    = visible(head, block, row);
        float  *values  = head->scores + row * stride;
        float   maximum = row_maximum(values, seen);
        sums[row]       = row_exponential(values, maximum, seen);
        statistics[row] = (float)((double)maximum + log(sums[row]));
        memset(values + seen, 0, sizeof(*values) * (size_t)(block->keys - seen));
    }
    multiply(out, (int)width, &scores, &head->value, false, (int64_t[]){block->rows, width, block->keys}, 1.0f);
    for (int64_t row = 0; row < block->rows; row++) {
        float factor = (float)(1 / sums[row]);
        for (int64_t i = 0; i < width; i++) {
            out[row * width + i] *= factor;
        }
    }
    write_rows(&head->work->buffers[ATTENTION_OUT], block->at, block->leading, block->rows, width, out);
}

static void forward_heads(void *context, int64_t first, int64_t last, int thread)
{
    const struct work            *work  = context;
    const struct attention_shape *shape = &work->op->shape.attention;
    float                        *space = host_scratch(work, thread, host_attention_floats(work->op, 1));
    int64_t                       group = shape->heads / shape->kv_heads;
    for (int64_t index = first; index < last; index++) {
        struct head head = open_head(work, index, ATTENTION_KEY_VALUE, space);
        for (int64_t i = 0; i < group * shape->sequence;
             i += host_minimum(BLOCK, shape->sequence - i % shape->sequence)) {
            struct block block = open_block(&head, head.group * group + i / shape->sequence, i % shape->sequence);
            forward_block(&head, &block);
        }
    }
}

void host_attention_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, forward_heads, op->shape.attention.batch * op->shape.attention.kv_heads);
}

// With P the weights and D the row sums of d out * out: dP = d out V^T, d scores = P (dP - D).
static void differentiate_scores(const struct head *head, const struct block *block, const struct panel *out_gradient,
                                 const struct panel *out)
{
    const float *statistics =
        (const float *)head->work->buffers[ATTENTION_GRADIENT_STATISTICS].data + block->statistics_at;
    for (int64_t row = 0; row < block->rows; row++) {
        int64_t seen     = visible(head, block, row);
        size_t  rest     = sizeof(float) * (size_t)(block->keys - seen);
        float  *weights  = head->scores + row * head->shape->sequence;
        float  *gradient = head->score_gradient + row * head->shape->sequence;
        float   delta = (float)row_dot(out_gradient->data + row * out_gradient->leading, out->data + row * out->leading,
                                       head->shape->head_dim);
        row_exponential(weights, statistics[row], seen);
        for (int64_t i = 0; i < seen; i++) {
            gradient[i] = weights[i] * (gradient[i] - delta) * head->shape->scale;
        }
        memset(weights + seen, 0, rest);
        memset(gradient + seen, 0, rest);
    }
}

static void backward_block(const struct head *head, const struct block *block)
{
    int64_t      width        = head->shape->head_dim;
    int          stride       = (int)head->shape->sequence;
    int64_t      square[]     = {block->rows, block->keys, width};
    struct panel query        = read_rows(head, block, ATTENTION_GRADIENT_QUERY_IN, head->space[0]);
    struct panel out_gradient = read_rows(head, block, ATTENTION_GRADIENT_OUT, head->space[1]);
    struct panel out          = read_rows(head, block, ATTENTION_GRADIENT_OUT_IN, head->space[2]);
    struct panel weights = {head->scores, stride}, score_gradient = {head->score_gradient, stride};
    multiply(head->scores, stride, &query, &head->key, true, square, head->shape->scale);
    multiply(head->score_gradient, stride, &out_gradient, &head->value, true, square, 1.0f);
    differentiate_scores(head, block, &out_gradient, &out);
    add_transposed(head->value_gradient, &weights, &out_gradient, square);
    add_transposed(head->key_gradient, &score_gradient, &query, square);
    multiply(head->space[3], (int)width, &score_gradient, &head->key, false,
             (int64_t[]){block->rows, width, block->keys}, 1.0f);
    write_rows(&head->work->buffers[ATTENTION_GRADIENT_QUERY], block->at, block->leading, block->rows, width,
               head->space[3]);
}

static void backward_heads(void *context, int64_t first, int64_t last, int thread)
{
    const struct work            *work  = context;
    const struct attention_shape *shape = &work->op->shape.attention;
    const struct buffer          *to    = &work->buffers[ATTENTION_GRADIENT_KEY_VALUE];
    float                        *space = host_scratch(work, thread, host_attention_backward_floats(work->op, 1));
    int64_t group = shape->heads / shape->kv_heads, leading = 2 * shape->kv_heads * shape->head_dim;
    for (int64_t index = first; index < last; index++) {
        struct head head = open_head(work, index, ATTENTION_GRADIENT_KEY_VALUE_IN, space);
        int64_t     at   = head.batch * shape->sequence * leading + head.group * shape->head_dim;
        memset(head.key_gradient, 0, sizeof(float) * 2 * (size_t)(shape->sequence * shape->head_dim));
        for (int64_t i = 0; i < group * shape->sequence;
             i += host_minimum(BLOCK, shape->sequence - i % shape->sequence)) {
            struct block block = open_block(&head, head.group * group + i / shape->sequence, i % shape->sequence);
            backward_block(&head, &block);
        }
        write_rows(to, at, leading, shape->sequence, shape->head_dim, head.key_gradient);
        write_rows(to, at + leading / 2, leading, shape->sequence, shape->head_dim, head.value_gradient);
    }
}

void host_attention_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, backward_heads, op->shape.attention.batch * op->shape.attention.kv_heads);
}
