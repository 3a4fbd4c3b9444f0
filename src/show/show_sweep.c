// SPDX-License-Identifier: MIT
// Prints a sweep over layouts as a table and as JSON, and writes an HTML page with the predictions of the best layouts.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/output.h"
#include "gswbench/predicted.h"
#include "gswbench/report.h"
#include "gswbench/show.h"

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

static bool fits(const struct shown_sweep *shown, int64_t bytes)
{
    return hardware_holds(shown->sweep->machine->hardware, bytes);
}

static void print_choice(const struct shown_sweep *shown, const char *name, const struct sweep_choice *choice)
{
    const struct prediction *prediction = &choice->prediction;
    struct job               job        = sweep_job(shown->job, shown->sweep, choice->layout);
    char                     layout[256];
    bool                     is_modelled = footprint_is_modelled(shown->sweep->machine->software);
    int64_t                  program     = is_modelled ? prediction->footprint.device : 0;
    printf("%-3s %5" PRId64 " %5" PRId64 " %-11s %8s s %9.0f %7s %10s%c %10s%s\n", name, job.config.train.micro_batch,
           job.config.train.accumulation, train_recompute_names[job.config.train.recompute],
           report_seconds(prediction->step_seconds), job_tokens_per_second(&job, prediction->step_seconds),
           report_number("%.2f %%", 100 * job_mfu(&job, prediction->step_seconds)),
           report_bytes((double)prediction->largest_bytes), fits(shown, prediction->own_bytes) ? ' ' : '!',
           is_modelled ? report_bytes((double)program) : "-", fits(shown, program) ? "" : "!");
    show_line(4, "    %s", job_layout(&job, layout, sizeof(layout)));
}

// Returns the number of printed layouts, including the fastest, with a step time within the prediction error of the
// fastest; 0 if the error is unknown.
static int count_equals(const struct shown_sweep *shown)
{
    const struct sweep_choice *best  = shown->sweep->best;
    int                        count = 0;
    while (count < shown->sweep->best_count &&
           best[count].prediction.step_seconds <= best[0].prediction.step_seconds * (1 + shown->range_percent / 100)) {
        count++;
    }
    return count;
}

void show_sweep(const struct shown_sweep *shown)
{
    const struct sweep  *sweep       = shown->sweep;
    const struct config *config      = &shown->job->config;
    bool                 is_modelled = footprint_is_modelled(&config->software);
    show_row("config", "%s%s at %" PRId64 " ranks, %s: %" PRId64 " sequences of %" PRId64 " tokens per step, on %s",
             config->name, config->run.layers > 0 ? ", a proxy," : "", shown->job->request.mesh.world,
             precision_compute_names[config->precision.compute], config->train.global_batch, config->train.sequence,
             config->hardware.profile);
    show_row("layouts",
             "%" PRId64 " valid: %" PRId64 " refused, %" PRId64 " too large for %s in gswbench%s%s, %" PRId64
             " may fit, %" PRId64 " of them predicted: %s",
             sweep->layout_count, sweep->refused, sweep->too_large,
             report_bytes(config->hardware.memory_gb.value * 1e9), is_modelled ? " or " : "",
             is_modelled ? config->software.profile : "", sweep->fit, sweep->predicted,
             sweep->is_stopped ? "stopped, others may be faster" : "all others are slower");
    if (shown->advice[0] != '\0') {
        show_row("nothing fits", "%s", shown->advice);
    }
    for (int i = 0; i < sweep->refusal_count; i++) {
        show_line(15, "  %7" PRId64 "      %s", sweep->refusals[i].layouts, sweep->refusals[i].text);
    }
    printf("%-3s %5s %5s %-11s %10s %9s %7s %10s %10s\n%10s\n", "", "micro", "accum", "recompute", "predicted",
           "tokens/s", "MFU", "memory", " program", "layout");
    for (int i = 0; i < sweep->best_count; i++) {
        char place[16];
        snprintf(place, sizeof(place), "%d", i + 1);
        print_choice(shown, place, &sweep->best[i]);
    }
    if (shown->own != NULL) {
        print_choice(shown, "own", shown->own);
    }
    int equals = count_equals(shown);
    if (equals > 1) {
        show_row("equal", "1 to %d: differences are within the prediction error of %.1f %%", equals,
                 shown->range_percent);
    }
}

// A layout of the sweep, as printed in JSON.
struct described_choice {
    struct job              job;
    int64_t                 axes[AXIS_COUNT];    // size of each axis, as in section [parallel]
    struct prediction       prediction;
    double                  tokens_per_second, mfu;
    bool                    is_fit, is_program_fit;
    const bool             *fits, *program_fits;    // point to is_fit and is_program_fit; NULL: unknown
    const int64_t          *program_bytes;          // NULL: not modelled
    struct waterfall        waterfall;
    const struct waterfall *parts;    // points to waterfall; NULL: unknown
};

// clang-format off
#define CHOSEN_AXIS(NAME, key, ...) ROW_INTEGER(described_choice, #key, axes[AXIS_##NAME]),
static const struct json_field fits_fields[] = {
    JSON_REFERENCE(described_choice, JSON_FIELD_BOOLEAN, "gswbench", fits, NULL),
    JSON_REFERENCE(described_choice, JSON_FIELD_BOOLEAN, "program", program_fits, NULL),
    JSON_END
};
static const struct json_field choice_fields[] = {
    AXES(CHOSEN_AXIS)
    ROW_INTEGER(described_choice, "etp", job.request.mesh.etp),
    ROW_INTEGER(described_choice, "vp", job.config.parallel.vp),
    ROW_INTEGER(described_choice, "zero", job.config.parallel.zero),
    ROW_INTEGER(described_choice, "micro_batch", job.config.train.micro_batch),
    ROW_INTEGER(described_choice, "accumulation", job.config.train.accumulation),
    JSON_CHOICE(described_choice, "recompute", job.config.train.recompute, train_recompute_names),
    ROW_REAL(described_choice, "step_s", prediction.step_seconds),
    ROW_REAL(described_choice, "tokens_per_s", tokens_per_second),
    ROW_REAL(described_choice, "mfu", mfu),
    ROW_INTEGER(described_choice, "largest_bytes", prediction.largest_bytes),
    JSON_REFERENCE(described_choice, JSON_FIELD_INTEGER, "program_bytes", program_bytes, NULL),
    JSON_OBJECT("fits", fits_fields),
    JSON_REFERENCE(described_choice, JSON_FIELD_OBJECT, "parts_s", parts, waterfall_fields),
    JSON_END
};
static const struct json_field refusal_fields[] = {
    ROW_TEXT(sweep_refusal, "reason", text),
    ROW_INTEGER(sweep_refusal, "layouts", layouts),
    JSON_END
};
struct sweep_document {
    struct job               job;
    struct sweep             sweep;
    double                   range_percent;
    const char              *advice;    // NULL: some layout fits
    struct sweep_refusal    *refusals;
    struct described_choice *best, *own;
    int64_t                  refusal_count, best_count;
};
const struct json_field show_sweep_fields[] = {
    JSON_SCHEMA("gswbench.sweep/5"),
    ROW_TEXT(sweep_document, "config", job.config.name),
    ROW_INTEGER(sweep_document, "ranks", job.request.mesh.world),
    ROW_INTEGER(sweep_document, "legal", sweep.layout_count),
    ROW_INTEGER(sweep_document, "refused", sweep.refused),
    ROW_INTEGER(sweep_document, "too_large", sweep.too_large),
    ROW_INTEGER(sweep_document, "fit", sweep.fit),
    ROW_INTEGER(sweep_document, "priced", sweep.predicted),
    ROW_BOOLEAN(sweep_document, "is_stopped", sweep.is_stopped),
    ROW_REAL(sweep_document, "range_percent", range_percent),
    JSON_REFERENCE(sweep_document, JSON_FIELD_TEXT, "advice", advice, NULL),
    JSON_LIST(sweep_document, "refusals", refusals, refusal_count, sizeof(struct sweep_refusal), refusal_fields),
    JSON_LIST(sweep_document, "best", best, best_count, sizeof(struct described_choice), choice_fields),
    JSON_REFERENCE(sweep_document, JSON_FIELD_OBJECT, "own", own, choice_fields),
    JSON_END
};
// clang-format on

// Predicts the layout again to get its waterfall, which the search of the sweep does not compute.
static void describe_choice(struct described_choice *described, const struct shown_sweep *shown,
                            const struct sweep_choice *choice)
{
    struct predict_explanation explanation = {.visit = NULL};
    struct prediction          prediction;
    double                     seconds = choice->prediction.step_seconds;
    described->job                     = sweep_job(shown->job, shown->sweep, choice->layout);
    described->prediction              = choice->prediction;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        described->axes[axis] = mesh_asked(&described->job.config.parallel, (enum axis)axis);
    }
    status predicted = predict_explain_job(&explanation, &prediction, &described->job, shown->sweep->machine);
    const struct machine *machine = shown->sweep->machine;
    bool is_modelled = footprint_is_modelled(machine->software), is_known = machine->hardware->memory_gb.value > 0.0;
    described->is_fit            = fits(shown, choice->prediction.own_bytes);
    described->is_program_fit    = fits(shown, choice->prediction.footprint.device);
    described->fits              = is_known ? &described->is_fit : NULL;
    described->program_fits      = is_known && is_modelled ? &described->is_program_fit : NULL;
    described->program_bytes     = is_modelled ? &described->prediction.footprint.device : NULL;
    described->tokens_per_second = job_tokens_per_second(&described->job, seconds);
    described->mfu               = job_mfu(&described->job, seconds);
    described->waterfall         = explanation.waterfall;
    described->parts             = failed(&predicted) ? NULL : &described->waterfall;
}

void show_sweep_json(const struct shown_sweep *shown)
{
    struct sweep_document document = {.job           = *shown->job,
                                      .sweep         = *shown->sweep,
                                      .range_percent = shown->range_percent,
                                      .advice        = shown->advice[0] == '\0' ? NULL : shown->advice,
                                      .refusal_count = shown->sweep->refusal_count,
                                      .best_count    = shown->sweep->best_count};
    document.refusals              = document.sweep.refusals;
    document.best                  = memory_allocate(((size_t)document.best_count + 1) * sizeof(*document.best));
    for (int64_t i = 0; i < document.best_count; i++) {
        describe_choice(&document.best[i], shown, &shown->sweep->best[i]);
    }
    if (shown->own != NULL) {
        document.own = &document.best[document.best_count];
        describe_choice(document.own, shown, shown->own);
    }
    show_json(json_from_struct(show_sweep_fields, &document));
    free(document.best);
}

// A layout on the HTML page, with a link to the folder of its prediction.
struct page_row {
    char          name[24], link[3 * OUTPUT_PATH_BYTES];    // link: relative to the page
    struct result result;
};

// Sets the link of a row to the percent-encoded path.
static void set_link(struct page_row *row, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    char             *to      = row->link;
    for (; *path != '\0'; path++) {
        to += sprintf(to, strchr(plain, *path) != NULL ? "%c" : "%%%02X", (unsigned char)*path);
    }
}

static status write_layout(struct page_row *row, const struct shown_sweep *shown, int64_t layout)
{
    struct predict_row  *prediction = memory_allocate(sizeof(*prediction));
    struct output_folder folder     = {0};
    prediction->job                 = sweep_job(shown->job, shown->sweep, layout);
    status written                  = predicted_compute(&row->result, prediction, false);
    if (!failed(&written)) {
        written = predicted_write(&folder, &row->result, &prediction->job, shown->output);
    }
    if (!failed(&written)) {
        char        file[OUTPUT_PATH_BYTES];
        const char *path = folder.path + strlen(shown->output);
        snprintf(file, sizeof(file), "%.*s/report.html", OUTPUT_PATH_BYTES - 16, path + strspn(path, "/"));
        set_link(row, file);
    }
    output_close_folder(&folder);
    text_free(&prediction->warnings);
    free(prediction);
    return written;
}

static void write_answer(char *text, size_t bytes, const struct shown_sweep *shown)
{
    const struct sweep *sweep  = shown->sweep;
    int                 equals = count_equals(shown), length;
    if (sweep->best_count == 0) {
        snprintf(text, bytes, "No layout fits and can be predicted");
        return;
    }
    length = snprintf(text, bytes, "The fastest layout takes %s s per step, as predicted",
                      report_seconds(sweep->best[0].prediction.step_seconds));
    if (equals > 1) {
        snprintf(text + length, bytes - (size_t)length, "; 1 to %d are equal within the prediction error of %.1f %%",
                 equals, shown->range_percent);
    }
}

static status write_page(const struct shown_sweep *shown, const struct page_row *rows, int64_t count)
{
    const struct sweep      *sweep  = shown->sweep;
    const struct config     *config = &shown->job->config;
    struct report_listed    *listed = memory_allocate((size_t)count * sizeof(*listed));
    char                     subtitle[512], answer[160];
    struct text_stream       text;
    const char              *others  = sweep->is_stopped ? "stopped: others may be faster" : "all others are slower";
    const struct report_fact facts[] = {{sweep->layout_count, "Legal layouts", "at that number of ranks"},
                                        {sweep->refused, "Refused", "cannot be predicted"},
                                        {sweep->too_large, "Too large", "for a device's memory"},
                                        {sweep->fit, "May fit", "a device's memory"},
                                        {sweep->predicted, "Predicted", others}};
    const struct report_list list    = {.title      = config->name,
                                        .subtitle   = subtitle,
                                        .heading    = "The fastest layouts, as predicted",
                                        .answer     = answer,
                                        .remark     = shown->advice,
                                        .facts      = facts,
                                        .fact_count = sizeof(facts) / sizeof(facts[0]),
                                        .rows       = listed,
                                        .count      = count};
    snprintf(subtitle, sizeof(subtitle),
             "sweep of layouts at %" PRId64 " ranks, %s: %" PRId64 " sequences of %" PRId64
             " tokens per step, on %.200s",
             shown->job->request.mesh.world, precision_compute_names[config->precision.compute],
             config->train.global_batch, config->train.sequence, config->hardware.profile);
    write_answer(answer, sizeof(answer), shown);
    for (int64_t i = 0; i < count; i++) {
        listed[i] = (struct report_listed){
            .name = rows[i].name, .link = rows[i].link, .result = &rows[i].result, .speedup = NAN};
    }
    text_stream_open(&text);
    report_write_list(&list, text.file);
    free(listed);
    return output_save(&text, "%s/sweep.html", shown->output);
}

// Writes a configuration file with the fastest layout.
static status write_best(const struct shown_sweep *shown)
{
    const struct sweep_choice *best = shown->sweep->best;
    struct job                 job  = sweep_job(shown->job, shown->sweep, best->layout);
    struct text_stream         text;
    text_stream_open(&text);
    fprintf(text.file, "# The fastest layout of %s at %" PRId64 " ranks in a sweep: %s s/step, predicted.\n",
            job.config.name, job.request.mesh.world, report_seconds(best->prediction.step_seconds));
    config_write_commented(&job.config, false, text.file);
    return output_save(&text, "%s/best.ini", shown->output);
}

status show_sweep_folder(const struct shown_sweep *shown)
{
    int64_t          count   = shown->sweep->best_count + (shown->own != NULL);
    struct page_row *rows    = memory_allocate((size_t)count * sizeof(*rows));
    status           written = output_create_folders(shown->output);
    for (int64_t i = count - 1; i >= 0 && !failed(&written); i--) {
        bool is_own = i == shown->sweep->best_count;
        snprintf(rows[i].name, sizeof(rows[i].name), is_own ? "own" : "%" PRId64, i + 1);
        written = write_layout(&rows[i], shown, is_own ? SWEEP_OWN : shown->sweep->best[i].layout);
    }
    if (!failed(&written)) {
        written = write_page(shown, rows, count);
    }
    if (!failed(&written) && shown->sweep->best_count > 0) {
        written = write_best(shown);
    }
    for (int64_t i = 0; i < count; i++) {
        result_free(&rows[i].result);
    }
    free(rows);
    return written;
}
