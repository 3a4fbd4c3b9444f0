// SPDX-License-Identifier: MIT
// steps.csv, ranks.csv and compute_times.csv: a header line, then a line per record; reals have 17 digits.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/report.h"
#include "internal.h"

// Writes a quoted cell. Spreadsheets execute cells that begin like a formula, so these get an apostrophe first.
void csv_write_text(const char *from, FILE *file)
{
    char text[1024];
    report_safe(text, sizeof(text), from);
    fputc('"', file);
    if (text[0] != '\0' && strchr("=+-@", text[0]) != NULL) {
        fputc('\'', file);
    }
    for (const char *character = text; *character != '\0'; character++) {
        fputs(*character == '"' ? "\"\"" : (char[]){*character, '\0'}, file);
    }
    fputc('"', file);
}

// Writes an empty cell for an unknown value.
void csv_write_real(double value, FILE *file)
{
    if (isfinite(value)) {
        fprintf(file, "%.17g", value);
    }
}

void report_write_csv(const struct result *result, FILE *file)
{
    fprintf(file, "step,phase,seconds,rank0_seconds,slowest_rank,loss,grad_norm,dropped,outlier,device_seconds,"
                  "prediction_loss\n");
    for (int64_t i = 0; i < result->step_count; i++) {
        const struct result_step *step = &result->steps[i];
        fprintf(file, "%" PRId64 ",%s,", step->index, result_phase_names[step->phase]);
        csv_write_real(step->seconds, file);
        fputc(',', file);
        csv_write_real(step->rank0_seconds, file);
        fprintf(file, ",%" PRId64 ",", step->slowest_rank);
        csv_write_real(step->loss, file);
        fputc(',', file);
        csv_write_real(step->gradient_norm, file);
        fputc(',', file);
        csv_write_real(step->dropped, file);
        fprintf(file, ",%d,", step->is_outlier);
        csv_write_real(step->device_seconds, file);
        fputc(',', file);
        csv_write_real(step->prediction_loss, file);
        fputc('\n', file);
    }
}

void report_write_csv_ranks(const struct result *result, FILE *file)
{
    fprintf(file, "rank,host,node,local_rank,threads,median_seconds,allocated_bytes,processors,foreign_processors,"
                  "gpu,class,compute_seconds,compute_excess,compute_excess_low\n");
    for (int64_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        fprintf(file, "%" PRId64 ",", rank->rank);
        csv_write_text(rank->host, file);
        fprintf(file, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",", rank->node, rank->local_rank, rank->threads);
        csv_write_real(rank->median_seconds, file);
        fprintf(file, ",%" PRId64 ",%" PRId64 ",", rank->allocated_bytes, rank->processors);
        csv_write_real(rank->foreign, file);
        fputc(',', file);
        csv_write_text(result_rank_gpu(result, rank->rank), file);
        fprintf(file, ",%" PRId64, rank->class);
        for (int column = 0; column < 3; column++) {
            fputc(',', file);
            csv_write_real((const double[]){rank->compute_seconds, rank->excess, rank->excess_low}[column], file);
        }
        fputc('\n', file);
    }
}

void report_write_csv_compute_times(const struct result *result, FILE *file)
{
    fprintf(file, "rank,ranks,step,steps,compute_seconds,excess\n");
    for (int64_t i = 0; i < result->compute_time_count; i++) {
        const struct result_compute_time *time = &result->compute_times[i];
        fprintf(file, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",", time->rank, time->ranks, time->step,
                time->steps);
        csv_write_real(time->seconds, file);
        fputc(',', file);
        csv_write_real(time->excess, file);
        fputc('\n', file);
    }
}
