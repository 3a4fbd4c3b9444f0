// SPDX-License-Identifier: MIT
// gswbench calibrate: measures the ops of a configuration on this machine and writes a profile for predictions.
#include "gswbench/calibrate.h"

#include <stdlib.h>

#include "internal.h"

struct calibrate_arguments {
    struct job_selection config;
    const char          *output;
    bool                 json;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(calibrate_arguments, config),
    HEADING("Measurement"),
    BACKEND_FLAGS(calibrate_arguments, config, "auto, cuda, host"),
    HEADING("Output"),
    TEXT_FLAG(calibrate_arguments, output, "-o", "FILE", "hardware profile to write"),
    SWITCH_FLAG(calibrate_arguments, json, "--json", "also print the measurements as JSON"),
    END_FLAGS,
};

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct calibrate_arguments *chosen      = arguments;
    struct calibration                calibration = {.output = chosen->output, .json = chosen->json};
    struct benchmark                 *benchmark   = &calibration.benchmark;
    if (chosen->output == NULL) {
        return fail_as(EXIT_USAGE, "-o is missing: name the file to write");
    }
    TRY(benchmark_read(benchmark, &chosen->config, errors));
    const struct job *job = &benchmark->job;
    status result = launch_ranks(&job->config.run, (int)job->request.mesh.world, calibrate_rank, &calibration, errors);
    free(benchmark->config_text);
    return result;
}

const struct command command_calibrate = {
    .name    = "calibrate",
    .help    = "measure the ops of a config here and write a hardware profile",
    .example = "mpirun -np 8 gswbench calibrate llama3.1-8b -o my-gpu.ini",
    .flags   = flags,
    .bytes   = sizeof(struct calibrate_arguments),
    .run     = run,
    .meets   = true,
};
