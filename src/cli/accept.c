// SPDX-License-Identifier: MIT
// gswbench accept: tests whether this machine is as fast as a published or predicted row.
#include "gswbench/preflight.h"

#include <stdlib.h>

#include "internal.h"

struct accept_arguments {
    struct job_selection config;
    const char          *output, *sign_key;
    int64_t              seconds;    // 0: not given
    bool                 json;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(accept_arguments, config),
    HEADING("Run"),
    OVERRIDE_FLAG(accept_arguments, config.overrides, "--steps", "N", "run.steps",
                  "steps of the run, including warm-up"),
    INTEGER_FLAG(accept_arguments, seconds, "--seconds", "N", 1, 3600,
                 "time limit of the preflight in seconds; default: 60"),
    BACKEND_FLAGS(accept_arguments, config, "auto, cuda, host"),
    HEADING("Output"),
    OVERRIDE_FLAG(accept_arguments, config.overrides, "--out", "DIR", "run.output",
                  "parent folder of the run's folder; default: results"),
    TEXT_FLAG(accept_arguments, output, "-o", "DIR", "folder for accept.json; default: accept"),
    TEXT_FLAG(accept_arguments, sign_key, "--sign", "KEY",
              "sign accept.json and result.json with an SSH key; gswbench report verifies them"),
    SWITCH_FLAG(accept_arguments, json, "--json", "print accept.json"),
    END_FLAGS,
};

static status run(const void *arguments, struct text_buffer *errors)
{
    enum { DEFAULT_SECONDS = 60 };
    const struct accept_arguments *chosen    = arguments;
    struct accept                  accept    = {.preflight.json   = chosen->json,
                                                .preflight.output = chosen->output != NULL ? chosen->output : "accept",
                                                .preflight.seconds = chosen->seconds > 0 ? (double)chosen->seconds : DEFAULT_SECONDS};
    struct benchmark              *benchmark = &accept.preflight.benchmark;
    benchmark->sign_key                      = chosen->sign_key;
    TRY(benchmark_read(benchmark, &chosen->config, errors));
    const struct job *job = &benchmark->job;
    status result         = launch_ranks(&job->config.run, (int)job->request.mesh.world, accept_rank, &accept, errors);
    free(benchmark->config_text);
    return result;
}

const struct command command_accept = {
    .name    = "accept",
    .help    = "check this machine against a published or predicted step time",
    .example = "mpirun -np 8 gswbench accept llama3.1-8b",
    .flags   = flags,
    .bytes   = sizeof(struct accept_arguments),
    .run     = run,
    .meets   = true,
};
