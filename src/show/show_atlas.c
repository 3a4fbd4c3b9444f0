// SPDX-License-Identifier: MIT
// Prints the errors of predicted step times against published ones by model family, GPU, precision and framework. It
// also has the field tables of atlas --json.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/show.h"

// A normally distributed error is within this number of standard deviations of 0 with a probability of 80 %.
#define WITHIN_80_PERCENT 1.2816

// Sum over the prediction errors of the rows (published results) with the same value of a key, such as gpu = h100-sxm.
// Rows to which values of the cost model were fitted have separate sums. The same struct sums errors of memory.
struct atlas_sum {
    const char *value;
    int         rows, within;           // numbers of rows: all; with an error of at most 10 %
    int         ranged, inside;         // numbers of rows: with an error range; with the error inside its 80 % range
    double      mean, size, maximum;    // percent: sum of errors, sum and maximum of absolute errors
};

// Keys by which rows are grouped.
static const struct atlas_key {
    const char *name;
    size_t      offset;    // of the text in struct atlas_row; SIZE_MAX: the key puts all rows into one group
} atlas_keys[] = {{"family", offsetof(struct atlas_row, config)},
                  {"gpu", offsetof(struct atlas_row, gpu)},
                  {"type", offsetof(struct atlas_row, precision)},
                  {"program", offsetof(struct atlas_row, software)},
                  {"all", SIZE_MAX}};

static const char *value_of_key(const struct atlas_row *row, const struct atlas_key *key)
{
    return key->offset == SIZE_MAX ? "all" : (const char *)row + key->offset;
}

static int compare_sums(const void *a, const void *b)
{
    return strcmp(((const struct atlas_sum *)a)->value, ((const struct atlas_sum *)b)->value);
}

static void add_error(struct atlas_sum *sum, double error)
{
    sum->rows++;
    sum->mean += error;
    sum->size += fabs(error);
    sum->maximum = fmax(sum->maximum, fabs(error));
    sum->within += fabs(error) <= 10.0;
}

// Returns a sum per value of the key, sorted by value; the caller frees the array.
static struct atlas_sum *sum_by_key(const struct atlas *atlas, const struct atlas_key *key, bool fitted, int *count)
{
    struct atlas_sum *sums = memory_allocate((size_t)(atlas->count + 1) * sizeof(*sums));
    *count                 = 0;
    for (int i = 0; i < atlas->count; i++) {
        const struct atlas_row *row = &atlas->rows[i];
        int                     at  = 0;
        if (row->fitted != fitted) {
            continue;
        }
        while (at < *count && strcmp(sums[at].value, value_of_key(row, key)) != 0) {
            at++;
        }
        if (at == *count) {
            sums[(*count)++] = (struct atlas_sum){.value = value_of_key(row, key)};
        }
        add_error(&sums[at], row->error_percent);
        sums[at].ranged += !isnan(row->range_percent);
        sums[at].inside +=
            !isnan(row->range_percent) && fabs(row->error_percent) <= WITHIN_80_PERCENT * row->range_percent;
    }
    qsort(sums, (size_t)*count, sizeof(*sums), compare_sums);
    return sums;
}

static void print_sum(const char *name, const struct atlas_sum *sum)
{
    printf("%-7s %-37s %3d %+6.1f %5.1f %5.1f %3d", name, sum->value, sum->rows, sum->mean / sum->rows,
           sum->size / sum->rows, sum->maximum, sum->within);
    if (sum->ranged > 0) {
        printf(" %3d %3.0f", sum->inside, 100.0 * sum->inside / sum->ranged);
    }
    printf("\n");
}

static void print_errors(const struct atlas *atlas, bool fitted)
{
    for (size_t key = 0; key < sizeof(atlas_keys) / sizeof(atlas_keys[0]); key++) {
        int               count;
        struct atlas_sum *sums = sum_by_key(atlas, &atlas_keys[key], fitted, &count);
        if (key == 0 && count > 0) {
            printf("%s, errors in %%\n%-7s %-36s %4s %6s %5s %5s %s%s\n", fitted ? "fitted" : "never fitted", "", "",
                   "rows", "error", "|err|", "max", "<10%", atlas->rows[0].range_percent >= 0.0 ? "  range" : "");
        }
        for (int i = 0; i < count; i++) {
            print_sum(i == 0 ? atlas_keys[key].name : "", &sums[i]);
        }
        free(sums);
    }
}

// Prints the errors of rows with published memory by model family. The rows of a family are consecutive.
static void print_memory(const struct atlas *atlas)
{
    struct atlas_sum all = {.value = "all"}, family = {.rows = 0};
    for (int64_t i = 0; i < atlas->count; i++) {
        const struct atlas_row *row = &atlas->rows[i];
        if (i == 0 || strcmp(row->config, family.value) != 0) {
            family = (struct atlas_sum){.value = row->config};
        }
        if (!isnan(row->memory_error)) {
            add_error(&family, row->memory_error);
            add_error(&all, row->memory_error);
        }
        if (family.rows > 0 && (i + 1 == atlas->count || strcmp(row[1].config, family.value) != 0)) {
            print_sum("memory", &family);
        }
    }
    if (all.rows > 0) {
        print_sum("memory", &all);
    }
}

void show_atlas(const struct atlas *atlas)
{
    print_errors(atlas, true);
    print_errors(atlas, false);
    print_memory(atlas);
}

// clang-format off
static const struct json_field effect_fields[] = {
    JSON_REFERENCE(atlas_effect, JSON_FIELD_TEXT, "section", section, NULL),
    JSON_REFERENCE(atlas_effect, JSON_FIELD_TEXT, "key", key, NULL),
    ROW_REAL(atlas_effect, "value", value),
    ROW_REAL(atlas_effect, "spread_percent", spread_percent),
    ROW_REAL(atlas_effect, "step_percent", step_percent),
    JSON_END
};
static const struct json_field row_fields[] = {
    ROW_TEXT(atlas_row, "config", config),
    ROW_TEXT(atlas_row, "variant", variant),
    ROW_TEXT(atlas_row, "source", source),
    ROW_INTEGER(atlas_row, "ranks", ranks),
    ROW_TEXT(atlas_row, "gpu", gpu),
    ROW_TEXT(atlas_row, "precision", precision),
    ROW_TEXT(atlas_row, "software", software),
    ROW_TEXT(atlas_row, "layout", layout),
    ROW_REAL(atlas_row, "published_step_s", published_seconds),
    ROW_REAL(atlas_row, "predicted_step_s", predicted_seconds),
    ROW_REAL(atlas_row, "error_percent", error_percent),
    ROW_REAL(atlas_row, "range_percent", range_percent),
    ROW_REAL(atlas_row, "ideal_s", ideal_seconds),
    ROW_REAL(atlas_row, "published_memory_gib", published_memory),
    ROW_REAL(atlas_row, "predicted_memory_gib", predicted_memory),
    ROW_REAL(atlas_row, "memory_error_percent", memory_error),
    ROW_BOOLEAN(atlas_row, "memory_is_reserved", memory_is_reserved),
    ROW_BOOLEAN(atlas_row, "fitted", fitted),
    ROW_BOOLEAN(atlas_row, "has_experts", has_experts),
    JSON_FIELD(atlas_row, JSON_FIELD_LINES, "settings", settings.text),
    JSON_LIST(atlas_row, "effects", effects, effect_count, sizeof(struct atlas_effect), effect_fields),
    JSON_END
};
const struct json_field show_atlas_fields[] = {
    JSON_SCHEMA("gswbench.atlas/2"),
    ROW_REAL(atlas, "pair_error_percent", pair_error),
    JSON_LIST(atlas, "rows", rows, count, sizeof(struct atlas_row), row_fields),
    JSON_END
};
// clang-format on
