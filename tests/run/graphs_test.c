// SPDX-License-Identifier: MIT
// Tests when a run captures its step as a CUDA graph, and whether it then keeps the graph or the eager step.
#include <criterion/criterion.h>

#include "run/internal.h"

Test(graphs, are_tried_between_nodes_as_far_as_the_warm_up_has_room)
{
    static const struct {
        enum graphs choice;
        bool        can_capture;
        int         nodes;
        int64_t     warmup, capture_after, tried;
    } cases[] = {
        {GRAPHS_AUTO, true, 1, 10, 0, 0},   {GRAPHS_AUTO, true, 2, 10, 3, 3}, {GRAPHS_AUTO, true, 2, 8, 3, 3},
        {GRAPHS_AUTO, true, 2, 7, 2, 2},    {GRAPHS_AUTO, true, 2, 4, 1, 1},  {GRAPHS_AUTO, true, 2, 3, 0, 0},
        {GRAPHS_AUTO, true, 2, 0, 0, 0},    {GRAPHS_ON, true, 2, 10, 0, 0},   {GRAPHS_OFF, true, 2, 10, -1, 0},
        {GRAPHS_AUTO, false, 2, 10, -1, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct graphs_plan plan = graphs_plan(cases[i].choice, cases[i].can_capture, cases[i].nodes, cases[i].warmup);
        cr_expect_eq(plan.capture_after, cases[i].capture_after, "case %zu: %d", i, (int)plan.capture_after);
        cr_expect_eq(plan.tried, cases[i].tried, "case %zu: %d", i, (int)plan.tried);
        cr_expect(plan.tried == 0 || plan.capture_after + 1 + plan.tried < cases[i].warmup, "case %zu", i);
    }
}

// Step 0 and step 3, the first replay, are cold and do not count.
Test(graphs, stay_where_their_median_is_no_longer)
{
    struct graphs_plan plan     = {.capture_after = 2, .tried = 2};
    struct result_step steps[6] = {{.seconds = 90}, {.seconds = 5}, {.seconds = 7},
                                   {.seconds = 80}, {.seconds = 4}, {.seconds = 6}};
    double             seconds[2];
    cr_expect(graphs_is_captured_faster(&plan, steps, seconds));
    cr_expect_float_eq(seconds[0], 6, 1e-12);
    cr_expect_float_eq(seconds[1], 5, 1e-12);
    steps[4].seconds = 9;
    cr_expect_not(graphs_is_captured_faster(&plan, steps, seconds));
    cr_expect_float_eq(seconds[1], 7.5, 1e-12);
}
