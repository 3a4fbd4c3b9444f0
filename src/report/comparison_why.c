// SPDX-License-Identifier: MIT
// Explains the difference of two steps: a table whose rows add up to it, and why a lower precision gained less than its
// peak.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "internal.h"

static const double MIN_CHANGE = 0.01;    // smaller relative changes of a step are not explained

// Seconds of the part beyond its share of a step that runs `pace` times as fast.
static double shortfall(const struct comparison_row *row, double pace)
{
    return row->second - row->first / pace;
}

static void write_row(const struct comparison_row *row, double pace, FILE *file)
{
    fprintf(file, "  %-32s %14s %14s %+10.6f", row->name, report_seconds(row->first), report_seconds(row->second),
            row->second - row->first);
    if (pace > 1) {
        fprintf(file, " %+16.6f", shortfall(row, pace));
    }
    fputc('\n', file);
}

static struct comparison_row sum(const struct comparison *comparison)
{
    struct comparison_row whole = {.name = "the median step"};
    for (int64_t i = 0; i < comparison->part_count; i++) {
        whole.first += comparison->parts[i].first;
        whole.second += comparison->parts[i].second;
    }
    return whole;
}

static void write_table(const struct comparison *comparison, FILE *file)
{
    char beyond[32] = "";
    if (comparison->pace > 1) {
        snprintf(beyond, sizeof(beyond), "    beyond 1/%.2f", comparison->pace);
    }
    fprintf(file, "%-34s %14s %14s %10s%s\n", "where the step goes, s", comparison_label(comparison, false),
            comparison_label(comparison, true), "change", beyond);
    for (int64_t i = 0; i < comparison->part_count; i++) {
        const struct comparison_row *row = &comparison->parts[i];
        if (row->first != 0 || row->second != 0) {
            write_row(row, comparison->pace, file);
        }
    }
    struct comparison_row whole = sum(comparison);
    write_row(&whole, comparison->pace, file);
}

static void write_families(const struct comparison *comparison, FILE *file)
{
    fprintf(file, "%-34s %14s %14s %10s\n", "compute ops, s", comparison_label(comparison, false),
            comparison_label(comparison, true), "speed-up");
    for (int64_t i = 0; i < comparison->family_count; i++) {
        const struct comparison_row *row         = &comparison->families[i];
        char                         speedup[32] = "-";
        if (row->first > 0 && row->second > 0) {
            snprintf(speedup, sizeof(speedup), "%.3f", row->first / row->second);
        }
        fprintf(file, "  %-32s %14s %14s %10s\n", row->name, report_seconds(row->first), report_seconds(row->second),
                speedup);
    }
}

// One text per waterfall part, in order.
// clang-format off
#define AXIS_WORDS(NAME, ...) [WATERFALL_EXPOSED_##NAME] = "exposed communication",
static const char *const reasons[WATERFALL_PARTS] = {
    [WATERFALL_IDEAL]        = "the peaks",
    [WATERFALL_GEMM]         = "GEMMs below the lower precision's peak, or not in it",
    [WATERFALL_ATTENTION]    = "attention, which stays in the higher precision",
    [WATERFALL_MEMORY]       = "memory-bound ops, which move the same bytes",
    [WATERFALL_CAST]         = "casts",
    [WATERFALL_RECOMPUTE]    = "recompute",
    [WATERFALL_OPTIMIZER]    = "the optimizer, which moves the same bytes",
    [WATERFALL_BUBBLE]       = "idle pipeline stages",
    AXES(AXIS_WORDS)
    [WATERFALL_LAUNCH]       = "host launches, which are as many",
    [WATERFALL_CONTENTION]   = "compute that overlapped communication slows",
    [WATERFALL_STRAGGLERS]   = "slower ranks",
    [WATERFALL_UNEXPLAINED]  = "gaps between ops, and the difference between measured steps and the traced one",
};
// clang-format on

struct cause {
    double  seconds;
    int64_t part;
};

static int gravest_first(const void *a, const void *b)
{
    double left = ((const struct cause *)a)->seconds, right = ((const struct cause *)b)->seconds;
    return (left < right) - (left > right);
}

// Settings that change how much of a step is overlapped or idle, and the waterfall part that shows it.
static const struct technique {
    const char *setting;
    int64_t     part;
} techniques[] = {
    {"parallel.tp_overlap", WATERFALL_EXPOSED_TP},
    {"parallel.tp_overlap_experts", WATERFALL_EXPOSED_TP},
    {"parallel.zero", WATERFALL_EXPOSED_DP},
    {"parallel.zero_gather", WATERFALL_EXPOSED_DP},
    {"parallel.gradient_reduce", WATERFALL_EXPOSED_DP},
    {"parallel.prefetch", WATERFALL_EXPOSED_FSDP},
    {"parallel.context", WATERFALL_EXPOSED_CP},
    {"train.overlap_microbatches", WATERFALL_EXPOSED_EP},
    {"train.delay_weight_gradients", WATERFALL_EXPOSED_EP},
    {"parallel.vp", WATERFALL_BUBBLE},
    {"parallel.schedule", WATERFALL_BUBBLE},
    {"run.graphs", WATERFALL_UNEXPLAINED},
    {"run.zero_cta", WATERFALL_CONTENTION},
    {"run.sm_margin", WATERFALL_CONTENTION},
};

static void write_techniques(const struct comparison *comparison, int64_t part, FILE *file)
{
    for (int64_t i = 0; i < comparison->setting_count; i++) {
        const struct comparison_setting *setting = &comparison->settings[i];
        for (size_t j = 0; j < sizeof(techniques) / sizeof(techniques[0]); j++) {
            if (techniques[j].part == part && strcmp(techniques[j].setting, setting->name) == 0) {
                fprintf(file, "  %s: %s -> %s", setting->name, setting->first, setting->second);
            }
        }
    }
}

// Sorts the parts by the time that each adds to the change.
static void sort_causes(struct cause *causes, const struct comparison *comparison, double pace, double sign)
{
    for (int64_t i = 0; i < comparison->part_count; i++) {
        causes[i] = (struct cause){sign * shortfall(&comparison->parts[i], pace), i};
    }
    qsort(causes, (size_t)comparison->part_count, sizeof(*causes), gravest_first);
}

// Writes the parts that keep the second from being `pace` times as fast, if they are at least 5 % of the total.
static void write_why(const struct comparison *comparison, FILE *file)
{
    const char           *first = comparison->first->precision, *second = comparison->second->precision;
    double                pace  = comparison->pace;
    struct comparison_row whole = sum(comparison);
    double                total = shortfall(&whole, pace);
    struct cause          causes[WATERFALL_PARTS];
    if (!(total > 0)) {
        fprintf(file, "%s is at least %.2f times as fast as %s\n", second, pace, first);
        return;
    }
    sort_causes(causes, comparison, pace, 1);
    fprintf(file, "why %s is not %.2f times as fast as %s: it takes %.6f s more than 1/%.2f of the step\n", second,
            pace, first, total, pace);
    for (int64_t i = 0; i < comparison->part_count && causes[i].seconds >= total / 20; i++) {
        fprintf(file, "  %5.1f%%  %-12s  %s\n", 100 * causes[i].seconds / total, comparison->parts[causes[i].part].name,
                reasons[causes[i].part]);
    }
}

// Writes the parts in which the second takes less, or more, if they are at least 5 % of the change. Nothing for equal
// steps.
static void write_change(const struct comparison *comparison, FILE *file)
{
    struct comparison_row whole  = sum(comparison);
    double                change = whole.second - whole.first;
    struct cause          causes[WATERFALL_PARTS];
    if (!(fabs(change) > MIN_CHANGE * whole.first)) {
        return;
    }
    sort_causes(causes, comparison, 1, change < 0 ? -1 : 1);
    fprintf(file, "where the second %s %.6f s\n", change < 0 ? "gains" : "loses", fabs(change));
    for (int64_t i = 0; i < comparison->part_count && causes[i].seconds >= fabs(change) / 20; i++) {
        fprintf(file, "  %5.1f%%  %s", 100 * causes[i].seconds / fabs(change), comparison->parts[causes[i].part].name);
        write_techniques(comparison, causes[i].part, file);
        fputc('\n', file);
    }
}

void comparison_write_parts(const struct comparison *comparison, FILE *file)
{
    if (comparison->part_count == 0) {
        fprintf(file, "where the difference is: unknown, a run has no traced step (trace.steps)\n");
        return;
    }
    write_table(comparison, file);
    write_families(comparison, file);
    if (comparison->pace > 1) {
        write_why(comparison, file);
    } else {
        write_change(comparison, file);
    }
}
