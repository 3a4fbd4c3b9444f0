// SPDX-License-Identifier: MIT
// gswbench preflight: compares every device, link and group of this machine with its peers before a run.
#include "gswbench/preflight.h"

#include <stdlib.h>

#include "internal.h"

struct preflight_arguments {
    struct job_selection config;
    const char          *output;
    int64_t              seconds;    // 0: not given
    bool                 json;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(preflight_arguments, config),
    OVERRIDE_FLAG(preflight_arguments, config.overrides, "--backend", "NAME", "run.backend",
                  "what computes: auto, cuda, host"),
    OVERRIDE_FLAG(preflight_arguments, config.overrides, "--comm", "NAME", "run.communicator",
                  "what connects ranks: auto, nccl, mpi, or local for threads of this process"),
    INTEGER_FLAG(preflight_arguments, seconds, "--seconds", "N", 1, 3600, "how long it may measure; 60 when not given"),
    TEXT_FLAG(preflight_arguments, output, "-o", "DIR", "folder for preflight.txt and preflight.json"),
    SWITCH_FLAG(preflight_arguments, json, "--json", "prints JSON"),
    END_FLAGS,
};

static status run(const void *arguments, struct text_buffer *errors)
{
    enum { DEFAULT_SECONDS = 60 };
    const struct preflight_arguments *chosen    = arguments;
    struct preflight                  preflight = {.output = chosen->output,
                                                   .json   = chosen->json,
                                                   .seconds = chosen->seconds > 0 ? (double)chosen->seconds : DEFAULT_SECONDS};
    struct benchmark                 *benchmark = &preflight.benchmark;
    TRY(benchmark_read(benchmark, &chosen->config, errors));
    const struct job *job = &benchmark->job;
    status result = launch_ranks(&job->config.run, (int)job->request.mesh.world, preflight_rank, &preflight, errors);
    free(benchmark->config_text);
    return result;
}

const struct command command_preflight = {
    .name  = "preflight",
    .help  = "before a run: find the devices, links and hosts that are slow or wrong",
    .flags = flags,
    .bytes = sizeof(struct preflight_arguments),
    .run   = run,
    .meets = true,
};
