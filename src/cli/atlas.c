// SPDX-License-Identifier: MIT
// gswbench atlas: prints prediction errors against published step times, by model family, GPU, precision and framework.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/predict.h"
#include "gswbench/result_parts.h"
#include "gswbench/show.h"
#include "internal.h"

const struct flag atlas_flags[] = {
    HEADING("Rows"),
    FILTER_FLAGS(filter),
    HEADING("Prediction"),
    SWITCH_FLAG(config.skips_fits, "--priors", "predict without fitted parameters"),
    SWITCH_FLAG(ranges, "--ranges",
                "also count rows inside their 80 % interval (slow); with --json: effect of each parameter"),
    HEADING("Output"),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

struct collection {
    const struct arguments *arguments;
    struct atlas            atlas;
    int                     left_out;    // number of rows that cannot be predicted
};

// Appends the options of a section that differ from their defaults, except values with a spread (OPTION_QUANTITY).
static void list_settings(struct text_buffer *settings, const char *name, const struct option *options,
                          const void *section)
{
    union {
        struct model_config     model;
        struct parallel_config  parallel;
        struct train_config     train;
        struct precision_config precision;
        struct software_config  software;
    } defaults;
    char value[OPTION_PATH_BYTES], fallback[OPTION_PATH_BYTES];
    option_set_defaults(options, &defaults);
    for (const struct option *option = options; option->key != NULL; option++) {
        option_print(option, section, value, sizeof(value));
        option_print(option, &defaults, fallback, sizeof(fallback));
        if (option->type != OPTION_QUANTITY && strcmp(value, fallback) != 0) {
            text_append(settings, "%s.%s = %s\n", name, option->key, value);
        }
    }
}

// Returns the seconds that a job's model FLOPs take at peak FLOP/s. All jobs use the same FLOP convention and the peak
// of [hardware], so that they can be compared, even if their publications use others.
static double ideal_seconds(const struct job *job)
{
    struct job plain       = *job;
    plain.config.published = (struct published_config){.convention = FLOPS_PUBLISHED};
    return job_ideal_seconds(&plain);
}

// Copies each uncertain value of [hardware] and [software]: the value, its spread, and the change of the step time if
// the value changes by one spread.
static void keep_effects(struct atlas_row *kept, struct predict_row *row)
{
    for (int i = 0; i < row->range.effect_count; i++) {
        const struct predict_effect *effect  = &row->range.effects[i];
        bool                         is_hard = strcmp(effect->section, "hardware") == 0;
        void                *section = is_hard ? (void *)&row->job.config.hardware : (void *)&row->job.config.software;
        const struct option *option  = option_find(is_hard ? hardware_options : software_options, effect->key);
        if (option == NULL) {
            continue;    // measured op times also have an effect, but are not an option
        }
        const struct quantity *quantity = option_quantity(option, section);
        LIST_APPEND(kept->effects, kept->effect_count,
                    (struct atlas_effect){effect->section, effect->key, quantity->value, quantity->spread_percent,
                                          effect->percent});
    }
}

static void keep_row(struct atlas *atlas, struct predict_row *row)
{
    const struct config *config = &row->job.config;
    struct atlas_row    *kept   = LIST_ADD(atlas->rows, atlas->count);
    *kept                       = (struct atlas_row){.ranks              = row->job.request.mesh.world,
                                                     .published_seconds  = row->published_seconds,
                                                     .predicted_seconds  = row->prediction.step_seconds,
                                                     .error_percent      = row->error_percent,
                                                     .range_percent      = row->range.percent,
                                                     .ideal_seconds      = ideal_seconds(&row->job),
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
    list_settings(&kept->settings, "model", model_options, &row->job.request.model);
    list_settings(&kept->settings, "parallel", parallel_options, &row->job.request.parallel);
    list_settings(&kept->settings, "train", train_options, &row->job.request.train);
    list_settings(&kept->settings, "precision", precision_options, &config->precision);
    list_settings(&kept->settings, "software", software_options, &config->software);
    keep_effects(kept, row);
}

// Predicts a published row. If that fails, the atlas continues with the next row.
static void add_prediction(struct collection *collection, struct predict_row *row, struct text_buffer *errors)
{
    const struct config *config = &row->job.config;
    predict_row_compute(row, collection->arguments->ranges);
    text_free(&row->warnings);
    if (failed(&row->support)) {
        text_append(errors, "%s at %" PRId64 " ranks, %s: %s\n", config->name, row->job.request.mesh.world,
                    precision_compute_names[config->precision.compute], row->support.text);
        collection->left_out++;
    } else {
        keep_row(&collection->atlas, row);
    }
}

static status add_row(void *state, const struct job_selection *selection, const struct config_row *chosen)
{
    struct collection   *collection = state;
    struct predict_row  *row        = memory_allocate(sizeof(*row));
    const struct config *config     = &row->job.config;
    status               read       = job_read_row(&row->job, selection, chosen);
    if (!failed(&read) && config->published.step_seconds != 0.0 &&
        cli_wants_row(&collection->arguments->filter, config)) {
        add_prediction(collection, row, selection->errors);
    }
    free(row);
    return read;
}

status command_atlas(const struct arguments *chosen)
{
    struct collection collection = {.arguments = chosen, .atlas.pair_error = PREDICTED_CHANGE_ERROR};
    status            result     = cli_visit_rows(&chosen->config, add_row, &collection);
    if (!failed(&result) && collection.atlas.count + collection.left_out == 0) {
        result = fail_as(EXIT_USAGE, "no published row matches: gswbench configs lists all rows");
    } else if (!failed(&result) && chosen->json) {
        show_json(json_from_struct(show_atlas_fields, &collection.atlas));
    } else if (!failed(&result)) {
        show_atlas(&collection.atlas);
    }
    for (int64_t i = 0; i < collection.atlas.count; i++) {
        text_free(&collection.atlas.rows[i].settings);
        free(collection.atlas.rows[i].effects);
    }
    free(collection.atlas.rows);
    if (!failed(&result) && collection.left_out > 0) {
        result = fail("%d published row%s left out: %s settings cannot be predicted", collection.left_out,
                      collection.left_out == 1 ? " is" : "s are", collection.left_out == 1 ? "its" : "their");
    }
    return result;
}
