// SPDX-License-Identifier: MIT
// Lists the rows of a config's table of published results, which its [when ...] sections define (struct config_row).
// Also removes published figures that do not belong to the configured step, because its model, layout, batch, rank
// count, precision or machine differs.
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/number.h"

struct rows {
    struct document   *document;
    struct config_row *items;    // [CONFIG_ROWS_MAX]
    int                count;
    bool               overflows;
};

static bool is_listed(const struct rows *rows, const struct selection *selection)
{
    for (int i = 0; i < rows->count; i++) {
        const struct config_row *row = &rows->items[i];
        if (row->ranks == selection->ranks && strcmp(row->gpu, selection->gpu) == 0 &&
            strcmp(row->variant, selection->variant) == 0 &&
            strcmp(row->precision, precision_compute_names[selection->compute]) == 0) {
            return true;
        }
    }
    return false;
}

static void add_selection(struct rows *rows, struct selection selection)
{
    if (is_listed(rows, &selection)) {
        return;
    }
    if (rows->count == CONFIG_ROWS_MAX) {
        rows->overflows = true;
        return;
    }
    struct config config;
    config_set_defaults(&config);
    document_apply(&config, rows->document, selection);
    struct config_row *row = &rows->items[rows->count++];
    *row                   = (struct config_row){.ranks        = selection.ranks,
                                                 .step_seconds = config.published.step_seconds,
                                                 .mfu_percent  = config.published.mfu_percent};
    text_copy(row->precision, sizeof(row->precision), precision_compute_names[selection.compute]);
    text_copy(row->gpu, sizeof(row->gpu), selection.gpu);
    text_copy(row->variant, sizeof(row->variant), selection.variant);
}

static void add(struct rows *rows, int64_t ranks, int64_t compute)
{
    add_selection(rows, (struct selection){.ranks = ranks, .compute = compute});
}

// Adds the row of a [when ...] section. If the section names no gpu, precision or variant, the file's value applies.
static void add_condition(struct rows *rows, const struct condition *condition, const struct selection *own)
{
    struct selection selection = *own;
    selection.ranks            = condition->ranks;
    selection.compute          = condition->compute >= 0 ? condition->compute : own->compute;
    text_copy(selection.gpu, sizeof(selection.gpu), condition->gpu != NULL ? condition->gpu : own->gpu);
    text_copy(selection.variant, sizeof(selection.variant),
              condition->variant != NULL ? condition->variant : own->variant);
    add_selection(rows, selection);
}

// Adds a row for each section with a published step time, if any section names a gpu or a variant. Returns whether rows
// were added.
static bool add_published(struct rows *rows)
{
    const struct document *document = rows->document;
    const struct option   *seconds  = option_find(published_options, "step_seconds");
    struct selection       own      = document_select(document, NULL);
    bool                   any      = false;
    for (int i = 0; i < document->condition_count; i++) {
        any = any || document->conditions[i].gpu != NULL || document->conditions[i].variant != NULL;
    }
    for (size_t i = 0; any && i < document->count; i++) {
        const struct assignment *assignment = &document->assignments[i];
        if (assignment->origin == ORIGIN_WHEN && assignment->option == seconds) {
            add_condition(rows, &document->conditions[assignment->condition], &own);
        }
    }
    return rows->count > 0;
}

// Sorts rows by ranks and keeps the order of equal ones.
static void sort_rows(struct rows *rows)
{
    for (int i = 1; i < rows->count; i++) {
        for (int at = i; at > 0 && rows->items[at - 1].ranks > rows->items[at].ranks; at--) {
            struct config_row swapped = rows->items[at];
            rows->items[at]           = rows->items[at - 1];
            rows->items[at - 1]       = swapped;
        }
    }
}

// Adds a row with this number of ranks for each section that has a precision and the rank count named_with (0: no rank
// count). Returns false if there is no such section.
static bool add_named(struct rows *rows, int64_t named_with, int64_t ranks)
{
    const struct document *document = rows->document;
    bool                   any      = false;
    for (int i = 0; i < document->condition_count; i++) {
        const struct condition *condition = &document->conditions[i];
        if (condition->ranks == named_with && condition->compute >= 0) {
            add(rows, ranks, condition->compute);
            any = true;
        }
    }
    return any;
}

// Lists the rank counts of sections in ascending order, with repetitions. If no section has one, lists a single 0.
static int list_ranks(const struct document *document, int64_t ranks[CONDITIONS_MAX])
{
    int count = 0;
    for (int i = 0; i < document->condition_count; i++) {
        if (document->conditions[i].ranks != 0) {
            ranks[count++] = document->conditions[i].ranks;
        }
    }
    qsort(ranks, (size_t)count, sizeof(ranks[0]), number_compare);
    if (count == 0) {
        ranks[count++] = 0;
    }
    return count;
}

// Adds rows for each rank count that sections name: one for each precision in a section with this rank count. If there
// is none, adds the file's precision, and each precision in a section without a rank count.
static void add_combinations(struct rows *rows)
{
    int64_t ranks[CONDITIONS_MAX];
    int64_t own          = document_select(rows->document, &(struct config_request){.ranks = 0}).compute;
    int     ranks_listed = list_ranks(rows->document, ranks);
    for (int i = 0; i < ranks_listed; i++) {
        if (ranks[i] == 0 || !add_named(rows, ranks[i], ranks[i])) {
            add(rows, ranks[i], own);
            add_named(rows, 0, ranks[i]);
        }
    }
}

// Keeps only the rows with the GPU, precision and variant that overrides set. If no row has them, keeps all rows.
static void keep_named(struct rows *rows, const struct config_request *request)
{
    const struct document *document  = rows->document;
    struct selection       named     = document_select(document, request);
    bool                   gpu       = document_is_overridden(document, option_find(hardware_options, "profile"));
    bool                   variant   = document_is_overridden(document, option_find(published_options, "variant"));
    bool                   precision = document_is_overridden(document, option_find(precision_options, "compute"));
    int                    kept      = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct config_row *row = &rows->items[i];
        if ((!gpu || strcmp(row->gpu, named.gpu) == 0) && (!variant || strcmp(row->variant, named.variant) == 0) &&
            (!precision || strcmp(row->precision, precision_compute_names[named.compute]) == 0)) {
            rows->items[kept++] = *row;
        }
    }
    rows->count = kept > 0 ? kept : rows->count;
}

status config_rows(const struct config_request *request, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                   struct text_buffer *errors)
{
    struct document document = {.errors = errors};
    struct rows     list     = {.document = &document, .items = rows};
    char            path[sizeof(((struct config *)0)->path)];
    document_read(&document, request, path, sizeof(path));

    if (add_published(&list)) {
        keep_named(&list, request);
        sort_rows(&list);
    } else {
        add_combinations(&list);
    }
    if (list.overflows) {
        document_error(&document, "%s: more than %d rows", path, CONFIG_ROWS_MAX);
    }
    *count = list.count;
    return document_finish(&document);
}

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

// Returns whether a config describes the machine of the published results: the same device, and no override that
// changes a value of its data sheet.
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

// Returns whether a published figure belongs to this selection. Precision, variant and gpu (if the file names it) must
// be the file's own if the figure's [when ...] section leaves them out. If it leaves out ranks, no axis may be auto.
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
    return (condition.ranks > 0 || !mesh_has_auto(&file->parallel)) &&
           (condition.compute >= 0 || file->precision.compute == selection.compute) &&
           (condition.gpu != NULL || strcmp(own.gpu, selection.gpu) == 0 ||
            !document_names_gpu(document, selection.gpu)) &&
           (condition.variant != NULL || strcmp(own.variant, selection.variant) == 0);
}

// Computes the config without overrides. Ignores errors in presets that overrides replace.
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
    static const char *const keys[]    = {"step_seconds", "mfu_percent", "memory_gib"};
    struct published_config *published = &config->published;
    double                  *figures[] = {&published->step_seconds, &published->mfu_percent, &published->memory_gib};
    if (published->step_seconds == 0.0 && published->mfu_percent == 0.0 && published->memory_gib == 0.0) {
        return;
    }
    struct config *file = memory_allocate(sizeof(*file));
    evaluate_file(file, document, selection);
    int64_t own_compute     = file->precision.compute;
    file->precision.compute = selection.compute;    // not compared here; is_of_row compares it
    bool is_same            = is_same_step(config, file) && is_same_machine(config, file);
    file->precision.compute = own_compute;
    for (int i = 0; i < 3; i++) {
        if (!is_same || !is_of_row(document, file, keys[i], selection)) {
            *figures[i] = 0.0;
        }
    }
    free(file);
}
