// SPDX-License-Identifier: MIT
// Prints files of other programs: the runs of an MLPerf submission, and the kernel times of a trace, summed by part of
// the step (such as GEMMs). Both as text and as JSON, next to predicted times.
#include <inttypes.h>
#include <math.h>

#include "gswbench/output.h"
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

static void print_line(const char *name, const double seconds[4], int count)
{
    printf("%-12s", name);
    for (int i = 0; i < count; i++) {
        printf(" %14s", report_number("%.3f", 1e3 * seconds[i]));
    }
    putchar('\n');
}

// Prints a line per part of the step, in milliseconds. Its columns are the sum of kernel times, and the part's share of
// the elapsed time, which concurrent kernels divide among them. Both are printed for the trace and for the prediction.
static void print_parts(const struct shown_trace *shown)
{
    const struct kernel_sums *traced = &shown->traced, *predicted = shown->predicted;
    int                       columns = predicted != NULL ? 4 : 2;
    printf("%-12s %14s %14s%s\n", "ms", "kernels", "time line",
           predicted != NULL ? "      predicted      time line" : "");
    for (int part = 0; part < KERNEL_PARTS; part++) {
        bool   is_predicted = predicted != NULL && predicted->count[part] > 0;
        double values[]     = {traced->busy[part], traced->shown[part], is_predicted ? predicted->busy[part] : 0.0,
                           is_predicted ? predicted->shown[part] : 0.0};
        if (traced->count[part] > 0 || is_predicted) {
            print_line(kernel_part_names[part], values, columns);
        }
    }
    print_line("idle", (double[]){NAN, traced->idle, NAN, predicted != NULL ? predicted->idle : NAN}, columns);
    print_line("together", (double[]){NAN, traced->span, NAN, predicted != NULL ? predicted->span : NAN}, columns);
}

void show_trace(const struct shown_trace *shown)
{
    show_path("trace        ", shown->path, "");
    printf("kernels      %" PRId64 " on %" PRId64 " stream%s\n", shown->trace->count, shown->trace->streams,
           shown->trace->streams == 1 ? "" : "s");
    if (shown->trace->other[0] != '\0') {
        printf("other        %s\n", shown->trace->other);
    }
    print_parts(shown);
    if (!shown->trace->has_begin) {
        puts("The trace has durations only, so overlap and idle time are unknown.");
    }
}

// clang-format off
struct described_part {
    char    name[16];
    int64_t count;
    double  busy, shown, predicted_busy, predicted_shown;
};
static const struct json_field part_fields[] = {
    ROW_TEXT(described_part, "part", name),
    ROW_INTEGER(described_part, "kernels", count),
    ROW_REAL(described_part, "kernel_s", busy),
    ROW_REAL(described_part, "line_s", shown),
    ROW_REAL(described_part, "predicted_kernel_s", predicted_busy),
    ROW_REAL(described_part, "predicted_line_s", predicted_shown),
    JSON_END
};
struct described_trace {
    char                  path[OUTPUT_PATH_BYTES], other[160];
    int64_t               kernels, streams, count;
    double                span, idle, predicted_span, predicted_idle;
    struct described_part *parts;
};
const struct json_field show_trace_fields[] = {
    JSON_SCHEMA("gswbench.trace/1"),
    ROW_TEXT(described_trace, "file", path),
    ROW_INTEGER(described_trace, "kernels", kernels),
    ROW_INTEGER(described_trace, "streams", streams),
    ROW_TEXT(described_trace, "longest_other", other),
    JSON_LIST(described_trace, "parts", parts, count, sizeof(struct described_part), part_fields),
    ROW_REAL(described_trace, "idle_s", idle),
    ROW_REAL(described_trace, "span_s", span),
    ROW_REAL(described_trace, "predicted_idle_s", predicted_idle),
    ROW_REAL(described_trace, "predicted_span_s", predicted_span),
    JSON_END
};
// clang-format on

void show_trace_json(const struct shown_trace *shown)
{
    const struct kernel_sums *traced = &shown->traced, *predicted = shown->predicted;
    struct described_part     parts[KERNEL_PARTS];
    struct described_trace    described = {.kernels        = shown->trace->count,
                                           .streams        = shown->trace->streams,
                                           .count          = KERNEL_PARTS,
                                           .span           = traced->span,
                                           .idle           = traced->idle,
                                           .predicted_span = predicted != NULL ? predicted->span : NAN,
                                           .predicted_idle = predicted != NULL ? predicted->idle : NAN,
                                           .parts          = parts};
    text_printable(described.path, sizeof(described.path), shown->path);
    text_copy(described.other, sizeof(described.other), shown->trace->other);
    for (int part = 0; part < KERNEL_PARTS; part++) {
        parts[part] = (struct described_part){.count           = traced->count[part],
                                              .busy            = traced->busy[part],
                                              .shown           = traced->shown[part],
                                              .predicted_busy  = predicted != NULL ? predicted->busy[part] : NAN,
                                              .predicted_shown = predicted != NULL ? predicted->shown[part] : NAN};
        text_copy(parts[part].name, sizeof(parts[part].name), kernel_part_names[part]);
    }
    show_json(json_from_struct(show_trace_fields, &described));
}
