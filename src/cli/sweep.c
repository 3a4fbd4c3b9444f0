// SPDX-License-Identifier: MIT
// predict --sweep: finds the layouts that fit at the job's number of ranks, and the fastest of them.
#include "sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/cores.h"
#include "gswbench/number.h"
#include "gswbench/output.h"
#include "gswbench/predict_row.h"
#include "gswbench/signals.h"
#include "gswbench/sweep_space.h"
#include "gswbench/terminal.h"

struct table {
    struct job        job;
    struct sweep_list list;
    struct sweep      sweep;
    char              advice[512];    // "": some layout fits
    struct progress   pricing;
    const char       *output;           // NULL: no page
    double            range_percent;    // error range of the best; NaN: unknown

    // For JSON output.
    const struct sweep_refusal *refusals;
    const char                 *advised;    // NULL: some layout fits
    struct described           *best, *own;
    int64_t                     refusal_count, best_count;
};

struct job sweep_job(const struct job *own, const struct sweep *sweep, int64_t layout)
{
    struct job job = *own;
    if (layout != SWEEP_OWN) {
        job.request         = sweep->layouts[layout];
        job.config.parallel = job.request.parallel;
        job.config.train    = job.request.train;
    }
    return job;
}

static void print_choice(const struct table *table, const char *name, const struct sweep_choice *choice)
{
    const struct prediction *prediction = &choice->prediction;
    struct job               job        = sweep_job(&table->job, &table->sweep, choice->layout);
    char                     layout[256], memory[32], mfu[32];
    printf("%-4s %-42s %5" PRId64 " %6" PRId64 "  %-11s %9.3f s %11.0f %8s %10s\n", name,
           job_layout(&job, layout, sizeof(layout)), job.config.train.micro_batch, job.config.train.accumulation,
           train_recompute_names[job.config.train.recompute], prediction->step_seconds,
           job_tokens_per_second(&job, prediction->step_seconds),
           cli_print_percent(100 * job_mfu(&job, prediction->step_seconds), "%.2f %%", mfu, sizeof(mfu)),
           number_bytes(memory, sizeof(memory), (double)prediction->largest_bytes));
}

// Names the layouts whose difference from the best is below the prediction error.
static void print_equals(const struct table *table)
{
    const struct sweep_choice *best  = table->sweep.best;
    int                        count = 0;
    while (count < table->sweep.best_count &&
           best[count].prediction.step_seconds <= best[0].prediction.step_seconds * (1 + table->range_percent / 100)) {
        count++;
    }
    if (count > 1) {
        printf("equal          1 to %d: differences are within the prediction error of %.1f %%\n", count,
               table->range_percent);
    }
}

static double find_range(const struct table *table)
{
    if (table->sweep.best_count == 0) {
        return NAN;
    }
    struct predict_row row = {.job = sweep_job(&table->job, &table->sweep, table->sweep.best[0].layout)};
    predict_row_compute(&row, true);
    text_free(&row.warnings);
    return failed(&row.support) ? NAN : row.range.percent;
}

static void print_table(const struct table *table, const struct sweep_choice *own)
{
    const struct sweep  *sweep  = &table->sweep;
    const struct config *config = &table->job.config;
    printf("config         %s%s at %" PRId64 " ranks, %s: %" PRId64 " sequences of %" PRId64
           " tokens per step, on %s\n",
           config->name, config->run.layers > 0 ? ", a proxy," : "", table->job.request.mesh.world,
           precision_compute_names[config->precision.compute], config->train.global_batch, config->train.sequence,
           config->hardware.profile);
    printf("layouts        %" PRId64 " valid: %" PRId64 " refused, %" PRId64 " too large for %.0f GB, %" PRId64
           " may fit, %" PRId64 " of them predicted: %s\n",
           sweep->layout_count, sweep->refused, sweep->too_large, config->hardware.memory_gb.value, sweep->fit,
           sweep->priced, sweep->is_stopped ? "stopped, others may be faster" : "all others are slower");
    if (table->advice[0] != '\0') {
        printf("nothing fits   %s\n", table->advice);
    }
    for (int i = 0; i < sweep->refusal_count; i++) {
        printf("  %7" PRId64 "      %s\n", sweep->refusals[i].layouts, sweep->refusals[i].text);
    }
    printf("%-4s %-42s %5s %6s  %-11s %11s %11s %8s %10s\n", "", "layout", "micro", "accum", "recompute", "predicted",
           "tokens/s", "MFU", "memory");
    for (int i = 0; i < sweep->best_count; i++) {
        char place[16];
        snprintf(place, sizeof(place), "%d", i + 1);
        print_choice(table, place, &sweep->best[i]);
    }
    if (own != NULL) {
        print_choice(table, "own", own);
    }
    print_equals(table);
}

// A layout as printed in JSON.
struct described {
    struct job              job;
    int64_t                 axes[AXIS_COUNT];    // as in [parallel]
    struct prediction       prediction;
    double                  tokens_per_second, mfu;
    struct waterfall        waterfall;
    const struct waterfall *parts;    // NULL: unknown
};

// clang-format off
#define CHOSEN(kind, key, field)   JSON_FIELD(described, kind, key, field)
#define CHOSEN_AXIS(NAME, key, ...) CHOSEN(JSON_FIELD_INTEGER, #key, axes[AXIS_##NAME]),
static const struct json_field choice_fields[] = {
    AXES(CHOSEN_AXIS)
    CHOSEN(JSON_FIELD_INTEGER, "etp", job.request.mesh.etp),
    CHOSEN(JSON_FIELD_INTEGER, "vp", job.config.parallel.vp),
    CHOSEN(JSON_FIELD_INTEGER, "zero", job.config.parallel.zero),
    CHOSEN(JSON_FIELD_INTEGER, "micro_batch", job.config.train.micro_batch),
    CHOSEN(JSON_FIELD_INTEGER, "accumulation", job.config.train.accumulation),
    JSON_CHOICE(described, "recompute", job.config.train.recompute, train_recompute_names),
    CHOSEN(JSON_FIELD_REAL, "step_s", prediction.step_seconds),
    CHOSEN(JSON_FIELD_REAL, "tokens_per_s", tokens_per_second),
    CHOSEN(JSON_FIELD_REAL, "mfu", mfu),
    CHOSEN(JSON_FIELD_INTEGER, "largest_bytes", prediction.largest_bytes),
    JSON_REFERENCE(described, JSON_FIELD_OBJECT, "parts_s", parts, waterfall_fields),
    JSON_END
};
static const struct json_field refusal_fields[] = {
    JSON_FIELD(sweep_refusal, JSON_FIELD_TEXT, "reason", text),
    JSON_FIELD(sweep_refusal, JSON_FIELD_INTEGER, "layouts", layouts),
    JSON_END
};
#define FIELD(kind, key, field) JSON_FIELD(table, kind, key, field)
const struct json_field cli_sweep_fields[] = {
    JSON_SCHEMA("gswbench.sweep/3"),
    FIELD(JSON_FIELD_TEXT, "config", job.config.name),
    FIELD(JSON_FIELD_INTEGER, "ranks", job.request.mesh.world),
    FIELD(JSON_FIELD_INTEGER, "legal", sweep.layout_count),
    FIELD(JSON_FIELD_INTEGER, "refused", sweep.refused),
    FIELD(JSON_FIELD_INTEGER, "too_large", sweep.too_large),
    FIELD(JSON_FIELD_INTEGER, "fit", sweep.fit),
    FIELD(JSON_FIELD_INTEGER, "priced", sweep.priced),
    FIELD(JSON_FIELD_BOOLEAN, "is_stopped", sweep.is_stopped),
    FIELD(JSON_FIELD_REAL, "range_percent", range_percent),
    JSON_REFERENCE(table, JSON_FIELD_TEXT, "advice", advised, NULL),
    JSON_LIST(table, "refusals", refusals, refusal_count, sizeof(struct sweep_refusal), refusal_fields),
    JSON_LIST(table, "best", best, best_count, sizeof(struct described), choice_fields),
    JSON_REFERENCE(table, JSON_FIELD_OBJECT, "own", own, choice_fields),
    JSON_END
};
// clang-format on

// Predicts the layout again with its waterfall, which the search does not compute.
static void describe(struct described *described, const struct table *table, const struct sweep_choice *choice)
{
    struct predict_explanation explanation = {.visit = NULL};
    struct prediction          prediction;
    double                     seconds = choice->prediction.step_seconds;
    described->job                     = sweep_job(&table->job, &table->sweep, choice->layout);
    described->prediction              = choice->prediction;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        described->axes[axis] = mesh_asked(&described->job.config.parallel, (enum axis)axis);
    }
    status priced = predict_explain_job(&explanation, &prediction, &described->job, table->sweep.machine);
    described->tokens_per_second = job_tokens_per_second(&described->job, seconds);
    described->mfu               = job_mfu(&described->job, seconds);
    described->waterfall         = explanation.waterfall;
    described->parts             = failed(&priced) ? NULL : &described->waterfall;
}

static void print_json(const struct table *table, const struct sweep_choice *own)
{
    struct table document  = *table;
    document.best_count    = table->sweep.best_count;
    document.best          = memory_allocate(((size_t)document.best_count + 1) * sizeof(*document.best));
    document.refusals      = table->sweep.refusals;
    document.refusal_count = table->sweep.refusal_count;
    document.advised       = table->advice[0] == '\0' ? NULL : table->advice;
    for (int64_t i = 0; i < document.best_count; i++) {
        describe(&document.best[i], table, &table->sweep.best[i]);
    }
    if (own != NULL) {
        document.own = &document.best[document.best_count];
        describe(document.own, table, own);
    }
    cli_print_json(json_from_struct(cli_sweep_fields, &document));
    free(document.best);
}

// Shows progress and the best layout so far; returns false after a signal.
static bool show_progress(void *state, const struct sweep *sweep)
{
    struct table *table     = state;
    char          best[320] = "", layout[256];
    if (sweep->best_count > 0) {
        struct job job = sweep_job(&table->job, &table->sweep, sweep->best[0].layout);
        snprintf(best, sizeof(best), "best so far %.3f s: %s", sweep->best[0].prediction.step_seconds,
                 job_layout(&job, layout, sizeof(layout)));
    }
    progress_show(&table->pricing, sweep->priced, best);
    return signals_caught() == 0;
}

static status search(struct table *table, const struct machine *machine)
{
    sweep_list(&table->list, &table->job);
    table->sweep   = (struct sweep){.machine      = machine,
                                    .layouts      = table->list.layouts,
                                    .layout_count = table->list.count,
                                    .threads      = cores_usable(),
                                    .goes_on      = show_progress,
                                    .state        = table};
    table->pricing = progress_begin("layouts priced", 0);
    signals_catch(true, 0);
    signals_keep();
    status result = sweep_run(&table->sweep);
    signals_release();
    progress_clear(&table->pricing);
    if (!failed(&result) && table->sweep.is_stopped && table->sweep.best_count == 0) {
        result = fail_as(EXIT_STOPPED, "stopped by %s before any layout was predicted", signals_name(signals_caught()));
    }
    return result;
}

static status run(struct table *table, const struct machine *machine, bool json)
{
    const struct job *job    = &table->job;
    status            result = search(table, machine);
    if (!failed(&result) && table->list.count == 0) {
        result = fail("no layout of %" PRId64 " ranks is valid for %" PRId64 " sequences of %" PRId64
                      " tokens per step: change --ranks, or train.global_batch",
                      job->request.mesh.world, job->config.train.global_batch, job->config.train.sequence);
    } else if (!failed(&result) && table->sweep.refused == table->sweep.layout_count) {
        result = fail("no layout can be predicted: %s", table->sweep.refusals[0].text);
    }
    if (!failed(&result) && table->sweep.fit == 0) {
        sweep_advise(table->advice, sizeof(table->advice), job, machine);
    }
    if (!failed(&result)) {
        table->range_percent        = find_range(table);
        struct sweep_choice own     = {.layout = SWEEP_OWN};
        status              support = job->has_layout ? predict(&own.prediction, &job->request, machine) : job->support;
        (json ? print_json : print_table)(table, failed(&support) ? NULL : &own);
        result = table->output != NULL
                     ? sweep_write(table->output, job, &table->sweep, table->advice, !failed(&support))
                     : OK;
        if (!failed(&result) && table->output != NULL && !json) {
            cli_print_path("files          ", table->output, "/sweep.html");
            if (table->sweep.best_count > 0) {
                cli_print_path("configuration  ", table->output, "/best.ini");
            }
        }
    }
    if (!failed(&result) && table->sweep.is_stopped) {
        result = fail_as(EXIT_STOPPED,
                         "stopped by %s: the list has the best of the %" PRId64
                         " layouts predicted so far; others may be faster",
                         signals_name(signals_caught()), table->sweep.priced);
    }
    free(table->list.layouts);
    return result;
}

status sweep_print(const struct job_selection *arguments, const char *output, bool json, struct text_buffer *errors)
{
    struct table        table    = {.list = {.count = 0}, .output = output};
    struct measured_ops measured = {.ops = NULL};
    if (arguments->ranks == 0) {
        return fail_as(EXIT_USAGE, "--sweep needs --ranks, the number of ranks of its layouts");
    }
    TRY(job_read_open(&table.job, arguments, errors));
    if (output != NULL) {
        TRY(output_create_folders(output));    // fails before the search if the folder cannot be written
    }
    status result = measured_read_profile(&measured, &table.job.config);
    if (!failed(&result)) {
        const struct machine machine = predict_machine(&table.job.config, &measured);
        result                       = run(&table, &machine, json);
    }
    measured_free(&measured);
    return result;
}
