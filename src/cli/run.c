// SPDX-License-Identifier: MIT
// gswbench run: reads the configuration and runs every rank of this process.
#include "run.h"

#include <stdlib.h>

#include "gswbench/fatal.h"

static const struct flag flags[] = {
    CONFIG_FLAGS(run_arguments, config),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--steps", "N", "run.steps", "steps of the run, warm-up included"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--warmup", "N", "run.warmup", "first steps that are not measured"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--backend", "NAME", "run.backend",
                  "what computes: auto, cuda, host, null"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--comm", "NAME", "run.communicator",
                  "what connects ranks: auto, nccl, mpi, or local for threads of this process"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--out", "DIR", "run.output",
                  "folder in which the run makes its own"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--trace", "RANKS", "profile.timeline",
                  "trace.json for Perfetto of these ranks: 0,8 or all"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--deterministic", NULL, "run.deterministic",
                  "on a device, too, every run has the same bits"),
    TEXT_FLAG(run_arguments, weights_out, "--weights-out", "DIR", "writes the trained weights there"),
    INTEGER_FLAG(run_arguments, emulate, "--emulate", "N", 1, 1048576,
                 "one device for N ranks: executes one rank of each stage, and simulates the rest"),
    TEXT_FLAG(run_arguments, stages, "--stages", "WHICH",
              "with --emulate: distinct stages, which is when not given, all, or the first"),
    INTEGER_FLAG(run_arguments, repeats, "--repeats", "N", 1, 1000,
                 "with --emulate: measured steps of each stage; 3 when not given"),
    SWITCH_FLAG(run_arguments, json, "--json", "stdout is result.json and nothing else"),
    SWITCH_FLAG(run_arguments, quiet, "--quiet", "no header and no steps on stdout, no progress on stderr"),
    END_FLAGS,
};

static char *print_config(const struct config *config, size_t *bytes)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, bytes);
    if (file != NULL) {
        config_write(config, file);
    }
    if (file == NULL || fclose(file) != 0) {
        FATAL(EXIT_MEMORY, "out of host memory");
    }
    return text;
}

status run_read_job(struct run_shared *shared, struct job *job, struct run_arguments *arguments,
                    struct text_buffer *errors)
{
    *shared = (struct run_shared){.arguments = arguments, .job = job};
    TRY(launch_count_ranks(&arguments->config, errors));
    TRY(job_read(job, &arguments->config, errors));
    TRY(job->support);
    shared->config_text = print_config(&job->config, &shared->config_bytes);
    return OK;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    struct run_arguments chosen = *(const struct run_arguments *)arguments;
    struct run_shared    shared;
    struct job           job;
    if (chosen.emulate > 0) {
        return run_emulated(&chosen, errors);
    }
    if (chosen.stages != NULL || chosen.repeats > 0) {
        return fail_as(EXIT_USAGE, "--stages and --repeats are of --emulate: give it the number of ranks");
    }
    TRY(run_read_job(&shared, &job, &chosen, errors));
    status result = launch_ranks(&job.config.run, (int)job.mesh.world, run_rank, &shared);
    free(shared.config_text);
    return result;
}

const struct command command_run = {
    .name  = "run",
    .help  = "measure training steps and write a result",
    .flags = flags,
    .bytes = sizeof(struct run_arguments),
    .run   = run,
};
