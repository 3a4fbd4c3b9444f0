// SPDX-License-Identifier: MIT
// Writes the best layouts of a sweep as predictions, and a page that lists them.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/output.h"
#include "gswbench/predicted.h"
#include "gswbench/report.h"
#include "gswbench/show.h"

// A layout's prediction in its folder.
struct page_row {
    char          name[24], link[3 * OUTPUT_PATH_BYTES];    // relative to the page
    struct result result;
};

// Percent-encodes a path for a link.
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
    struct predict_row   prediction = {.job = sweep_job(shown->job, shown->sweep, layout)};
    struct output_folder folder     = {0};
    status               written    = predicted_compute(&row->result, &prediction, false);
    if (!failed(&written)) {
        written = predicted_write(&folder, &row->result, &prediction.job, shown->output);
    }
    if (!failed(&written)) {
        char        file[OUTPUT_PATH_BYTES];
        const char *path = folder.path + strlen(shown->output);
        snprintf(file, sizeof(file), "%.*s/report.html", OUTPUT_PATH_BYTES - 16, path + strspn(path, "/"));
        set_link(row, file);
    }
    output_close_folder(&folder);
    text_free(&prediction.warnings);
    return written;
}

static void set_fact(struct report_list *list, int64_t value, const char *name, const char *note)
{
    struct report_fact *fact = &list->facts[list->fact_count++];
    *fact                    = (struct report_fact){.name = name, .note = note};
    snprintf(fact->value, sizeof(fact->value), "%" PRId64, value);
}

static void write_answer(char *text, size_t bytes, const struct shown_sweep *shown)
{
    const struct sweep *sweep  = shown->sweep;
    int                 equals = show_sweep_equals(shown), length;
    if (sweep->best_count == 0) {
        snprintf(text, bytes, "No layout fits and can be predicted");
        return;
    }
    length = snprintf(text, bytes, "The fastest layout takes %.3f s per step, as predicted",
                      sweep->best[0].prediction.step_seconds);
    if (equals > 1) {
        snprintf(text + length, bytes - (size_t)length, "; 1 to %d are equal within the prediction error of %.1f %%",
                 equals, shown->range_percent);
    }
}

static status write_page(const struct shown_sweep *shown, const struct page_row *rows, int64_t count)
{
    const struct sweep   *sweep  = shown->sweep;
    const struct config  *config = &shown->job->config;
    struct report_listed *listed = memory_allocate((size_t)count * sizeof(*listed));
    char                  subtitle[512], answer[160];
    struct text_stream    text;
    struct report_list    list = {.title    = config->name,
                                  .subtitle = subtitle,
                                  .heading  = "The fastest layouts, as predicted",
                                  .remark   = shown->advice,
                                  .rows     = listed,
                                  .count    = count};
    snprintf(subtitle, sizeof(subtitle),
             "sweep of layouts at %" PRId64 " ranks, %s: %" PRId64 " sequences of %" PRId64
             " tokens per step, on %.200s",
             shown->job->request.mesh.world, precision_compute_names[config->precision.compute],
             config->train.global_batch, config->train.sequence, config->hardware.profile);
    set_fact(&list, sweep->layout_count, "Legal layouts", "at that number of ranks");
    set_fact(&list, sweep->refused, "Refused", "cannot be predicted");
    set_fact(&list, sweep->too_large, "Too large", "for a device's memory");
    set_fact(&list, sweep->fit, "May fit", "a device's memory");
    set_fact(&list, sweep->predicted, "Predicted",
             sweep->is_stopped ? "stopped: others may be faster" : "all others are slower");
    write_answer(answer, sizeof(answer), shown);
    list.answer = answer;
    for (int64_t i = 0; i < count; i++) {
        listed[i] = (struct report_listed){
            .name = rows[i].name, .link = rows[i].link, .result = &rows[i].result, .speedup = NAN};
    }
    text_stream_open(&text);
    report_write_list(&list, text.file);
    free(listed);
    return output_save(&text, "%s/sweep.html", shown->output);
}

// Writes the fastest layout as a configuration.
static status write_best(const struct shown_sweep *shown)
{
    const struct sweep_choice *best = &shown->sweep->best[0];
    struct job                 job  = sweep_job(shown->job, shown->sweep, best->layout);
    struct text_stream         text;
    text_stream_open(&text);
    fprintf(text.file, "# The fastest layout of %s at %" PRId64 " ranks in a sweep: %.3f s/step, predicted.\n",
            job.config.name, job.request.mesh.world, best->prediction.step_seconds);
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
