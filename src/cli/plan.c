// SPDX-License-Identifier: MIT
// gswbench plan: prints the plan of one rank as text or JSON.
#include <inttypes.h>

#include "gswbench/show.h"
#include "gswbench/verify.h"
#include "internal.h"

const struct flag plan_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Output"),
    INTEGER_FLAG(rank, "--rank", "R", 0, 1048575, "rank of the plan; default: 0"),
    SWITCH_FLAG(ops, "--ops", "print every op, one line each"),
    SWITCH_FLAG(schedule, "--schedule", "draw the pipeline schedule of all stages"),
    SWITCH_FLAG(json, "--json", "print the plan as JSON"),
    END_FLAGS,
};

status command_plan(const struct arguments *options, struct text_buffer *errors)
{
    struct job job;
    TRY(job_read(&job, &options->config, errors));
    if (options->rank >= job.request.mesh.world) {
        return fail_as(EXIT_USAGE, "--rank %" PRId64 ": the job has ranks 0 to %" PRId64, options->rank,
                       job.request.mesh.world - 1);
    }
    if (options->schedule) {
        return show_schedule(&job);
    }
    if (failed(&job.support)) {
        return job.support;
    }
    struct plan plan;
    job.request.rank = options->rank;
    status result    = plan_build(&plan, &job.request);
    result           = failed(&result) ? result : plan_verify(&plan, NULL);
    if (!failed(&result)) {
        if (options->json) {
            show_plan_json(&job, &plan);
        } else if (options->ops) {
            show_plan_ops(&plan);
        } else {
            result = show_plan(&job, &plan);
        }
    }
    plan_free(&plan);
    return result;
}
