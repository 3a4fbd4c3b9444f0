// SPDX-License-Identifier: MIT
// Lists the rows of a config's published table, which its [when ...] sections define (struct config_row).
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

// Open terms of the section take the file's values.
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

// Adds sections with a published step time; false if none names a gpu or a variant.
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
    return any;
}

// Stable insertion sort by ranks.
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

// Adds each precision named together with these ranks (0: alone); false if there is none.
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

// Rank counts named by sections, ascending, maybe repeated; 0 if there is none.
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

// Combines rank counts with the precisions named with them, or alone.
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

// Keeps the rows of the GPU, precision and variant that overrides name, if there are any.
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
