// SPDX-License-Identifier: MIT
// MoE router: top-k experts of each token, gates, dropped choices and slots.
#include <inttypes.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "gswbench/status.h"
#include "gswbench/arithmetic.h"
#include "internal.h"
#include "scores.h"

// Choice that competes for an expert's capacity. The bits of non-negative floats sort like the floats.
struct candidate {
    uint32_t probability_bits;
    int32_t  choice;
};

// Choices of all rows, [total, top_k]. Every rank computes all of them, because capacity is shared between the ranks.
struct choices {
    int32_t *experts;
    float   *probabilities;    // probability of the chosen expert; DROPPED if the choice is dropped
    int32_t *scored;           // top-k experts by score, which the auxiliary loss counts
    float   *auxiliary;        // [rows]: auxiliary loss of each local row
};
static const float DROPPED = -1.0f;

static int64_t rows_per_sequence(const struct routing_shape *shape)
{
    return shape->total / shape->sequences;
}

// Scratch per thread: a row of scores, a row of selection values, and the candidates of a sequence. Shared: the
// choices.
static int64_t thread_floats(const struct routing_shape *shape)
{
    return 2 * shape->experts + 2 * rows_per_sequence(shape);
}

int64_t host_route_floats(const struct op *op, int threads)
{
    const struct routing_shape *shape = &op->shape.routing;
    return thread_floats(shape) + (3 * shape->total * shape->top_k + shape->rows) / threads + 32;
}

static struct choices all_choices(const struct loop *loop)
{
    const struct routing_shape *shape  = &loop->op->shape.routing;
    float                      *shared = host_scratch(loop, pool_threads(loop->host->pool), thread_floats(shape));
    int64_t                     count  = shape->total * shape->top_k;
    return (struct choices){(int32_t *)(void *)shared, shared + count, (int32_t *)(void *)(shared + 2 * count),
                            shared + 3 * count};
}

static const float *bias_of(const struct loop *loop)
{
    return loop->buffers[ROUTE_BIAS].data;
}

// With groups or a bias, the selected experts may differ from the top-k by score.
static bool is_chosen_apart(const struct loop *loop)
{
    const struct routing_shape *shape = &loop->op->shape.routing;
    return !shape->balanced && (shape->groups > 0 || bias_of(loop) != NULL);
}

static void choose_rows(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop          *loop    = context;
    const struct routing_shape *shape   = &loop->op->shape.routing;
    struct choices              choices = all_choices(loop);
    float                      *scores  = host_scratch(loop, thread, thread_floats(shape));
    for (int64_t row = first; row < last; row++) {
        const float *logits  = (const float *)loop->buffers[ROUTE_LOGITS].data + row * shape->experts;
        int32_t     *experts = choices.experts + row * shape->top_k;
        float        share   = scores_of(shape, logits, scores);
        if (shape->balanced) {
            for (int64_t j = 0; j < shape->top_k; j++) {
                experts[j] = (int32_t)arithmetic_deal(row, j, shape->top_k, shape->experts, shape->hot);
            }
        } else {
            scores_choose(shape, logits, scores, bias_of(loop), scores + shape->experts, experts);
        }
        if (is_chosen_apart(loop)) {
            scores_find_largest(logits, shape->experts, shape->top_k, choices.scored + row * shape->top_k);
        }
        for (int64_t j = 0; j < shape->top_k; j++) {
            choices.probabilities[row * shape->top_k + j] = scores[experts[j]] * share;
        }
    }
}

// Lists the choices of one expert in one sequence, in row order; returns their number.
static int64_t list_candidates(const struct routing_shape *shape, const int32_t *experts, const float *probabilities,
                               int64_t index, struct candidate *candidates)
{
    int64_t run = shape->sequence_rows * shape->top_k, sequence = index / shape->experts, count = 0;
    for (int64_t begin = sequence * run; begin < shape->total * shape->top_k; begin += shape->sequences * run) {
        for (int64_t choice = begin; choice < begin + run; choice++) {
            if (experts[choice] == index % shape->experts) {
                candidates[count].choice = (int32_t)choice;
                memcpy(&candidates[count].probability_bits, &probabilities[choice], sizeof(float));
                count++;
            }
        }
    }
    return count;
}

static int64_t count_from(const struct candidate *candidates, int64_t count, uint32_t probability_bits)
{
    int64_t reaching = 0;
    for (int64_t i = 0; i < count; i++) {
        reaching += candidates[i].probability_bits >= probability_bits;
    }
    return reaching;
}

// Drops all but the `taken` most probable candidates; ties keep the first. A binary search over the bits finds the
// threshold: the largest probability that at least `taken` candidates reach.
static void drop_least_probable(struct choices *choices, const struct candidate *candidates, int64_t count,
                                int64_t taken)
{
    uint32_t last = 0;
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

// A loop index is an expert of a sequence, so indices share no choice.
static void drop_choices(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop          *loop    = context;
    const struct routing_shape *shape   = &loop->op->shape.routing;
    struct choices              choices = all_choices(loop);
    float                      *counts  = loop->buffers[ROUTE_COUNTS].data;
    struct candidate *candidates        = (struct candidate *)(void *)host_scratch(loop, thread, thread_floats(shape));
    for (int64_t i = first; i < last; i++) {
        const int32_t *scored = is_chosen_apart(loop) ? choices.scored : choices.experts;
        counts[i]             = (float)list_candidates(shape, scored, choices.probabilities, i, candidates);
        int64_t count         = list_candidates(shape, choices.experts, choices.probabilities, i, candidates);
        if (count > shape->taken) {
            drop_least_probable(&choices, candidates, count, shape->taken);
        }
    }
}

// Position of an expert in slot order, and the expert at a position.
static int64_t place_of(const struct routing_shape *shape, int64_t expert)
{
    int64_t experts_per_owner = shape->experts / shape->owners;
    return expert % experts_per_owner * shape->owners + expert / experts_per_owner;
}

static int64_t expert_at(const struct routing_shape *shape, int64_t place)
{
    return place % shape->owners * (shape->experts / shape->owners) + place / shape->owners;
}

// Dropless: writes the number of rows of each expert, rounded up to the padding multiple (quantum), to tallies.
static void count_slots(const struct loop *loop)
{
    const struct routing_shape *shape   = &loop->op->shape.routing;
    struct choices              choices = all_choices(loop);
    int32_t                    *tallies = loop->buffers[ROUTE_TALLIES].data;
    int64_t                     own     = shape->first * shape->top_k;
    memset(tallies, 0, sizeof(*tallies) * (size_t)shape->experts);
    for (int64_t choice = own; choice < own + shape->rows * shape->top_k; choice++) {
        tallies[choices.experts[choice]] += choices.probabilities[choice] != DROPPED;
    }
    for (int64_t expert = 0; expert < shape->experts; expert++) {
        tallies[expert] = (int32_t)((tallies[expert] + shape->quantum - 1) / shape->quantum * shape->quantum);
    }
}

static void find_slots(const struct loop *loop, int64_t expert, int64_t *begin, int64_t *end)
{
    const struct routing_shape *shape   = &loop->op->shape.routing;
    const int32_t              *tallies = loop->buffers[ROUTE_TALLIES].data;
    int64_t                     place   = place_of(shape, expert);
    *begin                              = shape->quantum == 0 ? place * shape->capacity : 0;
    for (int64_t before = 0; before < place && shape->quantum > 0; before++) {
        *begin += tallies[expert_at(shape, before)];
    }
    *end = *begin + (shape->quantum == 0 ? shape->capacity : tallies[expert]);
}

// Assigns slots to the local choices of each expert in row order.
static void place_experts(void *context, int64_t first, int64_t last, int thread)
{
    (void)thread;
    const struct loop          *loop    = context;
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

static void gate_rows(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop          *loop    = context;
    const struct routing_shape *shape   = &loop->op->shape.routing;
    struct choices              choices = all_choices(loop);
    float                      *scores  = host_scratch(loop, thread, thread_floats(shape));
    for (int64_t row = first; row < last; row++) {
        const float   *logits = (const float *)loop->buffers[ROUTE_LOGITS].data + (shape->first + row) * shape->experts;
        const int32_t *experts = choices.experts + (shape->first + row) * shape->top_k;
        float          share   = scores_of(shape, logits, scores);
        memcpy((int32_t *)loop->buffers[ROUTE_CHOICES].data + row * shape->top_k, experts,
               sizeof(*experts) * (size_t)shape->top_k);
        scores_gates(shape, logits, scores, experts, (float *)loop->buffers[ROUTE_GATES].data + row * shape->top_k);
        const float *counts = scores_counts(shape, &loop->buffers[ROUTE_COUNTS], row);
        choices.auxiliary[row] =
            (float)(scores_auxiliary_scale(shape) * (double)share * row_dot(counts, scores, shape->experts));
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

void host_route_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    host_run_loop(backend, op, buffers, choose_rows, shape->total);
    host_run_loop(backend, op, buffers, drop_choices, shape->sequences * shape->experts);
    struct loop loop = {.op = op, .buffers = buffers, .host = backend->state};
    if (shape->quantum > 0) {
        count_slots(&loop);
        // slots after the last expert
        memset(buffers[ROUTE_SOURCES].data, -1, sizeof(int32_t) * (size_t)routing_slots(shape));
    }
    host_run_loop(backend, op, buffers, place_experts, shape->experts);
    host_run_loop(backend, op, buffers, gate_rows, shape->rows);
    if (buffers[ROUTE_STATISTICS].data != NULL) {
        add_statistics(&loop);
    }
}
