// SPDX-License-Identifier: MIT
// Tests how the position of a rank in the step is described to the user from the bytes that the rank sent.
#include <criterion/criterion.h>

#include "gswbench/plan.h"
#include "meshes.h"
#include "watch/internal.h"

static void expect_place(int phase, const char *place)
{
    const struct plan plan = {.mesh = MESH(.dp = 2)};
    struct slot       slot = {.rank = 1, .pid = 7, .phase = phase, .step = 12, .where = "in its own words"};
    char              text[80];
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        slot.streams[stream].op = -1;
    }
    slot_name_place(&slot, &plan, text, sizeof(text));
    cr_expect_str_eq(text, place, "phase %d: %s", phase, text);
}

Test(slot, names_the_phases_that_it_knows)
{
    expect_place(WATCH_OPENING, "before the first step");
    expect_place(WATCH_STEP, "between ops of step 12");
    expect_place(WATCH_BETWEEN, "after step 12");
    expect_place(WATCH_FILE, "in its own words");
    expect_place(WATCH_FILES, "between files");
    expect_place(WATCH_SAVING, "in the checkpoint after step 12");
}

Test(slot, leaves_other_phases_to_the_words_of_the_rank)
{
    expect_place(WATCH_SAVING + 1, "in its own words");
    expect_place(1 << 30, "in its own words");
    expect_place(-1, "in its own words");
}

// The rank has started op 3 on another stream, but neither an op on the compute stream nor a communication op.
Test(slot, is_in_the_op_that_it_started_last)
{
    struct slot slot = {.rank = 1};
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        slot.streams[stream].op = -1;
    }
    cr_expect_eq(slot_op(&slot), -1);
    slot.streams[STREAM_WEIGHT_GATHER].op = 3;
    cr_expect_eq(slot_op(&slot), 3);
    slot.streams[STREAM_COMPUTE].op = 2;
    cr_expect_eq(slot_op(&slot), 2);
}
