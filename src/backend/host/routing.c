// SPDX-License-Identifier: MIT
// Implements the MoE router: selects the top-k experts of each token, computes gates, drops choices beyond capacity,
// and assigns slots. Also the gradient of the logits, and the update of the bias that balances the load of the experts.
// A choice is one of a token's top-k experts; a slot is a row of the buffer that experts read.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/arithmetic.h"
#include "gswbench/fatal.h"
#include "gswbench/status.h"
#include "internal.h"
#include "kernels/route.h"

enum { BEST_OF_GROUP = 2 };

static int64_t rows_per_sequence(const struct routing_shape *shape)
{
    return shape->total / shape->sequences;
}

static void softmax(float *x, int64_t count)
{
    float factor = (float)(1 / row_exponential(x, row_maximum(x, count), count));
    row_scale(x, x, count, factor);
}

// Writes the scores of a row to `scores` [experts]. Returns the factor that turns them into probabilities with sum 1.
static float scores_of(const struct routing_shape *shape, const float *logits, float *scores)
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

// Finds the indices of the `wanted` largest values, in descending order of value. Of equal values, the lower index is
// first.
static void find_largest(const float *values, int64_t count, int64_t wanted, int32_t *places)
{
    for (int64_t at = 0; at < count; at++) {
        int64_t place = number_min(at, wanted);
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

// Sets the values of experts outside the top groups to -infinity. The score of a group is the sum of its two largest
// values.
static void keep_best_groups(const struct routing_shape *shape, float *values)
{
    int64_t experts = shape->experts / shape->groups, best_count = number_min(BEST_OF_GROUP, experts);
    float   sums[ROUTE_GROUPS_MAX];
    int32_t kept[ROUTE_GROUPS_MAX], best[BEST_OF_GROUP] = {0};
    for (int64_t group = 0; group < shape->groups; group++) {
        const float *own = values + group * experts;
        find_largest(own, experts, best_count, best);
        sums[group] = own[best[0]] + (best_count > 1 ? own[best[1]] : 0.0f);
    }
    find_largest(sums, shape->groups, shape->top_groups, kept);
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

// Selects the top_k experts by score plus bias (NULL: none), in descending order; of equal ones, the lower expert is
// first. Without bias and groups it compares logits instead of softmax scores. The order is the same, but logits also
// separate experts whose scores round to the same value. space: [experts].
static void choose(const struct routing_shape *shape, const float *logits, const float *scores, const float *bias,
                   float *space, int32_t *experts)
{
    bool by_logits = shape->score == ROUTER_SOFTMAX && bias == NULL && shape->groups == 0;
    for (int64_t expert = 0; expert < shape->experts; expert++) {
        space[expert] = by_logits ? logits[expert] : scores[expert] + (bias != NULL ? bias[expert] : 0.0f);
    }
    if (shape->groups > 0) {
        keep_best_groups(shape, space);
    }
    find_largest(space, shape->experts, shape->top_k, experts);
}

// Computes the gates of a row: `scale` times the scores of the chosen experts, divided by their sum unless is_absolute.
// Softmax scores divided by their sum equal a softmax over the chosen logits.
static void find_gates(const struct routing_shape *shape, const float *logits, const float *scores,
                       const int32_t *experts, float *gates)
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
    row_scale(gates, gates, shape->top_k, scale);
}

// Returns a row of ROUTE_COUNTS, for the sequence that a local row belongs to: for each expert, the number of rows that
// have it among their top_k scores.
static const float *counts_of(const struct routing_shape *shape, const struct buffer *counts, int64_t own_row)
{
    return (const float *)counts->data + route_sequence(shape, shape->first + own_row) * shape->experts;
}

// Choices of all rows, [total, top_k]. With capacity_scope = sequence, these include the rows of other ranks, which
// share the capacity of an expert with this rank.
struct choices {
    int32_t *experts;
    float   *probabilities;    // probability of the chosen expert; DROPPED if the choice is dropped
    int32_t *scored;           // top-k experts by score, which the auxiliary loss counts; only if route_is_chosen_apart
    float   *auxiliary;        // [rows]: auxiliary loss of each local row
};
static const float DROPPED = -1.0f;

// Returns the number of floats of scratch per thread: a row of scores, a row of the values that rank experts, and the
// candidates of one expert in one sequence.
static int64_t floats(const struct op *op)
{
    return 2 * op->shape.routing.experts + 2 * rows_per_sequence(&op->shape.routing);
}

// Returns the number of floats of shared scratch: the arrays of struct choices.
static int64_t choice_floats(const struct op *op)
{
    return 3 * op->shape.routing.total * op->shape.routing.top_k + op->shape.routing.rows;
}

static struct choices all_choices(const struct loop *loop)
{
    const struct routing_shape *shape  = &loop->op->shape.routing;
    float                      *shared = host_shared(loop->host, loop->op);
    int64_t                     count  = shape->total * shape->top_k;
    return (struct choices){(int32_t *)(void *)shared, shared + count, (int32_t *)(void *)(shared + 2 * count),
                            shared + 3 * count};
}

static const float *bias_of(const struct loop *loop)
{
    return loop->buffers[ROUTE_BIAS].data;
}

static void choose_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct routing_shape *shape   = &loop->op->shape.routing;
    struct choices              choices = all_choices(loop);
    float                      *scores  = host_space(loop, thread);
    for (int64_t row = first; row < last; row++) {
        const float *logits  = (const float *)loop->buffers[ROUTE_LOGITS].data + row * shape->experts;
        int32_t     *experts = choices.experts + row * shape->top_k;
        float        share   = scores_of(shape, logits, scores);
        if (shape->balanced) {
            for (int64_t j = 0; j < shape->top_k; j++) {
                experts[j] = (int32_t)arithmetic_assign(row, j, shape->top_k, shape->experts, shape->hot);
            }
        } else {
            choose(shape, logits, scores, bias_of(loop), scores + shape->experts, experts);
        }
        if (route_is_chosen_apart(shape, bias_of(loop))) {
            find_largest(logits, shape->experts, shape->top_k, choices.scored + row * shape->top_k);
        }
        for (int64_t j = 0; j < shape->top_k; j++) {
            choices.probabilities[row * shape->top_k + j] = scores[experts[j]] * share;
        }
    }
}

// Lists the choices of one expert in one sequence in row order, and returns their number. index: sequence * experts +
// expert.
static int64_t list_candidates(const struct routing_shape *shape, const int32_t *experts, int64_t index,
                               struct route_candidate *candidates)
{
    int64_t run = shape->sequence_rows * shape->top_k, sequence = index / shape->experts, count = 0;
    for (int64_t begin = sequence * run; begin < shape->total * shape->top_k; begin += shape->sequences * run) {
        for (int64_t choice = begin; choice < begin + run; choice++) {
            if (experts[choice] == index % shape->experts) {
                candidates[count++].choice = (int32_t)choice;
            }
        }
    }
    return count;
}

static int64_t count_from(const struct route_candidate *candidates, int64_t count, uint32_t probability_bits)
{
    int64_t reaching = 0;
    for (int64_t i = 0; i < count; i++) {
        reaching += candidates[i].probability_bits >= probability_bits;
    }
    return reaching;
}

// Drops all but the `taken` most probable candidates; of equal ones, the first are kept. A binary search over the bits
// of the probability finds the threshold: the largest value that at least `taken` candidates reach.
static void drop_least_probable(struct choices *choices, struct route_candidate *candidates, int64_t count,
                                int64_t taken)
{
    uint32_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&candidates[i].probability_bits, &choices->probabilities[candidates[i].choice], sizeof(float));
    }
    for (uint32_t bit = 1u << 30; bit > 0; bit >>= 1) {
        last |= count_from(candidates, count, last | bit) >= taken ? bit : 0;
    }
    int64_t equal_taken = taken - count_from(candidates, count, last + 1);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = candidates[i].probability_bits;
        if (bits < last || (bits == last && equal_taken-- <= 0)) {
            choices->probabilities[candidates[i].choice] = DROPPED;
        }
    }
}

// Counts choices, and drops those beyond the capacity of an expert. Each index is one expert of one sequence, so no two
// threads write the same choice.
static void drop_choices(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct routing_shape *shape      = &loop->op->shape.routing;
    struct choices              choices    = all_choices(loop);
    float                      *counts     = loop->buffers[ROUTE_COUNTS].data;
    struct route_candidate     *candidates = host_space(loop, thread);
    for (int64_t i = first; i < last; i++) {
        const int32_t *scored = route_is_chosen_apart(shape, bias_of(loop)) ? choices.scored : choices.experts;
        counts[i]             = (float)list_candidates(shape, scored, i, candidates);
        int64_t count         = list_candidates(shape, choices.experts, i, candidates);
        if (count > shape->taken) {
            drop_least_probable(&choices, candidates, count, shape->taken);
        }
    }
}

// Without capacity (dropless): writes the number of rows of each expert, rounded up to the padding multiple, to
// token_counts.
static void count_slots(const struct loop *loop)
{
    const struct routing_shape *shape        = &loop->op->shape.routing;
    struct choices              choices      = all_choices(loop);
    int32_t                    *token_counts = loop->buffers[ROUTE_TOKEN_COUNTS].data;
    int64_t                     own          = shape->first * shape->top_k;
    memset(token_counts, 0, sizeof(*token_counts) * (size_t)shape->experts);
    for (int64_t choice = own; choice < own + shape->rows * shape->top_k; choice++) {
        token_counts[choices.experts[choice]] += choices.probabilities[choice] != DROPPED;
    }
    for (int64_t expert = 0; expert < shape->experts; expert++) {
        token_counts[expert] = (int32_t)number_round_up(token_counts[expert], shape->multiple);
    }
}

static void find_slots(const struct loop *loop, int64_t expert, int64_t *begin, int64_t *end)
{
    const struct routing_shape *shape        = &loop->op->shape.routing;
    const int32_t              *token_counts = loop->buffers[ROUTE_TOKEN_COUNTS].data;
    int64_t                     place        = route_place(shape->experts, shape->owners, expert);
    *begin                                   = shape->multiple == 0 ? place * shape->capacity : 0;
    for (int64_t before = 0; before < place && shape->multiple > 0; before++) {
        *begin += token_counts[route_expert_at(shape->experts, shape->owners, before)];
    }
    *end = *begin + (shape->multiple == 0 ? shape->capacity : token_counts[expert]);
}

// Assigns slots to the local choices of each expert, in row order.
static void place_experts(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    (void)thread;
    const struct routing_shape *shape   = &loop->op->shape.routing;
    struct choices              choices = all_choices(loop);
    int32_t                    *slots   = loop->buffers[ROUTE_SLOTS].data;
    int64_t                     own     = shape->first * shape->top_k;
    for (int64_t expert = first; expert < last; expert++) {
        int32_t *sources = loop->buffers[ROUTE_SOURCES].data;
        int64_t  slot, end;
        find_slots(loop, expert, &slot, &end);
        for (int64_t choice = 0; choice < shape->rows * shape->top_k; choice++) {
            if (choices.experts[own + choice] != expert) {
                continue;
            }
            if (choices.probabilities[own + choice] == DROPPED) {
                slots[choice] = -1;
                continue;
            }
            if (slot == end) {
                FATAL(EXIT_INTERNAL, "route: expert %" PRId64 " takes more than its capacity of %" PRId64 " choices",
                      expert, shape->capacity);
            }
            sources[slot] = (int32_t)choice;
            slots[choice] = (int32_t)slot++;
        }
        for (; slot < end; slot++) {
            sources[slot] = -1;
        }
    }
}

static void gate_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct routing_shape *shape   = &loop->op->shape.routing;
    struct choices              choices = all_choices(loop);
    float                      *scores  = host_space(loop, thread);
    for (int64_t row = first; row < last; row++) {
        const float   *logits = (const float *)loop->buffers[ROUTE_LOGITS].data + (shape->first + row) * shape->experts;
        const int32_t *experts = choices.experts + (shape->first + row) * shape->top_k;
        float          share   = scores_of(shape, logits, scores);
        memcpy((int32_t *)loop->buffers[ROUTE_CHOICES].data + row * shape->top_k, experts,
               sizeof(*experts) * (size_t)shape->top_k);
        find_gates(shape, logits, scores, experts, (float *)loop->buffers[ROUTE_GATES].data + row * shape->top_k);
        const float *counts = counts_of(shape, &loop->buffers[ROUTE_COUNTS], row);
        choices.auxiliary[row] =
            (float)(route_auxiliary_scale(shape) * (double)share * row_dot(counts, scores, shape->experts));
    }
}

static void add_statistics(const struct loop *loop)
{
    const struct routing_shape *shape      = &loop->op->shape.routing;
    const int32_t              *experts    = loop->buffers[ROUTE_CHOICES].data;
    const int32_t              *slots      = loop->buffers[ROUTE_SLOTS].data;
    float                      *statistics = loop->buffers[ROUTE_STATISTICS].data;
    if (!loop->op->accumulates) {
        memset(statistics, 0, sizeof(*statistics) * (size_t)(shape->experts + 2));
    }
    for (int64_t choice = 0; choice < shape->rows * shape->top_k; choice++) {
        statistics[experts[choice]]++;
        statistics[shape->experts] += slots[choice] < 0 ? 1.0f : 0.0f;
    }
    statistics[shape->experts + 1] += (float)row_sum(all_choices(loop).auxiliary, shape->rows);
}

static void run_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    host_run_loop(backend, op, buffers, choose_rows, shape->total);
    host_run_loop(backend, op, buffers, drop_choices, shape->sequences * shape->experts);
    struct loop loop = {.op = op, .buffers = buffers, .host = backend->state};
    if (shape->multiple > 0) {
        count_slots(&loop);
        // -1 marks an empty slot, also after the slots of the last expert.
        memset(buffers[ROUTE_SOURCES].data, -1, sizeof(int32_t) * (size_t)routing_slots(shape));
    }
    host_run_loop(backend, op, buffers, place_experts, shape->experts);
    host_run_loop(backend, op, buffers, gate_rows, shape->rows);
    if (buffers[ROUTE_STATISTICS].data != NULL) {
        add_statistics(&loop);
    }
}

const struct host_op host_route_forward = {.run = run_forward, .each = floats, .shared = choice_floats};

static int64_t backward_floats(const struct op *op)
{
    return 2 * op->shape.routing.experts;
}

// Computes the gradient of each logit; for a sigmoid, the caller multiplies by 1 - score. The gradient is the sum of
// these terms, with auxiliary scale a, probabilities p, ROUTE_COUNTS c (constants), gates g, their gradients h, and the
// sum s of the gates:
//
//   a p_e (c_e - sum(p c))                 every expert e: auxiliary loss
//   g_j (h_j - sum(g h) / s)               chosen expert j, if gates are normalised
//   g_j h_j                                chosen expert j, if gates are not normalised
//   -p_e sum(g h)                          every expert e, if softmax gates are not normalised
static void add_row(const struct loop *loop, int64_t row, const float *scores, float share, float *gradient)
{
    const struct routing_shape *shape   = &loop->op->shape.routing;
    const struct buffer        *buffers = loop->buffers;
    const float                *counts  = counts_of(shape, &buffers[ROUTE_GRADIENT_COUNTS], row);
    const int32_t              *chosen  = (const int32_t *)buffers[ROUTE_GRADIENT_CHOICES].data + row * shape->top_k;
    const float                *gates   = (const float *)buffers[ROUTE_GRADIENT_GATES_IN].data + row * shape->top_k;
    const float                *slopes  = (const float *)buffers[ROUTE_GRADIENT_GATES].data + row * shape->top_k;

    double scale = route_auxiliary_scale(shape), mean = (double)share * row_dot(counts, scores, shape->experts);
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

// Computes the gradient of the logits. For a sigmoid, it multiplies the result of add_row by 1 - score.
static void backward_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct routing_shape *shape    = &loop->op->shape.routing;
    float                      *gradient = host_space(loop, thread);
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

const struct host_op host_route_backward = {.body = backward_rows, .count = host_count_routed, .each = backward_floats};

static void balance(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    (void)backend;
    if (isnan(*(const float *)buffers[BALANCE_SCALE].data)) {
        return;    // the gradient norm is not finite: skip the update, as AdamW does
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

const struct host_op host_balance = {.run = balance};
