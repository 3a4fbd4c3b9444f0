// SPDX-License-Identifier: MIT
// Lists the rows that a config's [when ...] sections select.
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct rows {
    struct document   *document;
    struct config_row *items;    // [CONFIG_ROWS_MAX]
    int                count;
    bool               overflows;
};

static void add(struct rows *rows, int64_t ranks, int64_t compute)
{
    const char *precision = precision_compute_names[compute];
    for (int i = 0; i < rows->count; i++) {
        if (rows->items[i].ranks == ranks && strcmp(rows->items[i].precision, precision) == 0) {
            return;
        }
    }
    if (rows->count == CONFIG_ROWS_MAX) {
        rows->overflows = true;
        return;
    }
    struct config config;
    config_set_defaults(&config);
    document_apply(&config, rows->document, (struct selection){.ranks = ranks, .compute = compute});
    struct config_row *row = &rows->items[rows->count++];
    *row                   = (struct config_row){
                          .ranks = ranks, .step_seconds = config.published.step_seconds, .mfu_percent = config.published.mfu_percent};
    text_copy(row->precision, sizeof(row->precision), precision);
}

// Adds each precision that a section names together with these ranks (0: by itself); false when there is none.
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

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

// The numbers of ranks that sections name, ascending and perhaps repeated; 0 alone when none does.
static int list_ranks(const struct document *document, int64_t ranks[CONDITIONS_MAX])
{
    int count = 0;
    for (int i = 0; i < document->condition_count; i++) {
        if (document->conditions[i].ranks != 0) {
            ranks[count++] = document->conditions[i].ranks;
        }
    }
    qsort(ranks, (size_t)count, sizeof(ranks[0]), compare);
    if (count == 0) {
        ranks[count++] = 0;
    }
    return count;
}

status config_rows(const struct config_request *request, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                   struct text_buffer *errors)
{
    struct document document = {.errors = errors};
    struct rows     list     = {.document = &document, .items = rows};
    char            path[sizeof(((struct config *)0)->path)];
    document_read(&document, request, path, sizeof(path));

    int64_t ranks[CONDITIONS_MAX];
    int64_t own          = document_select(&document, &(struct config_request){.ranks = 0}).compute;
    int     ranks_listed = list_ranks(&document, ranks);
    for (int i = 0; i < ranks_listed; i++) {
        if (ranks[i] == 0 || !add_named(&list, ranks[i], ranks[i])) {
            add(&list, ranks[i], own);
            add_named(&list, 0, ranks[i]);
        }
    }
    if (list.overflows) {
        document_error(&document, "%s: more than %d rows", document_show(&document, path), CONFIG_ROWS_MAX);
    }
    *count = list.count;
    return document_finish(&document);
}
