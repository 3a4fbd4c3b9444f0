// SPDX-License-Identifier: MIT
// Tests the NVTX ranges of complete runs. A fake profiler records them.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/observe.h"
#include "profile_log.h"
#include "whole_run.h"

TestSuite(ranges, .init = make_folder, .fini = remove_folder, .timeout = 100);

#define SHORT "run --config tiny-llama --layers 2 --steps 4 --warmup 1 --set trace.steps=0 --quiet "

static char log_path[1100];

static void attach(void)
{
    snprintf(log_path, sizeof(log_path), "%s/log", folder);
    profile_log_open(log_path);
}

static struct profile_seen seen;    // in the latest log

static void expect_story(const struct profile_expected *expected, const char *story)
{
    cr_expect_str_eq(profile_log_check(log_path, expected, &seen), "", "%s", story);
    cr_expect_str_eq(seen.story, story, "%s, not %s", seen.story, story);
}

Test(ranges, of_a_step_on_one_stream_nest_and_say_what_the_plan_says)
{
    static const char *const backends[] = {"host", "null"};
    struct profile_expected  expected   = profile_expect("run.layers=2", 1, 4);
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        attach();
        run_here(line_of(SHORT "--backend %s", backends[i]));

        expect_story(&expected, "step0 step1 step2 step3");
        cr_expect_eq(seen.ops, 4 * expected.plans[0].op_count);
        cr_expect_eq(seen.flops, 4 * profile_flops(&expected.plans[0]));
        cr_expect_gt(seen.flops, 1e9);
        cr_expect_eq(seen.streams, 0);
    }
}

// FSDP gathers, gradient reductions and collectives of tp run on their own streams, each with its own thread on the
// host backend. The ranges of each thread must nest.
Test(ranges, of_streams_nest_on_the_thread_of_each)
{
    struct profile_expected expected = profile_expect("run.layers=2 parallel.dp=1 parallel.fsdp=2 parallel.tp=2", 4, 4);
    attach();
    cr_assert_eq(run_here(SHORT "--backend host --ranks 4 --comm local --set parallel.dp=1 --set parallel.fsdp=2 "
                                "--set parallel.tp=2")
                     .exit_code,
                 EXIT_VALID);

    double  flops = 0.0;
    int64_t ops   = 0;
    for (int rank = 0; rank < 4; rank++) {
        flops += profile_flops(&expected.plans[rank]);
        ops += expected.plans[rank].op_count;
    }
    expect_story(&expected, "step0 step1 step2 step3");
    cr_expect_eq(seen.streams, 4 * 3);
    cr_expect_eq(seen.ops, 4 * ops);
    cr_expect_eq(seen.flops, 4 * flops);
}

// On the null backend, one thread issues the ops of every stream, so phases and layers of different streams are
// interleaved.
Test(ranges, of_streams_nest_where_one_thread_issues_all)
{
    struct profile_expected expected =
        profile_expect("run.layers=2 parallel.dp=1 parallel.fsdp=2 parallel.tp=2 run.backend=null", 4, 1);
    attach();
    expected.ranks            = 1;
    const struct plan *plan   = &expected.plans[0];
    struct ranges     *ranges = ranges_open(plan, true);
    cr_assert_not_null(ranges);
    ranges_begin(ranges, RANGE_STEP, 7);
    for (int32_t i = 0; i < plan->op_count; i++) {
        ranges_begin_op(ranges, &plan->ops[i]);
        ranges_end_op(ranges, &plan->ops[i]);
    }
    ranges_end(ranges);
    ranges_close(ranges);

    expect_story(&expected, "step7");
    cr_expect_eq(seen.streams, 0);
    cr_expect_gt(seen.phases, 2 * PHASE_COUNT);
}

Test(ranges, are_not_made_where_no_profiler_listens)
{
    struct profile_expected expected = profile_expect("run.layers=2", 1, 0);
    unsetenv("NVTX_INJECTION64_PATH");
    cr_expect_null(ranges_open(&expected.plans[0], true));
    ranges_begin(NULL, RANGE_STEP, 0);
    ranges_end(NULL);
    ranges_close(NULL);
}

Test(ranges, show_traced_steps_too)
{
    struct profile_expected expected = profile_expect("run.layers=2", 1, 6);
    attach();
    cr_assert_eq(run_here(SHORT "--backend host --set trace.steps=2").exit_code, EXIT_VALID);

    expect_story(&expected, "step0 step1 step2 step3 step4 step5");
}

Test(ranges, name_the_profiled_steps)
{
    static const struct {
        const char *options, *story;
    } cases[] = {
        {"--set profile.start_step=1 --set profile.stop_step=2", "step0 profile( step1 step2 ) step3"},
        {"--set profile.start_step=3", "step0 step1 step2 profile( step3 )"},
        {"--set profile.start_step=0 --set profile.stop_step=3", "profile( step0 step1 step2 step3 )"},
        {"--set profile.start_step=1 --set profile.ranks=all", "step0 profile( step1 ) step2 step3"},
        {"--set profile.start_step=1 --set profile.ranks=1 --set parallel.dp=2 --ranks 2 --comm local",
         "step0 step1 step2 step3"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool                    has_two = strstr(cases[i].options, "--ranks 2") != NULL;
        struct profile_expected expected =
            has_two ? profile_expect("run.layers=2 parallel.dp=2", 2, 4) : profile_expect("run.layers=2", 1, 4);
        attach();
        cr_assert_eq(run_here(line_of(SHORT "--backend host %s", cases[i].options)).exit_code, EXIT_VALID);

        expect_story(&expected, cases[i].story);
        cr_expect_eq(seen.profiles, 1, "%s", cases[i].options);
    }
}

Test(ranges, have_one_value_for_a_profiler_that_takes_no_more)
{
    static const char *const expected[] = {
        "\tpush\tstep\tcategory=0\tinteger=3\n", "\tpush\tbackward\tcategory=0\n", "\tpush\tlayer 1\tcategory=0\n",
        "\tpush\tgemm qkv\tcategory=1\treal=16777216\n", "\tpush\trope_forward rope\tcategory=1\tinteger=278528\n"};
    attach();
    setenv("FAKE_PROFILER_PLAIN", "1", 1);
    cr_assert_eq(run_here(SHORT "--backend host").exit_code, EXIT_VALID);

    const char *text = text_in(log_path);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        cr_expect_not_null(strstr(text, expected[i]), "%s", expected[i]);
    }
    cr_expect_null(strstr(text, "unknown"));
    cr_expect_null(strstr(text, "\tschema\t"));
}
