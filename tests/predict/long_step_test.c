// SPDX-License-Identifier: MIT
// Tests steps with more ops than a plan may have. They are predicted from shorter steps, and no command runs them.
#include <string.h>

#include "command.h"
#include "predict/internal.h"
#include "simulated.h"

// These steps are short enough to be planned as a whole, so that the extrapolation can be compared with an exact
// prediction.
Test(long_step, extends_two_short_steps_to_the_whole_one)
{
    static const char *const jobs[] = {
        "train.global_batch=400",
        "train.global_batch=400 parallel.fsdp=8 software.profile=torchtitan",
        "train.global_batch=128 model.layers=8 parallel.pp=4 parallel.vp=2",
        "train.global_batch=200 model.layers=8 parallel.pp=8 parallel.deferred_head_gradients=10 "
        "software.profile=nemo-25.02",
        "train.global_batch=400 model.layers=8 parallel.pp=2 parallel.vp=2 parallel.ep=4 model.family=mixtral "
        "model.experts=8 model.top_k=2 train.overlap_microbatches=yes software.profile=megatron-bridge",
    };
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct job                 job;
        struct prediction          whole, extended;
        struct predict_explanation explanation = {.ideal_seconds = 1e-6};
        layout_job(&job, "tiny-llama", 8, line_of("hardware.profile=h100-sxm train.micro_batch=1 %s", jobs[i]));
        struct machine machine = predict_machine(&job.config, NULL);
        cr_assert_gt(job.request.train.accumulation, plan_enough_microbatches(&job.request));
        cr_assert(!plan_is_long(&job.request));
        REQUIRE(predict(&whole, &job.request, &machine));
        REQUIRE(predict_long_step(&explanation, &extended, &job.request, &machine));
        double step = whole.step_seconds;
        cr_expect_float_eq(extended.step_seconds, step, 0.005 * step, "job %zu: %.9g, not %.9g s", i,
                           extended.step_seconds, step);
        cr_expect_float_eq(extended.straggler_seconds, whole.straggler_seconds, 0.005 * whole.straggler_seconds + 1e-12,
                           "job %zu: %.9g, not %.9g s", i, extended.straggler_seconds, whole.straggler_seconds);
        cr_expect_float_eq(sum_parts(&explanation.waterfall), extended.step_seconds, 1e-9 * step);
        double bytes = (double)whole.largest_bytes, device = (double)whole.footprint.device;
        cr_expect_float_eq((double)extended.largest_bytes, bytes, 0.03 * bytes, "job %zu: %lld, not %g", i,
                           (long long)extended.largest_bytes, bytes);
        cr_expect_float_eq((double)extended.footprint.device, device, 0.03 * device, "job %zu: %lld, not %g", i,
                           (long long)extended.footprint.device, device);
    }
}

static void fail_to_visit(void *context, const struct predict_view *view)
{
    (void)context;
    cr_expect_null(view, "a plan of %d ops", view->plan->op_count);
}

// The step has 256 microbatches on 16 stages, and is predicted from 48 microbatches. Commands that need the plan of the
// whole step report an error.
Test(long_step, is_predicted_and_not_planned)
{
    static const char refusal[] = "a step of about 1.19e+06 ops per rank, 1.77e+07 over one rank of each stage: the "
                                  "limits are 2097152 and 9437184";
    struct predict_explanation explanation = {.visit = fail_to_visit};
    struct prediction          prediction;
    struct job                 job;
    struct plan                plan;
    layout_job(&job, "megatron-bridge-deepseek-v3-mtp", 256, "hardware.profile=b200 published.variant=release-26.04");
    struct machine machine = predict_machine(&job.config, NULL);
    status         built   = plan_build(&plan, &job.request), explained;
    plan_free(&plan);
    explained = predict_explain(&explanation, &prediction, &job.request, &machine);
    cr_expect(plan_is_long(&job.request));
    cr_expect_not_null(strstr(job.support.text, refusal), "%s", job.support.text);
    cr_expect_not_null(strstr(built.text, refusal), "%s", built.text);
    cr_expect_not_null(strstr(explained.text, refusal), "%s", explained.text);
    expect_success("predict --no-range megatron-bridge-deepseek-v3-mtp --ranks 256 --gpu b200 --variant release-26.04");
    expect_output("warning        the step has more ops than a plan may have: extrapolated from 48 microbatches\n");
    status checked = run("check megatron-bridge-deepseek-v3-mtp --ranks 256 --gpu b200 --variant release-26.04");
    cr_expect_eq(checked.exit_code, EXIT_CONFIG);
    cr_expect_not_null(strstr(checked.text, refusal), "%s", checked.text);
    expect_output(refusal);
}
