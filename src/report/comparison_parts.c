// SPDX-License-Identifier: MIT
// Compares the waterfalls and op times of two results.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/comparison.h"
#include "gswbench/text.h"
#include "internal.h"

// The difference between the median and the traced step, which has its own overhead, is unexplained. The parts then add
// up to the median.
static void set_parts(struct comparison *comparison)
{
    const struct result *first = comparison->first, *second = comparison->second;
    comparison->parts = memory_allocate(WATERFALL_PARTS * sizeof(*comparison->parts));
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        struct comparison_row *row = &comparison->parts[comparison->part_count++];
        text_copy(row->name, sizeof(row->name), waterfall_part_names[part]);
        row->first  = first->trace.waterfall.seconds[part];
        row->second = second->trace.waterfall.seconds[part] / comparison->work;
    }
    struct comparison_row *rest = &comparison->parts[WATERFALL_UNEXPLAINED];
    rest->first += first->figures.step.median - first->trace.step_seconds;
    rest->second += (second->figures.step.median - second->trace.step_seconds) / comparison->work;
}

void report_name_family(const char *kind, char *name, size_t bytes)
{
    text_copy(name, bytes, kind);
    char *direction = strstr(name, "_forward");
    direction       = direction != NULL ? direction : strstr(name, "_backward");
    if (direction != NULL) {
        *direction = '\0';
    }
}

static struct comparison_row *find_family(struct comparison *comparison, const char *name)
{
    for (int64_t i = 0; i < comparison->family_count; i++) {
        if (strcmp(comparison->families[i].name, name) == 0) {
            return &comparison->families[i];
        }
    }
    struct comparison_row *row = &comparison->families[comparison->family_count++];
    *row                       = (struct comparison_row){.first = 0};
    text_copy(row->name, sizeof(row->name), name);
    return row;
}

bool report_computes(const char *kind)
{
    for (int known = 0; known < OP_COUNT; known++) {
        if (strcmp(op_name((enum op_kind)known), kind) == 0) {
            return !op_is_communication((enum op_kind)known);
        }
    }
    return false;
}

// Skips communication: its time is mostly waiting, which the waterfall shows.
static void add_ops(struct comparison *comparison, const struct result *result)
{
    for (int64_t i = 0; i < result->op_time_count; i++) {
        const struct result_op_time *ops = &result->op_times[i];
        if (report_computes(ops->kind)) {
            char name[sizeof(ops->kind)];
            report_name_family(ops->kind, name, sizeof(name));
            struct comparison_row *row = find_family(comparison, name);
            if (result == comparison->first) {
                row->first += ops->seconds;
            } else {
                row->second += ops->seconds / comparison->work;
            }
        }
    }
}

static void set_families(struct comparison *comparison)
{
    comparison->families = memory_allocate(OP_COUNT * sizeof(*comparison->families));
    add_ops(comparison, comparison->first);
    add_ops(comparison, comparison->second);
}

// Returns the rate class with this name, or RATE_COUNT.
static int rate_of(const char *precision)
{
    int rate = 0;
    while (rate < RATE_COUNT && strcmp(rate_names[rate], precision) != 0) {
        rate++;
    }
    return rate;
}

// Speed-up of GEMMs between two precisions: the ratio of the peaks if known. Otherwise each class from BF16 on has
// twice the rate of the previous one.
static double pace_of(const struct result *first, const struct result *second)
{
    if (!isnan(first->peak) && !isnan(second->peak)) {
        return second->peak / first->peak;
    }
    int slow = rate_of(first->precision), fast = rate_of(second->precision);
    return slow >= RATE_BF16 && fast > slow && fast < RATE_COUNT ? ldexp(1.0, fast - slow) : 1.0;
}

static bool has_traced_step(const struct result *result)
{
    return result->trace.source != RESULT_UNTRACED && !isnan(result->figures.step.median);
}

void comparison_explain(struct comparison *comparison)
{
    comparison->pace = pace_of(comparison->first, comparison->second);
    if (has_traced_step(comparison->first) && has_traced_step(comparison->second)) {
        set_parts(comparison);
        set_families(comparison);
    }
}
