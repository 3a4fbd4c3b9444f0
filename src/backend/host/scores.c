// SPDX-License-Identifier: MIT
// Router scores and their gradient, and the update of the bias that balances expert load.
#include "scores.h"

#include <math.h>
#include <string.h>

#include "gswbench/arithmetic.h"

enum { GROUPS_MAX = 32, BEST_OF_GROUP = 2 };

static void softmax(float *x, int64_t count)
{
    float factor = (float)(1 / row_exponential(x, row_maximum(x, count), count));
    for (int64_t i = 0; i < count; i++) {
        x[i] *= factor;
    }
}

float scores_of(const struct routing_shape *shape, const float *logits, float *scores)
{
    memcpy(scores, logits, sizeof(*scores) * (size_t)shape->experts);
    if (shape->score == ROUTER_SOFTMAX) {
        softmax(scores, shape->experts);
        return 1;
    }
    for (int64_t expert = 0; expert < shape->experts; expert++) {
        scores[expert] = arithmetic_sigmoid(scores[expert]);
    }
    return (float)(1 / row_sum(scores, shape->experts));
}

void scores_find_largest(const float *values, int64_t count, int64_t wanted, int32_t *places)
{
    for (int64_t at = 0; at < count; at++) {
        int64_t place = host_minimum(at, wanted);
        for (; place > 0 && values[at] > values[places[place - 1]]; place--) {
            if (place < wanted) {
                places[place] = places[place - 1];
            }
        }
        if (place < wanted) {
            places[place] = (int32_t)at;
        }
    }
}

// Keeps the experts of the top groups; a group's score is the sum of its two best.
static void keep_best_groups(const struct routing_shape *shape, float *values)
{
    int64_t experts = shape->experts / shape->groups, best_count = host_minimum(BEST_OF_GROUP, experts);
    float   sums[GROUPS_MAX];
    int32_t kept[GROUPS_MAX], best[BEST_OF_GROUP];
    for (int64_t group = 0; group < shape->groups; group++) {
        const float *own = values + group * experts;
        scores_find_largest(own, experts, best_count, best);
        sums[group] = own[best[0]] + (best_count > 1 ? own[best[1]] : 0.0f);
    }
    scores_find_largest(sums, shape->groups, shape->top_groups, kept);
    for (int64_t group = 0; group < shape->groups; group++) {
        bool is_kept = false;
        for (int64_t i = 0; i < shape->top_groups; i++) {
            is_kept |= kept[i] == group;
        }
        for (int64_t expert = group * experts; expert < (group + 1) * experts && !is_kept; expert++) {
            values[expert] = -INFINITY;
        }
    }
}

// A softmax preserves the order of logits, but logits also separate experts whose scores round to the same value.
void scores_choose(const struct routing_shape *shape, const float *logits, const float *scores, const float *bias,
                   float *space, int32_t *experts)
{
    bool by_logits = shape->score == ROUTER_SOFTMAX && bias == NULL && shape->groups == 0;
    for (int64_t expert = 0; expert < shape->experts; expert++) {
        space[expert] = by_logits ? logits[expert] : scores[expert] + (bias != NULL ? bias[expert] : 0.0f);
    }
    if (shape->groups > 0) {
        keep_best_groups(shape, space);
    }
    scores_find_largest(space, shape->experts, shape->top_k, experts);
}

// Normalising the chosen softmax scores is the same as a softmax over their logits.
void scores_gates(const struct routing_shape *shape, const float *logits, const float *scores, const int32_t *experts,
                  float *gates)
{
    bool  is_softmax = shape->score == ROUTER_SOFTMAX && !shape->is_absolute;
    float scale      = shape->scale;
    for (int64_t j = 0; j < shape->top_k; j++) {
        gates[j] = is_softmax ? logits[experts[j]] : scores[experts[j]];
    }
    if (is_softmax) {
        softmax(gates, shape->top_k);
    } else if (!shape->is_absolute) {
        scale = (float)((double)scale / row_sum(gates, shape->top_k));
    }
    row_scale(gates, shape->top_k, scale);
}

double scores_auxiliary_scale(const struct routing_shape *shape)
{
    double rows = (double)(shape->total / shape->sequences);
    return (double)shape->auxiliary * (double)shape->experts / ((double)shape->top_k * rows * rows);
}

const float *scores_counts(const struct routing_shape *shape, const struct buffer *counts, int64_t own_row)
{
    int64_t sequence = (shape->first + own_row) / shape->sequence_rows % shape->sequences;
    return (const float *)counts->data + sequence * shape->experts;
}

int64_t host_route_backward_floats(const struct op *op, int threads)
{
    (void)threads;
    return 2 * op->shape.routing.experts;
}

// d loss / d score times the score, before the derivative of a sigmoid. Sum of the following, with auxiliary scale a,
// probabilities p and counts c (constants), and gates g with sum s:
//
//   a p_e (c_e - sum p c)                  every expert e, auxiliary loss
//   g_j (d g_j - sum g d g / s)            chosen expert j, normalised gates
//   g_j d g_j                              chosen expert j, other gates
//   -p_e sum g d g                         every expert e, other gates of a softmax
static void add_row(const struct loop *loop, int64_t row, const float *scores, float share, float *gradient)
{
    const struct routing_shape *shape   = &loop->op->shape.routing;
    const struct buffer        *buffers = loop->buffers;
    const float                *counts  = scores_counts(shape, &buffers[ROUTE_GRADIENT_COUNTS], row);
    const int32_t              *chosen  = (const int32_t *)buffers[ROUTE_GRADIENT_CHOICES].data + row * shape->top_k;
    const float                *gates   = (const float *)buffers[ROUTE_GRADIENT_GATES_IN].data + row * shape->top_k;
    const float                *slopes  = (const float *)buffers[ROUTE_GRADIENT_GATES].data + row * shape->top_k;

    double scale = scores_auxiliary_scale(shape), mean = (double)share * row_dot(counts, scores, shape->experts);
    double product = row_dot(gates, slopes, shape->top_k), of_chosen = 0, of_all = 0;
    if (!shape->is_absolute) {
        of_chosen = product / (double)shape->scale;
    } else if (shape->score == ROUTER_SOFTMAX) {
        of_all = product;
    }
    for (int64_t expert = 0; expert < shape->experts; expert++) {
        double probability = (double)share * (double)scores[expert];
        gradient[expert]   = (float)(probability * (scale * ((double)counts[expert] - mean) - of_all));
    }
    for (int64_t j = 0; j < shape->top_k; j++) {
        gradient[chosen[j]] += (float)((double)gates[j] * ((double)slopes[j] - of_chosen));
    }
}

// The derivative of a sigmoid s is s (1 - s).
static void backward_rows(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop          *loop     = context;
    const struct routing_shape *shape    = &loop->op->shape.routing;
    float                      *gradient = host_scratch(loop, thread, 2 * shape->experts);
    float                      *scores   = gradient + shape->experts;
    for (int64_t row = first; row < last; row++) {
        const float *logits = (const float *)loop->buffers[ROUTE_GRADIENT_LOGITS_IN].data;
        float        share  = scores_of(shape, logits + (shape->first + row) * shape->experts, scores);
        add_row(loop, row, scores, share, gradient);
        for (int64_t expert = 0; expert < shape->experts && shape->score == ROUTER_SIGMOID; expert++) {
            gradient[expert] *= 1 - scores[expert];
        }
        row_store(&loop->buffers[ROUTE_GRADIENT_LOGITS], row * shape->experts, shape->experts, gradient, false);
    }
}

void host_route_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, backward_rows, op->shape.routing.rows);
}

void host_balance(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    (void)backend;
    if (isnan(*(const float *)buffers[BALANCE_SCALE].data)) {
        return;    // AdamW skips the step as well
    }
    for (int64_t layer = 0; layer < shape->rows; layer++) {
        const float *loads = (const float *)buffers[BALANCE_LOADS].data + layer * (shape->columns + 2);
        float       *bias  = (float *)buffers[BALANCE_BIAS].data + layer * shape->columns;
        float        mean  = (float)(row_sum(loads, shape->columns) / (double)shape->columns);
        for (int64_t expert = 0; expert < shape->columns; expert++) {
            bias[expert] += arithmetic_balance(loads[expert], mean, shape->scale);
        }
    }
}
