// SPDX-License-Identifier: MIT
// Writes a table of several results, and a page with that table. A row has the step time and a bar of its waterfall.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "internal.h"

// Writes "64 ranks, fsdp 64, zero 1; 2 x 1 sequences, bf16, recompute full". 2 x 1: two microbatches of one sequence.
static void write_job(const struct result *result, FILE *file)
{
    const char *zero      = report_find_setting(result, "parallel.zero"),
               *recompute = report_find_setting(result, "train.recompute");
    fprintf(file, "%" PRId64 "&nbsp;rank%s", result->mesh.world, result->mesh.world == 1 ? "" : "s");
    report_write_axes(result, ", ", "&nbsp;", file);
    if (result->mesh.vp > 1) {
        fprintf(file, ", vp&nbsp;%" PRId64, result->mesh.vp);
    }
    if (zero[0] != '\0' && strcmp(zero, "0") != 0) {
        html_print(file, ", zero&nbsp;%s", zero);
    }
    html_print(file, "; %" PRId64 "&nbsp;&times;&nbsp;%" PRId64 " sequences, %s", result->accumulation,
               result->micro_batch, result->precision);
    if (recompute[0] != '\0' && strcmp(recompute, "none") != 0) {
        html_print(file, ", recompute %s", recompute);
    }
}

static void write_memory(const struct result *result, FILE *file)
{
    double device = report_device_bytes(result);
    fprintf(file, "<td class=n data-name=memory>%s", report_bytes((double)result->allocated_bytes));
    if (device > 0) {
        fprintf(file, "<br><span class=soft>%.0f %% of device</span>", 100 * (double)result->allocated_bytes / device);
    }
    fprintf(file, "</td>");
}

static void write_row(const struct report_listed *row, double longest, bool has_speedups, FILE *file)
{
    const struct result         *result  = row->result;
    const struct result_figures *figures = &result->figures;
    if (row->link != NULL) {
        html_print(file, "<tr><td class=text><a href=\"%s\">%s</a><br><span class=soft>", row->link, row->name);
    } else {
        html_print(file, "<tr><td class=text>%s<br><span class=soft>", row->name);
    }
    write_job(result, file);
    fprintf(file, "</span>");
    if (result->verdict != VERDICT_VALID && result->verdict != VERDICT_PREDICTED) {
        const char *verdict = result_verdict_names[result->verdict];
        fprintf(file, "<br><b class=%s>%s</b>", verdict, verdict);
        for (int64_t i = 0; i < result->reason_count; i++) {
            html_print(file, "%s %s", i > 0 ? "," : ":", result->reasons[i].id);
        }
    }
    fprintf(file, "</td>");
    html_write_stack(result, longest, file);
    fprintf(file, isnan(figures->step.median) ? "<td class=n>&ndash;</td>" : "<td class=n data-name=seconds>%s s</td>",
            report_digits(figures->step.median));
    html_write_number(file, "tokens/s per device", "%.1f", figures->tokens_per_second_per_rank);
    html_write_number(file, "MFU", "%.2f %%", 100 * figures->utilization[figures->convention]);
    write_memory(result, file);
    if (has_speedups) {
        html_write_number(file, "speed-up", "%.3f &times;", row->speedup);
    }
    fprintf(file, "</tr>\n");
}

void html_write_list(const struct report_listed *rows, int64_t count, FILE *file)
{
    double longest      = 0.0;
    bool   has_speedups = false;
    for (int64_t i = 0; i < count; i++) {
        longest      = fmax(longest, rows[i].result->figures.step.median);
        has_speedups = has_speedups || !isnan(rows[i].speedup);
    }
    fprintf(file,
            "<div class=scroll><table class=list><tr><th></th><th>step</th><th class=n>seconds</th><th "
            "class=n>tokens/s per device</th><th class=n>MFU</th><th class=n>memory</th>%s</tr>\n",
            has_speedups ? "<th class=n>speed-up</th>" : "");
    for (int64_t i = 0; i < count; i++) {
        write_row(&rows[i], longest, has_speedups, file);
    }
    fprintf(file, "</table></div>\n");
    html_write_keys(page_waterfall_keys, 4, file);
}

void report_write_list(const struct report_list *list, FILE *file)
{
    html_write_head(list->title, file);
    html_write_text(list->subtitle, file);
    html_write_badge(NULL, NULL, file);
    html_print(file, "<section class=card><h2>%s</h2>\n<p><b>%s</b></p>\n", list->heading, list->answer);
    html_write_list(list->rows, list->count, file);
    fprintf(file, "</section>\n<section class=figures>\n");
    for (int i = 0; i < list->fact_count; i++) {
        const struct report_fact *fact = &list->facts[i];
        html_write_figure(file, report_number("%.0f", (double)fact->value), "", fact->name, "%s", fact->note);
    }
    fprintf(file, "</section>\n");
    if (list->remark[0] != '\0') {
        html_print(file, "<section class=card><p>%s</p></section>\n", list->remark);
    }
    html_write_foot(file, "%s", list->count > 0 ? list->rows->result->version : "");
}
