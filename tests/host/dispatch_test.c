// SPDX-License-Identifier: MIT
// Dispatch to experts and combine on the host backend, over a routing written by hand.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

// Three rows, two experts of three slots. Row 1's second choice is dropped.
static const struct routing_shape moves     = {.rows = 3, .columns = 5, .experts = 2, .capacity = 3, .top_k = 2};
static const int32_t              slots[]   = {3, 0, 4, -1, 1, 5};
static const int32_t              sources[] = {1, 4, -1, 0, 2, 5};
static const double               gates[]   = {0.75, 0.25, 0.5, 0.5, 0.375, 0.625};
enum { ROWS = 3, COLUMNS = 5, CHOICES = 6, SLOTS = 6 };

static struct buffer make_integers(const int32_t *values, int64_t elements)
{
    struct buffer buffer = make_buffer(FORMAT_I32, elements);
    memcpy(buffer.data, values, sizeof(*values) * (size_t)elements);
    return buffer;
}

static struct buffer make_gates(void)
{
    struct buffer buffer = make_buffer(FORMAT_F32, CHOICES);
    for (int64_t i = 0; i < CHOICES; i++) {
        set(&buffer, i, gates[i]);
    }
    return buffer;
}

Test(dispatch, copies_rows_to_their_slots_and_clears_empty_ones)
{
    static const int source_rows[] = {0, 2, -1, 0, 1, 2};
    for (int type = 0; type < TYPES; type++) {
        struct op     op                   = {.kind = OP_DISPATCH, .shape.routing = moves};
        struct buffer buffers[OP_OPERANDS] = {make_random(types[type], (int64_t)ROWS * COLUMNS, 1, 1),
                                              make_integers(sources, SLOTS),
                                              make_output(types[type], (int64_t)SLOTS * COLUMNS)};

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
    struct op     op                   = {.kind = OP_COMBINE, .accumulates = accumulates, .shape.routing = moves};
    struct buffer buffers[OP_OPERANDS] = {
        [COMBINE_IN]    = make_random(format, (int64_t)SLOTS * COLUMNS, 1, 1),
        [COMBINE_SLOTS] = make_integers(slots, CHOICES),
        [COMBINE_GATES] = has_gates ? make_gates() : (struct buffer){0},
        [COMBINE_OUT]   = accumulates ? make_random(format, (int64_t)ROWS * COLUMNS, 2, 1)
                                      : make_output(format, (int64_t)ROWS * COLUMNS),
    };
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

// Combine is linear in the slots and in the gates.
Test(dispatch, gives_no_gradient_to_dropped_choices_and_empty_slots)
{
    for (int type = 0; type < TYPES; type++) {
        enum format   format               = types[type];
        struct op     op                   = {.kind = OP_COMBINE_BACKWARD, .shape.routing = moves};
        struct buffer buffers[OP_OPERANDS] = {
            [COMBINE_GRADIENT_OUT]      = make_random(format, (int64_t)ROWS * COLUMNS, 1, 1),
            [COMBINE_GRADIENT_IN_IN]    = make_random(format, (int64_t)SLOTS * COLUMNS, 2, 1),
            [COMBINE_GRADIENT_SLOTS]    = make_integers(slots, CHOICES),
            [COMBINE_GRADIENT_SOURCES]  = make_integers(sources, SLOTS),
            [COMBINE_GRADIENT_GATES_IN] = make_gates(),
            [COMBINE_GRADIENT_IN]       = make_output(format, (int64_t)SLOTS * COLUMNS),
            [COMBINE_GRADIENT_GATES]    = make_output(FORMAT_F32, CHOICES),
        };

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
