// SPDX-License-Identifier: MIT
// Tests thresholds for step time, MFU and tokens/s that a user sets for one run. Also tests when a run captures its
// step as a CUDA graph, whether it then keeps the graph or the eager step, and after which steps it tests if its result
// is precise enough.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"
#include "run/internal.h"

// Returns a result with a median of 10 s, an interval from 9.9 to 10.2 s, 50 % MFU and 1000 tokens/s.
static struct result measured(void)
{
    struct result result             = {.verdict = VERDICT_VALID};
    result.figures.step              = (struct statistics){.median = 10.0, .low = 9.9, .high = 10.2};
    result.figures.tokens_per_second = 1000.0;
    for (int i = 0; i < FLOPS_COUNT; i++) {
        result.figures.utilization[i] = 0.5;
    }
    return result;
}

static void expect_code(const struct result *result, const char *above, const char *below, int code, const char *words)
{
    struct run_config  run = {.steps = 1};
    struct text_stream stream;
    text_copy(run.fail_above, sizeof(run.fail_above), above);
    text_copy(run.fail_below, sizeof(run.fail_below), below);
    status checked = thresholds_check(&run);
    cr_assert_not(failed(&checked), "%s", checked.text);
    text_stream_open(&stream);
    cr_expect_eq(thresholds_judge(result, &run, false, stream.file), code, "%s %s", above, below);
    text_stream_close(&stream);
    cr_expect_not_null(strstr(stream.data, words), "no '%s' in '%s'", words, stream.data);
    free(stream.data);
}

Test(thresholds, are_missed_only_beyond_the_interval_of_the_median)
{
    static const struct {
        bool        has_interval;
        const char *above, *below;
        int         code;
        const char *words;
    } cases[] = {
        {true, "step=10.3", "", EXIT_VALID, "step <= 10.3: met"},
        {true, "step=10.1", "", EXIT_UNDECIDED, "undecided"},
        {true, "step=9.95", "", EXIT_UNDECIDED, "undecided"},
        {true, "step=9.8", "", EXIT_GATE, "failed"},
        // An MFU of 48 % needs a step of 10.42 s, 49.5 % a step of 10.1 s, and 51 % a step of 9.8 s.
        {true, "", "mfu=0.48", EXIT_VALID, "mfu >= 0.48: met: median step 10 s, limit 10.4167 s"},
        {true, "", "mfu=0.495", EXIT_UNDECIDED, "undecided"},
        {true, "", "mfu=0.51", EXIT_GATE, "failed"},
        {true, "", "tokens=1050", EXIT_GATE, "limit 9.52381 s"},
        {false, "step=10.1", "", EXIT_VALID, "met"},
        {false, "step=9.9", "", EXIT_GATE, "failed"},
        // If one threshold is missed and another one undecided, the missed one decides the exit code.
        {true, "step=10.3", "mfu=0.495,tokens=900", EXIT_UNDECIDED, "met"},
        {true, "step=9.8", "mfu=0.495", EXIT_GATE, "undecided"},
        {true, "", "tokens=2000,mfu=0.495", EXIT_GATE, "undecided"},
        {true, "", "", EXIT_VALID, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result result = measured();
        if (!cases[i].has_interval) {
            result.figures.step.low = result.figures.step.high = NAN;
        }
        expect_code(&result, cases[i].above, cases[i].below, cases[i].code, cases[i].words);
    }
}

Test(thresholds, cannot_be_told_of_a_figure_that_a_run_lacks)
{
    struct result result = measured();
    for (int i = 0; i < FLOPS_COUNT; i++) {
        result.figures.utilization[i] = NAN;
    }
    expect_code(&result, "", "mfu=0.5", EXIT_UNDECIDED, "has no such value");
    result.verdict = VERDICT_UNVERIFIED;
    expect_code(&result, "step=100", "", EXIT_UNDECIDED, "undecided, since the run is unverified");
}

Test(thresholds, are_not_met_by_a_degraded_run_unless_forced)
{
    struct result     result = measured();
    struct run_config run    = {.fail_above = "step=20"};
    result.verdict           = VERDICT_DEGRADED;
    expect_code(&result, "step=20", "", EXIT_UNDECIDED,
                "undecided, since the run is degraded (--force applies it anyway)");
    cr_expect_eq(thresholds_judge(&result, &run, true, stdout), EXIT_VALID);
    result.verdict = VERDICT_UNVERIFIED;
    cr_expect_eq(thresholds_judge(&result, &run, true, stdout), EXIT_UNDECIDED);
}

Test(thresholds, are_refused_where_they_cannot_be_read)
{
    static const struct {
        const char *above, *below;
    } wrong[] = {{"step", ""},   {"step=", ""},  {"step=-1", ""}, {"step=0", ""}, {"mfu=0.5", ""},  {"steps=1", ""},
                 {"", "mfu=50"}, {"", "step=1"}, {"", "mfu=nan"}, {"", "=1"},     {"", "tokens=1e"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct run_config run = {.steps = 1};
        text_copy(run.fail_above, sizeof(run.fail_above), wrong[i].above);
        text_copy(run.fail_below, sizeof(run.fail_below), wrong[i].below);
        status checked = thresholds_check(&run);
        cr_expect_eq(checked.exit_code, EXIT_CONFIG, "%s%s is read", wrong[i].above, wrong[i].below);
    }
}

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

// Testing after every step would take a time that grows with the square of the number of steps.
Test(precision, is_tested_after_every_step_at_first_and_later_after_at_most_a_32nd_of_the_steps)
{
    int64_t tests = 0, last = 0;
    for (int64_t count = 1; count <= 1000000; count++) {
        if (steps_test_precision(count)) {
            tests++;
            cr_assert_leq(count - last, 1 + count / 32, "%d", (int)count);
            last = count;
        }
    }
    cr_expect_leq(tests, 64 * 20);
}
