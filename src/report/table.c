// SPDX-License-Identifier: MIT
// Makes a table of results and writes it as text, Markdown, CSV, HTML and JSON. Repeats of a job, which have the same
// settings and number of ranks, share a row. Rows of the same job with more ranks show how the job scales.
#include "gswbench/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

struct table_run {
    struct table_key key;
    double step_seconds, tokens_per_step, mfu_seconds;    // mfu_seconds: MFU times step time, equal in all repeats
    double published_seconds, expected_seconds;
};

static void print_layout(char *text, size_t bytes, const struct result *result)
{
    struct text_stream axes;
    text_stream_open(&axes);
    report_write_axes(result, " ", " ", axes.file);
    text_stream_close(&axes);
    text_copy(text, bytes, axes.bytes > 0 ? axes.data + 1 : "one rank");
    free(axes.data);
}

void table_add(struct table *table, const struct result *result)
{
    const struct result_figures *figures = &result->figures;
    struct table_run            *run     = LIST_ADD(table->runs, table->run_count);
    memset(run, 0, sizeof(*run));
    text_copy(run->key.config, sizeof(run->key.config), result->config_name);
    text_copy(run->key.label, sizeof(run->key.label), run->key.config);
    if (result->is_proxy) {
        snprintf(run->key.label, sizeof(run->key.label), "%s, proxy of %" PRId64 " layer%s", run->key.config,
                 result->layers, result->layers == 1 ? "" : "s");
    }
    text_copy(run->key.precision, sizeof(run->key.precision), result->precision);
    print_layout(run->key.layout, sizeof(run->key.layout), result);
    // Copies "NVIDIA H200" from "NVIDIA H200, 132 multiprocessors ...".
    text_copy(run->key.device, sizeof(run->key.device), result->device);
    run->key.device[strcspn(run->key.device, ",")] = '\0';
    text_copy(run->key.verdict, sizeof(run->key.verdict), result_verdict_names[result->verdict]);
    text_copy(run->key.variant, sizeof(run->key.variant), result->config_hash);
    run->key.ranks         = result->mesh.world;
    run->key.layers        = result->layers;
    run->key.sequence      = result->sequence;
    run->key.global_batch  = result->global_batch;
    run->step_seconds      = figures->step.median;
    run->tokens_per_step   = figures->tokens_per_step;
    run->mfu_seconds       = figures->utilization[figures->convention] * figures->step.median;
    run->published_seconds = isnan(figures->published_ratio) ? NAN : result->published_seconds;
    run->expected_seconds =
        result->expectation.profile[0] != '\0' && !result_is_predicted(result) ? result->expectation.step_seconds : NAN;
}

// Orders runs by job. Two runs belong to the same job if they have the same configuration, precision, device, verdict,
// number of layers and sequence length; their numbers of ranks and layouts may differ.
static int compare_jobs(const struct table_key *a, const struct table_key *b)
{
    int order = strcmp(a->config, b->config);
    order     = order != 0 ? order : strcmp(a->precision, b->precision);
    order     = order != 0 ? order : strcmp(a->device, b->device);
    order     = order != 0 ? order : strcmp(a->verdict, b->verdict);
    order     = order != 0 ? order : (a->layers > b->layers) - (a->layers < b->layers);
    return order != 0 ? order : (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

// Orders runs by job, and the runs of a job by ranks, layout, hash of the configuration and global batch. Runs that are
// equal in all of these are repeats.
static int compare_keys(const struct table_key *a, const struct table_key *b)
{
    int order = compare_jobs(a, b);
    order     = order != 0 ? order : (a->ranks > b->ranks) - (a->ranks < b->ranks);
    order     = order != 0 ? order : strcmp(a->layout, b->layout);
    order     = order != 0 ? order : strcmp(a->variant, b->variant);
    return order != 0 ? order : (a->global_batch > b->global_batch) - (a->global_batch < b->global_batch);
}

static int compare_runs(const void *a, const void *b)
{
    const struct table_run *one = a, *other = b;
    int                     order = compare_keys(&one->key, &other->key);
    return order != 0 ? order : (one->step_seconds > other->step_seconds) - (one->step_seconds < other->step_seconds);
}

// Returns the table row of repeated runs. `runs` is sorted by step time.
static struct table_row sum_up(const struct table_run *runs, int64_t count)
{
    const struct table_run *low = &runs[(count - 1) / 2], *high = &runs[count / 2];
    double                  seconds = (low->step_seconds + high->step_seconds) / 2.0;
    return (struct table_row){.key          = runs->key,
                              .runs         = count,
                              .step_seconds = seconds,
                              .spread = count > 1 ? (runs[count - 1].step_seconds - runs->step_seconds) / seconds : NAN,
                              .tokens_per_second = low->tokens_per_step / seconds,
                              .mfu               = low->mfu_seconds / seconds,
                              .efficiency        = NAN,
                              .published_ratio   = seconds / low->published_seconds,
                              .expected_ratio    = seconds / low->expected_seconds};
}

static double tokens_per_rank(const struct table_row *row)
{
    return row->tokens_per_second / (double)row->key.ranks;
}

// Sets the throughput per rank relative to the job's first row, which has the fewest ranks. Rows with the fewest ranks
// of their job have no efficiency (NaN).
static void set_efficiency(struct table *table)
{
    const struct table_row *first = table->rows;
    for (int64_t i = 0; i < table->row_count; i++) {
        struct table_row *row = &table->rows[i];
        first                 = compare_jobs(&row->key, &first->key) != 0 ? row : first;
        row->efficiency       = row->key.ranks > first->key.ranks ? tokens_per_rank(row) / tokens_per_rank(first) : NAN;
    }
}

void table_finish(struct table *table)
{
    qsort(table->runs, (size_t)table->run_count, sizeof(*table->runs), compare_runs);
    table->rows = memory_allocate((size_t)(table->run_count + 1) * sizeof(*table->rows));
    for (int64_t i = 0, next; i < table->run_count; i = next) {
        next = i + 1;
        while (next < table->run_count && compare_keys(&table->runs[i].key, &table->runs[next].key) == 0) {
            next++;
        }
        table->rows[table->row_count++] = sum_up(&table->runs[i], next - i);
    }
    set_efficiency(table);
}

void table_free(struct table *table)
{
    free(table->rows);
    free(table->runs);
}

static const struct grid_column columns[] = {
    {"config", "config", false},
    {"ranks", "ranks", true},
    {"type", "precision", false},
    {"layout", "layout", false},
    {"device", "device", false},
    {"verdict", "verdict", false},
    {"runs", "runs", true},
    {"s/step", "step_s", true},
    {"spread %", "spread_percent", true},
    {"tokens/s", "tokens_per_s", true},
    {"MFU %", "mfu_percent", true},
    {"scaling %", "scaling_percent", true},
    {"to published", "published_ratio", true},
    {"to expected", "expected_ratio", true},
};

static void fill(struct grid *grid, const struct table *table)
{
    *grid = GRID_OF(columns);
    for (int64_t i = 0; i < table->row_count; i++) {
        const struct table_row *row = &table->rows[i];
        grid_add(grid, row->key.label);
        grid_add_integer(grid, row->key.ranks);
        grid_add(grid, row->key.precision);
        grid_add(grid, row->key.layout);
        grid_add(grid, row->key.device);
        grid_add(grid, row->key.verdict);
        grid_add_integer(grid, row->runs);
        grid_add(grid, report_seconds(row->step_seconds));
        grid_add_real(grid, "%.1f", 100 * row->spread);
        grid_add_real(grid, "%.0f", row->tokens_per_second);
        grid_add_real(grid, "%.1f", 100 * row->mfu);
        grid_add_real(grid, "%.1f", 100 * row->efficiency);
        grid_add_real(grid, "%.3f", row->published_ratio);
        grid_add_real(grid, "%.3f", row->expected_ratio);
    }
}

void table_write(const struct table *table, grid_writer *write, FILE *file)
{
    struct grid grid;
    fill(&grid, table);
    write(&grid, file);
    grid_free(&grid);
}

static bool is_sound(const struct table_row *row)
{
    return strcmp(row->key.verdict, result_verdict_names[VERDICT_VALID]) == 0 ||
           strcmp(row->key.verdict, result_verdict_names[VERDICT_PREDICTED]) == 0;
}

// Returns whether a row is better than the other. Whole models come before models with fewer layers (proxies), then
// VALID runs and predictions before other results. Then the higher throughput per rank decides; it is NaN in rows
// without measured steps.
static bool is_better(const struct table_row *row, const struct table_row *other)
{
    bool is_proxy = strcmp(row->key.label, row->key.config) != 0;
    if (is_proxy != (strcmp(other->key.label, other->key.config) != 0)) {
        return !is_proxy;
    }
    if (is_sound(row) != is_sound(other)) {
        return is_sound(row);
    }
    return tokens_per_rank(row) > fmax(0, tokens_per_rank(other));
}

void table_write_html(const struct table *table, FILE *file)
{
    const struct table_row *best = table->rows;
    struct grid             grid;
    char                    answer[320], subtitle[96], detail[96] = "";
    for (int64_t i = 1; i < table->row_count; i++) {
        best = is_better(&table->rows[i], best) ? &table->rows[i] : best;
    }
    fill(&grid, table);
    if (isnan(best->step_seconds)) {
        snprintf(answer, sizeof(answer), "No run has a measured step");
    } else {
        snprintf(answer, sizeof(answer),
                 "Fastest per rank: %s at %" PRId64 " rank%s, %s s per step, %.1f tokens/s per rank, %s",
                 best->key.label, best->key.ranks, best->key.ranks == 1 ? "" : "s", report_seconds(best->step_seconds),
                 tokens_per_rank(best), best->key.verdict);
    }
    if (!isnan(best->mfu)) {
        snprintf(detail, sizeof(detail), "Its MFU is %.1f %%.", 100 * best->mfu);
    }
    snprintf(subtitle, sizeof(subtitle), "%" PRId64 " run%s", table->run_count, table->run_count == 1 ? "" : "s");
    struct page_card card = {.heading = "Results",
                             .remark =
                                 "A row has the repeats of one job: the median of their step times, and their spread. "
                                 "Scaling is tokens/s per rank, relative to the fewest ranks of the job.",
                             .grid = &grid};
    page_write(&(struct page){.title      = "Results",
                              .subtitle   = subtitle,
                              .answer     = answer,
                              .detail     = detail,
                              .cards      = &card,
                              .card_count = 1},
               file);
    grid_free(&grid);
}

// clang-format off
static const struct json_field rows[] = {
    ROW_TEXT(table_row, "config", key.config),
    ROW_INTEGER(table_row, "ranks", key.ranks),
    ROW_TEXT(table_row, "precision", key.precision),
    ROW_TEXT(table_row, "layout", key.layout),
    ROW_TEXT(table_row, "device", key.device),
    ROW_TEXT(table_row, "verdict", key.verdict),
    ROW_INTEGER(table_row, "layers", key.layers),
    ROW_INTEGER(table_row, "sequence", key.sequence),
    ROW_INTEGER(table_row, "global_batch", key.global_batch),
    ROW_INTEGER(table_row, "runs", runs),
    ROW_REAL(table_row, "step_s", step_seconds),
    ROW_REAL(table_row, "spread", spread),
    ROW_REAL(table_row, "tokens_per_s", tokens_per_second),
    ROW_REAL(table_row, "mfu", mfu),
    ROW_REAL(table_row, "efficiency", efficiency),
    ROW_REAL(table_row, "published_ratio", published_ratio),
    ROW_REAL(table_row, "expected_ratio", expected_ratio),
    JSON_END
};
const struct json_field table_fields[] = {
    JSON_SCHEMA("gswbench.table/3"),
    JSON_LIST(table, "rows", rows, row_count, sizeof(struct table_row), rows),
    JSON_END
};
// clang-format on
