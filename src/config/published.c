// SPDX-License-Identifier: MIT
// Clears published figures that belong to another step than the configured one: they need the same model, layout,
// batch, rank count, precision and machine.
#include <string.h>

#include "internal.h"

static bool is_equal(const struct option *option, const void *a, const void *b)
{
    char left[OPTION_PATH_BYTES], right[OPTION_PATH_BYTES];
    option_print(option, a, left, sizeof(left));
    option_print(option, b, right, sizeof(right));
    return strcmp(left, right) == 0;
}

static bool is_same_step(const struct config *a, const struct config *b)
{
    static const char *const names[] = {"model", "adapters", "parallel", "train", "precision"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct config_section *section = section_find(names[i]);
        for (const struct option *option = section->options; option->key != NULL; option++) {
            if (!is_equal(option, (const char *)a + section->offset, (const char *)b + section->offset)) {
                return false;
            }
        }
    }
    return true;
}

// The machine must have the table's device, and no override may change its data sheet.
static bool is_same_machine(struct config *config, struct config *file)
{
    const char *device = file->published.device[0] != '\0' ? file->published.device : file->hardware.device;
    for (const struct option *option = hardware_options; option->key != NULL; option++) {
        if (option->type == OPTION_QUANTITY) {
            const struct quantity *sheet = option_quantity(option, &file->hardware);
            const struct quantity *value = option_quantity(option, &config->hardware);
            if (sheet->origin == QUANTITY_SPEC && value->origin == QUANTITY_GIVEN && value->value != sheet->value) {
                return false;
            }
        }
    }
    return strcmp(config->hardware.device, device) == 0;
}

static bool has_auto_axis(const struct parallel_config *axes)
{
    return axes->tp * axes->cp * axes->fsdp * axes->dp * axes->pp == 0;
}

// A figure belongs to its [when ...] section's ranks, precision, gpu and variant, or to the file's.
static bool is_of_row(const struct document *document, const struct config *file, const char *key,
                      struct selection selection)
{
    const struct assignment *figure = document_find(document, option_find(published_options, key), selection);
    if (figure == NULL || figure->origin == ORIGIN_OVERRIDE) {
        return true;
    }
    struct condition any       = {.ranks = 0, .compute = -1};
    struct selection own       = document_select(document, NULL);
    struct condition condition = figure->origin == ORIGIN_WHEN ? document->conditions[figure->condition] : any;
    return (condition.ranks > 0 || !has_auto_axis(&file->parallel)) &&
           (condition.compute >= 0 || file->precision.compute == selection.compute) &&
           (condition.gpu != NULL || strcmp(own.gpu, selection.gpu) == 0 ||
            !document_names_gpu(document, selection.gpu)) &&
           (condition.variant != NULL || strcmp(own.variant, selection.variant) == 0);
}

// Evaluates the config without overrides. Ignores errors in presets that overrides replace.
static void evaluate_file(struct config *file, struct document *document, struct selection selection)
{
    struct text_buffer  ignored = {.text = NULL};
    struct text_buffer *errors  = document->errors;
    int64_t             count   = document->error_count;
    selection.skips_overrides   = true;
    document->errors            = &ignored;
    config_evaluate(file, document, selection);
    document->errors      = errors;
    document->error_count = count;
    text_free(&ignored);
}

void config_keep_published(struct config *config, struct document *document, struct selection selection)
{
    struct published_config *published = &config->published;
    struct config            file;
    if (published->step_seconds == 0.0 && published->mfu_percent == 0.0 && published->memory_gib == 0.0) {
        return;
    }
    evaluate_file(&file, document, selection);
    struct config step     = file;
    step.precision.compute = selection.compute;    // its sections are applied; is_of_row checks it
    bool is_same           = is_same_step(config, &step) && is_same_machine(config, &file);
    if (!is_same || !is_of_row(document, &file, "step_seconds", selection)) {
        published->step_seconds = 0.0;
    }
    if (!is_same || !is_of_row(document, &file, "mfu_percent", selection)) {
        published->mfu_percent = 0.0;
    }
    if (!is_same || !is_of_row(document, &file, "memory_gib", selection)) {
        published->memory_gib = 0.0;
    }
}
