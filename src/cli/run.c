// SPDX-License-Identifier: MIT
// gswbench run: reads the configuration and runs this process's ranks.
#include <stdlib.h>
#include <string.h>

#include "gswbench/benchmark.h"
#include "gswbench/emulate.h"
#include "internal.h"

struct run_arguments {
    struct job_selection config;
    const char          *weights_out, *sign_key;
    int64_t              emulate, repeat;    // 0: not given
    const char          *stages;
    bool                 json, quiet, force;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(run_arguments, config),
    HEADING("Run"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--steps", "N", "run.steps", "steps of the run, including warm-up"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--warmup", "N", "run.warmup",
                  "first steps, which are not measured"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--until", "PERCENT", "run.until",
                  "0.5%: keep running (up to 10x steps) until the median's 95 % CI is within +-0.5 %"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--time-limit", "SECONDS", "run.time_limit",
                  "stop after SECONDS and keep a partial result"),
    INTEGER_FLAG(run_arguments, repeat, "--repeat", "N", 1, 1000,
                 "repeat the job N times, one folder each; with --emulate: measured steps per stage (default: 3)"),
    BACKEND_FLAGS(run_arguments, config, "auto, cuda, host, null"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--deterministic", NULL, "run.deterministic",
                  "bitwise equal runs, also on a GPU"),
    HEADING("Emulation"),
    INTEGER_FLAG(run_arguments, emulate, "--emulate", "N", 1, 1048576,
                 "run one rank per pipeline stage on one device; simulate the other ranks of N"),
    TEXT_FLAG(run_arguments, stages, "--stages", "distinct|all|first", "stages that --emulate runs; default: distinct"),
    HEADING("Exit code"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--fail-above", "step=SECONDS", "run.fail_above",
                  "exit 6 if the median step is slower than this, 15 if the data cannot decide"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--fail-below", "mfu=SHARE", "run.fail_below",
                  "exit 6 if MFU, or tokens=NUMBER per second, is lower than this, 15 if the data cannot decide"),
    SWITCH_FLAG(run_arguments, force, "--force", "apply --fail-above and --fail-below to a DEGRADED run, too"),
    HEADING("Output"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--out", "DIR", "run.output",
                  "parent folder of the run's folder; default: results"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--trace", "RANKS", "trace.timeline",
                  "ranks in trace.json (Perfetto): 0,8 or all"),
    OVERRIDE_FLAG(run_arguments, config.overrides, "--log-style", "STYLE", "run.log_style",
                  "step lines in the format of gswbench, maxtext, nemo, torchtitan or megatron"),
    TEXT_FLAG(run_arguments, weights_out, "--weights-out", "DIR", "write the trained weights to this folder"),
    TEXT_FLAG(run_arguments, sign_key, "--sign", "KEY",
              "sign result.json with an SSH key; gswbench report verifies it"),
    SWITCH_FLAG(run_arguments, json, "--json", "print only result.json to stdout"),
    SWITCH_FLAG(run_arguments, quiet, "--quiet", "print no header, steps or progress"),
    END_FLAGS,
};

static const char *const stage_names[] = {
    [EMULATE_DISTINCT] = "distinct", [EMULATE_ALL] = "all", [EMULATE_FIRST] = "first", NULL};

static status check_arguments(const struct run_arguments *arguments, enum emulate_stages *stages)
{
    *stages = EMULATE_DISTINCT;
    if (arguments->config.ranks > 0 || arguments->weights_out != NULL) {
        return fail_as(
            EXIT_USAGE,
            "--emulate N sets the number of ranks and writes no weights: leave --ranks and --weights-out out");
    }
    if (comm_launched_ranks() > 1) {
        return fail_as(EXIT_LAUNCH, "--emulate needs one process: start it without mpirun or srun");
    }
    for (int i = 0; arguments->stages != NULL && stage_names[*stages] != NULL; i++) {
        *stages = (enum emulate_stages)i;
        if (stage_names[i] == NULL || strcmp(stage_names[i], arguments->stages) == 0) {
            break;
        }
    }
    return stage_names[*stages] != NULL
               ? OK
               : fail_as(EXIT_USAGE, "--stages %s: expected distinct, all or first", arguments->stages);
}

// Checkpoints need a single training run.
static status check_checkpoints(const struct checkpoint_config *checkpoint, const char *flag, const char *why)
{
    return checkpoint->save[0] == '\0' && checkpoint->load[0] == '\0'
               ? OK
               : fail_as(EXIT_USAGE,
                         "%s %s: leave [checkpoint] save and load out (--set checkpoint.save= --set checkpoint.load=)",
                         flag, why);
}

static status run_emulated(const struct run_arguments *arguments, struct benchmark *benchmark,
                           struct text_buffer *errors)
{
    enum { DEFAULT_REPEATS = 3 };
    struct job_selection selection = arguments->config;
    enum emulate_stages  stages;
    TRY(check_arguments(arguments, &stages));
    selection.ranks = arguments->emulate;
    TRY(benchmark_read(benchmark, &selection, errors));
    status result = check_checkpoints(&benchmark->job.config.checkpoint, "--emulate", "trains nothing");
    if (!failed(&result)) {
        result = emulate_job(benchmark, stages, arguments->repeat > 0 ? arguments->repeat : DEFAULT_REPEATS);
    }
    free(benchmark->config_text);
    return result;
}

static status check_run(const struct run_arguments *arguments)
{
    if (arguments->stages != NULL) {
        return fail_as(EXIT_USAGE, "--stages needs --emulate N");
    }
    if (arguments->repeat > 1 && (arguments->json || arguments->weights_out != NULL)) {
        return fail_as(EXIT_USAGE, "--repeat writes one result per run: leave %s out, and read the runs' folders",
                       arguments->json ? "--json" : "--weights-out");
    }
    return OK;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct run_arguments *chosen    = arguments;
    struct benchmark            benchmark = {.weights_out = chosen->weights_out,
                                             .sign_key    = chosen->sign_key,
                                             .is_forced   = chosen->force,
                                             .json        = chosen->json,
                                             .is_quiet    = chosen->quiet};
    if (chosen->emulate > 0) {
        return run_emulated(chosen, &benchmark, errors);
    }
    TRY(check_run(chosen));
    TRY(benchmark_read(&benchmark, &chosen->config, errors));
    const struct job         *job      = &benchmark.job;
    struct repeated_benchmark repeated = {benchmark, chosen->repeat};
    int                       ranks    = (int)job->request.mesh.world;
    bool                      repeats  = chosen->repeat > 1;
    status                    result   = OK;
    if (repeats) {
        result = check_checkpoints(&job->config.checkpoint, "--repeat", "starts every run from the initial weights");
    }
    if (!failed(&result)) {
        result = repeats ? launch_ranks(&job->config.run, ranks, benchmark_repeat_rank, &repeated, errors)
                         : launch_ranks(&job->config.run, ranks, benchmark_run_rank, &benchmark, errors);
    }
    free(benchmark.config_text);
    return result;
}

const struct command command_run = {
    .name    = "run",
    .help    = "run training steps, measure them and write a result",
    .example = "mpirun -np 8 gswbench run llama3.1-8b --steps 50",
    .flags   = flags,
    .bytes   = sizeof(struct run_arguments),
    .run     = run,
    .meets   = true,
};
