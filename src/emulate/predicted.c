// SPDX-License-Identifier: MIT
// Turns a prediction into a result with the fields of a run that are known in advance.
#include "gswbench/predicted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/benchmark.h"
#include "gswbench/peak.h"
#include "gswbench/report.h"
#include "internal.h"

// Calls the visitor for the result, then the caller's.
struct audience {
    struct result             *result;
    struct predict_explanation callers;
};

static void visit(void *context, const struct predict_view *view)
{
    struct audience *audience = context;
    simulated_visit(audience->result, view);
    if (view->is_busiest) {
        struct op_totals totals;
        waterfall_sum_ops(&totals, view->plan, view->times);
        result_set_op_times(audience->result, &totals);
        audience->result->trace.rank = view->plan->rank;
    }
    if (audience->callers.visit != NULL) {
        audience->callers.visit(audience->callers.context, view);
    }
}

static struct text_stream write_config(const struct job *job)
{
    struct text_stream text;
    text_stream_open(&text);
    config_write(&job->config, text.file);
    text_stream_close(&text);
    return text;
}

static void set_machine(struct result *result, const struct config *config)
{
    const struct hardware_config *hardware  = &config->hardware;
    bool                          is_of_us  = strcmp(config->software.profile, "none") == 0;
    enum rate                     rate      = precision_rate(config->precision.compute);
    struct peak                   peak      = peak_of_hardware(hardware, rate);
    double                        bandwidth = hardware->memory_bandwidth.value;
    snprintf(result->device, sizeof(result->device), "%s, predicted by profile %s%s%s",
             hardware->device[0] != '\0' ? hardware->device : hardware->profile, hardware->profile,
             is_of_us ? "" : " and software ", is_of_us ? "" : config->software.profile);
    text_copy(result->communicator, sizeof(result->communicator), "simulated");
    text_copy(result->backend, sizeof(result->backend), "simulated");
    text_copy(result->peak_source, sizeof(result->peak_source), peak.source);
    result->peak           = peak.flops;
    result->published_peak = peak_of_table(&config->published, rate);
    result_set_published(result, &config->published, true);
    text_copy(result->expectation.profile, sizeof(result->expectation.profile), hardware->profile);
    result->expectation.peak             = peak.flops;
    result->expectation.memory_bandwidth = bandwidth > 0.0 ? bandwidth : NAN;
}

static void set_step(struct result *result, const struct predict_row *row)
{
    const struct prediction   *prediction  = &row->prediction;
    struct result_expectation *expectation = &result->expectation;
    text_copy(result->trace.source, sizeof(result->trace.source), "predicted");
    result->trace.step_seconds  = prediction->step_seconds;
    result->trace.waterfall     = row->explanation.waterfall;
    expectation->step_seconds   = prediction->step_seconds;
    expectation->percent        = row->range.percent;
    expectation->measured_share = prediction->measured_percent / 100.0;
    expectation->waterfall      = row->explanation.waterfall;
    simulated_add_step(result, prediction->step_seconds);
}

static void add_reasons(struct result *result, const struct predict_row *row)
{
    struct result_reason reason = {.verdict = VERDICT_PREDICTED, .id = "not-run", .rank = -1, .step = -1};
    snprintf(reason.message, sizeof(reason.message), "simulated, not measured (profile %.100s)",
             row->job.config.hardware.profile);
    result_add_reason(result, &reason);
    for (const char *line = row->warnings.text; line != NULL && *line != '\0'; line += strcspn(line, "\n") + 1) {
        reason = (struct result_reason){.verdict = VERDICT_VALID, .id = "warning", .rank = -1, .step = -1};
        snprintf(reason.message, sizeof(reason.message), "%.*s", (int)strcspn(line, "\n"), line);
        result_add_reason(result, &reason);
    }
}

static status describe(struct result *result, const struct predict_row *row)
{
    struct benchmark  *benchmark = memory_allocate(sizeof(*benchmark));
    struct text_stream text      = write_config(&row->job);
    *benchmark = (struct benchmark){.job = row->job, .config_text = text.data, .config_bytes = text.bytes};
    benchmark_describe_job(result, benchmark);
    set_machine(result, &row->job.config);
    status described        = simulated_describe_plan(result, &row->job);
    result->allocated_bytes = row->prediction.largest_bytes;
    set_step(result, row);
    add_reasons(result, row);
    simulated_judge(result);
    benchmark_print_time(result->ended, sizeof(result->ended));
    free(text.data);
    free(benchmark);
    return described;
}

status predicted_compute(struct result *result, struct predict_row *row, bool wants_range)
{
    struct audience audience = {result, row->explanation};
    row->explanation.visit   = visit;
    row->explanation.context = &audience;
    predict_row_compute(row, wants_range);
    row->explanation.visit   = audience.callers.visit;
    row->explanation.context = audience.callers.context;
    TRY(row->support);
    return describe(result, row);
}

status predicted_write(struct output_folder *folder, struct result *result, const struct job *job, const char *output)
{
    TRY(report_create_folder(folder, result, output));
    struct text_stream text    = write_config(job);
    status             written = output_write(folder, "config.merged.ini", text.data, text.bytes);
    free(text.data);
    TRY(written);
    return report_write_run(folder, result);
}
