// SPDX-License-Identifier: MIT
// Tests the router on the host backend: gates, expert groups and biases against cases computed by hand, and the
// gradient against differences.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "host.h"

// Routes with logits whose sigmoids are these scores, with or without a bias.
static void route(const struct routing_shape *shape, const double *scores, const double *bias, struct buffer *buffers)
{
    struct op op = route_op(*shape);
    buffers[0]   = make_buffer(FORMAT_F32, shape->total * shape->experts);
    for (int64_t i = 0; i < buffers[0].elements; i++) {
        set(&buffers[0], i, log(scores[i] / (1 - scores[i])));
    }
    make_route_outputs(buffers, &op);
    if (bias != NULL) {
        buffers[ROUTE_BIAS] = make_buffer(FORMAT_F32, shape->experts);
        for (int64_t i = 0; i < shape->experts; i++) {
            set(&buffers[ROUTE_BIAS], i, bias[i]);
        }
    }
    run_op(&op, buffers, THREADS);
}

// Checks which experts are chosen, and their gates.
static void expect_gates(const struct routing_shape *shape, const double *scores, const double *bias,
                         const double *choices, const double *gates)
{
    struct buffer buffers[OP_OPERANDS] = {{.data = NULL}};
    route(shape, scores, bias, buffers);
    expect_values(&buffers[ROUTE_CHOICES], choices, "choices");
    expect_values(&buffers[ROUTE_GATES], gates, "gates");
}

Test(router, weighs_by_sigmoids_or_by_their_shares)
{
    struct routing_shape shape = whole(1, 4, 2, 1);
    shape.score                = ROUTER_SIGMOID;
    const double scores[]      = {0.2, 0.9, 0.6, 0.1};
    expect_gates(&shape, scores, NULL, VALUES(1, 2), VALUES(0.6, 0.4));
    shape.scale = 2.5f;
    expect_gates(&shape, scores, NULL, VALUES(1, 2), VALUES(1.5, 1.0));
    shape.is_absolute = true;
    expect_gates(&shape, scores, NULL, VALUES(1, 2), VALUES(2.25, 1.5));
}

// The softmax of the logits log(s / (1 - s)) is proportional to s / (1 - s), here 1, 4 and 3. All experts sum to 8.
Test(router, weighs_by_the_softmax_of_all_experts_where_gates_are_no_shares)
{
    struct routing_shape shape = whole(1, 3, 2, 1);
    shape.is_absolute          = true;
    expect_gates(&shape, VALUES(0.5, 0.8, 0.75), NULL, VALUES(1, 2), VALUES(4.0 / 8, 3.0 / 8));
}

// The bias makes expert 0 the first choice, but its gate is computed from the score without bias.
Test(router, chooses_with_the_bias_and_weighs_without)
{
    struct routing_shape shape = whole(1, 4, 2, 1);
    shape.score                = ROUTER_SIGMOID;
    expect_gates(&shape, VALUES(0.2, 0.9, 0.6, 0.1), VALUES(0.8, 0, -0.3, 0), VALUES(0, 1),
                 VALUES(0.2 / 1.1, 0.9 / 1.1));
}

// There are three groups of three experts. A group counts by the sum of its best two scores, listed after each row. The
// first group has the best expert overall, but the smallest sum.
Test(router, chooses_from_the_groups_with_the_best_two)
{
    struct routing_shape shape = whole(2, 9, 3, 2);
    shape.score                = ROUTER_SIGMOID;
    shape.groups = 3, shape.top_groups = 2, shape.is_absolute = true;
    const double scores[] = {0.9, 0.1, 0.1, 0.6, 0.7, 0.2,  0.5, 0.3, 0.55,    // 1.0, 1.3 and 1.05
                             0.4, 0.3, 0.2, 0.1, 0.1, 0.65, 0.3, 0.3, 0.3};    // 0.7, 0.75 and 0.6
    expect_gates(&shape, scores, NULL, VALUES(4, 3, 8, 5, 0, 1), VALUES(0.7, 0.6, 0.55, 0.65, 0.4, 0.3));
    shape.top_groups = 1;
    expect_gates(&shape, scores, NULL, VALUES(4, 3, 5, 5, 3, 4), VALUES(0.7, 0.6, 0.2, 0.65, 0.1, 0.1));
    shape.top_groups = 3;
    expect_gates(&shape, scores, NULL, VALUES(0, 4, 3, 5, 0, 1), VALUES(0.9, 0.7, 0.6, 0.65, 0.4, 0.3));
}

static void expect_counts(const struct routing_shape *shape, const double *scores, const double *bias,
                          const double *counts)
{
    struct buffer buffers[OP_OPERANDS] = {{.data = NULL}};
    route(shape, scores, bias, buffers);
    expect_values(&buffers[ROUTE_COUNTS], counts, "counts");
}

// The auxiliary loss counts experts by the largest scores, regardless of biases and groups, as equation 18 of
// DeepSeek-V3 and Megatron-Core do. The largest are experts 1 and 2 in row 0, and 3 and 1 in row 1.
Test(router, counts_the_largest_scores_for_the_auxiliary_loss)
{
    const double         scores[] = {0.2, 0.9, 0.6, 0.1, 0.3, 0.7, 0.2, 0.8}, counts[] = {0, 2, 1, 1};
    struct routing_shape shape = whole(2, 4, 2, 2);
    shape.score                = ROUTER_SIGMOID;
    expect_counts(&shape, scores, NULL, counts);
    expect_counts(&shape, scores, VALUES(0.8, 0, -0.6, 0), counts);
    shape.groups = 2, shape.top_groups = 1;
    expect_counts(&shape, scores, NULL, counts);
    shape.score = ROUTER_SOFTMAX;
    expect_counts(&shape, scores, NULL, counts);
    shape.balanced = true;    // balanced routing counts the experts that it assigns
    expect_counts(&shape, scores, NULL, VALUES(1, 1, 1, 1));
}

// The loads of the first layer have a mean of 4. The bias of an expert moves by 0.25, down if its load is above the
// mean and up if it is below. The second layer has equal loads, so its biases stay.
static void expect_biases(double clip_scale, const double expected[6])
{
    struct op     op = {.kind = OP_BALANCE, .shape.rows = {.rows = 2, .columns = 3, .scale = 0.25f}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "fff", FORMAT_F32, buffers);
    buffers[BALANCE_BIAS] = make_output(FORMAT_F32, 6);    // with a guard
    set(&buffers[BALANCE_SCALE], 0, clip_scale);
    const double loads[] = {1, 7, 4, 100, 9, 3, 3, 3, 0, 5};
    for (int i = 0; i < 10; i++) {
        set(&buffers[BALANCE_LOADS], i, loads[i]);
    }
    for (int i = 0; i < 6; i++) {
        set(&buffers[BALANCE_BIAS], i, i);
    }
    run_op(&op, buffers, THREADS);
    expect_values(&buffers[BALANCE_BIAS], expected, "bias");
}

Test(router, moves_biases_against_the_loads)
{
    expect_biases(0.5, VALUES(0.25, 0.75, 2, 3, 4, 5));
}

Test(router, leaves_biases_in_a_step_whose_norm_is_not_finite)
{
    expect_biases((double)NAN, VALUES(0, 1, 2, 3, 4, 5));
}

static double reference_score(const struct routing_shape *shape, double logit)
{
    return shape->score == ROUTER_SIGMOID ? 1 / (1 + exp(-logit)) : exp(logit);
}

// Loss in double: the gates times their output gradients, plus the auxiliary loss of the rank's rows. The selected
// experts and the counts are constants.
static double reference_loss(const struct routing_shape *shape, const double *logits, const struct buffer *route,
                             const double *slopes)
{
    double loss = 0, sequence = (double)(shape->total / shape->sequences);
    for (int64_t row = 0; row < shape->rows; row++) {
        const double *x   = logits + (shape->first + row) * shape->experts;
        int64_t       s   = (shape->first + row) / shape->sequence_rows % shape->sequences;
        double        all = 0, chosen = 0;
        for (int64_t e = 0; e < shape->experts; e++) {
            all += reference_score(shape, x[e]);
        }
        for (int64_t j = row * shape->top_k; j < (row + 1) * shape->top_k; j++) {
            chosen += reference_score(shape, x[(int64_t)get(&route[ROUTE_CHOICES], j)]);
        }
        double sum = !shape->is_absolute ? chosen : shape->score == ROUTER_SIGMOID ? 1 : all;
        for (int64_t j = row * shape->top_k; j < (row + 1) * shape->top_k; j++) {
            double score = reference_score(shape, x[(int64_t)get(&route[ROUTE_CHOICES], j)]);
            loss += slopes[j] * (double)shape->scale * score / sum;
        }
        for (int64_t e = 0; e < shape->experts; e++) {
            double share = get(&route[ROUTE_COUNTS], s * shape->experts + e) / ((double)shape->top_k * sequence);
            loss += (double)shape->auxiliary * (double)shape->experts * share * reference_score(shape, x[e]) / all /
                    sequence;
        }
    }
    return loss;
}

static void expect_logit_gradient(const struct routing_shape *shape)
{
    struct op     forward = route_op(*shape), backward = {.kind = OP_ROUTE_BACKWARD, .shape.routing = *shape};
    struct buffer route[OP_OPERANDS] = {make_random(FORMAT_F32, shape->total * shape->experts, 1, 1)};
    make_route_outputs(route, &forward);
    struct buffer gradient[OP_OPERANDS] = {
        [ROUTE_GRADIENT_LOGITS_IN] = route[ROUTE_LOGITS],
        [ROUTE_GRADIENT_CHOICES]   = route[ROUTE_CHOICES],
        [ROUTE_GRADIENT_GATES_IN]  = route[ROUTE_GATES],
        [ROUTE_GRADIENT_COUNTS]    = route[ROUTE_COUNTS],
        [ROUTE_GRADIENT_GATES]     = make_random(FORMAT_F32, shape->rows * shape->top_k, 2, 1),
        [ROUTE_GRADIENT_LOGITS]    = make_output(FORMAT_F32, shape->rows * shape->experts),
    };

    run_op(&forward, route, THREADS);
    run_op(&backward, gradient, THREADS);

    const double step   = 1e-5;
    double      *logits = values_of(&route[ROUTE_LOGITS]), *slopes = values_of(&gradient[ROUTE_GRADIENT_GATES]);
    double      *expected = values_of(&gradient[ROUTE_GRADIENT_LOGITS]);
    double      *own      = logits + shape->first * shape->experts;
    for (int64_t i = 0; i < shape->rows * shape->experts; i++) {
        double value = own[i];
        own[i]       = value + step;
        double above = reference_loss(shape, logits, route, slopes);
        own[i]       = value - step;
        expected[i]  = (above - reference_loss(shape, logits, route, slopes)) / (2 * step);
        own[i]       = value;
    }
    expect_close(&gradient[ROUTE_GRADIENT_LOGITS], expected, tolerance(FORMAT_F32), "gradient of the logits");
}

Test(router, has_the_gradient_of_its_gates_and_of_the_auxiliary_loss)
{
    struct routing_shape shape = whole(24, 5, 2, 12);
    shape.rows = 6, shape.first = 12, shape.sequences = 2, shape.sequence_rows = 3, shape.capacity = 20;
    for (int i = 0; i < 4; i++) {
        shape.auxiliary = i % 2 == 0 ? 0.0f : 30.0f;
        shape.balanced  = i >= 2;
        expect_logit_gradient(&shape);
    }
    shape.top_k     = 1;
    shape.auxiliary = 30;
    expect_logit_gradient(&shape);
}

Test(router, has_the_gradient_of_every_kind_of_score)
{
    for (int i = 0; i < 8; i++) {
        struct routing_shape shape = whole(24, 5, 3, 24);
        shape.rows = 6, shape.first = 12, shape.sequences = 2, shape.sequence_rows = 3;
        shape.score       = i % 2 == 0 ? ROUTER_SIGMOID : ROUTER_SOFTMAX;
        shape.is_absolute = i / 2 % 2 == 1;
        shape.auxiliary   = i / 4 == 1 ? 20.0f : 0.0f;
        shape.scale       = 2.5f;
        expect_logit_gradient(&shape);
    }
}
