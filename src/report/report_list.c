// SPDX-License-Identifier: MIT
// A table of several results, and a page with that table: a row has the step time and a bar of its waterfall.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/report.h"
#include "internal.h"
#include "page.h"

// "64 ranks, fsdp 64, zero; 2 x 1 sequences, bf16, recompute full"
static void write_job(const struct result *result, FILE *file)
{
    const char *zero      = report_find_setting(result, "parallel.zero"),
               *recompute = report_find_setting(result, "train.recompute");
    fprintf(file, "%" PRId64 "&nbsp;rank%s", result->mesh.world, result->mesh.world == 1 ? "" : "s");
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (result->mesh.asked[axis] > 1) {
            fprintf(file, ", %s&nbsp;%" PRId64, axis_rows[axis].name, result->mesh.asked[axis]);
        }
    }
    if (mesh_has_whole_experts(&result->mesh)) {
        fprintf(file, ", etp&nbsp;1");
    }
    if (result->mesh.vp > 1) {
        fprintf(file, ", vp&nbsp;%" PRId64, result->mesh.vp);
    }
    fprintf(file, "%s; %" PRId64 "&nbsp;&times;&nbsp;%" PRId64 " sequences, ", strcmp(zero, "1") == 0 ? ", zero" : "",
            result->accumulation, result->micro_batch);
    html_write_text(result->precision, file);
    if (recompute[0] != '\0' && strcmp(recompute, "none") != 0) {
        fprintf(file, ", recompute ");
        html_write_text(recompute, file);
    }
}

static void write_name(const struct report_listed *row, FILE *file)
{
    fprintf(file, "<td class=text>");
    if (row->link != NULL) {
        fprintf(file, "<a href=\"");
        html_write_text(row->link, file);
        fprintf(file, "\">");
    }
    html_write_text(row->name, file);
    fprintf(file, "%s<br><span class=soft>", row->link != NULL ? "</a>" : "");
    write_job(row->result, file);
    fprintf(file, "</span></td>");
}

static void write_row(const struct report_listed *row, double longest, bool has_speedups, FILE *file)
{
    const struct result         *result  = row->result;
    const struct result_figures *figures = &result->figures;
    double                       share   = figures->utilization[figures->convention];
    char                         text[32];
    fprintf(file, "<tr>");
    write_name(row, file);
    html_write_stack(result, longest, file);
    fprintf(file, "<td class=n>%s s</td><td class=n>%.1f</td>",
            report_seconds(text, sizeof(text), figures->step.median), figures->tokens_per_second_per_rank);
    fprintf(file, isnan(share) ? "<td class=n>&ndash;</td>" : "<td class=n>%.2f %%</td>", 100 * share);
    fprintf(file, "<td class=n>%s</td>", number_bytes(text, sizeof(text), (double)result->allocated_bytes));
    if (has_speedups) {
        fprintf(file, isnan(row->speedup) ? "<td class=n>&ndash;</td>" : "<td class=n>%.3f &times;</td>", row->speedup);
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
    fprintf(file, "<section class=figures>\n");
    for (int i = 0; i < list->fact_count; i++) {
        html_write_figure(file, list->facts[i].value, "", list->facts[i].name, "%s", list->facts[i].note);
    }
    fprintf(file, "</section>\n<section class=card><h2>%s</h2>\n", list->heading);
    html_write_list(list->rows, list->count, file);
    fprintf(file, "</section>\n");
    if (list->remark != NULL && list->remark[0] != '\0') {
        fprintf(file, "<section class=card><p>");
        html_write_text(list->remark, file);
        fprintf(file, "</p></section>\n");
    }
    fprintf(file, "<footer>gswbench ");
    html_write_text(list->count > 0 ? list->rows->result->version : "", file);
    html_write_foot(file);
}
