// SPDX-License-Identifier: MIT
// Makes the rows of a results table. Runs of one job are repeats and share a row; rows of one job at different numbers
// of ranks show how it scales.
#include "gswbench/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"

struct table_run {
    struct table_key key;
    double step_seconds, tokens_per_step, mfu_seconds;    // mfu_seconds: MFU times step time, equal in all repeats
    double published_seconds, expected_seconds;
};

static void print_layout(char *text, size_t bytes, const struct result *result)
{
    size_t used = 0;
    text[0]     = '\0';
    for (int axis = 0; axis < AXIS_COUNT && used < bytes; axis++) {
        if (result->mesh.asked[axis] > 1) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%s %" PRId64, used > 0 ? " " : "",
                                     axis_rows[axis].name, result->mesh.asked[axis]);
        }
    }
    if (mesh_has_whole_experts(&result->mesh) && used < bytes) {
        used += (size_t)snprintf(text + used, bytes - used, " etp 1");
    }
    if (used == 0) {
        text_copy(text, bytes, "one rank");
    }
}

// Copies "NVIDIA H200" from "NVIDIA H200, 132 multiprocessors ...".
static void copy_device(char *text, size_t bytes, const struct result *result)
{
    text_copy(text, bytes, result->device);
    text[strcspn(text, ",")] = '\0';
}

static void print_label(struct table_key *key, const struct result *result)
{
    text_copy(key->label, sizeof(key->label), key->config);
    if (result->is_proxy) {
        snprintf(key->label, sizeof(key->label), "%s, proxy of %" PRId64 " layer%s", key->config, result->layers,
                 result->layers == 1 ? "" : "s");
    }
}

void table_add(struct table *table, const struct result *result)
{
    const struct result_figures *figures = &result->figures;
    struct table_run            *run     = LIST_ADD(table->runs, table->run_count);
    memset(run, 0, sizeof(*run));
    text_copy(run->key.config, sizeof(run->key.config), result->config_name);
    print_label(&run->key, result);
    text_copy(run->key.precision, sizeof(run->key.precision), result->precision);
    print_layout(run->key.layout, sizeof(run->key.layout), result);
    copy_device(run->key.device, sizeof(run->key.device), result);
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

// Sorts by job, then by ranks. A job is a configuration, precision, device, verdict, number of layers and sequence.
static int compare_jobs(const struct table_key *a, const struct table_key *b)
{
    int order = strcmp(a->config, b->config);
    order     = order != 0 ? order : strcmp(a->precision, b->precision);
    order     = order != 0 ? order : strcmp(a->device, b->device);
    order     = order != 0 ? order : strcmp(a->verdict, b->verdict);
    order     = order != 0 ? order : (a->layers > b->layers) - (a->layers < b->layers);
    return order != 0 ? order : (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

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

// Summarizes repeats that are sorted by step time.
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

static double tokens_a_rank(const struct table_row *row)
{
    return row->tokens_per_second / (double)row->key.ranks;
}

// Relative to the first row of the job: the fewest ranks, first layout.
static void set_efficiency(struct table *table)
{
    const struct table_row *first = table->rows;
    for (int64_t i = 0; i < table->row_count; i++) {
        struct table_row *row = &table->rows[i];
        first                 = compare_jobs(&row->key, &first->key) != 0 ? row : first;
        row->efficiency       = row->key.ranks > first->key.ranks ? tokens_a_rank(row) / tokens_a_rank(first) : NAN;
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
