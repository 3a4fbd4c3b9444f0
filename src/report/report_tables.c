// SPDX-License-Identifier: MIT
// Writes the lower half of report.html: contents of the step, machine, and how to read the page.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/config.h"
#include "internal.h"

static void write_memory(const struct result *result, FILE *file)
{
    double total = 0, from = 0;
    for (int i = 0; i < STORAGE_COUNT; i++) {
        total += (double)result->storage_bytes[i];
    }
    fprintf(file, "<section class=card><h2>Memory <span class=soft>of rank 0</span></h2><table>\n");
    for (int i = 0; i < STORAGE_COUNT; i++) {
        double bytes = (double)result->storage_bytes[i], share = total > 0 ? bytes / total : 0;
        fprintf(file, "<tr><td>%s</td>", plan_storage_name((enum storage)i));
        html_write_bar(0, from, share, file);
        fprintf(file, "<td class=n>%s</td><td class=n>%.1f %%</td></tr>\n", report_bytes(bytes), 100 * share);
        from += share;
    }
    fprintf(file,
            "<tr><th colspan=2>planned</th><td class=n>%s</td><td></td></tr>\n"
            "<tr><th colspan=2>allocated, with scratch</th><td class=n>%s</td><td></td></tr></table></section>\n",
            report_bytes(total), report_bytes((double)result->allocated_bytes));
}

static void write_work(const struct result *result, FILE *file)
{
    double total = 0;
    for (int i = 0; i < PHASE_COUNT; i++) {
        total += result->flops[i];
    }
    fprintf(file, "<section class=card><h2>FLOPs of a step <span class=soft>executed by rank 0</span></h2><table>\n");
    for (int i = 0; i < PHASE_COUNT; i++) {
        if (result->flops[i] > 0) {
            fprintf(file, "<tr><td>%s</td><td class=n>%s</td><td class=n>%.1f %%</td></tr>\n",
                    op_phase_name((enum phase)i), report_count(result->flops[i]), 100 * result->flops[i] / total);
        }
    }
    fprintf(file,
            "<tr><th>sum</th><td class=n>%s</td><td></td></tr></table>\n"
            "<h3>Per sequence, by convention</h3><table>\n",
            report_count(total));
    for (int i = 0; i < FLOPS_COUNT; i++) {
        if (!isnan(result->flops_per_sequence[i])) {
            fprintf(file, "<tr><td>%s</td><td class=n>%s</td><td class=n>", model_flop_names[i],
                    report_count(result->flops_per_sequence[i]));
            if (result_is_shown(result) && !isnan(result->figures.utilization[i])) {
                fprintf(file, "%.2f %%", 100 * result->figures.utilization[i]);
            }
            fprintf(file, "</td></tr>\n");
        }
    }
    fprintf(file, "</table></section>\n");
}

static void write_communications(const struct result *result, FILE *file)
{
    if (result->communication_count == 0) {
        fprintf(file, "<section class=card><h2>Collectives of a step</h2><p class=soft>None: this layout has no "
                      "communication.</p></section>\n");
        return;
    }
    // The table is folded if the page also has the table of the traced step, which shows the same collectives with
    // their times.
    fprintf(file, "<section class=card><details%s><summary>Collectives of a step</summary>",
            result->communication_time_count > 0 ? "" : " open");
    fprintf(file, "<div class=scroll><table><tr><th>kind</th><th>axes</th><th>type</th><th class=n>ranks</th>"
                  "<th class=n>count</th><th class=n>elements each</th><th class=n>bytes</th></tr>\n");
    for (int64_t i = 0; i < result->communication_count; i++) {
        const struct result_communication *communication = &result->communications[i];
        html_print(file,
                   "<tr><td>%s</td><td>%s</td><td>%s</td><td class=n>%" PRId64 "</td><td class=n>%" PRId64
                   "</td><td class=n>%" PRId64 "</td><td class=n>%s</td></tr>\n",
                   communication->kind, communication->axes, communication->format, communication->group_size,
                   communication->count, communication->elements, report_bytes(communication->bytes));
    }
    fprintf(file, "</table></div></details></section>\n");
}

static void write_rank_seconds(double seconds, FILE *file)
{
    fprintf(file, isnan(seconds) ? "<td class=n>&ndash;</td>" : "<td class=n>%s s</td>", report_digits(seconds));
}

static void write_ranks(const struct result *result, FILE *file)
{
    fprintf(file,
            "<section class=card><details%s><summary>Ranks</summary><div class=scroll><table><tr><th>rank</th>"
            "<th>host</th><th class=n>threads</th><th class=n>median step</th><th class=n>computes</th>"
            "<th class=n>to its peers</th><th class=n>allocated</th></tr>\n",
            result->rank_count <= 16 ? " open" : "");
    for (int64_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        html_print(file, "<tr><td>%" PRId64 "</td><td>%s</td><td class=n>%" PRId64 "</td>", rank->rank, rank->host,
                   rank->threads);
        write_rank_seconds(rank->median_seconds, file);
        write_rank_seconds(rank->compute_seconds, file);
        html_write_number(file, NULL, "%+.1f %%", 100 * rank->excess);
        fprintf(file, "<td class=n>%s</td></tr>\n", report_bytes((double)rank->allocated_bytes));
    }
    fprintf(file, "</table></div></details></section>\n");
}

static void write_row(const char *name, const char *value, FILE *file)
{
    html_print(file, "<tr><th>%s</th><td>%s</td></tr>\n", name, value);
}

static void write_integer(const char *name, int64_t value, FILE *file)
{
    html_print(file, "<tr><th>%s</th><td>%" PRId64 "</td></tr>\n", name, value);
}

static void write_entries(const struct result_entry *entries, int64_t count, FILE *file)
{
    fprintf(file, "<div class=scroll><table>\n");
    for (int64_t i = 0; i < count; i++) {
        write_row(entries[i].name, entries[i].value, file);
    }
    fprintf(file, "</table></div>\n");
}

static void write_deviations(const struct result *result, FILE *file)
{
    if (result->deviation_count == 0) {
        return;
    }
    fprintf(file, "<h3>Settings that differ from rank 0</h3><div class=scroll><table>\n");
    for (int64_t i = 0; i < result->deviation_count; i++) {
        const struct result_deviation *deviation = &result->deviations[i];
        char                           text[384];
        snprintf(text, sizeof(text), "%s on rank%s %s (%s%s)", deviation->value, deviation->count == 1 ? "" : "s",
                 deviation->ranks, deviation->count == 1 ? "" : "the first on ", deviation->host);
        write_row(deviation->name, text, file);
    }
    fprintf(file, "</table></div>\n");
}

static void write_layout(const struct result *result, FILE *file)
{
    fprintf(file, "<section class=card><h2>Model and layout</h2><table>\n");
    write_row("parameters", report_count((double)result->parameters), file);
    if (result->active_parameters != result->parameters) {
        write_row("active parameters", report_count((double)result->active_parameters), file);
    }
    write_integer("layers", result->layers, file);
    write_integer("sequence", result->sequence, file);
    write_integer("micro batch", result->micro_batch, file);
    write_integer("global batch", result->global_batch, file);
    write_integer("accumulation", result->accumulation, file);
    write_integer("ranks", result->mesh.world, file);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (result->mesh.asked[axis] > 1) {
            write_integer(axis_rows[axis].name, result->mesh.asked[axis], file);
        }
    }
    if (mesh_has_whole_experts(&result->mesh)) {
        write_integer("etp", 1, file);
    }
    write_row("communicator", result->communicator, file);
    write_row("backend", result->backend, file);
    fprintf(file, "<tr><th>plan</th><td>%" PRId64 " ops on %" PRId64 " tensors</td></tr>\n</table></section>\n",
            result->op_count, result->tensor_count);
}

// Returns whether the value, which may come from a file, differs from the option's default. In [hardware] and
// [software] only the profile counts, because the profile sets the other options. [published] and [fault] never count.
static bool is_changed(const struct result_entry *entry)
{
    static const char *const taken[] = {"hardware.", "software.", "published.", "fault."};
    const char              *dot     = strchr(entry->name, '.');
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strncmp(entry->name, taken[i], strlen(taken[i])) == 0 && strcmp(dot, ".profile") != 0) {
            return false;
        }
    }
    const struct config_section *section;
    const struct option         *option = config_find_option(entry->name, strlen(entry->name), &section);
    return option != NULL && strcmp(entry->value, option->fallback) != 0;
}

// Writes the command that repeats the job from the configuration in the run's folder.
static void write_repeat(const struct result *result, FILE *file)
{
    fprintf(file,
            "<section class=card><h2>Repeat it <span class=soft>in the folder of this page</span></h2>\n<p><code>");
    if (result_is_predicted(result)) {
        html_print(file, "gswbench predict --config config.merged.ini --ranks %" PRId64, result->mesh.world);
    } else if (result_is_simulated(result)) {
        html_print(file, "gswbench run --config config.merged.ini --emulate %" PRId64, result->mesh.world);
    } else if (strcmp(result->communicator, "local") == 0) {
        html_print(file, "gswbench --config config.merged.ini --ranks %" PRId64 " --comm local", result->mesh.world);
    } else {
        html_print(file, "mpirun -np %" PRId64 " gswbench --config config.merged.ini", result->mesh.world);
    }
    fprintf(file, "</code></p>\n<h3>Options that differ from their defaults</h3><p class=options>");
    for (int64_t i = 0; i < result->config_count; i++) {
        if (is_changed(&result->config[i])) {
            html_print(file, "<code>%s = %s</code> ", result->config[i].name, result->config[i].value);
        }
    }
    fprintf(file, "</p></section>\n");
}

// clang-format off
static const char how_to_read[] =
    "<section class=\"card guide\"><details><summary>How to read this page</summary><dl>"
    "<dt>Verdict</dt><dd>Valid: all checks passed. Degraded: the numbers are correct, but the conditions distort the "
    "times. Emulated: one device ran one rank of each kind, and the other ranks were simulated. Predicted: nothing "
    "was run. Unverified: the numbers were not checked. Partial: the run was stopped. Invalid: a check failed. Only "
    "the first four show values at the top.</dd>"
    "<dt>Step time</dt><dd>Time of a whole step on the slowest rank: forward, backward, gradient reduction, "
    "optimizer. Compare medians; two runs differ if their intervals do not overlap. Outliers are flagged and never "
    "dropped.</dd>"
    "<dt>TFLOP/s, MFU</dt><dd>Model FLOPs over time. Conventions differ in how they count attention: full counts the "
    "whole matrix, causal half of it, six_n is 6 N per token and attention as in full, hardware counts the executed "
    "FLOPs with recompute, published counts as the publication of this system does. MFU needs a device with a known peak.</dd>"
    "<dt>Where a step goes</dt><dd>One step after the measured ones, with a time for each op, on the rank that "
    "computes longest. Communication counts only while no compute overlaps it: exposed-tp is exposed communication of "
    "tensor parallelism.</dd>"
    "<dt>Pipeline, memory over the step</dt><dd>The same step: one bar for each microbatch on a stage, with stalls "
    "between bars; and the device memory of rank 0. Activations are allocated and freed, all other memory is "
    "constant.</dd>"
    "<dt>Roofline</dt><dd>What ops reach of the limit of the device: the peak in the precision of the run, or the "
    "memory bandwidth for ops with few FLOP/byte. Bytes from a cache count as memory traffic, and communication slows "
    "overlapped ops.</dd>"
    "<dt>Compute time</dt><dd>Ranks wait for each other, so their step times are equal. The time without stalls shows "
    "the slow rank. It is compared with the median of the ranks with the same work, e.g. of one pipeline stage.</dd>"
    "<dt>Loss, gradient norm</dt><dd>Evidence of training: finite values that change in every step. The same command "
    "gives the same bits.</dd>"
    "<dt>Memory</dt><dd>Planned to the byte before the first step; nothing is allocated during a step.</dd>"
    "</dl></details></section>\n";
// clang-format on

void html_write_tables(const struct result *result, FILE *file)
{
    fprintf(file, "<div class=columns>");
    write_memory(result, file);
    write_work(result, file);
    fprintf(file, "</div>\n");
    write_communications(result, file);
    fprintf(file, "<div class=columns>");
    write_layout(result, file);
    if (result->environment_count > 0) {
        fprintf(file, "<section class=card><details%s><summary>Environment</summary>",
                result->deviation_count > 0 ? " open" : "");
        write_entries(result->environment, result->environment_count, file);
        write_deviations(result, file);
        fprintf(file, "</details></section>");
    }
    fprintf(file, "</div>\n");
    if (result->rank_count > 0) {
        write_ranks(result, file);
    }
    html_write_devices(result, file);
    write_repeat(result, file);
    fprintf(file, "<section class=card><details><summary>Configuration, every option</summary>");
    write_entries(result->config, result->config_count, file);
    fprintf(file, "</details></section>\n%s", how_to_read);
}
