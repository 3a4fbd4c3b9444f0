// SPDX-License-Identifier: MIT
// Compares each run of a job with the previous run of the same job.

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/comparison.h"
#include "gswbench/text.h"
#include "internal.h"

static const double threshold = 0.01;    // smallest relative change that counts, as in gswbench compare

void history_add(struct history *history, struct result *result)
{
    *LIST_ADD_DOUBLING(history->results, history->result_count) = *result;
    *result                                                     = (struct result){.config_name = ""};
}

// Orders results by job. In a history, results of the same configuration, precision and number of ranks are one job.
static int compare_jobs(const struct result *a, const struct result *b)
{
    int order = strcmp(a->config_name, b->config_name);
    order     = order != 0 ? order : strcmp(a->precision, b->precision);
    return order != 0 ? order : (a->mesh.world > b->mesh.world) - (a->mesh.world < b->mesh.world);
}

static int by_job_and_time(const void *a, const void *b)
{
    const struct result *one = a, *other = b;
    int                  order = compare_jobs(one, other);
    order                      = order != 0 ? order : strcmp(one->started, other->started);
    return order != 0 ? order : strcmp(one->run_id, other->run_id);
}

static void compare_runs(struct history_row *row, const struct result *earlier, const struct result *later, bool force)
{
    struct comparison               comparison;
    const struct statistics_change *step = &comparison.step;
    comparison_init(&comparison, earlier, later, threshold);
    status comparable = force ? OK : comparison_check(&comparison);
    text_copy(row->change_verdict, sizeof(row->change_verdict),
              failed(&comparable) ? "not comparable" : comparison_verdict(&comparison));
    if (!failed(&comparable)) {
        row->change      = step->relative;
        row->change_low  = 1.0 / step->high - 1.0;
        row->change_high = 1.0 / step->low - 1.0;
    }
    comparison_list_settings(&comparison, true, row->changed_settings, sizeof(row->changed_settings));
    comparison_free(&comparison);
}

void history_finish(struct history *history)
{
    qsort(history->results, (size_t)history->result_count, sizeof(*history->results), by_job_and_time);
    for (int64_t i = 0; i < history->result_count; i++) {
        const struct result *result = &history->results[i], *earlier = i > 0 ? result - 1 : NULL;
        struct history_row   row = {.ranks        = result->mesh.world,
                                    .step_seconds = result->figures.step.median,
                                    .low          = result->figures.step.low,
                                    .high         = result->figures.step.high,
                                    .change       = NAN,
                                    .change_low   = NAN,
                                    .change_high  = NAN};
        text_copy(row.config, sizeof(row.config), result->config_name);
        text_copy(row.precision, sizeof(row.precision), result->precision);
        text_copy(row.started, sizeof(row.started), result->started);
        text_copy(row.run_id, sizeof(row.run_id), result->run_id);
        text_copy(row.verdict, sizeof(row.verdict), result_verdict_names[result->verdict]);
        if (earlier == NULL || compare_jobs(earlier, result) != 0) {
            text_copy(row.change_verdict, sizeof(row.change_verdict), "first");
        } else {
            compare_runs(&row, earlier, result, history->force);
        }
        LIST_APPEND(history->rows, history->row_count, row);
    }
}

void history_free(struct history *history)
{
    for (int64_t i = 0; i < history->result_count; i++) {
        result_free(&history->results[i]);
    }
    free(history->results);
    free(history->rows);
    *history = (struct history){.rows = NULL};
}

static const struct grid_column columns[] = {
    {"config", "config", false},
    {"ranks", "ranks", true},
    {"type", "precision", false},
    {"run", "run_id", false},
    {"verdict", "verdict", false},
    {"s/step", "step_s", true},
    {"change %", "change_percent", true},
    {"from %", "change_low_percent", true},
    {"to %", "change_high_percent", true},
    {"step time is", "change_verdict", false},
    {"what changed", "changed_settings", false},
};

static void fill(struct grid *grid, const struct history *history)
{
    *grid = GRID_OF(columns);
    for (int64_t i = 0; i < history->row_count; i++) {
        const struct history_row *row = &history->rows[i];
        grid_add(grid, row->config);
        grid_add_integer(grid, row->ranks);
        grid_add(grid, row->precision);
        grid_add(grid, row->run_id);
        grid_add(grid, row->verdict);
        grid_add(grid, report_seconds(row->step_seconds));
        grid_add_real(grid, "%+.2f", 100 * row->change);
        grid_add_real(grid, "%+.2f", 100 * row->change_low);
        grid_add_real(grid, "%+.2f", 100 * row->change_high);
        grid_add(grid, row->change_verdict);
        grid_add(grid, row->changed_settings[0] != '\0' ? row->changed_settings : "-");
    }
}

void history_write(const struct history *history, grid_writer *write, FILE *file)
{
    struct grid grid;
    fill(&grid, history);
    write(&grid, file);
    grid_free(&grid);
}

void history_write_html(const struct history *history, FILE *file)
{
    char             answer[400] = "No run is shown to be slower or faster than the one before it", subtitle[64];
    int64_t          changes = 0, latest = 0;
    struct grid      grid;
    struct page_card card = {.heading = "Runs",
                             .remark  = "Each run is compared with the one before it of the same config, precision and "
                                        "ranks, as gswbench compare does.",
                             .grid    = &grid};
    struct page      page = {
             .title = "History", .subtitle = subtitle, .answer = answer, .detail = "", .cards = &card, .card_count = 1};
    for (int64_t i = 0; i < history->row_count; i++) {
        const struct history_row *row = &history->rows[i];
        if (strcmp(row->change_verdict, "slower") == 0 || strcmp(row->change_verdict, "faster") == 0) {
            latest = changes++ == 0 || strcmp(row->started, history->rows[latest].started) >= 0 ? i : latest;
        }
    }
    if (changes > 0) {
        const struct history_row *row = &history->rows[latest];
        snprintf(answer, sizeof(answer), "%" PRId64 " change%s of the step time; the latest: %s, run %s, is %.2f %% %s",
                 changes, changes == 1 ? "" : "s", row->config, row->run_id, 100 * fabs(row->change),
                 row->change_verdict);
    }
    fill(&grid, history);
    snprintf(subtitle, sizeof(subtitle), "%" PRId64 " run%s", history->row_count, history->row_count == 1 ? "" : "s");
    page_write(&page, file);
    grid_free(&grid);
}

// clang-format off
static const struct json_field rows[] = {
    ROW_TEXT(history_row, "config", config),
    ROW_INTEGER(history_row, "ranks", ranks),
    ROW_TEXT(history_row, "precision", precision),
    ROW_TEXT(history_row, "started_utc", started),
    ROW_TEXT(history_row, "run_id", run_id),
    ROW_TEXT(history_row, "verdict", verdict),
    ROW_REAL(history_row, "step_s", step_seconds),
    ROW_INTERVAL(history_row, "ci95", low),
    ROW_REAL(history_row, "change", change),
    ROW_INTERVAL(history_row, "change_ci95", change_low),
    ROW_TEXT(history_row, "change_verdict", change_verdict),
    ROW_TEXT(history_row, "changed_settings", changed_settings),
    JSON_END
};
const struct json_field history_fields[] = {
    JSON_SCHEMA("gswbench.history/1"),
    JSON_LIST(history, "rows", rows, row_count, sizeof(struct history_row), rows),
    JSON_END
};
// clang-format on
