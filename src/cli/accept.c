// SPDX-License-Identifier: MIT
// gswbench accept: tests whether this machine is as fast as a published or predicted row.
#include "gswbench/accept.h"

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
    OVERRIDE_FLAG(accept_arguments, config.overrides, "--steps", "N", "run.steps",
                  "steps of the run, warm-up included"),
    OVERRIDE_FLAG(accept_arguments, config.overrides, "--backend", "NAME", "run.backend",
                  "what computes: auto, cuda, host"),
    OVERRIDE_FLAG(accept_arguments, config.overrides, "--comm", "NAME", "run.communicator",
                  "what connects ranks: auto, nccl, mpi, or local for threads of this process"),
    OVERRIDE_FLAG(accept_arguments, config.overrides, "--out", "DIR", "run.output",
                  "folder in which the run makes its own"),
    INTEGER_FLAG(accept_arguments, seconds, "--seconds", "N", 1, 3600,
                 "how long the preflight may measure; 60 when not given"),
    TEXT_FLAG(accept_arguments, output, "-o", "DIR", "folder for accept.json; accept when not given"),
    TEXT_FLAG(accept_arguments, sign_key, "--sign", "KEY",
              "sign accept.json and the run's result.json with an SSH key; gswbench report verifies them"),
    SWITCH_FLAG(accept_arguments, json, "--json", "prints accept.json"),
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
    .name  = "accept",
    .help  = "whether this machine is as good as a published or predicted row says",
    .flags = flags,
    .bytes = sizeof(struct accept_arguments),
    .run   = run,
    .meets = true,
};
