// SPDX-License-Identifier: MIT
// Tests dispatch to experts and combine on the host backend. The routing is written by hand. A choice is a pair of a
// row (a token) and one of its top-k experts.
#include <criterion/criterion.h>
#include <string.h>

#include "host.h"

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
