// SPDX-License-Identifier: MIT
// gswbench predict: how long a step will take on the machine of [hardware], without it.
#include "gswbench/predict.h"

#include <inttypes.h>
#include <math.h>

#include "gswbench/units.h"
#include "internal.h"
#include "sweep.h"

struct predict_arguments {
    struct config_arguments config;
    bool                    all, sweep, json;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(predict_arguments, config),
    SWITCH_FLAG(predict_arguments, all, "--all", "every row of every installed configuration"),
    SWITCH_FLAG(predict_arguments, sweep, "--sweep", "the fastest layouts of the model at that number of ranks"),
    SWITCH_FLAG(predict_arguments, json, "--json", "for programs"),
    END_FLAGS,
};

struct row {
    struct job        job;
    status            support;    // why there is no prediction
    struct prediction prediction;
    double            tokens_per_second, mfu_percent;
    double            published_seconds, error_percent;    // NaN: not published
};

struct table {
    json_t *list;    // NULL: for people
    bool    is_alone;
    int     rows, predicted, published;
    double  error_sum, error_most;    // of the published rows, without their signs
};

static status predict_row(struct row *row)
{
    const struct config *config   = &row->job.config;
    struct measured_ops  measured = {.ops = NULL};
    status               result   = job_read_measured(&row->job, &measured);
    if (!failed(&result)) {
        result = predict(&row->prediction, &row->job.request,
                         &(struct machine){.hardware = &config->hardware, .measured = &measured});
    }
    measured_free(&measured);
    return result;
}

static void compute(struct row *row)
{
    const struct config *config = &row->job.config;
    row->support                = predict_supports(&row->job.request, &config->hardware);
    row->published_seconds = isnan(job_published_tokens_per_second(&row->job)) ? NAN : config->published.step_seconds;
    if (!failed(&row->support)) {
        row->support = predict_row(row);
    }
    double seconds         = row->prediction.step_seconds;
    row->tokens_per_second = (double)config->train.sequence * (double)config->train.global_batch / seconds;
    row->mfu_percent       = job_mfu_percent(&row->job, seconds);
    row->error_percent     = 100.0 * (seconds / row->published_seconds - 1.0);
}

static bool fits(const struct row *row)
{
    return sweep_fits(&row->job.config.hardware, row->prediction.largest_bytes);
}

static void print_parts(const struct prediction *prediction)
{
    printf("where it goes  on stage %" PRId64 " of %" PRId64 ", which computes longest\n", prediction->busiest_stage,
           prediction->stages);
    for (int part = 0; part < PREDICT_PARTS; part++) {
        printf("  %-12s %9.4f s  %5.1f %%\n", predict_part_names[part], prediction->part_seconds[part],
               100.0 * prediction->part_seconds[part] / prediction->step_seconds);
    }
}

static void print_details(const struct row *row)
{
    const struct config     *config     = &row->job.config;
    const struct prediction *prediction = &row->prediction;
    char                     layout[256], text[32];
    printf("config         %s%s at %" PRId64 " rank%s, %s: %s, on %s\n", config->name,
           config->run.layers > 0 ? ", a proxy," : "", row->job.mesh.world, row->job.mesh.world == 1 ? "" : "s",
           precision_compute_names[config->precision.compute], job_layout(&row->job, layout, sizeof(layout)),
           config->hardware.profile);
    printf("predicted      %.3f s a step: %.0f tokens/s, MFU %.2f %%\n", prediction->step_seconds,
           row->tokens_per_second, row->mfu_percent);
    if (!isnan(row->published_seconds)) {
        printf("published      %.3f s a step: the prediction is off by %+.1f %%\n", row->published_seconds,
               row->error_percent);
    }
    printf("memory         %s on rank %" PRId64 ", the most%s\n",
           units_bytes(text, sizeof(text), (double)prediction->largest_bytes), prediction->largest_rank,
           fits(row) ? "" : ": more than the device of [hardware] has");
    print_parts(prediction);
}

static void print_line(const struct row *row)
{
    const struct config *config = &row->job.config;
    char                 layout[256], published[32] = "-", error[32] = "-", memory[32];
    printf("%-33s %6" PRId64 "  %-5s %-38s ", config->name, row->job.mesh.world,
           precision_compute_names[config->precision.compute], job_layout(&row->job, layout, sizeof(layout)));
    if (failed(&row->support)) {
        printf("%s\n", row->support.text);
        return;
    }
    if (!isnan(row->published_seconds)) {
        snprintf(published, sizeof(published), "%.3f s", row->published_seconds);
        snprintf(error, sizeof(error), "%+.1f %%", row->error_percent);
    }
    printf("%9.3f s %11.0f %6.2f %% %10s%c %9s %8s\n", row->prediction.step_seconds, row->tokens_per_second,
           row->mfu_percent, units_bytes(memory, sizeof(memory), (double)row->prediction.largest_bytes),
           fits(row) ? ' ' : '!', published, error);
}

static void print_header(void)
{
    printf("%-33s %6s  %-5s %-38s %11s %11s %8s %10s  %9s %8s\n", "config", "ranks", "type", "layout", "predicted",
           "tokens/s", "MFU", "memory", "published", "error");
}

static json_t *describe(const struct row *row)
{
    const struct config     *config     = &row->job.config;
    const struct prediction *prediction = &row->prediction;
    char                     layout[256];
    json_t                  *described =
        json_pack("{s:s, s:I, s:s, s:s, s:s, s:o, s:s}", "config", config->name, "ranks",
                  (json_int_t)row->job.mesh.world, "precision", precision_compute_names[config->precision.compute],
                  "layout", job_layout(&row->job, layout, sizeof(layout)), "profile", config->hardware.profile,
                  "published_step_seconds", cli_json_real(row->published_seconds), "reason", row->support.text);
    if (failed(&row->support)) {
        return described;
    }
    json_t *parts = json_object();
    for (int part = 0; part < PREDICT_PARTS; part++) {
        json_object_set_new(parts, predict_part_names[part], json_real(prediction->part_seconds[part]));
    }
    json_t *predicted = json_pack("{s:f, s:f, s:o, s:o, s:I, s:b, s:I, s:o}", "step_seconds", prediction->step_seconds,
                                  "tokens_per_second", row->tokens_per_second, "mfu_percent",
                                  cli_json_real(row->mfu_percent), "error_percent", cli_json_real(row->error_percent),
                                  "largest_bytes", (json_int_t)prediction->largest_bytes, "fits_device", (int)fits(row),
                                  "busiest_stage", (json_int_t)prediction->busiest_stage, "part_seconds", parts);
    json_object_set_new(described, "predicted", predicted);
    return described;
}

static void count(struct table *table, const struct row *row)
{
    table->rows++;
    table->predicted += !failed(&row->support);
    if (!failed(&row->support) && !isnan(row->error_percent)) {
        table->published++;
        table->error_sum += fabs(row->error_percent);
        table->error_most = fmax(table->error_most, fabs(row->error_percent));
    }
}

static status add_rows(struct table *table, const struct config_arguments *arguments, struct text_buffer *errors)
{
    struct config_row rows[CONFIG_ROWS_MAX];
    int               row_count;
    TRY(job_rows(arguments, rows, &row_count, errors));
    table->is_alone = table->is_alone && row_count == 1;
    for (int i = 0; i < row_count; i++) {
        struct row row = {.prediction = {.stages = 0}};
        TRY(job_read_row(&row.job, arguments, &rows[i], errors));
        compute(&row);
        count(table, &row);
        if (table->list != NULL) {
            json_array_append_new(table->list, describe(&row));
        } else if (!table->is_alone) {
            if (table->rows == 1) {
                print_header();
            }
            print_line(&row);
        } else if (failed(&row.support)) {
            return row.support;
        } else {
            print_details(&row);
        }
    }
    return OK;
}

static status add_config(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    (void)name;
    return add_rows(state, &(struct config_arguments){.name = path}, errors);
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
    return OK;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct predict_arguments *options = arguments;
    TRY(check_arguments(options));
    if (options->sweep) {
        return sweep_print(&options->config, options->json, errors);
    }
    struct table table = {.list     = options->json ? json_array() : NULL,
                          .is_alone = !options->all && options->config.ranks > 0};
    status       result =
        options->all ? cli_visit_configs(add_config, &table, errors) : add_rows(&table, &options->config, errors);
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
