// SPDX-License-Identifier: MIT
// Launch-bound time in the waterfall of a predicted step.
#include <criterion/criterion.h>

#include "round_machine.h"
#include "layouts.h"

// Two layers with one expert on each of two ranks. A launch takes one second of host time; GPU time is negligible.
struct subject {
    struct hardware_config hardware;
    struct software_config software;
    struct tiny            tiny;
    int64_t                world;
};

static void init(struct subject *job)
{
    job->hardware = round_machine();
    option_set_defaults(software_options, &job->software);
    job->software.expert_launch.value = 1.0;
    tiny_init(&job->tiny);
    tiny_set_experts(&job->tiny, 2, 2);
    job->tiny.precision.compute     = COMPUTE_BF16;
    job->tiny.parallel.zero         = 1;
    job->tiny.model.capacity_factor = 1.0;    // no host read
    job->tiny.parallel.dp = job->tiny.parallel.ep = 2;
    job->world                                    = 2;
}

// The parts add up to the step; only the step overhead is unexplained.
static double launch_of(const struct subject *job)
{
    struct predict_explanation explanation = {.ideal_seconds = 0.0};
    struct prediction          prediction;
    struct plan_request        request = tiny_request(&job->tiny, job->world, 0);
    struct machine             machine = {.hardware = &job->hardware, .software = &job->software};
    status                     result  = predict_explain(&explanation, &prediction, &request, &machine);
    double                     sum     = 0.0;
    cr_assert(!failed(&result), "%s", result.text);
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        sum += explanation.waterfall.seconds[part];
    }
    expect_seconds(sum, prediction.step_seconds);
    cr_expect_float_eq(explanation.waterfall.seconds[WATERFALL_UNEXPLAINED], job->software.step_overhead.value, 1e-9);
    return explanation.waterfall.seconds[WATERFALL_LAUNCH];
}

// Each layer has 13 launches and two all-to-alls per pass. All-to-alls either overlap with compute or stall it.
Test(explain_launch, shows_the_host_in_front_of_ops_and_of_exchanges)
{
    for (int serial = 0; serial < 2; serial++) {
        struct subject job;
        init(&job);
        job.software.expert_serial = serial;
        cr_expect_float_eq(launch_of(&job), 2 * (2 * 13 + 4), 1e-2, "%g", launch_of(&job));
        job.software.expert_nodes = true;    // all-to-all permutes its own rows
        cr_expect_float_eq(launch_of(&job), 2 * 2 * 13, 1e-2, "%g", launch_of(&job));
    }
}

// The GPU waits a quarter of a second after the last launch.
Test(explain_launch, shows_what_a_device_waits_for_in_any_case)
{
    struct subject job;
    init(&job);
    job.software.expert_nodes       = true;
    job.hardware.launch_alone.value = 0.25;
    cr_expect_float_eq(launch_of(&job), 2 * 2 * 13 + 0.25, 1e-2, "%g", launch_of(&job));
}

Test(explain_launch, shows_nothing_of_a_host_that_runs_ahead)
{
    struct subject job;
    init(&job);
    job.software.expert_launch.value = 1e-9;
    cr_expect_lt(launch_of(&job), 1e-7);
    job.software.expert_launch.value = 0.0;
    cr_expect_eq(launch_of(&job), 0.0);
}

// Two stages whose hosts read the routing and exchange it: 17 launches forward. Stage 1 waits 17 seconds for stage 0
// while its own host launches the 8 ops up to the router. Then it waits for its host: 9 + 15, and 17 + 15 for the
// second microbatch.
Test(explain_launch, tells_hosts_from_stages_that_wait_for_each_other)
{
    struct subject job;
    init(&job);
    layout_apply(&job.tiny, "pp 2; accumulation 2; capacity_factor 0.0");
    job.world = 4;
    cr_expect_float_eq(launch_of(&job), 9 + 15 + 17 + 15, 1e-2, "%g", launch_of(&job));
}
