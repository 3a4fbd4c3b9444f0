// SPDX-License-Identifier: MIT
// gswbench report: prints a result.json in any format of results. Also compares files of other programs with a
// predicted step: traces of kernels (--trace) and logs of MLPerf Training (--mlperf).
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/kernel_trace.h"
#include "gswbench/mlperf.h"
#include "gswbench/output.h"
#include "gswbench/predict.h"
#include "gswbench/preflight.h"
#include "gswbench/report.h"
#include "gswbench/result.h"
#include "gswbench/show.h"
#include "gswbench/signature.h"
#include "gswbench/statistics.h"
#include "internal.h"

// Adds the ops of the busiest pipeline stage, as if they were kernels of a trace.
static void collect(void *context, const struct predict_view *view)
{
    struct kernel_trace *trace = context;
    for (int32_t i = 0; i < view->plan->op_count && view->is_busiest; i++) {
        kernel_trace_add(trace, &(struct kernel){.begin = 1e6 * view->times[i].begin,
                                                 .end   = 1e6 * view->times[i].end,
                                                 .part  = kernel_part_of_op(view->plan, &view->plan->ops[i])});
    }
}

static status predict_parts(struct kernel_sums *sums, const struct arguments *chosen)
{
    struct kernel_trace trace     = {.has_begin = true};
    struct predict_row  row       = {.explanation = {.visit = collect, .context = &trace}};
    status              predicted = job_read(&row.job, &chosen->config);
    if (!failed(&predicted)) {
        predict_row_compute(&row, false);
        predicted = row.support;
    }
    kernel_trace_sum(sums, &trace);
    kernel_trace_free(&trace);
    text_free(&row.warnings);
    return predicted;
}

static status show_kernels(struct shown_trace *shown, const struct arguments *chosen)
{
    struct kernel_sums predicted;
    if (chosen->config.name != NULL) {
        TRY(predict_parts(&predicted, chosen));
        shown->predicted = &predicted;
    }
    kernel_trace_sum(&shown->traced, shown->trace);
    (chosen->json ? show_trace_json : show_trace)(shown);
    return OK;
}

static status trace_print(const struct arguments *chosen)
{
    struct kernel_trace trace;
    struct shown_trace  shown = {.path = chosen->words.items[0], .trace = &trace};
    if (chosen->words.count != 1) {
        return fail_as(EXIT_USAGE, "--trace reads one trace, but %d are given", chosen->words.count);
    }
    if (chosen->config.name != NULL && chosen->config.ranks == 0) {
        return fail_as(EXIT_USAGE, "--config: give --ranks as well");
    }
    status read = kernel_trace_read(&trace, chosen->words.items[0]);
    read        = failed(&read) ? read : show_kernels(&shown, chosen);
    kernel_trace_free(&trace);
    return read;
}

// Checks that all logs are runs of one submission: equal benchmark, platform, global batch and sequence length.
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

// Computes the FLOPs per sequence of the benchmark's model, for logs without --config. NaN: unknown benchmark.
static status find_flops(double *flops, const struct mlperf_log *log, const struct arguments *chosen)
{
    const struct mlperf_benchmark *benchmark = mlperf_find_benchmark(log->benchmark);
    struct job_selection           none      = {.ranks = 1, .errors = chosen->config.errors};
    struct config                  config;
    int                            count = 0;
    *flops                               = NAN;
    if (benchmark == NULL) {
        return OK;
    }
    while (count < 3 && benchmark->settings[count] != NULL) {
        count++;
    }
    TRY(job_read_settings(&config, &none, benchmark->settings, count));
    *flops = layers_flops(&config.model, &config.published, FLOPS_FULL, log->sequence);
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

static status predict_job(struct shown_mlperf *shown, struct predict_row *row, const struct arguments *chosen)
{
    const struct mlperf_log *log       = &shown->runs[0];
    struct job_selection     selection = chosen->config;
    selection.ranks                    = shown->accelerators;
    if (selection.ranks == 0) {
        return fail_as(EXIT_USAGE, "--config: %s does not state its accelerators: give --ranks", log->path);
    }
    TRY(job_read(&row->job, &selection));
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
    shown->flops             = layers_flops(&config->model, &config->published, FLOPS_FULL, config->train.sequence);
    shown->predicted         = row;
    shown->predicted_percent = percent_above(row->prediction.step_seconds, shown->step_seconds);
    shown->published_percent = percent_above(row->published_seconds, shown->step_seconds);
    return OK;
}

static void summarise(struct shown_mlperf *shown)
{
    double *steps = memory_allocate(2 * (size_t)shown->count * sizeof(*steps)), *spreads = steps + shown->count;
    struct statistics step;
    int64_t           known = 0;
    for (int64_t i = 0; i < shown->count; i++) {
        steps[i]       = shown->runs[i].step_seconds;
        spreads[known] = shown->runs[i].spread;
        known += !isnan(shown->runs[i].spread);    // a log with fewer than 20 intervals has no spread
    }
    statistics_compute(&step, steps, shown->count);
    shown->step_seconds       = step.median;
    shown->spread             = statistics_median(spreads, known);
    shown->runs_percent       = 100.0 * (step.maximum - step.minimum) / step.median;
    shown->samples_per_second = (double)shown->runs[0].batch / shown->step_seconds;
    free(steps);
}

static status show_runs(const struct mlperf_log *runs, int64_t count, const struct arguments *chosen)
{
    struct shown_mlperf shown = {
        .runs = runs, .count = count, .predicted_percent = NAN, .published_percent = NAN, .teraflops = NAN};
    struct predict_row row = {.range = {.percent = NAN}};
    TRY(check_runs(runs, count));
    TRY(find_accelerators(&shown.accelerators, &runs[0], chosen->config.ranks));
    summarise(&shown);
    status known =
        chosen->config.name != NULL ? predict_job(&shown, &row, chosen) : find_flops(&shown.flops, &runs[0], chosen);
    if (!failed(&known)) {
        if (shown.accelerators > 0) {
            shown.teraflops = shown.flops * shown.samples_per_second / (double)shown.accelerators / 1e12;
        }
        (chosen->json ? show_mlperf_json : show_mlperf)(&shown);
    }
    text_free(&row.warnings);
    return known;
}

static status mlperf_print(const struct arguments *chosen)
{
    int                count  = chosen->words.count;
    struct mlperf_log *runs   = memory_allocate((size_t)count * sizeof(*runs));
    status             result = OK;
    for (int i = 0; i < count && !failed(&result); i++) {
        result = mlperf_read(&runs[i], chosen->words.items[i]);
    }
    result = failed(&result) ? result : show_runs(runs, count, chosen);
    free(runs);
    return result;
}

const struct flag report_flags[] = {
    OPERANDS(words, "DIR|FILE", "folder of a run, its result.json, an accept.json, or files of others"),
    TEXT_FLAG(format, "--format", REPORT_FORMAT_NAMES, "output format; default: text"),
    TEXT_FLAG(signers, "--signers", "FILE",
              "require a signature by one of these keys (ssh-keygen's ALLOWED SIGNERS format)"),
    SWITCH_FLAG(recovers, "--recover", "write a partial result from the completed steps of a run that died"),
    HEADING("Files of other programs"),
    SWITCH_FLAG(mlperf, "--mlperf", "logs of MLPerf Training, runs of one submission: steps, spread, throughput"),
    SWITCH_FLAG(is_trace, "--trace", "a trace of the PyTorch profiler or of Chakra, in JSON: kernel times by part"),
    TEXT_FLAG(config.name, "--config", "NAME|FILE", "compare with the predicted step of this config"),
    LIST_FLAG(config.overrides, "--set", "SECTION.KEY=VALUE", "override an option of the config; repeatable"),
    INTEGER_FLAG(config.ranks, "--ranks", "N", 1, 1048576, "number of accelerators; default: as the log states"),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

// Writes who signed the file. Fails if the signature is invalid, or if a signer is required and there is no signature.
static status find_signer(const struct arguments *chosen, char *signer, size_t bytes)
{
    char path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    report_result_file(chosen->words.items[0], path, sizeof(path));
    snprintf(signer, bytes, "not signed");
    if (!signature_exists(path)) {
        return chosen->signers == NULL ? OK : fail_as(EXIT_COMPARE, "%.900s is not signed", path);
    }
    int length = snprintf(signer, bytes, "signed by ");
    return signature_verify(path, chosen->signers, signer + length, bytes - (size_t)length);
}

// Prints a file of gswbench accept, if the path is one.
static status show_acceptance(const struct arguments *chosen, bool *is_shown)
{
    struct accept *accept   = memory_allocate(sizeof(*accept));
    json_t        *document = NULL;
    char           path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES], signer[300];
    status         shown  = OK;
    bool           is_dir = report_result_file(chosen->words.items[0], path, sizeof(path));
    status         loaded =
        is_dir ? OK : result_load_document(path, &document);    // a folder is no accept.json; show_result reads it
    *is_shown = !failed(&loaded) && document != NULL && accept_read_json(accept, document);
    if (*is_shown) {
        shown = find_signer(chosen, signer, sizeof(signer));
    }
    if (*is_shown && !failed(&shown)) {
        accept_write_text(accept, stdout);
        printf("source: %s\n", signer);
    }
    json_decref(document);
    free(accept);
    return shown;
}

static status show_result(const struct arguments *chosen, const struct report_format *format)
{
    bool   is_acceptance;
    status accepted = show_acceptance(chosen, &is_acceptance);
    if (is_acceptance) {
        return accepted;
    }
    struct result result = {0};
    char          signer[300];
    status        shown = report_read_result(&result, chosen->words.items[0]);
    shown               = failed(&shown) ? shown : find_signer(chosen, signer, sizeof(signer));
    shown               = failed(&shown) ? shown : report_print(format->write, &result);
    if (!failed(&shown) && strcmp(format->name, "text") == 0) {
        printf("source: %s; %s\n", result.source, signer);
    }
    result_free(&result);
    return shown;
}

// Fails if recovery would replace a complete result: only a missing or torn result.json is replaced.
static status check_unfinished(const char *path)
{
    struct result result   = {0};
    json_t       *document = NULL;
    char          file[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    snprintf(file, sizeof(file), "%s/result.json", path);
    status loaded = result_load_document(file, &document);
    json_decref(document);
    if (failed(&loaded)) {
        return access(file, F_OK) != 0 || access(file, R_OK) == 0 ? OK : loaded;
    }
    status read = result_read_json(&result, file);
    if (failed(&read)) {
        return fail_as(read.exit_code, "%.900s: to recover the run from its journal, move this file away", read.text);
    }
    status complete = fail_as(EXIT_USAGE,
                              "%.400s: nothing to recover: the run is %s, and its result.json has %" PRId64
                              " of %" PRId64 " steps: type gswbench report %.400s",
                              path, result.step_count == result.planned_steps ? "complete" : "over", result.step_count,
                              result.planned_steps, path);
    result_free(&result);
    return complete;
}

static status recover_result(const struct arguments *chosen, const struct report_format *format)
{
    struct result result = {0};
    const char   *path   = chosen->words.items[0];
    char          journal[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    snprintf(journal, sizeof(journal), "%s/" JOURNAL_FILE, path);
    if (journal_is_locked(journal)) {
        return fail_as(EXIT_USAGE, "%.900s: its run is not over: wait, or stop it with SIGINT to keep a partial result",
                       path);
    }
    TRY(check_unfinished(path));
    status recovered = report_recover(&result, path, "the run died", NULL);
    recovered        = failed(&recovered) ? recovered : report_print(format->write, &result);
    result_free(&result);
    return recovered;
}

// Checks that flags for files of other programs, and flags for results, are not mixed.
static status check_flags_of(const struct arguments *chosen)
{
    if (!chosen->mlperf && !chosen->is_trace) {
        bool has_any = chosen->config.name != NULL || chosen->config.ranks > 0 || chosen->config.overrides.count > 0;
        return has_any || chosen->json
                   ? fail_as(EXIT_USAGE, "--config, --set, --ranks and --json belong to --mlperf and --trace")
                   : OK;
    }
    const char *name = chosen->mlperf ? "--mlperf" : "--trace";
    if (chosen->mlperf && chosen->is_trace) {
        return fail_as(EXIT_USAGE, "--mlperf and --trace exclude each other");
    }
    if (chosen->format != NULL || chosen->signers != NULL || chosen->recovers) {
        return fail_as(EXIT_USAGE, "%s prints text or --json: leave --format, --signers and --recover out", name);
    }
    if (chosen->words.count == 0) {
        return fail_as(EXIT_USAGE, "%s needs a file", name);
    }
    if (chosen->config.name == NULL && chosen->config.overrides.count > 0) {
        return fail_as(EXIT_USAGE, "--set overrides an option of a config: give --config");
    }
    return chosen->config.name == NULL && chosen->is_trace && chosen->config.ranks > 0
               ? fail_as(EXIT_USAGE, "--ranks sets the number of ranks of a config: give --config")
               : OK;
}

status command_report(const struct arguments *chosen)
{
    TRY(check_flags_of(chosen));
    if (chosen->mlperf || chosen->is_trace) {
        return chosen->mlperf ? mlperf_print(chosen) : trace_print(chosen);
    }
    const struct report_format *format = report_find_format(chosen->format != NULL ? chosen->format : "text");
    if (chosen->words.count != 1) {
        return fail_as(EXIT_USAGE, "report shows one folder, result.json or accept.json, but %d are given",
                       chosen->words.count);
    }
    if (format == NULL) {
        return fail_as(EXIT_USAGE, "--format %s: expected %s", chosen->format, REPORT_FORMAT_NAMES);
    }
    return chosen->recovers ? recover_result(chosen, format) : show_result(chosen, format);
}
