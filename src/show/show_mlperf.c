// SPDX-License-Identifier: MIT
// Prints the runs of an MLPerf submission, as text and as JSON.
#include <inttypes.h>
#include <math.h>

#include "gswbench/report.h"
#include "gswbench/show.h"
#include "gswbench/statistics.h"

static void print_head(const struct shown_mlperf *shown)
{
    const struct mlperf_log *first = &shown->runs[0];
    printf("benchmark      %s, %s on %s", first->benchmark, first->submitter, first->platform);
    if (shown->accelerators > 0) {
        printf(": %" PRId64 " accelerators", shown->accelerators);
    }
    printf("\nbatch          %" PRId64 " sequences", first->batch);
    if (first->sequence > 0) {
        printf(" of %" PRId64 " tokens", first->sequence);
    }
    if (first->accumulation > 0) {
        printf(", gradient accumulation %" PRId64, first->accumulation);
    }
    printf("\nsteps          from %" PRId64 " intervals, mostly of %" PRId64 " step%s%s\n", first->intervals,
           first->steps_each, first->steps_each == 1 ? "" : "s",
           first->has_evaluations ? "; the log does not separate evaluations from steps" : "");
}

static void print_runs(const struct shown_mlperf *shown)
{
    printf("%10s %7s %11s %21s %7s %10s  %-8s %s\n", "step s", "steps", "p95/median", "slow phases, steps", "lost s",
           "run s", "status", "log");
    for (int64_t i = 0; i < shown->count; i++) {
        const struct mlperf_log *run = &shown->runs[i];
        char                     phases[64];
        snprintf(phases, sizeof(phases), "%" PRId64 ", %" PRId64, run->slow_phases, run->slow_steps);
        printf("%10.4f %7" PRId64 " %11s %21s %7.1f %10.1f  %-8s ", run->step_seconds, run->steps,
               report_number("%.4f", run->spread), phases, run->slow_seconds, run->run_seconds, run->status);
        show_path("", run->path, "");
    }
}

static void print_comparison(const char *title, double seconds, double percent, const char *remark)
{
    printf("%-14s %.4f s/step: %+.1f %% against the log%s\n", title, seconds, percent, remark);
}

static void print_prediction(const struct shown_mlperf *shown)
{
    const struct predict_row *row = shown->predicted;
    if (row == NULL) {
        return;
    }
    print_comparison("predicted", row->prediction.step_seconds, shown->predicted_percent,
                     report_number(", +-%.1f %%", row->range.percent));
    if (!isnan(row->published_seconds)) {
        print_comparison("published", row->published_seconds, shown->published_percent, ", in the config");
    }
    printf("               %s at %" PRId64 " ranks: %s; %s on %s\n", row->job.config.name, row->job.request.mesh.world,
           row->layout, row->job.config.software.profile, row->job.config.hardware.profile);
}

void show_mlperf(const struct shown_mlperf *shown)
{
    const struct mlperf_log *first = &shown->runs[0];
    print_head(shown);
    print_runs(shown);
    printf("step           %.4f s, median of %" PRId64 " run%s", shown->step_seconds, shown->count,
           shown->count == 1 ? "" : "s");
    if (!isnan(shown->spread)) {
        struct step_spread public = statistics_public_spread(shown->accelerators, shown->step_seconds);
        printf(", p95 over median %.4f", shown->spread);
        if (shown->accelerators > 0 && first->steps_each == 1 && !isnan(public.typical)) {
            printf(" (runs of this size: mostly %.4f, at most %.4f)", public.typical, public.largest);
        }
    }
    if (shown->count > 1) {
        printf("; the runs differ by %.2f %%", shown->runs_percent);
    }
    printf("\nthroughput     %.5g samples/s", shown->samples_per_second);
    if (first->sequence > 0) {
        printf(", %.6g tokens/s", shown->samples_per_second * (double)first->sequence);
    }
    if (!isnan(shown->flops)) {
        printf("\nmodel FLOPs    %s per sequence (full attention matrix)", report_count(shown->flops));
    }
    if (!isnan(shown->teraflops)) {
        printf(": %.1f TFLOP/s per accelerator", shown->teraflops);
    }
    putchar('\n');
    print_prediction(shown);
}

// clang-format off
static const struct json_field run_fields[] = {
    ROW_TEXT(mlperf_log, "file", path),
    ROW_TEXT(mlperf_log, "status", status),
    ROW_REAL(mlperf_log, "step_s", step_seconds),
    ROW_INTEGER(mlperf_log, "steps", steps),
    ROW_INTEGER(mlperf_log, "intervals", intervals),
    ROW_INTEGER(mlperf_log, "steps_per_interval", steps_each),
    ROW_BOOLEAN(mlperf_log, "has_evaluations", has_evaluations),
    ROW_REAL(mlperf_log, "p95_over_median", spread),
    ROW_INTEGER(mlperf_log, "slow_phases", slow_phases),
    ROW_INTEGER(mlperf_log, "slow_after_starts", slow_after_starts),
    ROW_INTEGER(mlperf_log, "slow_steps", slow_steps),
    ROW_REAL(mlperf_log, "slow_s", slow_seconds),
    ROW_REAL(mlperf_log, "run_s", run_seconds),
    JSON_END
};
static const struct json_field predicted_fields[] = {
    ROW_TEXT(predict_row, "config", job.config.name),
    ROW_INTEGER(predict_row, "ranks", job.request.mesh.world),
    ROW_REAL(predict_row, "step_s", prediction.step_seconds),
    ROW_REAL(predict_row, "range_percent", range.percent),
    ROW_REAL(predict_row, "published_step_s", published_seconds),
    JSON_END
};
struct described {
    struct shown_mlperf shown;
    struct mlperf_log   first;
};
const struct json_field show_mlperf_fields[] = {
    JSON_SCHEMA("gswbench.mlperf/1"),
    ROW_TEXT(described, "benchmark", first.benchmark),
    ROW_TEXT(described, "submitter", first.submitter),
    ROW_TEXT(described, "platform", first.platform),
    ROW_INTEGER(described, "accelerators", shown.accelerators),
    ROW_INTEGER(described, "global_batch", first.batch),
    ROW_INTEGER(described, "sequence", first.sequence),
    ROW_INTEGER(described, "accumulation", first.accumulation),
    JSON_LIST(described, "runs", shown.runs, shown.count, sizeof(struct mlperf_log), run_fields),
    ROW_REAL(described, "step_s", shown.step_seconds),
    ROW_REAL(described, "p95_over_median", shown.spread),
    ROW_REAL(described, "runs_percent", shown.runs_percent),
    ROW_REAL(described, "samples_per_s", shown.samples_per_second),
    ROW_REAL(described, "sequence_flops", shown.flops),
    ROW_REAL(described, "teraflops_per_accelerator", shown.teraflops),
    JSON_REFERENCE(described, JSON_FIELD_OBJECT, "predicted", shown.predicted, predicted_fields),
    ROW_REAL(described, "predicted_percent", shown.predicted_percent),
    ROW_REAL(described, "published_percent", shown.published_percent),
    JSON_END
};
// clang-format on

void show_mlperf_json(const struct shown_mlperf *shown)
{
    show_json(json_from_struct(show_mlperf_fields, &(struct described){.shown = *shown, .first = shown->runs[0]}));
}
