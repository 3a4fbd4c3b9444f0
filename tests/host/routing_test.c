// SPDX-License-Identifier: MIT
// Tests expert routing on the host backend against cases computed by hand. A choice is a pair of a row (a token) and
// one of its top-k experts. Also tests dispatch to experts and combine on the host backend. The routing is written by
// hand. A choice is a pair of a row (a token) and one of its top-k experts.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "host.h"

// Expected results of routing. A field that is NULL is not checked.
struct routing {
    const double *choices, *slots, *gates, *sources, *counts, *statistics;
};

static void expect_routing(struct routing_shape shape, const double *probabilities, const struct routing *expected)
{
    struct op     op                   = route_op(shape);
    struct buffer buffers[OP_OPERANDS] = {make_logits(probabilities, shape.total * shape.experts)};
    make_route_outputs(buffers, &op);

    run_op(&op, buffers, THREADS);

    const double *const values[] = {expected->choices, expected->slots,  expected->gates,
                                    expected->sources, expected->counts, expected->statistics};
    const char *const   names[]  = {"choices", "slots", "gates", "sources", "counts", "statistics"};
    for (int i = 0; i < 6; i++) {
        if (values[i] != NULL) {
            expect_values(&buffers[ROUTE_CHOICES + i], values[i], names[i]);
        }
    }
}
#define EXPECT_ROUTING(shape, probabilities, ...) expect_routing(shape, probabilities, &(struct routing){__VA_ARGS__})

Test(routing, chooses_the_largest_logits_and_the_lower_expert_of_equal_ones)
{
    const double probabilities[] = {
        0.2, 0.4, 0.1, 0.3,    // the largest are experts 1 and 3
        0.2, 0.4, 0.2, 0.2,    // the largest is expert 1; experts 0, 2 and 3 are equal, and the first is taken
        0.1, 0.2, 0.3, 0.4,    // the largest are experts 3 and 2
    };
    EXPECT_ROUTING(whole(3, 4, 2, 3), probabilities, .choices = VALUES(1, 3, 1, 0, 3, 2),
                   .slots   = VALUES(3, 9, 4, 0, 10, 6),
                   .gates   = VALUES(4.0 / 7, 3.0 / 7, 2.0 / 3, 1.0 / 3, 4.0 / 7, 3.0 / 7),
                   .sources = VALUES(3, -1, -1, 0, 2, -1, 5, -1, -1, 1, 4, -1), .counts = VALUES(1, 2, 1, 2),
                   .statistics = VALUES(1, 2, 1, 2, 0, 0));
}

// Expert 0 has two slots and is chosen four times. It keeps rows 1 and 2, which have the highest probabilities,
// although the gate of row 3 is larger than the gate of row 2.
Test(routing, drops_the_least_probable_choices_and_leaves_the_gates)
{
    const double probabilities[] = {
        0.40, 0.35, 0.25,    // the gate of expert 0 is 0.40 / 0.75 = 0.533
        0.60, 0.30, 0.10,    // the gate is 0.667
        0.50, 0.45, 0.05,    // the gate is 0.526
        0.45, 0.30, 0.25,    // the gate is 0.45 / 0.75 = 0.6
    };
    EXPECT_ROUTING(whole(4, 3, 2, 2), probabilities, .choices = VALUES(0, 1, 0, 1, 0, 1, 0, 1),
                   .slots   = VALUES(-1, 2, 0, -1, 1, 3, -1, -1),
                   .gates   = VALUES(8.0 / 15, 7.0 / 15, 2.0 / 3, 1.0 / 3, 10.0 / 19, 9.0 / 19, 0.6, 0.4),
                   .sources = VALUES(2, 4, 1, 5, -1, -1), .counts = VALUES(4, 4, 0),
                   .statistics = VALUES(4, 4, 0, 4, 0));
}

Test(routing, keeps_the_first_rows_of_equal_probability)
{
    const double probabilities[] = {0.75, 0.25, 0.8, 0.2, 0.75, 0.25, 0.75, 0.25, 0.9, 0.1};
    EXPECT_ROUTING(whole(5, 2, 1, 3), probabilities, .slots = VALUES(0, 1, -1, -1, 2), .gates = VALUES(1, 1, 1, 1, 1),
                   .sources = VALUES(0, 1, 4, -1, -1, -1), .statistics = VALUES(5, 0, 2, 0));
}

// Each of two sequences is split into two parts of one row: rows 0 and 2, and rows 1 and 3. Rows of a sequence compete
// for the slots of an expert, also with rows that another rank has. This rank has rows 2 and 3.
Test(routing, lets_rows_compete_within_their_sequence_over_all_parts)
{
    struct routing_shape shape = whole(2, 2, 1, 1);
    shape.total = 4, shape.first = 2, shape.sequences = 2, shape.sequence_rows = 1, shape.capacity = 2;
    const double probabilities[] = {0.6, 0.4, 0.9, 0.1, 0.7, 0.3, 0.8, 0.2};
    EXPECT_ROUTING(shape, probabilities, .choices = VALUES(0, 0), .slots = VALUES(0, -1),
                   .sources = VALUES(0, -1, -1, -1), .counts = VALUES(2, 0, 2, 0), .statistics = VALUES(2, 0, 1, 0));
    shape.first = 0;
    EXPECT_ROUTING(shape, probabilities, .slots = VALUES(-1, 0), .sources = VALUES(1, -1, -1, -1),
                   .statistics = VALUES(2, 0, 1, 0));
}

// Six experts are distributed over three ranks, which have two each. The send buffer has the first expert of every rank
// (0, 2, 4), then the second (1, 3, 5). Each expert has two slots.
Test(routing, orders_slots_by_the_experts_of_each_owner)
{
    struct routing_shape shape  = whole(6, 6, 1, 2);
    shape.owners                = 3;
    double probabilities[6 * 6] = {0};
    for (int row = 0; row < 6; row++) {
        for (int expert = 0; expert < 6; expert++) {
            probabilities[row * 6 + expert] = row == expert ? 0.5 : 0.1;
        }
    }
    EXPECT_ROUTING(shape, probabilities, .slots = VALUES(0, 6, 2, 8, 4, 10),
                   .sources = VALUES(0, -1, 2, -1, 4, -1, 1, -1, 3, -1, 5, -1));
}

Test(routing, gives_experts_out_in_turn_when_balanced)
{
    struct routing_shape shape = whole(2, 4, 2, 4);
    shape.total = shape.sequence_rows = 4, shape.first = 1, shape.balanced = true;
    const double probabilities[] = {0.25, 0.25, 0.25, 0.25, 0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4, 0.4, 0.3, 0.2, 0.1};
    EXPECT_ROUTING(shape, probabilities, .choices = VALUES(2, 3, 0, 1), .slots = VALUES(8, 12, 0, 4),
                   .gates = VALUES(3.0 / 7, 4.0 / 7, 1.0 / 3, 2.0 / 3), .counts = VALUES(2, 2, 2, 2),
                   .statistics = VALUES(1, 1, 1, 1, 0, 0));
}

// Half of the rows, here 1, 3 and 5, get the first two experts. The other three rows cycle through all four experts, so
// their six choices are 1.5 for each expert on average.
Test(routing, gives_so_many_rows_the_first_experts_when_skewed)
{
    struct routing_shape shape = whole(6, 4, 2, 6);
    shape.balanced = true, shape.hot = 0.5;
    double probabilities[6 * 4];
    for (int i = 0; i < 6 * 4; i++) {
        probabilities[i] = 0.25;
    }
    EXPECT_ROUTING(shape, probabilities, .choices = VALUES(0, 1, 0, 1, 2, 3, 0, 1, 0, 1, 0, 1),
                   .counts = VALUES(5, 5, 1, 1), .statistics = VALUES(5, 5, 1, 1, 0, 0));
}

// The experts get 3/4 and 1/4 of the choices, and their mean probabilities are 0.625 and 0.375. The loss is 2 x (3/4 x
// 0.625 + 1/4 x 0.375) = 1.125, times the coefficient 0.5. The first two rows contribute 0.625 of it.
Test(routing, brings_the_own_rows_part_of_the_auxiliary_loss)
{
    struct routing_shape shape   = whole(4, 2, 1, 1);
    shape.auxiliary              = 0.5f;
    const double probabilities[] = {0.75, 0.25, 0.75, 0.25, 0.75, 0.25, 0.25, 0.75};
    EXPECT_ROUTING(shape, probabilities, .statistics = VALUES(3, 1, 2, 0.5625));
    shape.rows = 2;
    EXPECT_ROUTING(shape, probabilities, .statistics = VALUES(2, 0, 1, 0.3125));
}

Test(routing, adds_to_its_statistics_when_it_accumulates)
{
    struct op op                       = route_op(whole(3, 2, 1, 2));
    op.accumulates                     = true;
    op.shape.routing.auxiliary         = 1;
    struct buffer buffers[OP_OPERANDS] = {make_logits(VALUES(0.75, 0.25, 0.75, 0.25, 0.75, 0.25), 6)};
    make_route_outputs(buffers, &op);
    for (int i = 0; i < 4; i++) {
        set(&buffers[ROUTE_STATISTICS], i, 10);
    }

    run_op(&op, buffers, THREADS);

    expect_values(&buffers[ROUTE_STATISTICS], VALUES(13, 10, 11, 11.5), "statistics");
}

Test(routing, needs_no_statistics)
{
    struct op     op                   = route_op(whole(2, 2, 1, 2));
    struct buffer buffers[OP_OPERANDS] = {make_logits(VALUES(0.75, 0.25, 0.25, 0.75), 4)};
    make_route_outputs(buffers, &op);
    buffers[ROUTE_STATISTICS] = (struct buffer){0};

    run_op(&op, buffers, THREADS);

    expect_values(&buffers[ROUTE_SLOTS], VALUES(0, 2), "slots");
}

// Tests 3000 choices of two sequences for 7 experts, which take at most 100 of them per sequence. Every slot that names
// a choice as its source must be the slot of that choice.
Test(routing, of_any_shape_fills_slots_that_sources_name)
{
    struct routing_shape shape = whole(1500, 7, 2, 100);
    shape.rows = shape.first = 500, shape.sequences = 2, shape.sequence_rows = 250, shape.capacity = 200;
    shape.auxiliary                    = 0.1f;
    struct op     op                   = route_op(shape);
    struct buffer buffers[OP_OPERANDS] = {make_random(FORMAT_F32, 1500 * 7, 1, 1)};
    make_route_outputs(buffers, &op);

    run_op(&op, buffers, THREADS);

    const int32_t *slot_of = buffers[ROUTE_SLOTS].data, *source_of = buffers[ROUTE_SOURCES].data;
    const int32_t *expert_of = buffers[ROUTE_CHOICES].data;
    int            filled = 0, dropped = 0;
    for (int32_t slot = 0; slot < 1400; slot++) {
        if (source_of[slot] >= 0) {
            filled++;
            cr_assert_eq(slot_of[source_of[slot]], slot);
            cr_assert_eq(expert_of[source_of[slot]], slot / 200);
        }
    }
    for (int choice = 0; choice < 1000; choice++) {
        dropped += slot_of[choice] < 0;
    }
    cr_assert_eq(filled + dropped, 1000);
    cr_assert(dropped > 300 && dropped < 800, "%d dropped", dropped);
    cr_assert_eq(get(&buffers[ROUTE_STATISTICS], 7), dropped);
}

// The routing has three rows and two experts with three slots each. The second choice of row 1 is dropped.
static const struct routing_shape moves     = {.rows = 3, .columns = 5, .experts = 2, .capacity = 3, .top_k = 2};
static const int32_t              slots[]   = {3, 0, 4, -1, 1, 5};
static const int32_t              sources[] = {1, 4, -1, 0, 2, 5};
static const double               gates[]   = {0.75, 0.25, 0.5, 0.5, 0.375, 0.625};
enum { ROWS = 3, COLUMNS = 5, CHOICES = 6, SLOTS = 6 };

// Stores the routing in the operands with these indices. An index is -1 if the op has no such operand.
static void fill(struct buffer *buffers, int of_slots, int of_sources, int of_gates)
{
    for (int64_t i = 0; i < CHOICES; i++) {
        if (of_slots >= 0) {
            set(&buffers[of_slots], i, slots[i]);
        }
        if (of_sources >= 0) {
            set(&buffers[of_sources], i, sources[i]);
        }
        if (of_gates >= 0) {
            set(&buffers[of_gates], i, gates[i]);
        }
    }
}

Test(dispatch, copies_rows_to_their_slots_and_clears_empty_ones)
{
    static const int source_rows[] = {0, 2, -1, 0, 1, 2};
    for (int type = 0; type < TYPES; type++) {
        struct op     op = {.kind = OP_DISPATCH, .shape.routing = moves};
        struct buffer buffers[OP_OPERANDS];
        make_slots(&op, "xix", types[type], buffers);
        fill(buffers, -1, DISPATCH_SOURCES, -1);

        run_op(&op, buffers, THREADS);

        for (int64_t i = 0; i < SLOTS * COLUMNS; i++) {
            int    row      = source_rows[i / COLUMNS];
            double expected = row < 0 ? 0 : get(&buffers[DISPATCH_IN], row * COLUMNS + i % COLUMNS);
            cr_assert_eq(get(&buffers[DISPATCH_OUT], i), expected);
        }
    }
}

static void expect_combined(enum format format, bool has_gates, bool accumulates)
{
    struct op     op = {.kind = OP_COMBINE, .accumulates = accumulates, .shape.routing = moves};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, has_gates ? "xifx" : "xi-x", format, buffers);
    fill(buffers, COMBINE_SLOTS, -1, has_gates ? COMBINE_GATES : -1);
    double *expected = values_of(&buffers[COMBINE_OUT]);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
        expected[i] = accumulates ? expected[i] : 0;
        for (int64_t choice = i / COLUMNS * 2; choice < i / COLUMNS * 2 + 2; choice++) {
            if (slots[choice] >= 0) {
                double value = get(&buffers[COMBINE_IN], slots[choice] * COLUMNS + i % COLUMNS);
                expected[i] += (has_gates ? gates[choice] : 1) * value;
            }
        }
    }

    run_op(&op, buffers, THREADS);

    expect_close(&buffers[COMBINE_OUT], expected, tolerance(format), "combine");
}

Test(dispatch, sums_what_the_experts_return_by_the_gates)
{
    for (int bits = 0; bits < 8; bits++) {
        expect_combined(types[bits & 1], (bits & 2) != 0, (bits & 4) != 0);
    }
}

// Combine is linear in the experts' outputs and in the gates. So the gradient of an output is gate times gradient, and
// the gradient of a gate is output times gradient.
Test(dispatch, gives_no_gradient_to_dropped_choices_and_empty_slots)
{
    for (int type = 0; type < TYPES; type++) {
        enum format   format = types[type];
        struct op     op     = {.kind = OP_COMBINE_BACKWARD, .shape.routing = moves};
        struct buffer buffers[OP_OPERANDS];
        make_slots(&op, "xxiifxf", format, buffers);
        fill(buffers, COMBINE_GRADIENT_SLOTS, COMBINE_GRADIENT_SOURCES, COMBINE_GRADIENT_GATES_IN);

        run_op(&op, buffers, THREADS);

        double in[SLOTS * COLUMNS] = {0}, by_gate[CHOICES] = {0};
        for (int64_t i = 0; i < CHOICES * COLUMNS; i++) {
            int64_t choice = i / COLUMNS, column = i % COLUMNS, at = slots[choice] * COLUMNS + column;
            double  out = get(&buffers[COMBINE_GRADIENT_OUT], choice / 2 * COLUMNS + column);
            if (slots[choice] >= 0) {
                in[at] = gates[choice] * out;
                by_gate[choice] += get(&buffers[COMBINE_GRADIENT_IN_IN], at) * out;
            }
        }
        expect_close(&buffers[COMBINE_GRADIENT_IN], in, tolerance(format), "gradient of the slots");
        expect_close(&buffers[COMBINE_GRADIENT_GATES], by_gate, tolerance(FORMAT_F32), "gradient of the gates");
    }
}
