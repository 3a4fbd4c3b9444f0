// SPDX-License-Identifier: MIT
// Tests pipeline schedules: order, length, completeness, no deadlock, and how layers are distributed over stages.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/schedule.h"
#include "success.h"

// Returns the actions of a stage as text. "F3.1" is the forward pass of microbatch 3 through chunk 1; B is the backward
// pass, W its weight gradients.
static const char *order_of(struct schedule_shape shape, int64_t stage)
{
    static char             text[1024];
    size_t                  used    = 0;
    struct schedule_action *actions = memory_allocate((size_t)schedule_actions(&shape) * sizeof(*actions));
    schedule_build(&shape, stage, actions);
    for (int64_t i = 0; i < schedule_actions(&shape); i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%c%d", i == 0 ? "" : " ", "FBW"[actions[i].pass],
                                 (int)actions[i].microbatch);
        if (shape.chunks > 1) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, ".%d", (int)actions[i].chunk);
        }
    }
    free(actions);
    return text;
}

// Returns the length of the schedule in time slots, or 0 if it deadlocks. Checks that each action occurs once, and that
// the microbatches of a chunk are in order.
static int64_t length_in(struct schedule_shape shape, const int64_t slots[SCHEDULE_PARTS])
{
    int64_t                 count   = schedule_actions(&shape);
    int64_t                *begins  = memory_allocate((size_t)(count * shape.stages) * sizeof(*begins));
    struct schedule_action *actions = memory_allocate((size_t)(count * shape.stages) * sizeof(*actions));
    for (int64_t stage = 0; stage < shape.stages; stage++) {
        int64_t next[SCHEDULE_PARTS][16] = {{0}};
        schedule_build(&shape, stage, actions + stage * count);
        for (int64_t i = stage * count; i < (stage + 1) * count; i++) {
            cr_assert_eq(actions[i].microbatch, next[actions[i].pass][actions[i].chunk]++);
        }
        for (int64_t chunk = 0; chunk < shape.chunks; chunk++) {
            cr_assert_eq(next[SCHEDULE_FORWARD][chunk], shape.microbatches);
            cr_assert_eq(next[SCHEDULE_BACKWARD][chunk], shape.microbatches);
        }
    }
    int64_t length = schedule_simulate(&shape, actions, slots, begins);
    free(actions);
    free(begins);
    return length;
}

static int64_t length_of(struct schedule_shape shape, int64_t forward, int64_t backward)
{
    return length_in(shape, (int64_t[SCHEDULE_PARTS]){forward, backward});
}

// Zero bubble is ZB-H1 of arXiv 2401.10241, section 2.1, in the order of PyTorch's ScheduleInterleavedZeroBubble with
// one stage per rank. Interleaved schedules take microbatches in groups of one per stage, and the last group may be
// smaller. With overlapped microbatches, the warm-up has one more forward action.
Test(schedule, orders_actions)
{
    static const struct {
        struct schedule_shape shape;
        int64_t               stage;
        const char           *order;
    } rows[] = {
        {{4, 1, 8, SCHEDULE_ZERO_BUBBLE}, 0, "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7"},
        {{4, 1, 8, SCHEDULE_ZERO_BUBBLE}, 1, "F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 W6 W7"},
        {{4, 1, 8, SCHEDULE_ZERO_BUBBLE}, 2, "F0 F1 B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 B7 W5 W6 W7"},
        {{4, 1, 8, SCHEDULE_ZERO_BUBBLE}, 3, "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7"},
        {{4, 1, 2, SCHEDULE_ZERO_BUBBLE}, 3, "F0 B0 F1 B1 W0 W1"},
        {{4, 1, 6, SCHEDULE_1F1B}, 0, "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5"},
        {{4, 1, 6, SCHEDULE_1F1B}, 2, "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5"},
        {{4, 1, 6, SCHEDULE_1F1B}, 3, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5"},
        {{4, 1, 2, SCHEDULE_1F1B}, 0, "F0 F1 B0 B1"},
        {{1, 1, 3, SCHEDULE_1F1B}, 0, "F0 B0 F1 B1 F2 B2"},
        {{2, 2, 4, SCHEDULE_1F1B},
         0,
         "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0"},
        {{2, 2, 4, SCHEDULE_1F1B},
         1,
         "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0"},
        {{2, 2, 3, SCHEDULE_1F1B}, 0, "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 B1.1 F2.1 B0.0 B1.0 B2.1 B2.0"},
        {{4, 2, 1, SCHEDULE_1F1B}, 0, "F0.0 F0.1 B0.1 B0.0"},
        {{1, 1, 4, SCHEDULE_OVERLAPPED}, 0, "F0 F1 B0 F2 B1 F3 B2 B3"},
        {{2, 1, 4, SCHEDULE_OVERLAPPED}, 1, "F0 F1 B0 F2 B1 F3 B2 B3"},
        {{2, 1, 4, SCHEDULE_OVERLAPPED}, 0, "F0 F1 F2 F3 B0 B1 B2 B3"},
        {{2, 2, 4, SCHEDULE_OVERLAPPED},
         1,
         "F0.0 F1.0 F0.1 F1.1 B0.1 F2.0 B1.1 F3.0 B0.0 F2.1 B1.0 F3.1 B2.1 B3.1 B2.0 B3.0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_str_eq(order_of(rows[i].shape, rows[i].stage), rows[i].order);
    }
}

// In 1F1B, a stage keeps one microbatch for itself and for each later stage. With overlapped microbatches it keeps
// twice this number. With zero bubble, every stage keeps the number of the first stage of 1F1B.
Test(schedule, keeps_microbatches_in_flight)
{
    static const int64_t kept[][4] = {
        [SCHEDULE_1F1B] = {4, 3, 2, 1}, [SCHEDULE_OVERLAPPED] = {8, 6, 4, 2}, [SCHEDULE_ZERO_BUBBLE] = {4, 4, 4, 4}};
    for (enum schedule_kind kind = SCHEDULE_1F1B; kind <= SCHEDULE_ZERO_BUBBLE; kind++) {
        for (int64_t stage = 0; stage < 4; stage++) {
            struct schedule_shape  shape = {4, 1, 100, kind};
            struct schedule_action actions[300];
            schedule_build(&shape, stage, actions);
            cr_expect_eq(schedule_in_flight(&shape, actions), kept[kind][stage], "kind %d, stage %d", kind, (int)stage);
        }
    }
}

// For p stages with times F, B and W, the paper gives a bubble of (p - 1)(F + B - W) for ZB-H1, and of (p - 1)(F + B +
// W) for 1F1B.
Test(schedule, has_the_published_bubbles)
{
    static const int64_t costs[][SCHEDULE_PARTS] = {{1, 1, 1}, {10, 12, 8}, {10, 10, 9}, {3, 3, 2}};
    for (int64_t stages = 2; stages <= 8; stages += 2) {
        for (int64_t microbatches = stages; microbatches <= 3 * stages; microbatches += stages) {
            for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
                int64_t f = costs[i][0], b = costs[i][1], w = costs[i][2], busy = microbatches * (f + b + w);
                cr_expect_eq(
                    length_in((struct schedule_shape){stages, 1, microbatches, SCHEDULE_ZERO_BUBBLE}, costs[i]),
                    busy + (stages - 1) * (f + b - w));
                cr_expect_eq(length_of((struct schedule_shape){stages, 1, microbatches, SCHEDULE_1F1B}, f, b + w),
                             busy + (stages - 1) * (f + b + w));
            }
        }
    }
}

Test(schedule, has_the_bubble_of_the_closed_form)
{
    for (int64_t stages = 1; stages <= 9; stages++) {
        for (int64_t chunks = 1; chunks <= 6; chunks++) {
            for (int64_t microbatches = 1; microbatches <= 3 * stages; microbatches++) {
                struct schedule_shape shape = {stages, chunks, microbatches, SCHEDULE_1F1B};
                if (chunks == 1 || microbatches % stages == 0) {
                    int64_t actions = microbatches * chunks + stages - 1;
                    cr_assert_eq(length_of(shape, 1, 2), 3 * actions);
                    cr_assert_eq(length_of(shape, 1, 1), 2 * actions);
                }
            }
        }
    }
}

// Published layouts have a bubble of (stages - 1) / (microbatches * chunks) of the busy time. A forward and a backward
// action together take 3 slots, and the bubble adds 3 slots for each other stage.
Test(schedule, has_the_bubbles_of_layouts)
{
    static const struct schedule_shape shapes[] = {
        {4, 5, 64, SCHEDULE_1F1B},       {8, 5, 64, SCHEDULE_1F1B},      {8, 8, 64, SCHEDULE_1F1B},
        {8, 12, 16, SCHEDULE_1F1B},      {1, 1, 8, SCHEDULE_OVERLAPPED}, {4, 1, 32, SCHEDULE_OVERLAPPED},
        {4, 2, 32, SCHEDULE_OVERLAPPED},
    };
    static const int64_t lengths[] = {3 * (64 * 5 + 3), 3 * (64 * 5 + 7), 3 * (64 * 8 + 7), 3 * (16 * 12 + 7), 3 * 8,
                                      3 * (32 + 3),     3 * (2 * 32 + 3)};
    for (int i = 0; i < 7; i++) {
        cr_expect_eq(length_of(shapes[i], 1, 2), lengths[i], "shape %d", i);
    }
}

static int64_t count_aside(struct schedule_shape shape, int64_t stage)
{
    int64_t                 count = schedule_actions(&shape), aside = 0;
    struct schedule_action *actions = memory_allocate((size_t)count * sizeof(*actions));
    schedule_build(&shape, stage, actions);
    for (int64_t i = 0; i + 1 < count; i++) {
        if (actions[i].is_beside) {
            cr_expect_eq(actions[i].pass, SCHEDULE_FORWARD);
            cr_expect_eq(actions[i + 1].pass, SCHEDULE_BACKWARD);
            cr_expect_neq(actions[i].microbatch, actions[i + 1].microbatch);
            aside++;
        }
    }
    free(actions);
    return aside;
}

Test(schedule, puts_all_actions_but_the_first_and_the_last_side_by_side)
{
    cr_expect_eq(count_aside((struct schedule_shape){1, 1, 8, SCHEDULE_OVERLAPPED}, 0), 7);
    cr_expect_eq(count_aside((struct schedule_shape){1, 1, 1, SCHEDULE_OVERLAPPED}, 0), 0);
    cr_expect_eq(count_aside((struct schedule_shape){4, 1, 16, SCHEDULE_OVERLAPPED}, 0), 16 - 7);
    cr_expect_eq(count_aside((struct schedule_shape){4, 1, 16, SCHEDULE_OVERLAPPED}, 3), 16 - 1);
    cr_expect_eq(count_aside((struct schedule_shape){4, 3, 16, SCHEDULE_OVERLAPPED}, 1), 3 * 16 - (2 * 4 + 2 * 2 + 1));
    cr_expect_eq(count_aside((struct schedule_shape){4, 3, 16, SCHEDULE_1F1B}, 1), 0);
}

Test(schedule, never_waits_for_ever_with_any_number_of_microbatches)
{
    for (int64_t stages = 1; stages <= 9; stages++) {
        for (int64_t chunks = 1; chunks <= 5; chunks++) {
            for (int64_t microbatches = 1; microbatches <= 3 * stages + 2; microbatches++) {
                int64_t whole = (microbatches + stages - 1) / stages * stages;
                int64_t beside =
                    length_of((struct schedule_shape){stages, chunks, microbatches, SCHEDULE_OVERLAPPED}, 1, 2);
                int64_t length = length_of((struct schedule_shape){stages, chunks, microbatches, SCHEDULE_1F1B}, 1, 2);
                cr_assert_geq(beside, 3 * microbatches * chunks);
                cr_assert_geq(length, 3 * microbatches * chunks + (stages > 1));
                cr_assert_leq(length, 3 * (whole * chunks + stages - 1));
            }
        }
    }
}

Test(schedule, finds_stages_that_wait_for_each_other)
{
    struct schedule_shape  shape      = {2, 1, 2, SCHEDULE_1F1B};
    struct schedule_action first[2]   = {{SCHEDULE_FORWARD, 0, 0, false}, {SCHEDULE_BACKWARD, 0, 0, false}};
    struct schedule_action second[2]  = {{SCHEDULE_FORWARD, 1, 0, false}, {SCHEDULE_BACKWARD, 1, 0, false}};
    struct schedule_action actions[8] = {first[0],  first[1],  second[0], second[1],
                                         second[0], second[1], first[0],  first[1]};
    int64_t                begins[8];
    cr_expect_eq(schedule_simulate(&shape, actions, (int64_t[SCHEDULE_PARTS]){1, 2}, begins), 0);
}

static void expect_counts(struct schedule_assignment assignment, const int64_t *counts)
{
    int64_t first = 0;
    for (int64_t chunk = 0; chunk < assignment.chunks; chunk++) {
        struct schedule_layers layers = schedule_layers(&assignment, chunk);
        cr_expect_eq(layers.first, first);
        cr_expect_eq(layers.count, counts[chunk], "%d layers: chunk %d has %d", (int)assignment.layers, (int)chunk,
                     (int)layers.count);
        first += layers.count;
    }
    cr_expect_eq(first, assignment.layers);
}

Test(schedule, deals_layers_evenly_and_what_is_left_to_the_middle_first)
{
    expect_counts((struct schedule_assignment){8, 4, false, 0}, (int64_t[]){2, 2, 2, 2});
    expect_counts((struct schedule_assignment){5, 4, false, 0}, (int64_t[]){1, 2, 1, 1});
    expect_counts((struct schedule_assignment){6, 4, false, 0}, (int64_t[]){1, 2, 2, 1});
    expect_counts((struct schedule_assignment){7, 4, false, 0}, (int64_t[]){2, 2, 2, 1});
    expect_counts((struct schedule_assignment){3, 2, false, 0}, (int64_t[]){2, 1});
    expect_counts((struct schedule_assignment){3, 1, false, 0}, (int64_t[]){3});
}

Test(schedule, counts_embedding_and_head_as_layers)
{
    expect_counts((struct schedule_assignment){6, 4, true, 0}, (int64_t[]){1, 2, 2, 1});
    expect_counts((struct schedule_assignment){2, 4, true, 0}, (int64_t[]){0, 1, 1, 0});
    expect_counts((struct schedule_assignment){3, 4, true, 0}, (int64_t[]){0, 2, 1, 0});

    struct schedule_assignment proxy = {30, 32, true, 0}, whole = {126, 64, true, 0};
    cr_expect_eq(schedule_layers(&proxy, 0).count, 0);
    cr_expect_eq(schedule_layers(&proxy, 31).count, 0);
    cr_expect_eq(schedule_layers(&proxy, 7).first, 6);
    cr_expect_eq(schedule_layers(&whole, 0).count, 1);
    cr_expect_eq(schedule_layers(&whole, 5).first, 9);
    cr_expect_eq(schedule_layers(&whole, 5).count, 2);
    cr_expect_eq(schedule_layers(&whole, 63).first, 125);
}

// DeepSeek-V3 has 61 layers, and an MTP module on the last chunk, which therefore gets fewer layers. Each other chunk
// gets eight of them, or four.
Test(schedule, gives_the_last_chunk_as_many_layers_as_asked)
{
    expect_counts((struct schedule_assignment){7, 4, false, 1}, (int64_t[]){2, 2, 2, 1});
    expect_counts((struct schedule_assignment){9, 4, false, 4}, (int64_t[]){2, 2, 1, 4});
    expect_counts((struct schedule_assignment){61, 8, false, 5}, (int64_t[]){8, 8, 8, 8, 8, 8, 8, 5});
    expect_counts((struct schedule_assignment){61, 16, false, 1},
                  (int64_t[]){4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1});

    EXPECT_ERROR(
        schedule_check(&(struct schedule_assignment){5, 4, false, 3}), EXIT_CONFIG,
        "[parallel] last_chunk_layers = 3 of [model] layers = 5 leaves too few for the other chunks: pp x vp = "
        "4 chunks need at least one each");
    cr_expect_eq(schedule_check(&(struct schedule_assignment){5, 1, false, 5}).exit_code, EXIT_CONFIG);
    EXPECT_ERROR(schedule_check(&(struct schedule_assignment){5, 4, true, 1}), EXIT_CONFIG,
                 "[parallel] last_chunk_layers = 1 already sets the layers of the last chunk: set "
                 "layers_per_chunk_embedding = no");
}

Test(schedule, refuses_more_chunks_than_layers)
{
    EXPECT_ERROR(schedule_check(&(struct schedule_assignment){5, 6, false, 0}), EXIT_CONFIG,
                 "[parallel] pp x vp = 6 chunks, but [model] layers = 5: every chunk needs at least one");
    EXPECT_ERROR_WITH(schedule_check(&(struct schedule_assignment){5, 8, true, 0}), EXIT_CONFIG,
                      "[model] layers = 5, with embedding and loss: every");
    EXPECT_SUCCESS(schedule_check(&(struct schedule_assignment){5, 7, true, 0}));
}
