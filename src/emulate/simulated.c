// SPDX-License-Identifier: MIT
// Fills a result from a simulated step.
#include <math.h>

#include "gswbench/plan_build.h"
#include "gswbench/proof.h"
#include "gswbench/status.h"
#include "internal.h"

status simulated_describe_plan(struct result *result, const struct job *job)
{
    struct plan plan;
    status      built = plan_build(&plan, &job->request);
    if (!failed(&built)) {
        result_set_plan(result, &plan, &job->config.published);
        built = plan_hardware_flops(&plan, &job->request, &result->flops_per_sequence[FLOPS_HARDWARE]);
        result_derive(result);
    }
    plan_free(&plan);
    return built;
}

void simulated_visit(void *context, const struct predict_view *view)
{
    struct result     *result = context;
    struct result_turn turns[RESULT_TURNS];
    if (view->is_first) {
        result_set_moments(result, view->plan, view->times);
    }
    if (view->plan->mesh.size[AXIS_PP] > 1) {
        result_add_turns(result, turns, result_find_turns(turns, view->plan, view->times));
    }
}

void simulated_add_step(struct result *result, double seconds)
{
    result->planned_steps  = 1;
    result->planned_warmup = 0;
    result_reserve(result, 1, 0, 0);
    result->steps[result->step_count++] = (struct result_step){.phase          = STEP_MEASURE,
                                                               .seconds        = seconds,
                                                               .rank0_seconds  = NAN,
                                                               .device_seconds = NAN,
                                                               .loss           = NAN,
                                                               .gradient_norm  = NAN,
                                                               .dropped        = NAN};
}

void simulated_judge(struct result *result)
{
    result_check_peak(result);
    result->exit_code = result->verdict == VERDICT_INVALID ? EXIT_INVALID : EXIT_VALID;
    result_derive(result);
}
