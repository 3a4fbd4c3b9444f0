// SPDX-License-Identifier: MIT
// Prints a suite as a text table, as an HTML page and as JSON: the expectations of each row, and after the run its
// verdict.
#include <inttypes.h>
#include <math.h>

#include "internal.h"

enum { CELL_BYTES = 700 };

// NVIDIA's certificate for a machine requires at least this percentage of the published speed.
static const double certificate_percent = 95.0;

static const struct grid_column columns[] = {
    {"row", "name", false},
    {"verdict", "verdict", false},
    {"expected s", "expected_s", true},
    {"+- %", "percent", true},
    {"from", "basis", false},
    {"measured s", "step_s", true},
    {"published s", "published_s", true},
    {"of published %", "published_percent", true},
    {"minutes", "minutes", true},
    {"$ per M tokens", "dollars_per_million_tokens", true},
    {"layout", "layout", false},
    {"remark", "reason", false},
};

// clang-format off
static const struct json_field expected[] = {
    ROW_TEXT(suite_row, "basis", basis),
    ROW_REAL(suite_row, "step_s", expected_seconds),
    ROW_REAL(suite_row, "percent", percent),
    JSON_END
};
static const struct json_field measured[] = {
    ROW_TEXT(suite_row, "run_id", run_id),
    ROW_TEXT(suite_row, "run_verdict", run_verdict),
    ROW_REAL(suite_row, "step_s", step_seconds),
    ROW_INTERVAL(suite_row, "ci95", low),
    ROW_REAL(suite_row, "published_percent", published_percent),
    ROW_BOOLEAN(suite_row, "by_an_earlier_call", is_earlier),
    JSON_END
};
static const struct json_field row_fields[] = {
    ROW_TEXT(suite_row, "name", name),
    ROW_TEXT(suite_row, "config", config),
    ROW_TEXT(suite_row, "precision", precision),
    ROW_TEXT(suite_row, "layout", layout),
    ROW_TEXT(suite_row, "problem", problem),
    ROW_REAL(suite_row, "published_step_s", published_seconds),
    ROW_REAL(suite_row, "minutes", minutes),
    ROW_REAL(suite_row, "dollars_per_million_tokens", token_dollars),
    JSON_CHOICE(suite_row, "verdict", verdict, result_acceptance_names),
    ROW_TEXT(suite_row, "reason", reason),
    ROW_TEXT(suite_row, "drain", drain),
    JSON_OBJECT("expected", expected),
    JSON_OBJECT("measured", measured),
    JSON_END
};
const struct json_field suite_fields[] = {
    JSON_SCHEMA("gswbench.suite/2"),
    ROW_TEXT(suite, "name", name),
    ROW_TEXT(suite, "about", about),
    ROW_INTEGER(suite, "ranks", ranks),
    ROW_REAL(suite, "minutes", minutes),
    JSON_CHOICE(suite, "verdict", verdict, result_acceptance_names),
    ROW_TEXT(suite, "drain", drain),
    ROW_BOOLEAN(suite, "is_stopped", is_stopped),
    JSON_LIST(suite, "rows", rows, row_count, sizeof(struct suite_row), row_fields),
    JSON_END
};
// clang-format on

static bool has_run(const struct suite *suite)
{
    return suite->verdict != ACCEPTANCE_NONE;
}

static const char *name_verdict(const struct suite *suite, const struct suite_row *row)
{
    // Before the run, a row has a reason if the GPU of its profile cannot run it.
    bool is_unfit = !has_run(suite) && row->reason[0] != '\0';
    return row->problem[0] != '\0' || is_unfit ? "cannot run"
           : row->verdict == ACCEPTANCE_NONE   ? "not run"
                                               : result_acceptance_names[row->verdict];
}

// Adds the remark: why the row cannot run or was not accepted or, for an accepted row, whether it reaches
// certificate_percent of the published speed.
static void add_remark(struct grid *grid, const struct suite_row *row)
{
    char remark[CELL_BYTES] = "-";
    if (row->problem[0] != '\0') {
        text_copy(remark, sizeof(remark), row->problem);
    } else if (row->verdict != ACCEPTANCE_ACCEPT && row->reason[0] != '\0') {
        text_copy(remark, sizeof(remark), row->reason);
    } else if (!isnan(row->published_percent)) {
        snprintf(remark, sizeof(remark), "%s %.0f %% of the published speed",
                 row->published_percent >= certificate_percent ? "has" : "has not", certificate_percent);
    }
    grid_add(grid, remark);
}

static void fill(struct grid *grid, const struct suite *suite)
{
    for (int64_t i = 0; i < suite->row_count; i++) {
        const struct suite_row *row = &suite->rows[i];
        grid_add(grid, row->name);
        grid_add(grid, name_verdict(suite, row));
        grid_add_real(grid, "%.4g", row->expected_seconds);
        grid_add_real(grid, "%.1f", row->percent);
        grid_add(grid, row->basis[0] != '\0' && !isnan(row->expected_seconds) ? row->basis : "-");
        grid_add_real(grid, "%.4g", row->step_seconds);
        grid_add_real(grid, "%.4g", row->published_seconds);
        grid_add_real(grid, "%.1f", row->published_percent);
        grid_add_real(grid, "%.1f", row->minutes);
        grid_add_real(grid, "%.4g", row->token_dollars);
        grid_add(grid, row->layout[0] != '\0' ? row->layout : "-");
        add_remark(grid, row);
    }
}

static int64_t count_rows(const struct suite *suite, enum acceptance verdict)
{
    int64_t count = 0;
    for (int64_t i = 0; i < suite->row_count; i++) {
        count += suite->rows[i].verdict == (int64_t)verdict;
    }
    return count;
}

// Before the run, row.reason is set only if the GPU of the row's profile cannot run it, for example because its memory
// does not fit. If a row's step time is unknown, suite->minutes is NaN, and no duration is printed.
static void summarise_plan(const struct suite *suite, char *text, size_t bytes)
{
    int64_t possible    = 0;
    char    minutes[64] = "";
    for (int64_t i = 0; i < suite->row_count; i++) {
        possible += suite->rows[i].problem[0] == '\0' && suite->rows[i].reason[0] == '\0';
    }
    if (possible > 0 && !isnan(suite->minutes)) {
        snprintf(minutes, sizeof(minutes), ", in about %.0f minutes", suite->minutes);
    }
    snprintf(text, bytes, "%" PRId64 " of %" PRId64 " rows can run on %" PRId64 " rank%s%s", possible, suite->row_count,
             suite->ranks, suite->ranks == 1 ? "" : "s", minutes);
}

static void summarise(const struct suite *suite, char *text, size_t bytes)
{
    if (!has_run(suite)) {
        summarise_plan(suite, text, bytes);
        return;
    }
    snprintf(text, bytes, "%" PRId64 " of %" PRId64 " rows accepted, %" PRId64 " refused%s",
             count_rows(suite, ACCEPTANCE_ACCEPT), suite->row_count, count_rows(suite, ACCEPTANCE_REFUSE),
             suite->is_stopped ? "; stopped: call it again with the same -o to go on" : "");
}

void suite_write_text(const struct suite *suite, FILE *file)
{
    struct grid grid = GRID_OF(columns);
    char        summary[200];
    fill(&grid, suite);
    grid_write_text(&grid, file);
    grid_free(&grid);
    summarise(suite, summary, sizeof(summary));
    if (has_run(suite)) {
        putc('\n', file);
        accept_write_verdict(suite->verdict, summary, suite->drain, file);
    } else {
        fprintf(file, "\n%s\n", summary);
    }
}

void suite_write_html(const struct suite *suite, const struct preflight_report *report, FILE *file)
{
    struct grid grid = GRID_OF(columns);
    char        answer[200], drain[1200], title[200];
    summarise(suite, answer, sizeof(answer));
    snprintf(title, sizeof(title), "Suite %s", suite->name);
    flight_describe_drain(suite->drain, drain, sizeof(drain));
    fill(&grid, suite);
    struct page page = {.title   = title,
                        .verdict = result_acceptance_names[suite->verdict],
                        .style   = accept_styles[suite->verdict],
                        .answer  = answer,
                        .detail  = drain};
    flight_write_page(&page, report, &(struct page_card){"Rows", suite->about, &grid}, file);
    grid_free(&grid);
}
