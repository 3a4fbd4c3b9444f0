// SPDX-License-Identifier: MIT
// gswbench run: reads the configuration and runs this process's ranks.
#include <stdlib.h>

#include "gswbench/benchmark.h"
#include "gswbench/emulate.h"
#include "internal.h"

const struct flag run_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Run"),
    OVERRIDE_FLAG(config.overrides, "--steps", "N", "run.steps", "steps of the run, including warm-up"),
    OVERRIDE_FLAG(config.overrides, "--warmup", "N", "run.warmup", "first steps, which are not measured"),
    OVERRIDE_FLAG(config.overrides, "--until", "PERCENT", "run.until",
                  "0.5%: keep running (up to 10x steps) until the median's 95 % CI is within +-0.5 %"),
    OVERRIDE_FLAG(config.overrides, "--time-limit", "SECONDS", "run.time_limit",
                  "stop after SECONDS and keep a partial result"),
    INTEGER_FLAG(repeat, "--repeat", "N", 1, 1000,
                 "repeat the job N times, one folder each; with --emulate: measured steps per stage (default: 3)"),
    BACKEND_FLAGS(config, "auto, cuda, host, null"),
    OVERRIDE_FLAG(config.overrides, "--deterministic", NULL, "run.deterministic", "bitwise equal runs, also on a GPU"),
    HEADING("Emulation"),
    INTEGER_FLAG(emulate, "--emulate", "N", 1, 1048576,
                 "run one rank per pipeline stage on one device; simulate the other ranks of N"),
    TEXT_FLAG(stages, "--stages", "distinct|all|first", "stages that --emulate runs; default: distinct"),
    HEADING("Exit code"),
    OVERRIDE_FLAG(config.overrides, "--fail-above", "step=SECONDS", "run.fail_above",
                  "exit 6 if the median step is slower than this, 15 if the data cannot decide"),
    OVERRIDE_FLAG(config.overrides, "--fail-below", "mfu=SHARE", "run.fail_below",
                  "exit 6 if MFU, or tokens=NUMBER per second, is lower than this, 15 if the data cannot decide"),
    SWITCH_FLAG(force, "--force", "apply --fail-above and --fail-below to a DEGRADED run, too"),
    HEADING("Output"),
    OVERRIDE_FLAG(config.overrides, "--out", "DIR", "run.output",
                  "parent folder of the run's folder; default: results"),
    OVERRIDE_FLAG(config.overrides, "--trace", "RANKS", "trace.timeline", "ranks in trace.json (Perfetto): 0,8 or all"),
    DOLLARS_FLAG,
    OVERRIDE_FLAG(config.overrides, "--log-style", "STYLE", "run.log_style",
                  "step lines in the format of gswbench, maxtext, nemo, torchtitan or megatron"),
    TEXT_FLAG(baseline, "--baseline", "DIR", "earlier run, or folder of repeats, to compare with at the end"),
    TEXT_FLAG(profile, "--profile", "FIRST-LAST", "steps that a profiler such as nsys collects, e.g. 20-25"),
    OVERRIDE_FLAG(config.overrides, "--profile-ranks", "RANKS", "profile.ranks",
                  "ranks whose profiler collects them: 0,8-15 or all; default: 0"),
    TEXT_FLAG(weights_out, "--weights-out", "DIR", "write the trained weights to this folder"),
    TEXT_FLAG(sign_key, "--sign", "KEY", "sign result.json with an SSH key; gswbench report verifies it"),
    SWITCH_FLAG(json, "--json", "print only result.json to stdout"),
    SWITCH_FLAG(quiet, "--quiet", "print no header, steps or progress"),
    SWITCH_FLAG(verbose, "--verbose", "print the whole report at the end, as gswbench report does"),
    SWITCH_FLAG(verbose, "-v", "the same"),
    END_FLAGS,
};

static status check_emulation(const struct arguments *arguments, enum emulate_stages *stages)
{
    static const char *const names[] = {
        [EMULATE_DISTINCT] = "distinct", [EMULATE_ALL] = "all", [EMULATE_FIRST] = "first", NULL};
    int64_t chosen = arguments->stages != NULL ? text_index(arguments->stages, names) : EMULATE_DISTINCT;
    *stages        = (enum emulate_stages)chosen;
    if (arguments->config.ranks > 0 || arguments->weights_out != NULL) {
        return fail_as(
            EXIT_USAGE,
            "--emulate N sets the number of ranks and writes no weights: leave --ranks and --weights-out out");
    }
    if (comm_launched_ranks() > 1) {
        return fail_as(EXIT_LAUNCH, "--emulate needs one process: start it without mpirun or srun");
    }
    return chosen >= 0 ? OK : fail_as(EXIT_USAGE, "--stages %s: expected distinct, all or first", arguments->stages);
}

// Fails if the job saves or loads checkpoints, which need a single training run. flag, why: text of the error.
static status check_checkpoints(const struct checkpoint_config *checkpoint, const char *flag, const char *why)
{
    return checkpoint->save[0] == '\0' && checkpoint->load[0] == '\0'
               ? OK
               : fail_as(EXIT_USAGE,
                         "%s %s: leave [checkpoint] save and load out (--set checkpoint.save= --set checkpoint.load=)",
                         flag, why);
}

static status run_emulated(const struct arguments *arguments, struct benchmark *benchmark)
{
    enum { DEFAULT_REPEATS = 3 };
    struct job_selection selection = arguments->config;
    enum emulate_stages  stages;
    TRY(check_emulation(arguments, &stages));
    selection.ranks = arguments->emulate;
    TRY(benchmark_read(benchmark, &selection));
    status result = check_checkpoints(&benchmark->job.config.checkpoint, "--emulate", "trains nothing");
    if (!failed(&result)) {
        result = emulate_job(benchmark, stages, arguments->repeat > 0 ? arguments->repeat : DEFAULT_REPEATS);
    }
    free(benchmark->config_text);
    return result;
}

static status check_run(const struct arguments *arguments)
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

// The two overrides that --profile adds: 20-25 sets the first and the last step to profile.
struct profile_range {
    char first[64], last[64];
};

static status add_profile(struct job_selection *selection, const char *range, struct profile_range *made)
{
    long first, last;
    int  length = 0;
    if (range == NULL) {
        return OK;
    }
    if (sscanf(range, "%7ld-%7ld%n", &first, &last, &length) != 2 || range[length] != '\0' || first < 0) {
        return fail_as(EXIT_USAGE, "--profile %s: expected the first and last step to collect, e.g. 20-25", range);
    }
    if (selection->overrides.count + 2 > TEXT_LIST_MAX) {
        return fail_as(EXIT_USAGE, "--profile: more than %d overrides", TEXT_LIST_MAX - 2);
    }
    snprintf(made->first, sizeof(made->first), "--profile profile.start_step=%ld", first);
    snprintf(made->last, sizeof(made->last), "--profile profile.stop_step=%ld", last);
    selection->overrides.items[selection->overrides.count++] = made->first;
    selection->overrides.items[selection->overrides.count++] = made->last;
    return OK;
}

status command_run(const struct arguments *given)
{
    struct arguments     copy = *given, *chosen = &copy;
    struct profile_range range;
    TRY(add_profile(&copy.config, given->profile, &range));
    struct benchmark benchmark = {.weights_out = chosen->weights_out,
                                  .baseline    = chosen->baseline,
                                  .sign_key    = chosen->sign_key,
                                  .is_forced   = chosen->force,
                                  .json        = chosen->json,
                                  .is_quiet    = chosen->quiet,
                                  .is_verbose  = chosen->verbose};
    if (chosen->emulate > 0) {
        return run_emulated(chosen, &benchmark);
    }
    TRY(check_run(chosen));
    TRY(benchmark_read(&benchmark, &chosen->config));
    const struct job         *job      = &benchmark.job;
    struct repeated_benchmark repeated = {benchmark, chosen->repeat};
    int                       ranks    = (int)job->request.mesh.world;
    bool                      repeats  = chosen->repeat > 1;
    status                    result   = OK;
    if (repeats) {
        result = check_checkpoints(&job->config.checkpoint, "--repeat", "starts every run from the initial weights");
    }
    if (!failed(&result)) {
        result = repeats
                     ? launch_ranks(&job->config.run, ranks, benchmark_repeat_rank, &repeated, chosen->config.errors)
                     : launch_ranks(&job->config.run, ranks, benchmark_run_rank, &benchmark, chosen->config.errors);
    }
    free(benchmark.config_text);
    return result;
}
