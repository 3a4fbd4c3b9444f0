// SPDX-License-Identifier: MIT
// Writes steps.csv, ranks.csv and compute_times.csv. Each has a header line and then a line per step, rank or compute
// time. Reals have 17 digits.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "internal.h"

// Writes a quoted cell. Spreadsheets execute cells that begin like a formula, so these get an apostrophe first.
void csv_write_text(const char *from, FILE *file)
{
    const char *text = report_safe(from);
    fputs(text[0] != '\0' && strchr("=+-@", text[0]) != NULL ? "\"'" : "\"", file);
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

static void write_reals(FILE *file, int count, const double *values)
{
    for (int i = 0; i < count; i++) {
        fputc(',', file);
        csv_write_real(values[i], file);
    }
}

void report_write_csv(const struct result *result, FILE *file)
{
    fprintf(file, "step,phase,seconds,rank0_seconds,slowest_rank,loss,grad_norm,dropped,outlier,device_seconds,"
                  "prediction_loss\n");
    for (int64_t i = 0; i < result->step_count; i++) {
        const struct result_step *step = &result->steps[i];
        fprintf(file, "%" PRId64 ",%s", step->index, result_phase_names[step->phase]);
        write_reals(file, 2, (const double[]){step->seconds, step->rank0_seconds});
        fprintf(file, ",%" PRId64, step->slowest_rank);
        write_reals(file, 3, (const double[]){step->loss, step->gradient_norm, step->dropped});
        fprintf(file, ",%d", step->is_outlier);
        write_reals(file, 2, (const double[]){step->device_seconds, step->prediction_loss});
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
        fprintf(file, ",%" PRId64 ",%" PRId64 ",%" PRId64, rank->node, rank->local_rank, rank->threads);
        write_reals(file, 1, &rank->median_seconds);
        fprintf(file, ",%" PRId64 ",%" PRId64, rank->allocated_bytes, rank->processors);
        write_reals(file, 1, &rank->foreign);
        fputc(',', file);
        csv_write_text(result_rank_gpu(result, rank->rank), file);
        fprintf(file, ",%" PRId64, rank->class);
        write_reals(file, 3, (const double[]){rank->compute_seconds, rank->excess, rank->excess_low});
        fputc('\n', file);
    }
}

void report_write_csv_compute_times(const struct result *result, FILE *file)
{
    fprintf(file, "rank,ranks,step,steps,compute_seconds,excess\n");
    for (int64_t i = 0; i < result->compute_time_count; i++) {
        const struct result_compute_time *time = &result->compute_times[i];
        fprintf(file, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, time->rank, time->ranks, time->step, time->steps);
        write_reals(file, 2, (const double[]){time->seconds, time->excess});
        fputc('\n', file);
    }
}
