// SPDX-License-Identifier: MIT
// Computes attention for a block of query rows at a time, over the keys that the block sees. Key-value heads are
// divided among the threads. One thread computes a whole head in a fixed order, so results do not depend on the number
// of threads.
#include <math.h>
#include <string.h>

#include "gswbench/arithmetic.h"
#include "internal.h"

// Query rows of a block: large enough for efficient GEMMs, and small enough that the scores of a block stay in the
// cache.
enum { BLOCK = 64 };

// One key-value head, and the scratch of the thread that computes it.
struct head {
    const struct loop            *loop;
    const struct attention_shape *shape;
    int64_t                       batch, group;    // index of the sequence, and of the key-value head
    struct view                   key_view, value_view;
    struct panel                  key, value, key_gradient, value_gradient;    // [keys, head_dim or value_dim]
    float                        *scores, *score_gradient;                     // [BLOCK, keys]
    float                        *space[4];                                    // [BLOCK, max(head_dim, value_dim)]
};

// A block of queries of one head.
struct block {
    int64_t     first;     // position in the sequence
    int64_t     hidden;    // keys at the start that no row of the block sees, because of the window
    int64_t     keys;      // number of keys after the hidden ones, up to the last visible one
    struct view query_view, out_view;
    int64_t     statistics_at;
    float       slope;    // ALiBi slope; 0: none
};

static int64_t keys_of(const struct attention_shape *shape)
{
    return shape->earlier + shape->sequence;
}

static int64_t width_of_pair(const struct attention_shape *shape)
{
    return shape->head_dim + attention_value_dim(shape);
}

static int64_t larger_width(const struct attention_shape *shape)
{
    return width_of_pair(shape) - number_min(shape->head_dim, attention_value_dim(shape));
}

static int64_t forward_floats(const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    return (width_of_pair(shape) + BLOCK) * keys_of(shape) + 4 * BLOCK * larger_width(shape);
}

static int64_t backward_floats(const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    return forward_floats(op) + (width_of_pair(shape) + BLOCK) * keys_of(shape);
}

static int64_t count_heads(const struct op *op)
{
    return op->shape.attention.batch * op->shape.attention.kv_heads;
}

// Reads one key-value head, and divides the thread's scratch into the arrays of struct head.
static struct head open_head(const struct loop *loop, int64_t index, int operand, float *space)
{
    const struct attention_shape *shape = &loop->op->shape.attention;
    const struct buffer          *pairs = &loop->buffers[operand];
    int64_t                       width = shape->head_dim, of_value = attention_value_dim(shape), keys = keys_of(shape);
    int64_t                       leading = shape->kv_heads * width_of_pair(shape);
    struct head                   head    = {
                             .loop = loop, .shape = shape, .batch = index / shape->kv_heads, .group = index % shape->kv_heads};
    int64_t at      = head.batch * keys * leading;
    head.key_view   = (struct view){at + head.group * width, leading, keys, width};
    head.value_view = (struct view){at + shape->kv_heads * width + head.group * of_value, leading, keys, of_value};
    head.key        = panel_read(pairs, &head.key_view, space);
    head.value      = panel_read(pairs, &head.value_view, space + keys * width);
    space += keys * width_of_pair(shape);
    for (int i = 0; i < 4; i++) {
        head.space[i] = space;
        space += BLOCK * larger_width(shape);
    }
    head.scores         = space;
    head.score_gradient = head.scores + BLOCK * keys;
    float *gradients    = head.score_gradient + BLOCK * keys;
    head.key_gradient   = (struct panel){gradients, width, keys, width, false};
    head.value_gradient = (struct panel){gradients + keys * width, of_value, keys, of_value, false};
    return head;
}

static struct view rows_of_head(const struct attention_shape *shape, int64_t token, int64_t head, int64_t rows,
                                int64_t width)
{
    return (struct view){(token * shape->heads + head) * width, shape->heads * width, rows, width};
}

static struct block open_block(const struct head *head, int64_t query_head, int64_t first)
{
    const struct attention_shape *shape = head->shape;
    int64_t      rows = number_min(BLOCK, shape->sequence - first), token = head->batch * shape->sequence + first;
    struct block block = {.first = first, .keys = shape->causal ? shape->earlier + first + rows : keys_of(shape)};
    int64_t      begin = shape->earlier + first + 1 - shape->window;
    if (shape->sloped_heads > 0) {
        block.slope = arithmetic_slope(shape->first_head + query_head, shape->sloped_heads);
    }
    block.hidden = shape->window > 0 && begin > 0 ? begin : 0;
    block.keys -= block.hidden;
    block.query_view    = rows_of_head(shape, token, query_head, rows, shape->head_dim);
    block.out_view      = rows_of_head(shape, token, query_head, rows, attention_value_dim(shape));
    block.statistics_at = (head->batch * shape->heads + query_head) * shape->sequence + first;
    return block;
}

// Returns how many of the block's keys a row sees. *hidden: number of the block's keys before these that the window
// hides from this row.
static int64_t visible(const struct head *head, const struct block *block, int64_t row, int64_t *hidden)
{
    const struct attention_shape *shape = head->shape;
    int64_t end = shape->causal ? shape->earlier + block->first + row + 1 - block->hidden : block->keys;
    *hidden     = shape->window > 0 && end > shape->window ? end - shape->window : 0;
    return end - *hidden;
}

// Adds the ALiBi bias to a row's scores.
static void add_alibi(const struct head *head, const struct block *block, int64_t row, float *scores, int64_t keys)
{
    int64_t first = head->shape->distance + block->first + row - block->hidden;
    for (int64_t key = 0; key < keys && block->slope != 0.0f; key++) {
        scores[key] -= block->slope * (float)(first - key);
    }
}

static struct panel seen_keys(const struct panel *panel, const struct block *block, bool transposed)
{
    return (struct panel){panel->data + block->hidden * panel->leading, panel->leading, block->keys, panel->columns,
                          transposed};
}

// Zeroes the softmax weights of keys that a row does not see: the first `hidden`, and all after the next `seen`.
static void hide(float *values, const struct block *block, int64_t hidden, int64_t seen)
{
    memset(values, 0, sizeof(*values) * (size_t)hidden);
    memset(values + hidden + seen, 0, sizeof(*values) * (size_t)(block->keys - hidden - seen));
}

static struct panel score_panel(const struct head *head, const struct block *block, float *data)
{
    return (struct panel){data, keys_of(head->shape), block->query_view.rows, block->keys, false};
}

static void forward_block(const struct head *head, const struct block *block)
{
    const struct buffer *buffers    = head->loop->buffers;
    int64_t              width      = block->out_view.columns;
    float               *statistics = (float *)buffers[ATTENTION_STATISTICS].data + block->statistics_at;
    struct panel         key = seen_keys(&head->key, block, true), value = seen_keys(&head->value, block, false);
    struct panel         query  = panel_read(&buffers[ATTENTION_QUERY], &block->query_view, head->space[0]);
    struct panel         scores = score_panel(head, block, head->scores);
    struct panel         out    = {head->space[1], width, block->out_view.rows, width, false};
    double               sums[BLOCK];
    panel_multiply(&scores, &query, &key, head->shape->scale, 0.0f);
    for (int64_t row = 0; row < scores.rows; row++) {
        int64_t hidden, seen = visible(head, block, row, &hidden);
        float  *values = scores.data + row * scores.leading;
        add_alibi(head, block, row, values, hidden + seen);
        float maximum   = row_maximum(values + hidden, seen);
        sums[row]       = row_exponential(values + hidden, maximum, seen);
        statistics[row] = (float)((double)maximum + log(sums[row]));
        hide(values, block, hidden, seen);
    }
    panel_multiply(&out, &scores, &value, 1.0f, 0.0f);
    for (int64_t row = 0; row < out.rows; row++) {
        row_scale(out.data + row * width, out.data + row * width, width, (float)(1 / sums[row]));
    }
    panel_write(&buffers[ATTENTION_OUT], &block->out_view, &out, false);
}

static void run_blocks(const struct head *head, void (*run)(const struct head *head, const struct block *block))
{
    int64_t group = head->shape->heads / head->shape->kv_heads;
    for (int64_t i = 0; i < group; i++) {
        for (int64_t first = 0; first < head->shape->sequence; first += BLOCK) {
            struct block block = open_block(head, head->group * group + i, first);
            run(head, &block);
        }
    }
}

static void forward_heads(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    float *space = host_space(loop, thread);
    for (int64_t index = first; index < last; index++) {
        struct head head = open_head(loop, index, ATTENTION_KEY_VALUE, space);
        run_blocks(&head, forward_block);
    }
}

const struct host_op host_attention_forward = {.body = forward_heads, .count = count_heads, .each = forward_floats};

// Computes dS = P (dP - D) scale from the scores and dP = dO V^T. P: softmax weights. D: row sums of dO * O.
static void differentiate_scores(const struct head *head, const struct block *block, const struct panel *out_gradient,
                                 const struct panel *out)
{
    const float *statistics =
        (const float *)head->loop->buffers[ATTENTION_GRADIENT_STATISTICS].data + block->statistics_at;
    for (int64_t row = 0; row < block->query_view.rows; row++) {
        int64_t hidden, seen = visible(head, block, row, &hidden);
        float  *weights  = head->scores + row * keys_of(head->shape);
        float  *gradient = head->score_gradient + row * keys_of(head->shape);
        float   delta = (float)row_dot(out_gradient->data + row * out_gradient->leading, out->data + row * out->leading,
                                       block->out_view.columns);
        add_alibi(head, block, row, weights, hidden + seen);
        row_exponential(weights + hidden, statistics[row], seen);
        for (int64_t i = hidden; i < hidden + seen; i++) {
            gradient[i] = weights[i] * (gradient[i] - delta) * head->shape->scale;
        }
        hide(weights, block, hidden, seen);
        hide(gradient, block, hidden, seen);
    }
}

static void backward_block(const struct head *head, const struct block *block)
{
    const struct buffer *buffers  = head->loop->buffers;
    const struct view   *of_query = &block->query_view, *of_out = &block->out_view;
    struct panel         query        = panel_read(&buffers[ATTENTION_GRADIENT_QUERY_IN], of_query, head->space[0]);
    struct panel         out_gradient = panel_read(&buffers[ATTENTION_GRADIENT_OUT], of_out, head->space[1]);
    struct panel         out          = panel_read(&buffers[ATTENTION_GRADIENT_OUT_IN], of_out, head->space[2]);
    struct panel         key          = seen_keys(&head->key, block, true);
    struct panel         value        = seen_keys(&head->value, block, true);
    struct panel         weights      = score_panel(head, block, head->scores);
    struct panel         gradient     = score_panel(head, block, head->score_gradient);
    panel_multiply(&weights, &query, &key, head->shape->scale, 0.0f);
    panel_multiply(&gradient, &out_gradient, &value, 1.0f, 0.0f);
    differentiate_scores(head, block, &out_gradient, &out);

    struct panel query_gradient = {head->space[3], of_query->columns, of_query->rows, of_query->columns, false};
    key.transposed              = false;
    panel_multiply(&query_gradient, &gradient, &key, 1.0f, 0.0f);
    panel_write(&buffers[ATTENTION_GRADIENT_QUERY], of_query, &query_gradient, head->shape->adds_query);

    struct panel key_gradient   = seen_keys(&head->key_gradient, block, false);
    struct panel value_gradient = seen_keys(&head->value_gradient, block, false);
    weights.transposed = gradient.transposed = true;
    panel_multiply(&value_gradient, &weights, &out_gradient, 1.0f, 1.0f);
    panel_multiply(&key_gradient, &gradient, &query, 1.0f, 1.0f);
}

static void backward_heads(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct buffer *to    = &loop->buffers[ATTENTION_GRADIENT_KEY_VALUE];
    float               *space = host_space(loop, thread);
    for (int64_t index = first; index < last; index++) {
        struct head head = open_head(loop, index, ATTENTION_GRADIENT_KEY_VALUE_IN, space);
        memset(head.key_gradient.data, 0, sizeof(float) * (size_t)(head.key.rows * head.key.columns));
        memset(head.value_gradient.data, 0, sizeof(float) * (size_t)(head.value.rows * head.value.columns));
        run_blocks(&head, backward_block);
        panel_write(to, &head.key_view, &head.key_gradient, loop->op->accumulates);
        panel_write(to, &head.value_view, &head.value_gradient, loop->op->accumulates);
    }
}

const struct host_op host_attention_backward = {.body = backward_heads, .count = count_heads, .each = backward_floats};

// Combines attention results over two sets of keys. Each result is weighted by its sum of exponentials.
static void merge_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    (void)thread;
    const struct attention_shape *shape      = &loop->op->shape.attention;
    int64_t                       width      = attention_value_dim(shape);
    float                        *out        = loop->buffers[ATTENTION_MERGE_OUT].data;
    const float                  *part       = loop->buffers[ATTENTION_MERGE_PART].data;
    float                        *statistics = loop->buffers[ATTENTION_MERGE_STATISTICS].data;
    const float                  *other      = loop->buffers[ATTENTION_MERGE_PART_STATISTICS].data;
    for (int64_t row = first; row < last; row++) {
        for (int64_t head = 0; head < shape->heads; head++) {
            int64_t batch = row / shape->sequence;
            int64_t place = (batch * shape->heads + head) * shape->sequence + row % shape->sequence;
            int64_t at    = (row * shape->heads + head) * width;
            double  own = (double)statistics[place], added = (double)other[place];
            double  both = fmax(own, added) + log1p(exp(-fabs(own - added)));
            float   keep = (float)exp(own - both), take = (float)exp(added - both);
            statistics[place] = (float)both;
            for (int64_t i = 0; i < width; i++) {
                out[at + i] = keep * out[at + i] + take * part[at + i];
            }
        }
    }
}

const struct host_op host_attention_merge = {.body = merge_rows, .count = host_count_tokens};
