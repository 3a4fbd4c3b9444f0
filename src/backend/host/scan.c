// SPDX-License-Identifier: MIT
// Computes the selective scan of Mamba-2. A sequence is processed in chunks: GEMMs compute the effect of positions
// within a chunk, and a state carries the effect of earlier chunks. The groups of heads are divided among the threads.
//
// With a = -exp(decay), D = skip, u = dt x, L_i = sum of dt a up to position i of the chunk, and S the state before the
// chunk:
//
//   y_i = sum over j <= i of exp(L_i - L_j) (C_i . B_j) u_j + exp(L_i) S C_i + D x_i
//   S'  = exp(L_end) S + sum over j of exp(L_end - L_j) u_j B_j^T
#include <math.h>
#include <string.h>

#include "gswbench/arithmetic.h"
#include "internal.h"

// One head of one sequence, at the current chunk. The matrices are in the thread's scratch.
struct head {
    const struct mamba_shape *shape;
    const struct buffer      *convolved, *packed;
    int64_t                   sequence, head, chunk, first, count;    // positions first .. first + count - 1
    float                     rate, bias, skip;                       // a, bias of dt, D
    float                    *dt, *sum;                               // [chunk]; sum: L_i of the file header
    struct panel              b, c, x, u, scores, state;
    // Fields of the backward pass. slope_NAME is the gradient of NAME. In the forward pass, dy holds the output y.
    struct panel slope_state, dy, products, mixed, slope_u, slope_b, slope_c, across, leaving;
    float       *states;           // [chunks, head_dim, state]: states before the chunks
    float       *all_b, *all_c;    // [sequence, state]: gradients of B and C, summed over the heads of the group
    double      *slope_sum;        // [chunk]: gradient of L
};

// Gradients of the three parameters of a head.
struct head_sums {
    double bias, decay, skip;
};
enum { SUMS = sizeof(struct head_sums) / sizeof(float) };

static int64_t chunk_of(const struct mamba_shape *shape)
{
    return number_min(shape->chunk, shape->sequence);
}

static int64_t count_chunks(const struct mamba_shape *shape)
{
    return number_groups(shape->sequence, shape->chunk);
}

static int64_t forward_floats(const struct op *op)
{
    const struct mamba_shape *shape = &op->shape.mamba;
    int64_t                   chunk = chunk_of(shape);
    return chunk * (2 + 2 * shape->state + 3 * shape->head_dim + chunk) + shape->head_dim * shape->state;
}

static int64_t backward_floats(const struct op *op)
{
    const struct mamba_shape *shape = &op->shape.mamba;
    int64_t                   chunk = chunk_of(shape), state = shape->head_dim * shape->state;
    return 2 * chunk + SUMS * shape->heads / shape->groups + forward_floats(op) +
           chunk * (2 * shape->head_dim + 3 * shape->state + 2 * chunk) + state * (1 + count_chunks(shape)) +
           2 * shape->sequence * shape->state;
}

static struct panel take(float **space, int64_t rows, int64_t columns)
{
    struct panel panel = {*space, columns, rows, columns, false};
    *space += rows * columns;
    return panel;
}

static void take_forward(struct head *head, const struct mamba_shape *shape, float **space)
{
    int64_t chunk = chunk_of(shape);
    head->shape   = shape;
    head->dt      = take(space, 1, chunk).data;
    head->sum     = take(space, 1, chunk).data;
    head->b       = take(space, chunk, shape->state);
    head->c       = take(space, chunk, shape->state);
    head->x       = take(space, chunk, shape->head_dim);
    head->u       = take(space, chunk, shape->head_dim);
    head->dy      = take(space, chunk, shape->head_dim);    // forward: y
    head->scores  = take(space, chunk, chunk);
    head->state   = take(space, shape->head_dim, shape->state);
}

static void take_backward(struct head *head, float *space)
{
    const struct mamba_shape *shape = head->shape;
    int64_t                   chunk = chunk_of(shape);
    head->products                  = take(&space, chunk, chunk);
    head->mixed                     = take(&space, chunk, chunk);
    head->slope_u                   = take(&space, chunk, shape->head_dim);
    head->leaving                   = take(&space, chunk, shape->head_dim);
    head->slope_b                   = take(&space, chunk, shape->state);
    head->slope_c                   = take(&space, chunk, shape->state);
    head->across                    = take(&space, chunk, shape->state);
    head->slope_state               = take(&space, shape->head_dim, shape->state);
    head->states                    = take(&space, count_chunks(shape), shape->head_dim * shape->state).data;
    head->all_b                     = take(&space, shape->sequence, shape->state).data;
    head->all_c                     = take(&space, shape->sequence, shape->state).data;
}

static struct panel transposed(struct panel panel)
{
    panel.transposed = true;
    return panel;
}

// Sets the number of positions of the chunk (rows) in all panels.
static void set_count(struct head *head, int64_t count)
{
    struct panel *panels[] = {&head->b,       &head->c,      &head->x,       &head->u,       &head->dy,
                              &head->scores,  &head->mixed,  &head->slope_u, &head->leaving, &head->slope_b,
                              &head->slope_c, &head->across, &head->products};
    head->count            = count;
    for (size_t i = 0; i < sizeof(panels) / sizeof(panels[0]); i++) {
        panels[i]->rows = count;
    }
    head->scores.columns = head->mixed.columns = head->products.columns = count;
}

static float one(const struct buffer *buffer, int64_t at)
{
    float value;
    return *row_read(buffer, at, 1, &value);
}

// Returns log(1 + exp(x)).
static float softplus(float x)
{
    return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}

static int64_t token_of(const struct head *head, int64_t i)
{
    return head->sequence * head->shape->sequence + head->first + i;
}

static int64_t step_at(const struct head *head, int64_t i)
{
    const struct mamba_shape *shape = head->shape;
    return token_of(head, i) * mamba_packed(shape) + mamba_inner(shape) + mamba_channels(shape) + head->head;
}

static void read_columns(const struct head *head, struct panel *to, int64_t column)
{
    for (int64_t i = 0; i < head->count; i++) {
        float       *row = to->data + i * to->leading;
        const float *in =
            row_read(head->convolved, token_of(head, i) * mamba_channels(head->shape) + column, to->columns, row);
        memmove(row, in, (size_t)to->columns * sizeof(*in));
    }
}

static int64_t column_of_b(const struct head *head)
{
    const struct mamba_shape *shape = head->shape;
    return mamba_inner(shape) + head->head / (shape->heads / shape->groups) * shape->state;
}

static int64_t column_of_c(const struct head *head)
{
    return column_of_b(head) + head->shape->groups * head->shape->state;
}

// Reads a chunk of the inputs, and computes dt, L and u.
static void open_chunk(struct head *head, int64_t chunk)
{
    const struct mamba_shape *shape = head->shape;
    double                    sum   = 0;
    head->chunk                     = chunk;
    head->first                     = chunk * shape->chunk;
    set_count(head, number_min(shape->chunk, shape->sequence - head->first));
    read_columns(head, &head->x, head->head * shape->head_dim);
    read_columns(head, &head->b, column_of_b(head));
    read_columns(head, &head->c, column_of_c(head));
    for (int64_t i = 0; i < head->count; i++) {
        head->dt[i] = softplus(one(head->packed, step_at(head, i)) + head->bias);
        sum += (double)head->dt[i] * (double)head->rate;
        head->sum[i] = (float)sum;
        for (int64_t p = 0; p < shape->head_dim; p++) {
            head->u.data[i * shape->head_dim + p] = head->dt[i] * head->x.data[i * shape->head_dim + p];
        }
    }
}

// Returns exp(L_i - L_j), which is at most 1 if i >= j.
static float decay(const struct head *head, int64_t i, int64_t j)
{
    return expf(head->sum[i] - head->sum[j]);
}

// Multiplies row i by exp(L_i), the decay since the state before the chunk; or if is_to_end, by exp(L_end - L_i), the
// decay until the end of the chunk.
static void scale_rows(const struct head *head, struct panel *panel, bool is_to_end)
{
    for (int64_t i = 0; i < head->count; i++) {
        float *row = panel->data + i * panel->leading;
        row_scale(row, row, panel->columns, is_to_end ? decay(head, head->count - 1, i) : expf(head->sum[i]));
    }
}

// Advances the state to the end of the chunk. Overwrites u.
static void pass_state(struct head *head)
{
    struct panel left = transposed(head->u);
    scale_rows(head, &head->u, true);
    panel_multiply(&head->state, &left, &head->b, 1.0f, expf(head->sum[head->count - 1]));
}

static void open_head(struct head *head, const struct buffer *step_bias, const struct buffer *rate,
                      const struct buffer *skip)
{
    head->bias = one(step_bias, head->head);
    head->rate = -expf(one(rate, head->head));
    head->skip = one(skip, head->head);
    memset(head->state.data, 0, sizeof(float) * (size_t)(head->state.rows * head->state.columns));
}

static void forward_chunk(struct head *head, const struct buffer *out)
{
    const struct mamba_shape *shape = head->shape;
    struct panel              b = transposed(head->b), state = transposed(head->state);
    panel_multiply(&head->scores, &head->c, &b, 1.0f, 0.0f);
    for (int64_t i = 0; i < head->count; i++) {
        float *row = head->scores.data + i * head->scores.leading;
        for (int64_t j = 0; j < head->count; j++) {
            row[j] = j <= i ? row[j] * decay(head, i, j) : 0.0f;
        }
    }
    scale_rows(head, &head->c, false);
    panel_multiply(&head->dy, &head->c, &state, 1.0f, 0.0f);
    panel_multiply(&head->dy, &head->scores, &head->u, 1.0f, 1.0f);
    for (int64_t i = 0; i < head->count; i++) {
        float *y = head->dy.data + i * shape->head_dim;
        for (int64_t p = 0; p < shape->head_dim; p++) {
            y[p] += head->skip * head->x.data[i * shape->head_dim + p];
        }
        row_store(out, token_of(head, i) * mamba_inner(shape) + head->head * shape->head_dim, shape->head_dim, y,
                  false);
    }
}

static void forward_groups(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct mamba_shape *shape   = &loop->op->shape.mamba;
    const struct buffer      *buffers = loop->buffers;
    int64_t                   each    = shape->heads / shape->groups;
    float                    *space   = host_space(loop, thread);
    struct head               head    = {.convolved = &buffers[SCAN_CONVOLVED], .packed = &buffers[SCAN_PACKED]};
    take_forward(&head, shape, &space);
    for (int64_t i = first * each; i < last * each; i++) {
        for (int64_t sequence = 0; sequence < shape->batch; sequence++) {
            head.head     = i;
            head.sequence = sequence;
            open_head(&head, &buffers[SCAN_STEP_BIAS], &buffers[SCAN_DECAY], &buffers[SCAN_SKIP]);
            for (int64_t chunk = 0; chunk < count_chunks(shape); chunk++) {
                open_chunk(&head, chunk);
                forward_chunk(&head, &buffers[SCAN_OUT]);
                pass_state(&head);
            }
        }
    }
}

const struct host_op host_scan_forward = {.body = forward_groups, .count = host_count_groups, .each = forward_floats};

// Computes mixed = exp(L_i - L_j) (C_i . B_j), and products = exp(L_i - L_j) (dy_i . u_j), the gradient of C_i . B_j.
// Both are zero for j > i. Adds the gradient of L from within the chunk to slope_sum.
static void mix(struct head *head)
{
    struct panel b = transposed(head->b), u = transposed(head->u);
    panel_multiply(&head->mixed, &head->c, &b, 1.0f, 0.0f);
    panel_multiply(&head->products, &head->dy, &u, 1.0f, 0.0f);
    for (int64_t i = 0; i < head->count; i++) {
        for (int64_t j = 0; j < head->count; j++) {
            int64_t at   = i * head->mixed.leading + j;
            float   keep = j <= i ? decay(head, i, j) : 0.0f, pair = head->mixed.data[at];
            double  slope = (double)(keep * pair) * (double)head->products.data[at];
            head->slope_sum[i] += slope;
            head->slope_sum[j] -= slope;
            head->mixed.data[at] = keep * pair;
            head->products.data[at] *= keep;
        }
    }
}

static float *row_at(const struct panel *panel, int64_t row)
{
    return panel->data + row * panel->leading;
}

// Computes the gradients that pass through the state: of C in `across`, of u in `leaving`. Adds L's to slope_sum.
static void cross(struct head *head)
{
    struct panel slope_state = transposed(head->slope_state);
    int64_t      end         = head->count - 1;
    double       kept        = 0;
    panel_multiply(&head->leaving, &head->b, &slope_state, 1.0f, 0.0f);
    scale_rows(head, &head->leaving, true);
    panel_multiply(&head->across, &head->dy, &head->state, 1.0f, 0.0f);
    scale_rows(head, &head->across, false);
    for (int64_t i = 0; i < head->count; i++) {
        double entering = row_dot(row_at(&head->across, i), row_at(&head->c, i), head->shape->state);
        double leaving  = row_dot(row_at(&head->leaving, i), row_at(&head->u, i), head->shape->head_dim);
        head->slope_sum[i] += entering - leaving;
        head->slope_sum[end] += leaving;
    }
    kept = row_dot(head->slope_state.data, head->state.data, head->shape->head_dim * head->shape->state);
    head->slope_sum[end] += kept * exp((double)head->sum[end]);
}

// Computes slope_u, slope_b, slope_c and the gradient of the state before the chunk. Overwrites u and dy.
static void differentiate(struct head *head)
{
    struct panel mixed = transposed(head->mixed), products = transposed(head->products), dy = transposed(head->dy);
    memcpy(head->slope_u.data, head->leaving.data, sizeof(float) * (size_t)(head->count * head->shape->head_dim));
    panel_multiply(&head->slope_u, &mixed, &head->dy, 1.0f, 1.0f);
    memcpy(head->slope_c.data, head->across.data, sizeof(float) * (size_t)(head->count * head->shape->state));
    panel_multiply(&head->slope_c, &head->products, &head->b, 1.0f, 1.0f);
    scale_rows(head, &head->u, true);
    panel_multiply(&head->slope_b, &head->u, &head->slope_state, 1.0f, 0.0f);
    panel_multiply(&head->slope_b, &products, &head->c, 1.0f, 1.0f);
    scale_rows(head, &head->dy, false);
    panel_multiply(&head->slope_state, &dy, &head->c, 1.0f, expf(head->sum[head->count - 1]));
}

// Stores the gradients of x and dt, and adds to the gradients of the head's parameters. d out is read again, because dy
// was scaled.
static void store_chunk(struct head *head, const struct buffer *buffers, struct head_sums *sums)
{
    const struct mamba_shape *shape = head->shape;
    double                    slope = 0;
    for (int64_t i = head->count - 1; i >= 0; i--) {
        float       *x = row_at(&head->x, i), *slope_u = row_at(&head->slope_u, i), *row = row_at(&head->u, i);
        int64_t      at = token_of(head, i) * mamba_inner(shape) + head->head * shape->head_dim;
        const float *d  = row_read(&buffers[SCAN_GRADIENT_OUT], at, shape->head_dim, row_at(&head->dy, i));
        slope += head->slope_sum[i];
        double of_step = slope * (double)head->rate + row_dot(x, slope_u, shape->head_dim);
        double raw     = of_step * (1 - exp(-(double)head->dt[i]));    // the slope of softplus is 1 - exp(-softplus)
        float  stored  = (float)raw;
        sums->decay += slope * (double)head->dt[i] * (double)head->rate;
        sums->skip += row_dot(x, d, shape->head_dim);
        sums->bias += raw;
        for (int64_t p = 0; p < shape->head_dim; p++) {
            row[p] = head->dt[i] * slope_u[p] + head->skip * d[p];
        }
        row_store(&buffers[SCAN_GRADIENT_CONVOLVED],
                  token_of(head, i) * mamba_channels(shape) + head->head * shape->head_dim, shape->head_dim, row,
                  false);
        row_store(&buffers[SCAN_GRADIENT_PACKED], step_at(head, i), 1, &stored, false);
    }
    for (int64_t i = 0; i < head->count * shape->state; i++) {
        head->all_b[head->first * shape->state + i] += head->slope_b.data[i];
        head->all_c[head->first * shape->state + i] += head->slope_c.data[i];
    }
}

static void backward_head(struct head *head, const struct buffer *buffers, struct head_sums *sums)
{
    const struct mamba_shape *shape = head->shape;
    int64_t                   size = shape->head_dim * shape->state, chunks = count_chunks(shape);
    open_head(head, &buffers[SCAN_GRADIENT_STEP_BIAS_IN], &buffers[SCAN_GRADIENT_DECAY_IN],
              &buffers[SCAN_GRADIENT_SKIP_IN]);
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        memcpy(head->states + chunk * size, head->state.data, sizeof(float) * (size_t)size);
        open_chunk(head, chunk);
        pass_state(head);
    }
    memset(head->slope_state.data, 0, sizeof(float) * (size_t)size);
    for (int64_t chunk = chunks - 1; chunk >= 0; chunk--) {
        open_chunk(head, chunk);
        memcpy(head->state.data, head->states + chunk * size, sizeof(float) * (size_t)size);
        for (int64_t i = 0; i < head->count; i++) {
            int64_t      at = token_of(head, i) * mamba_inner(shape) + head->head * shape->head_dim;
            const float *d  = row_read(&buffers[SCAN_GRADIENT_OUT], at, shape->head_dim, row_at(&head->dy, i));
            memmove(row_at(&head->dy, i), d, sizeof(*d) * (size_t)shape->head_dim);
            head->slope_sum[i] = 0;
        }
        mix(head);
        cross(head);
        differentiate(head);
        store_chunk(head, buffers, sums);
    }
}

static void store_pairs(const struct head *head, const struct buffer *to)
{
    const struct mamba_shape *shape = head->shape;
    for (int64_t i = 0; i < shape->sequence; i++) {
        int64_t row = (head->sequence * shape->sequence + i) * mamba_channels(shape);
        row_store(to, row + column_of_b(head), shape->state, head->all_b + i * shape->state, false);
        row_store(to, row + column_of_c(head), shape->state, head->all_c + i * shape->state, false);
    }
}

static void store_sums(const struct loop *loop, int64_t head, const struct head_sums *sums)
{
    float space;
    row_store_sums(&loop->buffers[SCAN_GRADIENT_STEP_BIAS], head, 1, &sums->bias, &space, loop->op->accumulates);
    row_store_sums(&loop->buffers[SCAN_GRADIENT_DECAY], head, 1, &sums->decay, &space, loop->op->accumulates);
    row_store_sums(&loop->buffers[SCAN_GRADIENT_SKIP], head, 1, &sums->skip, &space, loop->op->accumulates);
}

static void backward_group(const struct loop *loop, struct head *head, int64_t group, struct head_sums *sums)
{
    const struct mamba_shape *shape = head->shape;
    int64_t                   each  = shape->heads / shape->groups;
    memset(sums, 0, sizeof(*sums) * (size_t)each);
    for (head->sequence = 0; head->sequence < shape->batch; head->sequence++) {
        memset(head->all_b, 0, sizeof(float) * (size_t)(shape->sequence * shape->state));
        memset(head->all_c, 0, sizeof(float) * (size_t)(shape->sequence * shape->state));
        for (int64_t i = 0; i < each; i++) {
            head->head = group * each + i;
            backward_head(head, loop->buffers, &sums[i]);
        }
        store_pairs(head, &loop->buffers[SCAN_GRADIENT_CONVOLVED]);
    }
    for (int64_t i = 0; i < each; i++) {
        store_sums(loop, group * each + i, &sums[i]);
    }
}

static void backward_groups(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct mamba_shape *shape = &loop->op->shape.mamba;
    struct head               head  = {.convolved = &loop->buffers[SCAN_GRADIENT_CONVOLVED_IN],
                                       .packed    = &loop->buffers[SCAN_GRADIENT_PACKED_IN],
                                       .slope_sum = host_space(loop, thread)};
    struct head_sums         *sums  = (struct head_sums *)(void *)(head.slope_sum + chunk_of(shape));
    float                    *space = (float *)(void *)(sums + shape->heads / shape->groups);
    take_forward(&head, shape, &space);
    take_backward(&head, space);
    for (int64_t group = first; group < last; group++) {
        backward_group(loop, &head, group, sums);
    }
}

const struct host_op host_scan_backward = {
    .body = backward_groups, .count = host_count_groups, .each = backward_floats};
