// SPDX-License-Identifier: MIT
// gswbench predict: predicts the step time on the machine of [hardware], which may be another one. With --sweep,
// predicts all layouts that fit on the job's number of ranks. Warns about settings that no published job has.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/clock.h"
#include "gswbench/output.h"
#include "gswbench/predict.h"
#include "gswbench/predicted.h"
#include "gswbench/show.h"
#include "gswbench/signals.h"
#include "gswbench/sweep.h"
#include "gswbench/terminal.h"
#include "gswbench/waterfall.h"
#include "internal.h"

struct evidence {
    const struct config *config;
    int64_t              program, machine, both;    // numbers of published rows: same framework, same GPU, both
    int64_t              ranks;                     // largest number of ranks of a row on the same GPU
};

static bool has_experts(const struct config *config)
{
    return config->model.experts > 0;
}

// Counts a published row in `evidence`. The fields `machine` and `both` count it only if its model and the job's model
// both have experts, or both have none.
static status count_row(void *state, const struct job_selection *selection, const struct config_row *row)
{
    struct evidence     *evidence = state;
    const struct config *own      = evidence->config;
    struct job           job;
    if (row->step_seconds == 0.0) {
        return OK;
    }
    TRY(job_read_row(&job, selection, row));
    bool is_program = strcmp(job.config.software.profile, own->software.profile) == 0;
    bool is_machine = strcmp(job.config.hardware.profile, own->hardware.profile) == 0;
    bool is_kind    = has_experts(&job.config) == has_experts(own);
    evidence->program += is_program;
    evidence->machine += is_machine && is_kind;
    evidence->both += is_program && is_machine && is_kind;
    if (is_machine && job.request.mesh.world > evidence->ranks) {
        evidence->ranks = job.request.mesh.world;
    }
    return OK;
}

static bool has_given_network(const struct hardware_config *hardware)
{
    return hardware->network_bandwidth.origin == QUANTITY_GIVEN ||
           hardware->network_efficiency.origin == QUANTITY_GIVEN || hardware->network_latency.origin == QUANTITY_GIVEN;
}

// Adds a warning for each property of the job that no published row has, such as its framework, its GPU or its number
// of ranks.
static status warn_unchecked(struct predict_row *row, const struct job_selection *selection)
{
    const struct job    *job      = &row->job;
    struct text_buffer  *warnings = &row->warnings;
    const struct config *config   = &job->config;
    const char          *program = config->software.profile, *machine = config->hardware.profile;
    const char          *kind     = has_experts(config) ? "with" : "without";
    struct evidence      evidence = {.config = config};
    TRY(cli_visit_rows(&(struct job_selection){.errors = selection->errors}, count_row, &evidence));
    if (evidence.program == 0) {
        text_append(warnings, "unchecked: no published row is of %s; its error may be larger\n", program);
    }
    if (evidence.machine == 0) {
        text_append(warnings, "unchecked: no published row of a model %s experts is on %s\n", kind, machine);
    } else if (evidence.program > 0 && evidence.both == 0) {
        text_append(warnings, "unchecked: no published row of %s is on %s with a model %s experts\n", program, machine,
                    kind);
    } else if (job->request.mesh.world > 2 * evidence.ranks) {
        text_append(warnings, "unchecked: the largest published row on %s has %" PRId64 " ranks\n", machine,
                    evidence.ranks);
    }
    if (config->software.unfused_attention) {
        text_append(warnings, "unchecked: no published row has unfused attention\n");
    }
    if (job->request.mesh.world > hardware_domain(&config->hardware, job->request.mesh.world) &&
        has_given_network(&config->hardware)) {
        text_append(warnings, "unchecked: published rows use the network of the profile, InfiniBand or EFA\n");
    }
    return OK;
}

struct search {
    struct job        job;
    struct sweep_list list;
    struct sweep      sweep;
    char              advice[512];    // what to change if no layout fits; "": some layout fits
    struct progress   predicting;
    const char       *output;    // folder for sweep.html and best.ini; NULL: write none
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
    table->predicting = progress_begin("layouts predicted", 0);
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

// Prints the sweep. With -o, also writes its files to the folder table->output.
static status show_layouts(const struct search *table, const struct machine *machine, bool json)
{
    const struct job   *job        = &table->job;
    struct sweep_choice own        = {.layout = SWEEP_OWN};
    status              support    = job->has_layout ? predict(&own.prediction, &job->request, machine) : job->support;
    const struct shown_sweep shown = {.job           = job,
                                      .sweep         = &table->sweep,
                                      .advice        = table->advice,
                                      .output        = table->output,
                                      .range_percent = find_best_range(table),
                                      .own           = failed(&support) ? NULL : &own};
    (json ? show_sweep_json : show_sweep)(&shown);
    if (table->output == NULL) {
        return OK;
    }
    TRY(show_sweep_folder(&shown));
    if (!json) {
        show_path("files          ", table->output, "/sweep.html");
    }
    if (!json && table->sweep.best_count > 0) {
        show_path("configuration  ", table->output, "/best.ini");
    }
    return OK;
}

static status run_sweep(struct search *table, const struct machine *machine, bool json)
{
    const struct job   *job   = &table->job;
    const struct sweep *sweep = &table->sweep;
    TRY(search_layouts(table, machine));
    if (sweep->layout_count == 0) {
        return fail("no layout of %" PRId64 " ranks is valid for %" PRId64 " sequences of %" PRId64
                    " tokens per step: change --ranks, or train.global_batch",
                    job->request.mesh.world, job->config.train.global_batch, job->config.train.sequence);
    }
    if (sweep->refused == sweep->layout_count) {
        return fail("no layout can be predicted: %s", sweep->refusals[0].text);
    }
    if (sweep->fit == 0) {
        sweep_advise(table->advice, sizeof(table->advice), job, machine);
    }
    TRY(show_layouts(table, machine, json));
    return !sweep->is_stopped ? OK
                              : fail_as(EXIT_STOPPED,
                                        "stopped by %s: the list has the best of the %" PRId64
                                        " layouts predicted so far; others may be faster",
                                        signals_name(signals_caught()), sweep->predicted);
}

static status sweep_print(const struct arguments *arguments)
{
    if (arguments->config.ranks == 0) {
        return fail_as(EXIT_USAGE, "--sweep needs --ranks, the number of ranks of its layouts");
    }
    struct search      *table    = memory_allocate(sizeof(*table));
    struct measured_ops measured = {.ops = NULL};
    table->output                = arguments->output;
    status result                = job_read_open(&table->job, &arguments->config);
    if (!failed(&result) && arguments->output != NULL) {
        result = output_create_folders(arguments->output);    // before the search, to fail early
    }
    result = failed(&result) ? result : measured_read_profile(&measured, &table->job.config);
    if (!failed(&result)) {
        const struct machine machine = predict_machine(&table->job.config, &measured);
        result                       = run_sweep(table, &machine, arguments->json);
    }
    free(table->list.layouts);
    free(table);
    measured_free(&measured);
    return result;
}

const struct flag predict_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Prediction"),
    SWITCH_FLAG(all, "--all", "predict every row of every installed config"),
    SWITCH_FLAG(sweep, "--sweep", "list the fastest layouts of the model for --ranks"),
    SWITCH_FLAG(config.skips_fits, "--priors", "predict without fitted parameters"),
    DOLLARS_FLAG,
    SWITCH_FLAG(no_range, "--no-range", "skip the error estimate (faster)"),
    HEADING("Output"),
    SWITCH_FLAG(values, "--values", "print every parameter and its effect on the step time"),
    TEXT_FLAG(trace, "--trace", "FILE", "write a trace of each stage's first rank, for Perfetto"),
    TEXT_FLAG(output, "-o", "DIR",
              "write each prediction as a result in its own folder; with --sweep: also sweep.html and best.ini"),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

// Absolute errors of predicted step times against published step times, in percent. If values of the cost model were
// fitted to a published time, its error shows only the quality of the fit. Errors of other rows show the quality of
// predictions.
struct prediction_errors {
    int    rows;
    double sum, maximum;
};

static void print_errors(const struct prediction_errors *errors, const char *which)
{
    if (errors->rows > 0) {
        printf("  %d of them published and %s: mean error %.1f %%, maximum %.1f %%\n", errors->rows, which,
               errors->sum / errors->rows, errors->maximum);
    }
}

struct predictions {
    const struct arguments  *options;
    json_t                  *list;         // NULL: text output
    FILE                    *timeline;     // file of --trace; NULL: none
    struct output_folder     folder;       // folder of the last written result
    bool                     is_single;    // exactly one row is predicted, because there is only one or flags select it
    bool                     is_alone;     // a single row, selected by --ranks: printed with all details
    struct progress          progress;
    int                      rows, predicted;
    int                      config_rows;    // rows so far of the current configuration
    struct prediction_errors fitted, others;
    // Error returned after the output: why the single row cannot run, or that no row can; else OK.
    status outcome;
};

static void print_row(const struct predictions *table, const struct predict_row *row)
{
    if (table->list != NULL) {
        json_array_append_new(table->list, show_prediction_row(row));
    } else if (!table->is_alone) {
        if (table->rows == 1) {
            show_prediction_header();
        }
        if (table->config_rows == 1) {
            printf("%s\n", row->job.config.name);
        }
        show_prediction_line(row);
    } else {
        show_prediction(row);
        if (table->options->values) {
            show_prediction_values(&row->job.config, &row->range);
        }
        if (table->options->output != NULL) {
            show_path("files          ", table->folder.path, "/");
        }
    }
}

static void draw_stage(void *timeline, const struct predict_view *view)
{
    timeline_write_rank(view->plan, view->times, &view->ranks, view->is_first, timeline);
}

// Predicts a row. If the row cannot be predicted, returns OK, and the reason in row->support is printed instead.
static status compute_row(struct predictions *table, struct predict_row *row)
{
    bool wants_range = !table->options->no_range;
    if (table->options->output == NULL) {
        predict_row_compute(row, wants_range);
        return OK;
    }
    struct result *result   = memory_allocate(sizeof(*result));
    status         computed = predicted_compute(result, row, wants_range);
    if (!failed(&computed)) {
        computed = predicted_write(&table->folder, result, &row->job, table->options->output);
        output_close_folder(&table->folder);
    }
    result_free(result);
    free(result);
    return failed(&row->support) ? OK : computed;
}

// Fails if the job does not fit on the device. If the memory of the framework in [software] is modelled, the model
// decides. Otherwise a published job fits, because it ran, even if gswbench would need more memory for it.
static status check_fit(const struct predict_row *row)
{
    const struct config *config      = &row->job.config;
    bool                 is_modelled = footprint_is_modelled(&config->software);
    int64_t              bytes       = is_modelled ? row->prediction.footprint.device : row->prediction.own_bytes;
    if (is_modelled ? row->is_program_fit : row->is_fit || !isnan(row->published_seconds)) {
        return OK;
    }
    return show_shortage(config, is_modelled ? config->software.profile : "gswbench", bytes, "");
}

static status add_row(struct predictions *table, struct predict_row *row)
{
    progress_show(&table->progress, table->rows, row->job.config.name);
    status computed = compute_row(table, row);
    progress_clear(&table->progress);
    TRY(computed);
    table->rows++;
    table->config_rows++;
    if (!failed(&row->support)) {
        struct prediction_errors *errors = row->job.config.published.fitted ? &table->fitted : &table->others;
        table->predicted++;
        errors->rows += !isnan(row->error_percent);
        errors->sum += isnan(row->error_percent) ? 0 : fabs(row->error_percent);
        errors->maximum = fmax(errors->maximum, fabs(row->error_percent));
    }
    if (table->is_alone && table->list == NULL && failed(&row->support)) {
        return row->support;
    }
    print_row(table, row);
    if (table->is_single && !failed(&row->support)) {
        table->outcome = check_fit(row);
    } else if (table->is_alone) {
        table->outcome = row->support;
    }
    return OK;
}

static status add_rows(struct predictions *table, const struct job_selection *arguments)
{
    struct config_row  *rows = memory_allocate(CONFIG_ROWS_MAX * sizeof(*rows));
    struct predict_row *row  = memory_allocate(sizeof(*row));
    int                 row_count;
    status              result = job_rows(arguments, rows, &row_count);
    table->is_single           = !failed(&result) && !table->options->all && row_count == 1;
    table->is_alone            = table->is_single && arguments->ranks > 0;
    table->config_rows         = 0;
    for (int i = 0; !failed(&result) && i < row_count; i++) {
        *row = (struct predict_row){
            .explanation = {.visit = table->timeline != NULL ? draw_stage : NULL, .context = table->timeline}};
        result = job_read_row(&row->job, arguments, &rows[i]);
        result = failed(&result) || !table->is_alone ? result : warn_unchecked(row, arguments);
        result = failed(&result) ? result : add_row(table, row);
        text_free(&row->warnings);
    }
    free(rows);
    free(row);
    return result;
}

static status add_config(void *state, const char *name, const char *path)
{
    struct predictions  *table     = state;
    struct job_selection arguments = table->options->config;    // without ranks and overrides, see check_predict
    arguments.name                 = path;
    (void)name;
    return add_rows(table, &arguments);
}

static status check_predict(const struct arguments *arguments)
{
    const struct job_selection *config = &arguments->config;
    if (arguments->all && (config->name != NULL || config->ranks > 0 || config->overrides.count > 0)) {
        return fail_as(EXIT_USAGE,
                       "--all predicts every config unchanged: leave --config, --ranks, --set and --layers out");
    }
    if (arguments->all && arguments->sweep) {
        return fail_as(EXIT_USAGE, "--all and --sweep exclude each other: use one");
    }
    if (arguments->values && (arguments->no_range || arguments->json || arguments->all || config->ranks == 0)) {
        return fail_as(
            EXIT_USAGE,
            "--values shows one prediction with its error: give --ranks, and leave --no-range, --json and --all out");
    }
    if (arguments->trace != NULL && (arguments->all || arguments->sweep || config->ranks == 0)) {
        return fail_as(EXIT_USAGE, "--trace writes one prediction: give --ranks, and leave --all and --sweep out");
    }
    return OK;
}

static status add_all_rows(struct predictions *table)
{
    const struct arguments *options = table->options;
    int64_t                 count   = 0;
    TRY(cli_count_rows(&count, &options->config));
    table->progress = progress_begin("rows", count);
    return options->all ? cli_visit_configs(add_config, table) : add_rows(table, &options->config);
}

static status add_drawn_row(struct predictions *table)
{
    struct output      output;
    struct text_stream text;
    TRY(output_begin(&output, table->options->trace));
    text_stream_open(&text);
    table->timeline = text.file;
    timeline_begin(text.file);
    status result = add_all_rows(table);
    timeline_end(&(struct timeline_source){"prediction", 0}, text.file);
    text_stream_close(&text);
    result = failed(&result) ? result : output_append(&output, text.data, text.bytes);
    result = failed(&result) || table->predicted == 0 ? result : output_finish(&output);
    output_abandon(&output);
    free(text.data);
    return result;
}

status command_predict(const struct arguments *options)
{
    TRY(check_predict(options));
    if (options->sweep) {
        return sweep_print(options);
    }
    struct predictions table  = {.options = options, .list = options->json ? json_array() : NULL};
    status             result = options->trace != NULL ? add_drawn_row(&table) : add_all_rows(&table);
    if (!failed(&result) && table.list != NULL) {
        show_rows(show_predict_fields, NULL, table.list);
    } else if (!failed(&result) && !table.is_alone) {
        printf("%d of %d rows predicted\n", table.predicted, table.rows);
        print_errors(&table.fitted, "fitted");
        print_errors(&table.others, "never fitted");
        if (options->output != NULL) {
            show_path("files          ", options->output, "/");
        }
    }
    if (!failed(&result) && !failed(&table.outcome) && table.predicted == 0) {
        table.outcome =
            fail("no row can be predicted; each %s has its reason", table.list != NULL ? "row of the output" : "line");
    }
    json_decref(table.list);
    return failed(&result) ? result : table.outcome;
}
