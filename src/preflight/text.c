// SPDX-License-Identifier: MIT
// Writes a report as text: a line per class, a line per outlier, and the hosts to drain.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/preflight.h"

enum { OUTLIERS_SHOWN = 100 };

// Printed unit and factor, chosen by the first letter of a class's unit.
struct scale {
    const char *unit, *shown;
    double      factor;
};

static const struct scale *find_scale(const struct preflight_class *value_class)
{
    static const struct scale scales[] = {{"F", "TFLOP/s", 1e-12}, {"F", "GFLOP/s", 1e-9}, {"b", "GB/s", 1e-9},
                                          {"b", "MB/s", 1e-6},     {"s", "ms", 1e3},       {"s", "us", 1e6}};
    enum { SCALES = sizeof(scales) / sizeof(scales[0]) };
    for (int i = 0; i < SCALES; i++) {
        bool is_last = i + 1 == SCALES || scales[i + 1].unit[0] != value_class->unit[0];
        if (scales[i].unit[0] == value_class->unit[0] && (is_last || value_class->median * scales[i].factor >= 1.0)) {
            return &scales[i];
        }
    }
    return &scales[0];
}

static void write_class(const struct preflight_class *value_class, FILE *file)
{
    const struct scale *scale = find_scale(value_class);
    fprintf(file, "%s: %.4g / %.4g / %.4g %s, %" PRId64 " %s%s", value_class->name,
            value_class->minimum * scale->factor, value_class->median * scale->factor,
            value_class->maximum * scale->factor, scale->shown, value_class->value_count,
            preflight_subject_names[value_class->subject], value_class->value_count == 1 ? "" : "s");
    if (!isnan(value_class->profile)) {
        fprintf(file, "; profile %.4g", value_class->profile * scale->factor);
    }
    fprintf(file, "%s%s\n", value_class->note[0] != '\0' ? "; " : "", value_class->note);
}

void preflight_write_text(const struct preflight_report *report, FILE *file)
{
    fprintf(file,
            "# preflight of %s: %" PRId64 " rank%s, %s backend, %s communicator, %.1f s; minimum / median / maximum\n",
            report->config, report->rank_count, report->rank_count == 1 ? "" : "s", report->backend,
            report->communicator, report->seconds);
    fprintf(file, "numbers: %" PRId64 " ops and %" PRId64 " transfers of all ranks, ", report->examined_ops,
            report->examined_transfers);
    if (report->op_bound == 0) {
        fprintf(file, "bit for bit\n");
    } else {
        fprintf(file, "bit for bit, or within %.2g of the norm for ops that are not deterministic\n", report->op_bound);
    }
    for (int64_t i = 0; i < report->class_count; i++) {
        write_class(&report->classes[i], file);
    }
    for (int64_t i = 0; i < report->outlier_count && i < OUTLIERS_SHOWN; i++) {
        fprintf(file, "outlier: %s\n", report->outliers[i].text);
    }
    if (report->outlier_count > OUTLIERS_SHOWN) {
        fprintf(file, "outlier: and %" PRId64 " more, see --json\n", report->outlier_count - OUTLIERS_SHOWN);
    }
    fprintf(file, "drain:%s", report->drain_count == 0 ? " none" : "");
    for (int64_t i = 0; i < report->drain_count; i++) {
        fprintf(file, "%s%s", i == 0 ? " " : ",", report->drain[i].host);
    }
    fprintf(file, "\n");
}
