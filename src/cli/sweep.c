// SPDX-License-Identifier: MIT
// predict --sweep: finds the layouts that fit at the job's number of ranks, and the fastest of them.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/clock.h"
#include "gswbench/output.h"
#include "gswbench/predict.h"
#include "gswbench/show.h"
#include "gswbench/signals.h"
#include "gswbench/sweep.h"
#include "gswbench/terminal.h"
#include "internal.h"

struct search {
    struct job        job;
    struct sweep_list list;
    struct sweep      sweep;
    char              advice[512];    // "": some layout fits
    struct progress   predicting;
    const char       *output;    // NULL: no page
};

static double find_best_range(const struct search *table)
{
    if (table->sweep.best_count == 0) {
        return NAN;
    }
    struct predict_row row = {.job = sweep_job(&table->job, &table->sweep, table->sweep.best[0].layout)};
    predict_row_compute(&row, true);
    text_free(&row.warnings);
    return failed(&row.support) ? NAN : row.range.percent;
}

// Shows progress and the best layout so far; returns false after a signal.
static bool show_progress(void *state, const struct sweep *sweep)
{
    struct search *table     = state;
    char           best[320] = "", layout[256];
    if (sweep->best_count > 0) {
        struct job job = sweep_job(&table->job, &table->sweep, sweep->best[0].layout);
        snprintf(best, sizeof(best), "best so far %.3f s: %s", sweep->best[0].prediction.step_seconds,
                 job_layout(&job, layout, sizeof(layout)));
    }
    progress_show(&table->predicting, sweep->predicted, best);
    return signals_caught() == 0;
}

static status search_layouts(struct search *table, const struct machine *machine)
{
    sweep_list(&table->list, &table->job);
    table->sweep      = (struct sweep){.machine      = machine,
                                       .layouts      = table->list.layouts,
                                       .layout_count = table->list.count,
                                       .threads      = cores_usable(),
                                       .goes_on      = show_progress,
                                       .state        = table};
    table->predicting = progress_begin("layouts priced", 0);
    signals_catch(true, 0);
    signals_keep();
    status result = sweep_run(&table->sweep);
    signals_release();
    progress_clear(&table->predicting);
    if (!failed(&result) && table->sweep.is_stopped && table->sweep.best_count == 0) {
        result = fail_as(EXIT_STOPPED, "stopped by %s before any layout was predicted", signals_name(signals_caught()));
    }
    return result;
}

static status finish_sweep(struct search *table, const struct machine *machine, bool json)
{
    const struct job *job    = &table->job;
    status            result = search_layouts(table, machine);
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
        struct sweep_choice own     = {.layout = SWEEP_OWN};
        status              support = job->has_layout ? predict(&own.prediction, &job->request, machine) : job->support;
        const struct shown_sweep shown = {.job           = job,
                                          .sweep         = &table->sweep,
                                          .advice        = table->advice,
                                          .output        = table->output,
                                          .range_percent = find_best_range(table),
                                          .own           = failed(&support) ? NULL : &own};
        (json ? show_sweep_json : show_sweep)(&shown);
        result = table->output != NULL ? show_sweep_folder(&shown) : OK;
        if (!failed(&result) && table->output != NULL && !json) {
            show_path("files          ", table->output, "/sweep.html");
            if (table->sweep.best_count > 0) {
                show_path("configuration  ", table->output, "/best.ini");
            }
        }
    }
    if (!failed(&result) && table->sweep.is_stopped) {
        result = fail_as(EXIT_STOPPED,
                         "stopped by %s: the list has the best of the %" PRId64
                         " layouts predicted so far; others may be faster",
                         signals_name(signals_caught()), table->sweep.predicted);
    }
    free(table->list.layouts);
    return result;
}

status sweep_print(const struct arguments *arguments, struct text_buffer *errors)
{
    struct search       table    = {.list = {.count = 0}, .output = arguments->output};
    struct measured_ops measured = {.ops = NULL};
    if (arguments->config.ranks == 0) {
        return fail_as(EXIT_USAGE, "--sweep needs --ranks, the number of ranks of its layouts");
    }
    TRY(job_read_open(&table.job, &arguments->config, errors));
    if (arguments->output != NULL) {
        TRY(output_create_folders(arguments->output));    // fails before the search if the folder cannot be written
    }
    status result = measured_read_profile(&measured, &table.job.config);
    if (!failed(&result)) {
        const struct machine machine = predict_machine(&table.job.config, &measured);
        result                       = finish_sweep(&table, &machine, arguments->json);
    }
    measured_free(&measured);
    return result;
}
