// SPDX-License-Identifier: MIT
// gswbench atlas: prediction errors against published step times, by family, GPU, precision and program.
#include "atlas.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/predict_row.h"
#include "gswbench/show.h"
#include "internal.h"
#include "row_filter.h"

// A normal error is below this many standard deviations with a probability of 80 %.
#define WITHIN_80_PERCENT 1.2816

struct atlas_arguments {
    struct row_filter filter;
    bool              markdown, plot, json, ranges, skips_fits;
};

static const struct flag flags[] = {
    HEADING("Rows"),
    FILTER_FLAGS(atlas_arguments, filter),
    HEADING("Prediction"),
    SWITCH_FLAG(atlas_arguments, skips_fits, "--priors", "predict without fitted parameters"),
    SWITCH_FLAG(atlas_arguments, ranges, "--ranges",
                "also count rows inside their 80 % interval (slow); with --json: effect of each parameter"),
    HEADING("Output"),
    SWITCH_FLAG(atlas_arguments, markdown, "--markdown", "print docs/atlas.md"),
    SWITCH_FLAG(atlas_arguments, plot, "--svg", "print docs/atlas.svg"),
    SWITCH_FLAG(atlas_arguments, json, "--json", "print JSON"),
    END_FLAGS,
};

const char *const atlas_key_names[ATLAS_KEYS] = {"family", "gpu", "precision", "program", "all"};

const char *atlas_value(const struct atlas_row *row, enum atlas_key key)
{
    const char *const values[ATLAS_KEYS] = {row->config, row->gpu, row->precision, row->software, "all"};
    return values[key];
}

static int compare_sums(const void *a, const void *b)
{
    return strcmp(((const struct atlas_sum *)a)->value, ((const struct atlas_sum *)b)->value);
}

static struct atlas_sum *find(struct atlas_sum *sums, int *count, const char *value)
{
    for (int i = 0; i < *count; i++) {
        if (strcmp(sums[i].value, value) == 0) {
            return &sums[i];
        }
    }
    sums[*count] = (struct atlas_sum){.value = value};
    return &sums[(*count)++];
}

struct atlas_sum *atlas_sum_up(const struct atlas *atlas, enum atlas_key key, bool fitted, int *count)
{
    struct atlas_sum *sums = memory_allocate((size_t)(atlas->count + 1) * sizeof(*sums));
    *count                 = 0;
    for (int i = 0; i < atlas->count; i++) {
        const struct atlas_row *row = &atlas->rows[i];
        if (row->fitted != fitted) {
            continue;
        }
        struct atlas_sum *sum = find(sums, count, atlas_value(row, key));
        sum->rows++;
        sum->mean += row->error_percent;
        sum->size += fabs(row->error_percent);
        sum->most = fmax(sum->most, fabs(row->error_percent));
        sum->within += fabs(row->error_percent) <= 10.0;
        sum->ranged += !isnan(row->range_percent);
        sum->inside += !isnan(row->range_percent) && fabs(row->error_percent) <= WITHIN_80_PERCENT * row->range_percent;
    }
    for (int i = 0; i < *count; i++) {
        sums[i].mean /= sums[i].rows;
        sums[i].size /= sums[i].rows;
    }
    qsort(sums, (size_t)*count, sizeof(*sums), compare_sums);
    return sums;
}

struct atlas_sum atlas_sum_up_memory(const struct atlas *atlas, const char *config)
{
    struct atlas_sum sum = {.value = config};
    for (int i = 0; i < atlas->count; i++) {
        const struct atlas_row *row = &atlas->rows[i];
        if (!isnan(row->memory_error) && (config == NULL || strcmp(config, row->config) == 0)) {
            sum.rows++;
            sum.mean += row->memory_error;
            sum.size += fabs(row->memory_error);
            sum.most = fmax(sum.most, fabs(row->memory_error));
            sum.within += fabs(row->memory_error) <= 10.0;
        }
    }
    sum.mean /= sum.rows;
    sum.size /= sum.rows;
    return sum;
}

struct collection {
    const struct atlas_arguments *arguments;
    struct atlas                  atlas;
    int                           left_out;    // rows that cannot be predicted
};

// Copies each value with a spread: the value, its spread, and the change of the step time for one spread.
static void keep_effects(struct atlas_row *kept, struct predict_row *row)
{
    for (int i = 0; i < row->range.effect_count; i++) {
        const struct predict_effect *effect  = &row->range.effects[i];
        bool                         is_hard = strcmp(effect->section, "hardware") == 0;
        void                *section = is_hard ? (void *)&row->job.config.hardware : (void *)&row->job.config.software;
        const struct option *option  = option_find(is_hard ? hardware_options : software_options, effect->key);
        if (option == NULL) {
            continue;    // the measured ops, which are not an option
        }
        const struct quantity *quantity     = option_quantity(option, section);
        kept->effects[kept->effect_count++] = (struct atlas_effect){effect->section, effect->key, quantity->value,
                                                                    quantity->spread_percent, effect->percent};
    }
}

static void keep(struct atlas *atlas, struct predict_row *row)
{
    if (atlas->count == atlas->capacity) {
        atlas->capacity = 2 * atlas->capacity + 64;
        atlas->rows     = memory_resize(atlas->rows, (size_t)atlas->capacity * sizeof(*atlas->rows));
    }
    const struct config *config = &row->job.config;
    struct atlas_row    *kept   = &atlas->rows[atlas->count++];
    *kept                       = (struct atlas_row){.ranks              = row->job.request.mesh.world,
                                                     .published_seconds  = row->published_seconds,
                                                     .predicted_seconds  = row->prediction.step_seconds,
                                                     .error_percent      = row->error_percent,
                                                     .range_percent      = row->range.percent,
                                                     .published_memory   = config->published.memory_gib,
                                                     .predicted_memory   = row->memory_bytes / 0x1p30,
                                                     .memory_error       = row->memory_error_percent,
                                                     .memory_is_reserved = config->published.memory == MEMORY_RESERVED,
                                                     .fitted             = config->published.fitted != 0,
                                                     .has_experts        = config->model.experts > 0};
    text_copy(kept->config, sizeof(kept->config), config->name);
    text_copy(kept->variant, sizeof(kept->variant), config->published.variant);
    text_copy(kept->source, sizeof(kept->source), config->published.source);
    text_copy(kept->gpu, sizeof(kept->gpu), config->hardware.profile);
    text_copy(kept->precision, sizeof(kept->precision), precision_compute_names[config->precision.compute]);
    text_copy(kept->software, sizeof(kept->software), config->software.profile);
    job_layout(&row->job, kept->layout, sizeof(kept->layout));
    keep_effects(kept, row);
}

// Reports the row and continues with the others.
static void leave_out(struct collection *collection, const struct predict_row *row, struct text_buffer *errors)
{
    const struct config *config = &row->job.config;
    text_append(errors, "%s at %" PRId64 " ranks, %s: %s\n", config->name, row->job.request.mesh.world,
                precision_compute_names[config->precision.compute], row->support.text);
    collection->left_out++;
}

static status add_row(struct collection *collection, const struct job_selection *selection,
                      const struct config_row *chosen, struct text_buffer *errors)
{
    struct predict_row row = {.explanation = {.visit = NULL}};
    TRY(job_read_row(&row.job, selection, chosen, errors));
    if (row.job.config.published.step_seconds == 0.0 ||
        !cli_wants_row(&collection->arguments->filter, &row.job.config)) {
        return OK;
    }
    predict_row_compute(&row, collection->arguments->ranges);
    text_free(&row.warnings);
    if (failed(&row.support)) {
        leave_out(collection, &row, errors);
    } else {
        keep(&collection->atlas, &row);
    }
    return OK;
}

static status add_config(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    struct collection   *collection = state;
    struct job_selection selection  = {.name = path, .skips_fits = collection->arguments->skips_fits};
    struct config_row    rows[CONFIG_ROWS_MAX];
    int                  count;
    (void)name;
    TRY(job_rows(&selection, rows, &count, errors));
    for (int i = 0; i < count; i++) {
        TRY(add_row(collection, &selection, &rows[i], errors));
    }
    return OK;
}

static void print_sums(const struct atlas *atlas, enum atlas_key key, bool fitted)
{
    int               count;
    struct atlas_sum *sums = atlas_sum_up(atlas, key, fitted, &count);
    for (int i = 0; i < count; i++) {
        const struct atlas_sum *sum = &sums[i];
        printf("%-10s  %-38s %5d  %+7.1f %% %6.1f %% %6.1f %% %4d", i == 0 ? atlas_key_names[key] : "", sum->value,
               sum->rows, sum->mean, sum->size, sum->most, sum->within);
        if (sum->ranged > 0) {
            printf("  %4d %3.0f %%", sum->inside, 100.0 * sum->inside / sum->ranged);
        }
        printf("\n");
    }
    free(sums);
}

static void print_text(const struct atlas *atlas, bool fitted)
{
    int count;
    free(atlas_sum_up(atlas, ATLAS_ALL, fitted, &count));
    if (count == 0) {
        return;
    }
    printf("%s\n%-10s  %-38s %5s  %9s %8s %8s %4s%s\n", fitted ? "fitted to" : "not fitted to", "", "", "rows", "mean",
           "size", "most", "10 %", atlas->rows[0].range_percent >= 0.0 ? " range" : "");
    for (int key = 0; key < ATLAS_KEYS; key++) {
        print_sums(atlas, (enum atlas_key)key, fitted);
    }
}

static void print_memory_line(const struct atlas_sum *sum, const char *name)
{
    if (sum->rows > 0) {
        printf("%-10s  %-38s %5d  %+7.1f %% %6.1f %% %6.1f %% %4d\n", "memory", name, sum->rows, sum->mean, sum->size,
               sum->most, sum->within);
    }
}

static void print_memory(const struct atlas *atlas)
{
    const char *last = "";
    for (int i = 0; i < atlas->count; i++) {
        if (strcmp(atlas->rows[i].config, last) != 0) {
            struct atlas_sum sum = atlas_sum_up_memory(atlas, atlas->rows[i].config);
            print_memory_line(&sum, atlas->rows[i].config);
        }
        last = atlas->rows[i].config;
    }
    struct atlas_sum all = atlas_sum_up_memory(atlas, NULL);
    print_memory_line(&all, "all");
}

// clang-format off
static const struct json_field effect_fields[] = {
    JSON_REFERENCE(atlas_effect, JSON_FIELD_TEXT, "section", section, NULL),
    JSON_REFERENCE(atlas_effect, JSON_FIELD_TEXT, "key", key, NULL),
    JSON_FIELD(atlas_effect, JSON_FIELD_REAL, "value", value),
    JSON_FIELD(atlas_effect, JSON_FIELD_REAL, "spread_percent", spread_percent),
    JSON_FIELD(atlas_effect, JSON_FIELD_REAL, "step_percent", step_percent),
    JSON_END
};
static const struct json_field row_fields[] = {
    JSON_FIELD(atlas_row, JSON_FIELD_TEXT, "config", config),
    JSON_FIELD(atlas_row, JSON_FIELD_TEXT, "variant", variant),
    JSON_FIELD(atlas_row, JSON_FIELD_TEXT, "source", source),
    JSON_FIELD(atlas_row, JSON_FIELD_INTEGER, "ranks", ranks),
    JSON_FIELD(atlas_row, JSON_FIELD_TEXT, "gpu", gpu),
    JSON_FIELD(atlas_row, JSON_FIELD_TEXT, "precision", precision),
    JSON_FIELD(atlas_row, JSON_FIELD_TEXT, "software", software),
    JSON_FIELD(atlas_row, JSON_FIELD_TEXT, "layout", layout),
    JSON_FIELD(atlas_row, JSON_FIELD_REAL, "published_step_s", published_seconds),
    JSON_FIELD(atlas_row, JSON_FIELD_REAL, "predicted_step_s", predicted_seconds),
    JSON_FIELD(atlas_row, JSON_FIELD_REAL, "error_percent", error_percent),
    JSON_FIELD(atlas_row, JSON_FIELD_REAL, "range_percent", range_percent),
    JSON_FIELD(atlas_row, JSON_FIELD_REAL, "published_memory_gib", published_memory),
    JSON_FIELD(atlas_row, JSON_FIELD_REAL, "predicted_memory_gib", predicted_memory),
    JSON_FIELD(atlas_row, JSON_FIELD_REAL, "memory_error_percent", memory_error),
    JSON_FIELD(atlas_row, JSON_FIELD_BOOLEAN, "memory_is_reserved", memory_is_reserved),
    JSON_FIELD(atlas_row, JSON_FIELD_BOOLEAN, "fitted", fitted),
    JSON_FIELD(atlas_row, JSON_FIELD_BOOLEAN, "has_experts", has_experts),
    JSON_LIST(atlas_row, "effects", effects_shown, effect_count, sizeof(struct atlas_effect), effect_fields),
    JSON_END
};
const struct json_field cli_atlas_fields[] = {
    JSON_SCHEMA("gswbench.atlas/1"),
    JSON_LIST(atlas, "rows", rows, count, sizeof(struct atlas_row), row_fields),
    JSON_END
};
// clang-format on

static void print_json(const struct atlas *atlas)
{
    for (int64_t i = 0; i < atlas->count; i++) {
        atlas->rows[i].effects_shown = atlas->rows[i].effects;
    }
    show_json(json_from_struct(cli_atlas_fields, atlas));
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct atlas_arguments *chosen     = arguments;
    struct collection             collection = {.arguments = chosen};
    if (chosen->markdown + chosen->plot + chosen->json > 1) {
        return fail_as(EXIT_USAGE, "--markdown, --svg and --json exclude each other: use one");
    }
    status result = cli_visit_configs(add_config, &collection, errors);
    if (!failed(&result) && collection.atlas.count + collection.left_out == 0) {
        result = fail_as(EXIT_USAGE, "no published row matches: gswbench configs lists all rows");
    } else if (!failed(&result) && chosen->json) {
        print_json(&collection.atlas);
    } else if (!failed(&result) && chosen->markdown) {
        atlas_write_page(&collection.atlas, stdout);
    } else if (!failed(&result) && chosen->plot && collection.atlas.count > 0) {
        atlas_write_plot(&collection.atlas, stdout);
    } else if (!failed(&result) && !chosen->plot) {
        print_text(&collection.atlas, true);
        print_text(&collection.atlas, false);
        print_memory(&collection.atlas);
    }
    free(collection.atlas.rows);
    if (!failed(&result) && collection.left_out > 0) {
        result = fail("%d published row%s left out: what is asked of %s cannot be predicted", collection.left_out,
                      collection.left_out == 1 ? " is" : "s are", collection.left_out == 1 ? "it" : "them");
    }
    return result;
}

const struct command command_atlas = {
    .name    = "atlas",
    .help    = "compare predictions with all published rows",
    .example = "gswbench atlas --gpu b200",
    .flags   = flags,
    .bytes   = sizeof(struct atlas_arguments),
    .run     = run,
};
