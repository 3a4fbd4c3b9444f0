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
    HEADING("Measurement"),
    INTEGER_FLAG(preflight_arguments, seconds, "--seconds", "N", 1, 3600, "time limit in seconds; default: 60"),
    BACKEND_FLAGS(preflight_arguments, config, "auto, cuda, host"),
    HEADING("Output"),
    TEXT_FLAG(preflight_arguments, output, "-o", "DIR", "folder for preflight.txt and preflight.json"),
    SWITCH_FLAG(preflight_arguments, json, "--json", "print JSON"),
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
    .name    = "preflight",
    .help    = "find slow or faulty devices, links and hosts before a run",
    .example = "mpirun -np 8 gswbench preflight llama3.1-8b",
    .flags   = flags,
    .bytes   = sizeof(struct preflight_arguments),
    .run     = run,
    .meets   = true,
};
