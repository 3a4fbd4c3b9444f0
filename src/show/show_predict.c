// SPDX-License-Identifier: MIT
// Prints a predicted job in detail or as a line of a table, and the option values that its prediction uses. It also has
// the field tables of predict --json.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/report.h"
#include "gswbench/show.h"
#include "gswbench/statistics.h"

// Prints the estimated memory of the modelled framework. gswbench's own memory needs no estimate and is printed
// elsewhere.
static void print_footprint(const struct predict_row *row)
{
    const struct footprint        *footprint = &row->prediction.footprint;
    const struct published_config *published = &row->job.config.published;
    if (!footprint_is_modelled(&row->job.config.software)) {
        return;
    }
    show_line(4, "  of %-10s %s allocated, %s reserved, %s in all%s", row->job.config.software.profile,
              report_bytes((double)footprint->allocated), report_bytes((double)footprint->reserved),
              report_bytes((double)footprint->device), row->is_program_fit ? "" : ": does not fit the device");
    for (int part = 0; part < FOOTPRINT_PARTS; part++) {
        if (footprint->bytes[part] > 0) {
            printf("    %-16s %s\n", footprint_names[part], report_bytes((double)footprint->bytes[part]));
        }
    }
    if (!isnan(row->memory_error_percent)) {
        printf("  published    %.4g GiB %s: prediction error %+.1f %%\n", published->memory_gib,
               published->memory == MEMORY_RESERVED ? "reserved" : "allocated", row->memory_error_percent);
    }
}

// Says whether values of the cost model were fitted to this published step time.
static const char *error_status(const struct published_config *published)
{
    return published->fitted ? "fitted" : "never fitted";
}

static struct step_spread spread_of(const struct predict_row *row)
{
    return statistics_public_spread(row->job.request.mesh.world, row->prediction.step_seconds);
}

void show_prediction(const struct predict_row *row)
{
    const struct config     *config     = &row->job.config;
    const struct prediction *prediction = &row->prediction;
    show_job(config, row->job.request.mesh.world);
    show_row("layout", "%s", row->layout);
    show_row("program", "%s on %s", config->software.profile, config->hardware.profile);
    printf("predicted      %s s/step%s: %.0f tokens/s, MFU %s\n", report_seconds(prediction->step_seconds),
           isnan(row->range.percent) ? "" : report_number(" +-%.1f %%", row->range.percent), row->tokens_per_second,
           report_number("%.2f %%", 100 * row->mfu));
    if (!isnan(row->token_dollars)) {
        printf("price          $%.4g per million tokens, at $%.4g for an hour of a device\n", row->token_dollars,
               config->hardware.gpu_hour_dollars);
    }
    if (!isnan(row->published_seconds)) {
        printf("published      %.3f s/step: prediction error %+.1f %%, %s\n", row->published_seconds,
               row->error_percent, error_status(&config->published));
    }
    struct step_spread spread = spread_of(row);
    if (!isnan(spread.typical)) {
        show_row("variation", "p95 %.1f %% above median; in public runs of this size %.1f %% at most",
                 100 * (spread.typical - 1), 100 * (spread.largest - 1));
    }
    show_row("memory", "%s on rank %" PRId64 " (maximum)%s", report_bytes((double)prediction->largest_bytes),
             prediction->largest_rank, row->is_fit ? "" : " for gswbench itself: does not fit the device");
    print_footprint(row);
    for (const char *line = row->warnings.text; line != NULL && *line != '\0'; line += strcspn(line, "\n") + 1) {
        show_row("warning", "%.*s", (int)strcspn(line, "\n"), line);
    }
    printf("where it goes  on stage %" PRId64 " of %" PRId64 ", the slowest\n", prediction->busiest_stage,
           prediction->stages);
    waterfall_print(&row->explanation.waterfall, NULL, stdout);
}

void show_prediction_header(void)
{
    printf("%7s  %-4s %9s %6s %9s %8s %10s  %9s %8s\n%15s\n", "ranks", "type", "seconds", "+-", "tokens/s", "MFU",
           "memory", "published", "error", "layout");
}

void show_prediction_line(const struct predict_row *row)
{
    const struct config *config = &row->job.config;
    printf("%7" PRId64 "  %-4s", row->job.request.mesh.world, precision_compute_names[config->precision.compute]);
    if (failed(&row->support)) {
        printf("\n");
        show_line(9, "         %s: %s", row->layout, row->support.text);
        return;
    }
    printf(" %9s %6s %9.0f %8s %10s%c %9s %8s\n", report_seconds(row->prediction.step_seconds),
           report_number("%.1f %%", row->range.percent), row->tokens_per_second,
           report_number("%.2f %%", 100 * row->mfu), report_bytes((double)row->prediction.largest_bytes),
           row->is_fit ? ' ' : '!', report_number("%.3f", row->published_seconds),
           report_number("%+.1f %%", row->error_percent));
    show_line(9, "         %s%s%s", row->layout, isnan(row->published_seconds) ? "" : ", ",
              isnan(row->published_seconds) ? "" : error_status(&config->published));
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

void show_prediction_values(const struct config *config, const struct predict_range *range)
{
    printf("values of [hardware], and change of the step with one standard deviation more\n");
    print_values_of("hardware", hardware_options, &config->hardware, range);
    printf("values of [software]\n");
    print_values_of("software", software_options, &config->software, range);
}

// A job in predict --json. "predicted" is null if there is no prediction.
struct described_prediction {
    struct predict_row        row;
    const struct predict_row *predicted;
    struct step_spread        spread;    // spread of step times in public runs of this size
};

// clang-format off
static const struct json_field fits_fields[] = {
    JSON_REFERENCE(predict_row, JSON_FIELD_BOOLEAN, "gswbench", fits, NULL),
    JSON_REFERENCE(predict_row, JSON_FIELD_BOOLEAN, "program", program_fits, NULL),
    JSON_END
};
static const struct json_field predicted_fields[] = {
    ROW_REAL(predict_row, "step_s", prediction.step_seconds),
    ROW_REAL(predict_row, "range_percent", range.percent),
    ROW_REAL(predict_row, "tokens_per_s", tokens_per_second),
    ROW_REAL(predict_row, "dollars_per_million_tokens", token_dollars),
    ROW_REAL(predict_row, "mfu", mfu),
    ROW_REAL(predict_row, "error_percent", error_percent),
    ROW_INTEGER(predict_row, "largest_bytes", prediction.largest_bytes),
    JSON_MEMBER(predict_row, "footprint_bytes", prediction.footprint, footprint_fields),
    ROW_REAL(predict_row, "memory_error_percent", memory_error_percent),
    JSON_OBJECT("fits", fits_fields),
    ROW_INTEGER(predict_row, "busiest_stage", prediction.busiest_stage),
    JSON_MEMBER(predict_row, "parts_s", explanation.waterfall, waterfall_fields),
    JSON_FIELD(predict_row, JSON_FIELD_LINES, "warnings", warnings.text),
    JSON_END
};
static const struct json_field spread_fields[] = {
    ROW_REAL(step_spread, "typical", typical),
    ROW_REAL(step_spread, "largest", largest),
    JSON_END
};
static const struct json_field row_fields[] = {
    ROW_TEXT(described_prediction, "config", row.job.config.name),
    ROW_INTEGER(described_prediction, "ranks", row.job.request.mesh.world),
    JSON_CHOICE(described_prediction, "precision", row.job.config.precision.compute, precision_compute_names),
    ROW_TEXT(described_prediction, "layout", row.layout),
    ROW_TEXT(described_prediction, "profile", row.job.config.hardware.profile),
    ROW_TEXT(described_prediction, "software", row.job.config.software.profile),
    ROW_REAL(described_prediction, "published_step_s", row.published_seconds),
    ROW_BOOLEAN(described_prediction, "fitted", row.job.config.published.fitted),
    ROW_TEXT(described_prediction, "reason", row.support.text),
    JSON_REFERENCE(described_prediction, JSON_FIELD_OBJECT, "predicted", predicted, predicted_fields),
    JSON_MEMBER(described_prediction, "public_p95_over_median", spread, spread_fields),
    JSON_END
};
const struct json_field show_predict_fields[] = {
    JSON_SCHEMA("gswbench.predict/7"),
    JSON_ARRAY(show_document, "rows", rows, row_fields),
    JSON_END
};
// clang-format on

json_t *show_prediction_row(const struct predict_row *row)
{
    struct described_prediction *described = memory_allocate(sizeof(*described));
    *described                             = (struct described_prediction){
                                    .row = *row, .predicted = failed(&row->support) ? NULL : row, .spread = spread_of(row)};
    json_t *json = json_from_struct(row_fields, described);
    free(described);
    return json;
}
