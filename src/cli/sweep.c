// SPDX-License-Identifier: MIT
// predict --sweep: which layouts of a job's model fit at its number of ranks, and the fastest of them.
#include "sweep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "gswbench/number.h"
#include "gswbench/signals.h"
#include "gswbench/sweep_space.h"
#include "gswbench/terminal.h"

enum { OWN = -1 };    // in place of a listed layout: the job's

struct table {
    struct job        job;
    struct sweep_list list;
    struct sweep      sweep;
    char              advice[512];    // empty: something fits
    struct progress   bounding, pricing;
};

static int count_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : (int)cores;
}

static struct job job_of(const struct table *table, int64_t layout)
{
    struct job job = table->job;
    if (layout != OWN) {
        job.request         = table->list.layouts[layout];
        job.config.parallel = job.request.parallel;
        job.config.train    = job.request.train;
    }
    return job;
}

static void print_choice(const struct table *table, const char *name, const struct sweep_choice *choice)
{
    const struct prediction *prediction = &choice->prediction;
    struct job               job        = job_of(table, choice->layout);
    char                     layout[256], memory[32], mfu[32];
    printf("%-4s %-42s %5" PRId64 " %6" PRId64 "  %-11s %9.3f s %11.0f %8s %10s\n", name,
           job_layout(&job, layout, sizeof(layout)), job.config.train.micro_batch, job.config.train.accumulation,
           train_recompute_names[job.config.train.recompute], prediction->step_seconds,
           job_tokens_per_second(&job, prediction->step_seconds),
           cli_print_percent(job_mfu_percent(&job, prediction->step_seconds), "%.2f %%", mfu, sizeof(mfu)),
           number_bytes(memory, sizeof(memory), (double)prediction->largest_bytes));
}

static void print_table(const struct table *table, const struct sweep_choice *own)
{
    const struct sweep  *sweep  = &table->sweep;
    const struct config *config = &table->job.config;
    printf("config         %s%s at %" PRId64 " ranks, %s: %" PRId64 " sequences of %" PRId64 " tokens a step, on %s\n",
           config->name, config->run.layers > 0 ? ", a proxy," : "", table->job.request.mesh.world,
           precision_compute_names[config->precision.compute], config->train.global_batch, config->train.sequence,
           config->hardware.profile);
    printf("layouts        %" PRId64 " legal: %" PRId64 " refused, %" PRId64 " too large for %.0f GB, %" PRId64
           " fit, %" PRId64 " of them priced: %s\n",
           sweep->layout_count, sweep->refused, sweep->too_large, config->hardware.memory_gb.value, sweep->fit,
           sweep->priced, sweep->is_stopped ? "stopped, others may be faster" : "no other can be among the best");
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
}

// Where the step of a layout goes; priced once more, since only those that are printed are explained.
static json_t *describe_parts(const struct job *job, const struct machine *machine)
{
    struct predict_explanation explanation = {.timeline = NULL};
    struct prediction          prediction;
    status                     result = predict_explain_job(&explanation, &prediction, job, machine);
    return failed(&result) ? json_null() : cli_json_waterfall(&explanation.waterfall);
}

static json_t *describe(const struct table *table, const struct sweep_choice *choice)
{
    const struct prediction      *prediction = &choice->prediction;
    struct job                    job        = job_of(table, choice->layout);
    const struct parallel_config *axes       = &job.config.parallel;
    json_t                       *described  = json_object();
    for (int i = 0; i < AXIS_COUNT; i++) {
        enum axis axis = axis_listed[i];
        json_object_set_new(described, axis_rows[axis].name, json_integer(mesh_asked(axes, axis)));
    }
    json_object_update_new(
        described,
        json_pack("{s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:o, s:I, s:o}", "vp", axes->vp, "zero", axes->zero,
                  "micro_batch", job.config.train.micro_batch, "accumulation", job.config.train.accumulation,
                  "recompute", train_recompute_names[job.config.train.recompute], "step_seconds",
                  prediction->step_seconds, "tokens_per_second", job_tokens_per_second(&job, prediction->step_seconds),
                  "mfu_percent", cli_json_real(job_mfu_percent(&job, prediction->step_seconds)), "largest_bytes",
                  prediction->largest_bytes, "parts_s", describe_parts(&job, table->sweep.machine)));
    return described;
}

static void print_json(const struct table *table, const struct sweep_choice *own)
{
    const struct sweep *sweep = &table->sweep;
    json_t             *best = json_array(), *refusals = json_array();
    for (int i = 0; i < sweep->best_count; i++) {
        json_array_append_new(best, describe(table, &sweep->best[i]));
    }
    for (int i = 0; i < sweep->refusal_count; i++) {
        json_array_append_new(refusals, json_pack("{s:s, s:I}", "reason", sweep->refusals[i].text, "layouts",
                                                  sweep->refusals[i].layouts));
    }
    cli_print_json(json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s*, s:o, s:o, s:o}", "config",
                             table->job.config.name, "ranks", table->job.request.mesh.world, "legal",
                             sweep->layout_count, "refused", sweep->refused, "too_large", sweep->too_large, "fit",
                             sweep->fit, "priced", sweep->priced, "is_stopped", (int)sweep->is_stopped, "advice",
                             table->advice[0] == '\0' ? NULL : table->advice, "refusals", refusals, "best", best, "own",
                             own == NULL ? json_null() : describe(table, own)));
}

// Shows how far it is and the best so far, until a signal ends it.
static bool show_progress(void *state, const struct sweep *sweep)
{
    struct table *table     = state;
    char          best[320] = "", layout[256];
    if (sweep->best_count > 0) {
        struct job job = job_of(table, sweep->best[0].layout);
        snprintf(best, sizeof(best), "best so far %.3f s: %s", sweep->best[0].prediction.step_seconds,
                 job_layout(&job, layout, sizeof(layout)));
    }
    if (sweep->bounded < sweep->layout_count) {
        progress_show(&table->bounding, sweep->bounded, "");
    } else {
        progress_show(&table->pricing, sweep->priced, best);
    }
    return signals_caught() == 0;
}

static status search(struct table *table, const struct machine *machine)
{
    sweep_list(&table->list, &table->job);
    table->sweep    = (struct sweep){.machine      = machine,
                                     .layouts      = table->list.layouts,
                                     .layout_count = table->list.count,
                                     .threads      = count_cores(),
                                     .goes_on      = show_progress,
                                     .state        = table};
    table->bounding = progress_begin("layouts bounded", table->list.count);
    table->pricing  = progress_begin("layouts priced", 0);
    signals_catch(true, 0);
    signals_keep();
    status result = sweep_run(&table->sweep);
    progress_clear(&table->bounding);
    progress_clear(&table->pricing);
    if (!failed(&result) && table->sweep.is_stopped && table->sweep.best_count == 0) {
        result = fail_as(EXIT_STOPPED, "stopped by %s before any layout was priced", signals_name(signals_caught()));
    }
    return result;
}

static status run(struct table *table, const struct machine *machine, bool json)
{
    const struct job *job    = &table->job;
    status            result = search(table, machine);
    if (!failed(&result) && table->list.count == 0) {
        result = fail("no layout of %" PRId64 " ranks is legal for %" PRId64 " sequences of %" PRId64 " tokens a step: "
                      "take another number of ranks, or another train.global_batch",
                      job->request.mesh.world, job->config.train.global_batch, job->config.train.sequence);
    } else if (!failed(&result) && table->sweep.refused == table->sweep.layout_count) {
        result = fail("no layout can be predicted: %s", table->sweep.refusals[0].text);
    }
    if (!failed(&result) && table->sweep.fit == 0) {
        sweep_advise(table->advice, sizeof(table->advice), job, machine);
    }
    if (!failed(&result)) {
        struct sweep_choice own     = {.layout = OWN};
        status              support = job->has_layout ? predict(&own.prediction, &job->request, machine) : job->support;
        (json ? print_json : print_table)(table, failed(&support) ? NULL : &own);
    }
    if (!failed(&result) && table->sweep.is_stopped) {
        result = fail_as(EXIT_STOPPED,
                         "stopped by %s: listed are the best of the %" PRId64 " layouts that were priced "
                         "until then; others may be faster",
                         signals_name(signals_caught()), table->sweep.priced);
    }
    free(table->list.layouts);
    return result;
}

status sweep_print(const struct job_selection *arguments, bool json, struct text_buffer *errors)
{
    struct table        table    = {.list = {.count = 0}};
    struct measured_ops measured = {.ops = NULL};
    if (arguments->ranks == 0) {
        return fail_as(EXIT_USAGE, "--sweep needs --ranks: layouts are those of that many ranks");
    }
    TRY(job_read_open(&table.job, arguments, errors));
    status result = measured_read_profile(&measured, &table.job.config);
    if (!failed(&result)) {
        result = run(&table,
                     &(struct machine){.hardware = &table.job.config.hardware,
                                       .software = &table.job.config.software,
                                       .measured = &measured},
                     json);
    }
    measured_free(&measured);
    return result;
}
