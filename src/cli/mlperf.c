// SPDX-License-Identifier: MIT
// gswbench report --mlperf: reads logs of MLPerf Training, and compares their step with a prediction.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/mlperf.h"
#include "gswbench/predict.h"
#include "gswbench/show.h"
#include "gswbench/statistics.h"
#include "internal.h"

// The logs must be runs of one job.
static status check_runs(const struct mlperf_log *runs, int64_t count)
{
    const struct mlperf_log *first = &runs[0];
    for (int64_t i = 1; i < count; i++) {
        const struct mlperf_log *run = &runs[i];
        if (strcmp(run->benchmark, first->benchmark) != 0 || strcmp(run->platform, first->platform) != 0 ||
            run->batch != first->batch || run->sequence != first->sequence) {
            return fail_as(EXIT_COMPARE,
                           "%s and %s are not runs of one submission: benchmark, platform, global batch or sequence "
                           "length differ",
                           first->path, run->path);
        }
    }
    return OK;
}

static status find_accelerators(int64_t *accelerators, const struct mlperf_log *log, int64_t ranks)
{
    *accelerators = ranks > 0 ? ranks : log->accelerators;
    if (ranks > 0 && log->accelerators > 0 && ranks != log->accelerators) {
        return fail_as(EXIT_COMPARE, "--ranks %" PRId64 ": %s states %" PRId64 " accelerators", ranks, log->path,
                       log->accelerators);
    }
    return OK;
}

// FLOPs of the benchmark's model, without a config.
static status find_flops(double *flops, const struct mlperf_log *log, struct text_buffer *errors)
{
    const struct mlperf_benchmark *benchmark = mlperf_find_benchmark(log->benchmark);
    struct job_selection           none      = {.ranks = 1};
    struct config                  config;
    char                           texts[3][128];
    const char                    *settings[3];
    int                            count = 0;
    *flops                               = NAN;
    if (benchmark == NULL) {
        return OK;
    }
    for (; count < 3 && benchmark->settings[count] != NULL; count++) {
        snprintf(texts[count], sizeof(texts[count]), "--mlperf %s", benchmark->settings[count]);
        settings[count] = texts[count];
    }
    TRY(job_read_settings(&config, &none, settings, count, errors));
    *flops = show_mlperf_flops(&config, log->sequence);
    return OK;
}

static status check_size(const char *key, int64_t config, int64_t log)
{
    return config == log || log == 0
               ? OK
               : fail_as(EXIT_COMPARE, "%s is %" PRId64 " in the config and %" PRId64 " in the log: --set %s=%" PRId64,
                         key, config, log, key, log);
}

static double percent_above(double seconds, double measured)
{
    return 100.0 * (seconds / measured - 1.0);
}

static status predict_job(struct shown_mlperf *shown, struct predict_row *row, const struct arguments *chosen,
                          struct text_buffer *errors)
{
    const struct mlperf_log *log       = &shown->runs[0];
    struct job_selection     selection = chosen->config;
    selection.ranks                    = shown->accelerators;
    if (selection.ranks == 0) {
        return fail_as(EXIT_USAGE, "--config: %s does not state its accelerators: give --ranks", log->path);
    }
    TRY(job_read(&row->job, &selection, errors));
    const struct config           *config    = &row->job.config;
    const struct mlperf_benchmark *benchmark = mlperf_find_benchmark(log->benchmark);
    TRY(check_size("train.global_batch", config->train.global_batch, log->batch));
    TRY(check_size("train.sequence", config->train.sequence, log->sequence));
    if (benchmark != NULL && config->model.preset[0] != '\0' &&
        strcmp(strchr(benchmark->settings[0], '=') + 1, config->model.preset) != 0) {
        return fail_as(EXIT_COMPARE, "the config has model %s, but the log is of %s", config->model.preset,
                       log->benchmark);
    }
    predict_row_compute(row, true);
    TRY(row->support);
    shown->flops             = show_mlperf_flops(config, config->train.sequence);
    shown->predicted         = row;
    shown->predicted_percent = percent_above(row->prediction.step_seconds, shown->step_seconds);
    shown->published_percent = percent_above(row->published_seconds, shown->step_seconds);
    return OK;
}

static void summarise(struct shown_mlperf *shown)
{
    double *steps = memory_allocate(2 * (size_t)shown->count * sizeof(*steps)), *spreads = steps + shown->count;
    for (int64_t i = 0; i < shown->count; i++) {
        steps[i]   = shown->runs[i].step_seconds;
        spreads[i] = shown->runs[i].spread;
    }
    statistics_sort(steps, shown->count);
    shown->step_seconds       = statistics_median(steps, shown->count);
    shown->spread             = statistics_median(spreads, shown->count);
    shown->runs_percent       = 100.0 * (steps[shown->count - 1] - steps[0]) / shown->step_seconds;
    shown->samples_per_second = (double)shown->runs[0].batch / shown->step_seconds;
    free(steps);
}

static status show(const struct mlperf_log *runs, int64_t count, const struct arguments *chosen,
                   struct text_buffer *errors)
{
    struct shown_mlperf shown = {
        .runs = runs, .count = count, .predicted_percent = NAN, .published_percent = NAN, .teraflops = NAN};
    struct predict_row row = {.range = {.percent = NAN}};
    TRY(check_runs(runs, count));
    TRY(find_accelerators(&shown.accelerators, &runs[0], chosen->config.ranks));
    summarise(&shown);
    status known = chosen->config.name != NULL ? predict_job(&shown, &row, chosen, errors)
                                               : find_flops(&shown.flops, &runs[0], errors);
    if (!failed(&known)) {
        if (shown.accelerators > 0) {
            shown.teraflops = shown.flops * shown.samples_per_second / (double)shown.accelerators / 1e12;
        }
        (chosen->json ? show_mlperf_json : show_mlperf)(&shown);
    }
    text_free(&row.warnings);
    return known;
}

status mlperf_print(const struct arguments *chosen, struct text_buffer *errors)
{
    int                count = chosen->words.count;
    struct mlperf_log *runs;
    status             result = OK;
    runs                      = memory_allocate((size_t)count * sizeof(*runs));
    for (int i = 0; i < count && !failed(&result); i++) {
        result = mlperf_read(&runs[i], chosen->words.items[i]);
    }
    result = failed(&result) ? result : show(runs, count, chosen, errors);
    free(runs);
    return result;
}
