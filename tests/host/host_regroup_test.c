// SPDX-License-Identifier: MIT
// Regrouping on the host backend: transposes rows and their parts.
#include <criterion/criterion.h>

#include "host.h"

static void expect_places(struct rows_shape shape, const int *expected)
{
    int64_t width = shape.columns / shape.parts, items = shape.rows * shape.parts;
    for (int i = 0; i < TYPES; i++) {
        struct op     op = {.kind = OP_REGROUP, .shape.rows = shape};
        struct buffer buffers[OP_OPERANDS];
        make_slots(&op, "xx", types[i], buffers);
        for (int64_t j = 0; j < items * width; j++) {
            set(&buffers[REGROUP_IN], j, (double)j);
        }
        run_op(&op, buffers, THREADS);
        for (int64_t j = 0; j < items * width; j++) {
            double right = (double)(expected[j / width] * width + j % width);
            cr_expect_eq(get(&buffers[REGROUP_OUT], j), right, "element %lld", (long long)j);
        }
    }
}

// Lists, for each output item, the index of its input item.
Test(host_regroup, turns_rows_of_parts_to_parts_of_rows)
{
    expect_places((struct rows_shape){.rows = 2, .columns = 15, .parts = 3}, (const int[]){0, 3, 1, 4, 2, 5});
}

// Four chunks of two ranks: the first halves in rank order, the second halves in reverse order.
Test(host_regroup, brings_chunks_of_ranks_into_the_order_of_the_sequence_and_back)
{
    expect_places((struct rows_shape){.rows = 2, .columns = 14, .parts = 2, .variant = REGROUP_FOLDED_PARTS},
                  (const int[]){0, 2, 3, 1});
    expect_places((struct rows_shape){.rows = 3, .columns = 6, .parts = 2, .variant = REGROUP_FOLDED_PARTS},
                  (const int[]){0, 2, 4, 5, 3, 1});
    expect_places((struct rows_shape){.rows = 2, .columns = 9, .parts = 3, .variant = REGROUP_FOLDED_ROWS},
                  (const int[]){0, 5, 1, 4, 2, 3});
}

Test(host_regroup, finds_squares_that_are_added_to_others)
{
    struct op     op = {.kind = OP_SQUARE_SUM, .accumulates = true, .shape.elements.elements = 3};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "ff", FORMAT_F32, buffers);
    for (int i = 0; i < 3; i++) {
        set(&buffers[SQUARE_SUM_IN], i, i + 1);
    }
    set(&buffers[SQUARE_SUM_OUT], 0, 100);
    run_op(&op, buffers, THREADS);
    cr_expect_eq(get(&buffers[SQUARE_SUM_OUT], 0), 114.0);
}
