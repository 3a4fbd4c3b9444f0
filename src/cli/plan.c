// SPDX-License-Identifier: MIT
// gswbench plan: prints the plan of one rank as text or JSON.
#include <inttypes.h>

#include "gswbench/show.h"
#include "gswbench/verify.h"
#include "internal.h"

struct plan_arguments {
    struct job_selection config;
    int64_t              rank;
    bool                 ops, json, schedule;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(plan_arguments, config),
    HEADING("Output"),
    INTEGER_FLAG(plan_arguments, rank, "--rank", "R", 0, 1048575, "rank of the plan; default: 0"),
    SWITCH_FLAG(plan_arguments, ops, "--ops", "print every op, one line each"),
    SWITCH_FLAG(plan_arguments, schedule, "--schedule", "draw the pipeline schedule of all stages"),
    SWITCH_FLAG(plan_arguments, json, "--json", "print the plan as JSON"),
    END_FLAGS,
};

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct plan_arguments *options = arguments;
    struct job                   job;
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
    int32_t     findings;
    job.request.rank = options->rank;
    status result    = plan_build(&plan, &job.request);
    if (!failed(&result)) {
        result = plan_verify(&plan, &findings);
    }
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

const struct command command_plan = {
    .name    = "plan",
    .help    = "print a rank's step: layers, memory, communication, FLOPs, ops",
    .example = "gswbench plan llama3.1-8b --ranks 8 --ops",
    .flags   = flags,
    .bytes   = sizeof(struct plan_arguments),
    .run     = run,
};
