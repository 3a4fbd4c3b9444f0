// SPDX-License-Identifier: MIT
// metrics.prom: a run in Prometheus's text format, for the textfile collector of a node exporter. Unknown values are
// omitted. Figures of a run without a valid result are omitted, to keep them out of comparisons.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/report.h"
#include "internal.h"

// Writes a label and its value; a backslash, a quote and a newline are escaped with a backslash.
static void write_label(const char *name, const char *from, FILE *file)
{
    char text[1024];
    report_safe(text, sizeof(text), from);
    fprintf(file, "%s=\"", name);
    for (const char *character = text; *character != '\0'; character++) {
        fprintf(file, *character == '\\' || *character == '"' ? "\\%c" : "%c", *character);
    }
    fputc('"', file);
}

static void write_head(const char *name, const char *help, FILE *file)
{
    fprintf(file, "# HELP gswbench_%s %s\n# TYPE gswbench_%s gauge\n", name, help, name);
}

static void write_sample(const char *name, const struct result *result, const char *label, const char *value,
                         double number, FILE *file)
{
    fprintf(file, "gswbench_%s{", name);
    write_label("run_id", result->run_id, file);
    if (label != NULL) {
        fputc(',', file);
        write_label(label, value, file);
    }
    fprintf(file, "} %.17g\n", number);
}

static void write_gauge(const char *name, const char *help, const struct result *result, double number, FILE *file)
{
    if (isfinite(number)) {
        write_head(name, help, file);
        write_sample(name, result, NULL, NULL, number, file);
    }
}

static void write_info(const struct result *result, FILE *file)
{
    char ranks[24];
    snprintf(ranks, sizeof(ranks), "%" PRId64, result->mesh.world);
    const struct {
        const char *name, *value;
    } labels[] = {{"run_id", result->run_id},
                  {"status", result_verdict_names[result->verdict]},
                  {"config", result->config_name},
                  {"precision", result->precision},
                  {"ranks", ranks},
                  {"device", result->device},
                  {"backend", result->backend},
                  {"communicator", result->communicator},
                  {"published", result->published_source},
                  {"version", result->version}};
    write_head("run_info", "What ran; always 1.", file);
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        fputs(i == 0 ? "gswbench_run_info{" : ",", file);
        write_label(labels[i].name, labels[i].value, file);
    }
    fputs("} 1\n", file);
}

static void write_figures(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    write_gauge("step_seconds", "Median of the measured steps.", result, figures->step.median, file);
    write_gauge("step_low_seconds", "Lower bound of the median, 95 %.", result, figures->step.low, file);
    write_gauge("step_high_seconds", "Upper bound of the median, 95 %.", result, figures->step.high, file);
    write_gauge("tokens_per_second", "Tokens of all ranks.", result, figures->tokens_per_second, file);
    write_gauge("device_flops_per_second", "Model FLOP/s per device.", result, 1e12 * figures->teraflops_per_rank,
                file);
    write_gauge("mfu_ratio", "Model FLOPs over the peak, by the convention of the headline.", result,
                figures->utilization[figures->convention], file);
    write_gauge("published_ratio", "Median over the published step.", result, figures->published_ratio, file);
    write_gauge("energy_joules", "Energy per step, all devices.", result, figures->joules_per_step, file);
}

static void write_parts(const struct result *result, FILE *file)
{
    if (result->trace.source[0] == '\0') {
        return;
    }
    write_head("part_seconds", "Time of each part of the traced step.", file);
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        write_sample("part_seconds", result, "part", waterfall_part_names[part], result->trace.waterfall.seconds[part],
                     file);
    }
}

static void write_ranks(const struct result *result, FILE *file)
{
    bool is_first = true;
    for (int64_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        char                      number[24];
        if (!isfinite(rank->median_seconds)) {
            continue;
        }
        if (is_first) {
            write_head("rank_step_seconds", "Median step of a rank.", file);
        }
        is_first = false;
        snprintf(number, sizeof(number), "%" PRId64, rank->rank);
        fputs("gswbench_rank_step_seconds{", file);
        write_label("run_id", result->run_id, file);
        fputc(',', file);
        write_label("rank", number, file);
        fputc(',', file);
        write_label("host", rank->host, file);
        fprintf(file, "} %.17g\n", rank->median_seconds);
    }
}

void report_write_prometheus(const struct result *result, FILE *file)
{
    write_info(result, file);
    if (!result_is_right(result)) {
        return;
    }
    write_figures(result, file);
    write_parts(result, file);
    write_ranks(result, file);
    write_gauge("allocated_bytes", "State of a rank's device.", result, (double)result->allocated_bytes, file);
}
