// SPDX-License-Identifier: MIT
// gswbench predict: predicts the step time on the machine of [hardware], which need not be present.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/output.h"
#include "gswbench/predicted.h"
#include "gswbench/show.h"
#include "gswbench/terminal.h"
#include "gswbench/waterfall.h"
#include "internal.h"

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

struct predictions {
    const struct arguments  *options;
    json_t                  *list;        // NULL: text output
    FILE                    *timeline;    // NULL: none
    struct output_folder     folder;      // of the last row written
    bool                     is_alone;
    struct progress          progress;
    int                      rows, predicted;
    int                      config_rows;    // rows of the current configuration
    struct prediction_errors fitted, others;
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

// Errors of a row that cannot be predicted are printed in its place.
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

// Fails if the job does not fit the device. The program that [software] describes decides if its memory is modelled.
// Otherwise a published job that ran fits, even if gswbench would need more for its layout.
static status check_fit(const struct predict_row *row)
{
    const struct config *config      = &row->job.config;
    bool                 is_modelled = row->program_fits != NULL;
    int64_t              bytes       = is_modelled ? row->prediction.footprint.device : row->prediction.largest_bytes;
    if (is_modelled ? row->is_program_fit : row->fits || !isnan(row->published_seconds)) {
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
        table->predicted++;
        show_add_error(row->job.config.published.fitted ? &table->fitted : &table->others, row->error_percent);
    }
    if (table->is_alone && table->list == NULL && failed(&row->support)) {
        return row->support;
    }
    print_row(table, row);
    return table->is_alone && table->list == NULL ? check_fit(row) : OK;
}

static status add_rows(struct predictions *table, const struct job_selection *arguments, struct text_buffer *errors)
{
    struct config_row rows[CONFIG_ROWS_MAX];
    int               row_count;
    TRY(job_rows(arguments, rows, &row_count, errors));
    table->is_alone    = table->is_alone && row_count == 1;
    table->config_rows = 0;
    for (int i = 0; i < row_count; i++) {
        struct predict_row row = {
            .explanation = {.visit = table->timeline != NULL ? draw_stage : NULL, .context = table->timeline}};
        TRY(job_read_row(&row.job, arguments, &rows[i], errors));
        status added = table->is_alone ? cli_warn_unchecked(&row.job, &row.warnings, errors) : OK;
        added        = failed(&added) ? added : add_row(table, &row);
        text_free(&row.warnings);
        TRY(added);
    }
    return OK;
}

static status add_config(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    struct predictions  *table     = state;
    struct job_selection arguments = {.name = path, .skips_fits = table->options->config.skips_fits};
    (void)name;
    return add_rows(table, &arguments, errors);
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

static status add_all_rows(struct predictions *table, struct text_buffer *errors)
{
    const struct arguments *options = table->options;
    int64_t                 count   = 0;
    TRY(cli_count_rows(&count, &options->config, errors));
    table->progress = progress_begin("rows", count);
    return options->all ? cli_visit_configs(add_config, table, errors) : add_rows(table, &options->config, errors);
}

static status add_drawn_row(struct predictions *table, struct text_buffer *errors)
{
    struct output      output;
    struct text_stream text;
    TRY(output_begin(&output, table->options->trace));
    text_stream_open(&text);
    table->timeline = text.file;
    timeline_begin(text.file);
    status result = add_all_rows(table, errors);
    timeline_end(&(struct timeline_source){"prediction", 0}, text.file);
    text_stream_close(&text);
    result = failed(&result) ? result : output_append(&output, text.data, text.bytes);
    result = failed(&result) ? result : output_finish(&output);
    output_abandon(&output);
    free(text.data);
    return result;
}

status command_predict(const struct arguments *options, struct text_buffer *errors)
{
    TRY(check_predict(options));
    if (options->sweep) {
        return sweep_print(options, errors);
    }
    struct predictions table  = {.options  = options,
                                 .list     = options->json ? json_array() : NULL,
                                 .is_alone = !options->all && options->config.ranks > 0};
    status             result = options->trace != NULL ? add_drawn_row(&table, errors) : add_all_rows(&table, errors);
    if (!failed(&result) && table.list != NULL) {
        show_predictions_json(table.list);
    } else if (!failed(&result) && !table.is_alone) {
        printf("%d of %d rows predicted", table.predicted, table.rows);
        show_errors(&table.fitted, "fitted");
        show_errors(&table.others, "never fitted");
        printf("\n");
        if (options->output != NULL) {
            show_path("files          ", options->output, "/");
        }
        if (table.predicted == 0) {
            result = fail("no row can be predicted; its line has the reason");
        }
    }
    json_decref(table.list);
    return result;
}
