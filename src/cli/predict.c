// SPDX-License-Identifier: MIT
// gswbench predict: how long a step will take on the machine of [hardware], without it.
#include "gswbench/predict.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/timeline.h"
#include "gswbench/units.h"
#include "internal.h"
#include "sweep.h"

struct predict_arguments {
    struct config_arguments config;
    const char             *trace;
    bool                    all, sweep, json, values, no_range;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(predict_arguments, config),
    SWITCH_FLAG(predict_arguments, all, "--all", "every row of every installed configuration"),
    SWITCH_FLAG(predict_arguments, sweep, "--sweep", "the fastest layouts of the model at that number of ranks"),
    SWITCH_FLAG(predict_arguments, config.skips_fits, "--priors", "without what was fitted to published step times"),
    SWITCH_FLAG(predict_arguments, values, "--values",
                "every value that was used, and what its spread makes of the step"),
    SWITCH_FLAG(predict_arguments, no_range, "--no-range",
                "the step alone: how far it may be off takes most of the time"),
    TEXT_FLAG(predict_arguments, trace, "--trace", "FILE", "draws the first rank of each stage there, for Perfetto"),
    SWITCH_FLAG(predict_arguments, json, "--json", "for programs"),
    END_FLAGS,
};

struct row {
    struct job           job;
    status               support;    // why there is no prediction
    struct prediction    prediction;
    struct predict_range range;    // percent is NaN: not asked for
    struct text_buffer   warnings;
    double               tokens_per_second, mfu_percent;
    double               published_seconds, error_percent;    // NaN: not published

    struct predict_explanation explanation;
};

struct table {
    const struct predict_arguments *options;
    json_t                         *list;        // NULL: for people
    FILE                           *timeline;    // NULL: none
    bool                            is_alone;
    int                             rows, predicted, published;
    int                             config_rows;              // of the configuration at hand
    double                          error_sum, error_most;    // of the published rows, without their signs
};

static status predict_on(struct row *row, const struct machine *machine, bool wants_range)
{
    TRY(job_explain(&row->explanation, &row->prediction, &row->job, machine));
    predict_warn(&row->job, &row->prediction, machine->measured, &row->warnings);
    return wants_range ? predict_range(&row->range, &row->job.request, machine) : OK;
}

static status predict_row(struct row *row, bool wants_range)
{
    const struct config *config   = &row->job.config;
    struct measured_ops  measured = {.ops = NULL};
    struct machine machine = {.hardware = &config->hardware, .software = &config->software, .measured = &measured};
    TRY(predict_supports(&row->job.request, &config->hardware));
    status result = job_read_measured(&row->job, &measured);
    if (!failed(&result)) {
        result = predict_on(row, &machine, wants_range);
    }
    measured_free(&measured);
    return result;
}

static void compute(struct row *row, bool wants_range)
{
    const struct config *config = &row->job.config;
    row->range.percent          = NAN;
    row->support                = predict_row(row, wants_range);
    row->published_seconds = isnan(job_published_tokens_per_second(&row->job)) ? NAN : config->published.step_seconds;
    double seconds         = row->prediction.step_seconds;
    row->tokens_per_second = job_tokens_per_second(&row->job, seconds);
    row->mfu_percent       = job_mfu_percent(&row->job, seconds);
    row->error_percent     = 100.0 * (seconds / row->published_seconds - 1.0);
}

static bool fits(const struct row *row)
{
    return sweep_fits(&row->job.config.hardware, row->prediction.largest_bytes);
}

// "5.2 %", or "-".
static const char *percent_text(double percent, const char *format, char *text, size_t bytes)
{
    if (isnan(percent)) {
        text_copy(text, bytes, "-");
    } else {
        snprintf(text, bytes, format, percent);
    }
    return text;
}

static void print_values_of(const char *name, const struct option *options, const void *section,
                            const struct predict_range *range)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        char value[64], effect[32] = "";
        if (option->type == OPTION_TEXT) {
            continue;
        }
        for (int i = 0; i < range->effect_count; i++) {
            if (strcmp(range->effects[i].section, name) == 0 && strcmp(range->effects[i].key, option->key) == 0) {
                snprintf(effect, sizeof(effect), "%+.2f %%", range->effects[i].percent);
            }
        }
        option_print(option, section, value, sizeof(value));
        printf("  %-33s %-30s %9s\n", option->key, value, effect);
    }
}

static void print_values(const struct row *row)
{
    const struct config *config = &row->job.config;
    printf("values of [hardware], and what one standard deviation more makes of the step\n");
    print_values_of("hardware", hardware_options, &config->hardware, &row->range);
    printf("values of [software]\n");
    print_values_of("software", software_options, &config->software, &row->range);
}

static void print_warnings(const struct text_buffer *warnings)
{
    for (const char *line = warnings->text; line != NULL && *line != '\0'; line += strcspn(line, "\n") + 1) {
        printf("warning        %.*s\n", (int)strcspn(line, "\n"), line);
    }
}

static void print_details(const struct row *row)
{
    const struct config     *config     = &row->job.config;
    const struct prediction *prediction = &row->prediction;
    char                     layout[256], text[32];
    printf("config         %s%s at %" PRId64 " rank%s, %s: %s; %s on %s\n", config->name,
           config->run.layers > 0 ? ", a proxy," : "", row->job.mesh.world, row->job.mesh.world == 1 ? "" : "s",
           precision_compute_names[config->precision.compute], job_layout(&row->job, layout, sizeof(layout)),
           config->software.profile, config->hardware.profile);
    printf("predicted      %.3f s a step%s: %.0f tokens/s, MFU %.2f %%\n", prediction->step_seconds,
           isnan(row->range.percent) ? ""
                                     : percent_text(row->range.percent, ", give or take %.1f %%", text, sizeof(text)),
           row->tokens_per_second, row->mfu_percent);
    if (!isnan(row->published_seconds)) {
        printf("published      %.3f s a step: the prediction is off by %+.1f %%\n", row->published_seconds,
               row->error_percent);
    }
    printf("memory         %s on rank %" PRId64 ", the most\n",
           units_bytes(text, sizeof(text), (double)prediction->largest_bytes), prediction->largest_rank);
    print_warnings(&row->warnings);
    printf("where it goes  on stage %" PRId64 " of %" PRId64 ", which computes longest\n", prediction->busiest_stage,
           prediction->stages);
    waterfall_print(&row->explanation.waterfall, stdout);
}

static void print_line(const struct row *row)
{
    const struct config *config = &row->job.config;
    char                 layout[256], published[32] = "-", error[32] = "-", memory[32], range[32];
    job_layout(&row->job, layout, sizeof(layout));
    printf("%7" PRId64 "  %-4s  ", row->job.mesh.world, precision_compute_names[config->precision.compute]);
    if (failed(&row->support)) {
        printf("%s: %s\n", layout, row->support.text);
        return;
    }
    if (!isnan(row->published_seconds)) {
        snprintf(published, sizeof(published), "%.3f", row->published_seconds);
        snprintf(error, sizeof(error), "%+.1f %%", row->error_percent);
    }
    printf("%-38s%9.3f  %6s  %8.0f  %5.2f %%  %10s%c %9s  %6s\n", layout, row->prediction.step_seconds,
           percent_text(row->range.percent, "%.1f %%", range, sizeof(range)), row->tokens_per_second, row->mfu_percent,
           units_bytes(memory, sizeof(memory), (double)row->prediction.largest_bytes), fits(row) ? ' ' : '!', published,
           error);
}

// On top of all lines, and of those of each configuration.
static void print_header(const struct table *table, const struct row *row)
{
    if (table->rows == 1) {
        printf("%7s  %-4s  %-38s%9s  %6s  %8s  %7s  %10s  %9s  %6s\n", "ranks", "type", "layout", "seconds", "+-",
               "tokens/s", "MFU", "memory", "published", "error");
    }
    if (table->config_rows == 1) {
        printf("%s\n", row->job.config.name);
    }
}

static json_t *list_lines(const char *text)
{
    json_t *lines = json_array();
    for (const char *line = text; line != NULL && *line != '\0'; line += strcspn(line, "\n") + 1) {
        json_array_append_new(lines, json_stringn(line, strcspn(line, "\n")));
    }
    return lines;
}

static json_t *describe(const struct row *row)
{
    const struct config     *config     = &row->job.config;
    const struct prediction *prediction = &row->prediction;
    char                     layout[256];
    json_t                  *described =
        json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:o, s:s}", "config", config->name, "ranks",
                  (json_int_t)row->job.mesh.world, "precision", precision_compute_names[config->precision.compute],
                  "layout", job_layout(&row->job, layout, sizeof(layout)), "profile", config->hardware.profile,
                  "software", config->software.profile, "published_step_seconds", cli_json_real(row->published_seconds),
                  "reason", row->support.text);
    if (failed(&row->support)) {
        return described;
    }
    json_t *predicted =
        json_pack("{s:f, s:o, s:f, s:o, s:o, s:I, s:b, s:I, s:o, s:o}", "step_seconds", prediction->step_seconds,
                  "range_percent", cli_json_real(row->range.percent), "tokens_per_second", row->tokens_per_second,
                  "mfu_percent", cli_json_real(row->mfu_percent), "error_percent", cli_json_real(row->error_percent),
                  "largest_bytes", (json_int_t)prediction->largest_bytes, "fits_device", (int)fits(row),
                  "busiest_stage", (json_int_t)prediction->busiest_stage, "parts_s",
                  cli_json_waterfall(&row->explanation.waterfall), "warnings", list_lines(row->warnings.text));
    json_object_set_new(described, "predicted", predicted);
    return described;
}

static void count(struct table *table, const struct row *row)
{
    table->rows++;
    table->config_rows++;
    table->predicted += !failed(&row->support);
    if (!failed(&row->support) && !isnan(row->error_percent)) {
        table->published++;
        table->error_sum += fabs(row->error_percent);
        table->error_most = fmax(table->error_most, fabs(row->error_percent));
    }
}

static void print_row(const struct table *table, const struct row *row)
{
    if (table->list != NULL) {
        json_array_append_new(table->list, describe(row));
    } else if (!table->is_alone) {
        print_header(table, row);
        print_line(row);
    } else {
        print_details(row);
        if (table->options->values) {
            print_values(row);
        }
    }
}

static status add_rows(struct table *table, const struct config_arguments *arguments, struct text_buffer *errors)
{
    struct config_row rows[CONFIG_ROWS_MAX];
    int               row_count;
    TRY(job_rows(arguments, rows, &row_count, errors));
    table->is_alone    = table->is_alone && row_count == 1;
    table->config_rows = 0;
    for (int i = 0; i < row_count; i++) {
        struct row row = {.explanation = {.timeline = table->timeline}};
        TRY(job_read_row(&row.job, arguments, &rows[i], errors));
        compute(&row, !table->options->no_range);
        count(table, &row);
        if (table->is_alone && table->list == NULL && failed(&row.support)) {
            return row.support;
        }
        print_row(table, &row);
        text_free(&row.warnings);
    }
    return OK;
}

static status add_config(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    struct table           *table     = state;
    struct config_arguments arguments = {.name = path, .skips_fits = table->options->config.skips_fits};
    (void)name;
    return add_rows(table, &arguments, errors);
}

static void print_sum(const struct table *table)
{
    printf("%d of %d rows predicted", table->predicted, table->rows);
    if (table->published > 0) {
        printf("; %d of them published: off by %.1f %% in the mean, by %.1f %% at most", table->published,
               table->error_sum / table->published, table->error_most);
    }
    printf("\n");
}

static status check_arguments(const struct predict_arguments *arguments)
{
    const struct config_arguments *config = &arguments->config;
    if (arguments->all && (config->name != NULL || config->ranks > 0 || config->overrides.count > 0)) {
        return fail_as(EXIT_USAGE, "--all takes every configuration as it is: leave --config, --ranks, --set and "
                                   "--layers out");
    }
    if (arguments->all && arguments->sweep) {
        return fail_as(EXIT_USAGE, "--all and --sweep: one of them");
    }
    if (arguments->values && (arguments->no_range || arguments->json || arguments->all || config->ranks == 0)) {
        return fail_as(EXIT_USAGE, "--values shows one prediction with its range: give --ranks, and leave --no-range, "
                                   "--json and --all out");
    }
    if (arguments->trace != NULL && (arguments->all || arguments->sweep || config->ranks == 0)) {
        return fail_as(EXIT_USAGE, "--trace draws one prediction: give --ranks, and leave --all and --sweep out");
    }
    return OK;
}

static status add_all_rows(struct table *table, struct text_buffer *errors)
{
    const struct predict_arguments *options = table->options;
    return options->all ? cli_visit_configs(add_config, table, errors) : add_rows(table, &options->config, errors);
}

static status add_drawn_row(struct table *table, struct text_buffer *errors)
{
    const char *path = table->options->trace;
    table->timeline  = fopen(path, "w");
    if (table->timeline == NULL) {
        return fail_as(EXIT_OUTPUT, "%s: cannot be written: %s", path, strerror(errno));
    }
    timeline_begin(table->timeline);
    status result = add_all_rows(table, errors);
    timeline_end(table->timeline);
    bool is_written = fflush(table->timeline) == 0 && ferror(table->timeline) == 0;
    is_written      = fclose(table->timeline) == 0 && is_written;
    return failed(&result) || is_written ? result
                                         : fail_as(EXIT_OUTPUT, "%s: cannot be written: %s", path, strerror(errno));
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct predict_arguments *options = arguments;
    TRY(check_arguments(options));
    if (options->sweep) {
        return sweep_print(&options->config, options->json, errors);
    }
    struct table table  = {.options  = options,
                           .list     = options->json ? json_array() : NULL,
                           .is_alone = !options->all && options->config.ranks > 0};
    status       result = options->trace != NULL ? add_drawn_row(&table, errors) : add_all_rows(&table, errors);
    if (!failed(&result) && table.list != NULL) {
        cli_print_json(json_pack("{s:O}", "rows", table.list));
    } else if (!failed(&result) && !table.is_alone) {
        print_sum(&table);
    }
    json_decref(table.list);
    return result;
}

const struct command command_predict = {
    .name  = "predict",
    .help  = "predict the step time of a configuration on the machine of its [hardware] section",
    .flags = flags,
    .bytes = sizeof(struct predict_arguments),
    .run   = run,
};
