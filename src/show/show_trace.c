// SPDX-License-Identifier: MIT
// Prints the kernel times of a trace, summed by part of the step (such as GEMMs), next to predicted ones.
#include <inttypes.h>
#include <math.h>

#include "gswbench/output.h"
#include "gswbench/report.h"
#include "gswbench/show.h"

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
struct described {
    char                  path[OUTPUT_PATH_BYTES], other[160];
    int64_t               kernels, streams, count;
    double                span, idle, predicted_span, predicted_idle;
    struct described_part *parts;
};
const struct json_field show_trace_fields[] = {
    JSON_SCHEMA("gswbench.trace/1"),
    ROW_TEXT(described, "file", path),
    ROW_INTEGER(described, "kernels", kernels),
    ROW_INTEGER(described, "streams", streams),
    ROW_TEXT(described, "longest_other", other),
    JSON_LIST(described, "parts", parts, count, sizeof(struct described_part), part_fields),
    ROW_REAL(described, "idle_s", idle),
    ROW_REAL(described, "span_s", span),
    ROW_REAL(described, "predicted_idle_s", predicted_idle),
    ROW_REAL(described, "predicted_span_s", predicted_span),
    JSON_END
};
// clang-format on

void show_trace_json(const struct shown_trace *shown)
{
    const struct kernel_sums *traced = &shown->traced, *predicted = shown->predicted;
    struct described_part     parts[KERNEL_PARTS];
    struct described          described = {.kernels        = shown->trace->count,
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
