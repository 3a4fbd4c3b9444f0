// SPDX-License-Identifier: MIT
// Where a predicted step says that its device has waited for its host.
#include <criterion/criterion.h>

#include "round_machine.h"
#include "tiny.h"

// Two layers with one expert on each of two ranks; the host takes a second for a step, the device next to nothing.
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
    job->tiny.model.capacity_factor = 1.0;    // nothing is read
    job->tiny.parallel.dp = job->tiny.parallel.ep = 2;
    job->world                                    = 2;
}

// The parts add up to the step, and nothing of it is unexplained but what every step costs besides.
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
    cr_expect_float_eq(explanation.waterfall.seconds[WATERFALL_UNEXPLAINED], job->hardware.step_overhead.value, 1e-9);
    return explanation.waterfall.seconds[WATERFALL_LAUNCH];
}

// Of each layer 13 steps there and 13 back, and two exchanges each way: beside what computes, or while nothing does.
Test(explain_launch, shows_the_host_in_front_of_ops_and_of_exchanges)
{
    for (int serial = 0; serial < 2; serial++) {
        struct subject job;
        init(&job);
        job.software.expert_serial = serial;
        cr_expect_float_eq(launch_of(&job), 2 * (2 * 13 + 4), 1e-2, "%g", launch_of(&job));
        job.software.expert_nodes = true;    // an exchange sorts its rows itself
        cr_expect_float_eq(launch_of(&job), 2 * 2 * 13, 1e-2, "%g", launch_of(&job));
    }
}

// Of the last step the device waits for a quarter of a second more when all is launched.
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

// Two stages, and hosts that read what a router says, and exchange it: 17 steps there. The second stage waits 17
// seconds for the first, while its own host launches the 8 up to the router, and then for its host: 9 + 15 there and
// back, 17 + 15.
Test(explain_launch, tells_hosts_from_stages_that_wait_for_each_other)
{
    struct subject job;
    init(&job);
    job.tiny.parallel.pp           = 2;
    job.tiny.train.accumulation    = 2;
    job.tiny.model.capacity_factor = 0.0;
    job.world                      = 4;
    cr_expect_float_eq(launch_of(&job), 9 + 15 + 17 + 15, 1e-2, "%g", launch_of(&job));
}
