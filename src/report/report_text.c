// SPDX-License-Identifier: MIT
// A result as text: header, verdict, figures, and the lines that explain them.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/report.h"
#include "gswbench/text.h"
#include "internal.h"

const char *report_safe(char *text, size_t bytes, const char *from)
{
    text_printable(text, bytes, from);
    return text;
}

const char *report_name_timing(const struct result_trace *trace)
{
    bool is_cupti = strcmp(trace->timed_by, "cupti") == 0, is_events = strcmp(trace->timed_by, "events") == 0;
    return is_cupti ? ", ops timed by CUPTI" : is_events ? ", ops timed by events" : "";
}

const char *report_seconds(char *text, size_t bytes, double seconds)
{
    snprintf(text, bytes, seconds < 1 ? "%.6f" : "%.3f", seconds);
    return text;
}

double report_total_bytes(const struct result *result)
{
    double total = 0;
    for (int i = 0; i < STORAGE_COUNT; i++) {
        total += (double)result->storage_bytes[i];
    }
    return total;
}

void report_write_upper(const char *word, FILE *file)
{
    for (; *word != '\0'; word++) {
        fputc(toupper((unsigned char)*word), file);
    }
}

void report_write_layout(const struct result *result, FILE *file)
{
    char precision[sizeof(result->precision)];
    fprintf(file, "precision %s  sequence %" PRId64 "  micro batch %" PRId64 "  global batch %" PRId64,
            report_safe(precision, sizeof(precision), result->precision), result->sequence, result->micro_batch,
            result->global_batch);
    fprintf(file, "  accumulation %" PRId64 "  ranks %" PRId64, result->accumulation, result->mesh.world);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (result->mesh.asked[axis] > 1) {
            fprintf(file, "  %s %" PRId64, axis_rows[axis].name, result->mesh.asked[axis]);
        }
    }
    if (mesh_has_whole_experts(&result->mesh)) {
        fprintf(file, "  etp 1");
    }
    fputc('\n', file);
}

static void write_memory(const struct result *result, FILE *file)
{
    char text[32];
    for (int i = 0; i < STORAGE_COUNT; i++) {
        fprintf(file, "%s %s  ", plan_storage_name((enum storage)i),
                number_bytes(text, sizeof(text), (double)result->storage_bytes[i]));
    }
    fprintf(file, "peak_memory_usage: %" PRId64 "\n", result->allocated_bytes);
    if (result->connection_bytes > 0) {
        fprintf(file,
                "before the steps: algorithms chosen in %.1f s, devices connected in %.1f s (%s), step captured in "
                "%.1f s\n",
                result->tune_seconds, result->connect_seconds,
                number_bytes(text, sizeof(text), (double)result->connection_bytes), result->capture_seconds);
    }
    report_write_connections(result, file);
}

static void write_attention(const struct result_attention *attention, FILE *file)
{
    char safe[256];
    if (attention->provider[0] == '\0') {
        return;
    }
    fprintf(file, "# attention %s", report_safe(safe, sizeof(safe), attention->provider));
    if (attention->engines[0] != '\0') {
        fprintf(file, ": %s, engines ", report_safe(safe, sizeof(safe), attention->library));
        fputs(report_safe(safe, sizeof(safe), attention->engines), file);
    }
    fputc('\n', file);
}

static void write_reasons(const struct result *result, const char *prefix, FILE *file)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        const struct result_reason *reason = &result->reasons[i];
        char                        id[32], message[256];
        fprintf(file, "%s%s: %s: %s\n", prefix,
                reason->verdict == VERDICT_VALID ? "note" : result_verdict_names[reason->verdict],
                report_safe(id, sizeof(id), reason->id), report_safe(message, sizeof(message), reason->message));
    }
}

void report_write_header(const struct result *result, FILE *file)
{
    char    safe[1024], more[160], third[64], count[32];
    int64_t convention = result->figures.convention;
    fprintf(file, "# gswbench %s  %s  run %s\n", report_safe(safe, sizeof(safe), result->version),
            report_safe(more, sizeof(more), result->compiler), report_safe(third, sizeof(third), result->run_id));
    fprintf(file, "# config %s  xxh3:%s  ", report_safe(safe, sizeof(safe), result->config_name),
            report_safe(third, sizeof(third), result->config_hash));
    report_write_layout(result, file);
    fprintf(file, "# system %s communicator  %s backend: %s\n", report_safe(more, sizeof(more), result->communicator),
            report_safe(third, sizeof(third), result->backend), report_safe(safe, sizeof(safe), result->device));
    write_attention(&result->attention, file);
    fprintf(file, "# model  %s parameters  flops %.6E per sequence (%s)  ",
            number_count(count, sizeof(count), (double)result->parameters), result->flops_per_sequence[convention],
            model_flop_names[convention]);
    if (isnan(result->peak)) {
        fprintf(file, "peak none: %s\n", report_safe(more, sizeof(more), result->peak_source));
    } else {
        fprintf(file, "peak %.6g TFLOP/s (%s)\n", result->peak / 1e12,
                report_safe(more, sizeof(more), result->peak_source));
    }
    if (result->is_proxy) {
        fprintf(file, "# proxy  layers %" PRId64 ": values are not those of the full model\n", result->layers);
    }
    fprintf(file, "# memory ");
    write_memory(result, file);
    report_write_verification_ahead(result, file);
    write_reasons(result, "# ", file);
}

static void write_utilization(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    char                         reason[160];
    if (isnan(result->peak)) {
        fprintf(file, "Model flops utilization: none (%s)\n", report_safe(reason, sizeof(reason), result->peak_source));
        return;
    }
    if (isnan(figures->utilization[figures->convention])) {
        fprintf(file, "Model flops utilization: none (%s would exceed the peak)",
                model_flop_names[figures->convention]);
    } else {
        fprintf(file, "Model flops utilization: %.2f%%", 100 * figures->utilization[figures->convention]);
    }
    for (int i = 0; i < FLOPS_COUNT; i++) {
        if (!isnan(figures->utilization[i])) {
            fprintf(file, "  %s %.2f%%", model_flop_names[i], 100 * figures->utilization[i]);
        }
    }
    fputc('\n', file);
}

static void write_step_time(const struct statistics *step, FILE *file)
{
    char text[32];
    fprintf(file, "Training step time (seconds per step): %s", report_seconds(text, sizeof(text), step->median));
    if (!isnan(step->low)) {
        fprintf(file, "  [95%% CI %s", report_seconds(text, sizeof(text), step->low));
        fprintf(file, " %s]", report_seconds(text, sizeof(text), step->high));
    }
    if (!isnan(step->p95)) {
        fprintf(file, "  p95 %s", report_seconds(text, sizeof(text), step->p95));
    }
    if (!isnan(step->variation)) {
        fprintf(file, "  cv %.2f%%", 100 * step->variation);
    }
    if (!isnan(step->drift)) {
        fprintf(file, "  drift %+.2f%%/step", 100 * step->drift);
    }
    fputc('\n', file);
}

static void write_last_steps(const struct result_figures *figures, FILE *file)
{
    char text[32];
    fprintf(file, "last step: %s", report_seconds(text, sizeof(text), figures->last_step_seconds));
    if (!isnan(figures->mean_35_44_seconds)) {
        fprintf(file, "  mean of steps 35-44: %s", report_seconds(text, sizeof(text), figures->mean_35_44_seconds));
    }
    fputc('\n', file);
}

static void write_figures(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    char                         text[32], source[128];
    write_step_time(&figures->step, file);
    fprintf(file, "Throughput in tokens per second: %.2f\n", figures->tokens_per_second);
    fprintf(file, "TFLOP/s per device: %.6g (%s)\n", figures->teraflops_per_rank,
            model_flop_names[figures->convention]);
    write_utilization(result, file);
    fprintf(file, "Time to train 1T tokens in days: %.2f\n", figures->days_per_trillion_tokens);
    if (!result_is_simulated(result)) {
        write_last_steps(figures, file);
    }
    if (!isnan(figures->published_ratio)) {
        fprintf(file, "published: %s", report_seconds(text, sizeof(text), result->published_seconds));
        if (!isnan(result->published_mfu)) {
            fprintf(file, " (%.2f%%)", 100 * result->published_mfu);
        }
        fprintf(file, "  ratio to it: %.3f  source: %s\n", figures->published_ratio,
                report_safe(source, sizeof(source), result->published_source));
    } else if (result_slowed_by(result) != NULL && !isnan(result->published_seconds)) {
        fprintf(file, "published: not compared, since the run was %s\n", result_slowed_by(result));
    }
    report_write_expectation(result, file);
}

// Names the rank with the largest excess over its class. Step times would not show it, since ranks wait for each other.
static void write_longest_compute(const struct result *result, FILE *file)
{
    const struct result_rank *longest = &result->ranks[0];
    char                      name[128], safe[128];
    for (int64_t i = 1; i < result->rank_count; i++) {
        bool is_longer = isnan(longest->excess) || result->ranks[i].excess > longest->excess;
        longest        = is_longer ? &result->ranks[i] : longest;
    }
    if (isnan(longest->excess)) {
        return;
    }
    result_name_rank(result, longest->rank, name, sizeof(name));
    fprintf(file, "  computes longest: %s %+.1f%% to its peers", report_safe(safe, sizeof(safe), name),
            100 * longest->excess);
    if (!isnan(longest->excess_low)) {
        fprintf(file, ", at least %+.1f%%", 100 * longest->excess_low);
    }
}

static void write_slowest_rank(const struct result *result, FILE *file)
{
    const struct result_rank *slowest = &result->ranks[0], *fastest = &result->ranks[0];
    for (int64_t i = 1; i < result->rank_count; i++) {
        slowest = result->ranks[i].median_seconds > slowest->median_seconds ? &result->ranks[i] : slowest;
        fastest = result->ranks[i].median_seconds < fastest->median_seconds ? &result->ranks[i] : fastest;
    }
    char host[64];
    fprintf(file, "ranks: slowest %" PRId64 " (%s) %+.1f%% to the fastest", slowest->rank,
            report_safe(host, sizeof(host), slowest->host),
            100 * (slowest->median_seconds / fastest->median_seconds - 1));
    write_longest_compute(result, file);
    fputc('\n', file);
}

// Names the layer with the highest load on one expert, which delays the ranks of all other experts.
static void write_expert_load(const struct result *result, FILE *file)
{
    const struct result_layer *worst = &result->layer_loads[0];
    for (int64_t i = 1; i < result->layer_load_count; i++) {
        const struct result_layer *layer = &result->layer_loads[i];
        worst                            = layer->mean[LOAD_BUSIEST] > worst->mean[LOAD_BUSIEST] ? layer : worst;
    }
    fprintf(file,
            "experts: least balanced in layer %" PRId64
            ": maximum load %.3f and minimum %.3f of the mean, dropped %.2f%%, auxiliary loss %.6f\n",
            worst->layer, worst->mean[LOAD_BUSIEST], worst->mean[LOAD_IDLEST], 100 * worst->mean[LOAD_DROPPED],
            worst->mean[LOAD_AUXILIARY]);
}

static void write_waterfall(const struct result *result, FILE *file)
{
    const struct result_trace *trace = &result->trace;
    char                       seconds[32], source[16];
    bool                       is_measured = strcmp(trace->source, "measured") == 0;
    fprintf(file, "where a step goes: %s s, ", report_seconds(seconds, sizeof(seconds), trace->step_seconds));
    fprintf(file, "%s, on rank %" PRId64 "%s\n",
            is_measured ? "traced after the measured steps" : report_safe(source, sizeof(source), trace->source),
            trace->rank, report_name_timing(trace));
    waterfall_print(&trace->waterfall, report_expected_parts(result), file);
}

static void write_step_counts(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    fprintf(file, "  %" PRId64, result->step_count);
    if (result->step_count < result->planned_steps) {
        fprintf(file, " of %" PRId64, result->planned_steps);
    }
    fprintf(file, " steps: %" PRId64 " warm-up, %" PRId64 " measured, %" PRId64 " outliers flagged, 0 dropped\n",
            figures->warmup_steps, figures->measured_steps, figures->step.outliers);
}

static void write_emulation(const struct result *result, FILE *file)
{
    const struct result_emulation *emulation = &result->emulation;
    fprintf(file,
            "  %" PRId64 " ranks emulated on one device: %" PRId64 " of %" PRId64
            " stages executed, %.1f%% of the step measured\n",
            result->mesh.world, emulation->executed, emulation->stages, 100 * emulation->measured_share);
}

static void write_prediction(const struct result *result, FILE *file)
{
    char profile[128];
    fprintf(file, "  %" PRId64 " rank%s on %s", result->mesh.world, result->mesh.world == 1 ? "" : "s",
            report_safe(profile, sizeof(profile), result->expectation.profile));
    if (!isnan(result->expectation.percent)) {
        fprintf(file, ", +-%.1f %%", result->expectation.percent);
    }
    fputc('\n', file);
}

void report_write_result(const struct result *result, FILE *file)
{
    fputs(REPORT_VERDICT_PREFIX, file);
    report_write_upper(result_verdict_names[result->verdict], file);
    if (result->is_proxy) {
        fprintf(file, " PROXY of %" PRId64 " layer%s", result->layers, result->layers == 1 ? "" : "s");
    }
    if (result->emulation.stages > 0) {
        write_emulation(result, file);
    } else if (result_is_predicted(result)) {
        write_prediction(result, file);
    } else {
        write_step_counts(result, file);
    }
    report_write_verification(result, file);
    write_reasons(result, "", file);
    if (result_is_shown(result)) {
        write_figures(result, file);
        if (result->rank_count > 1) {
            write_slowest_rank(result, file);
        }
        report_write_devices(result, file);
        if (result->layer_load_count > 0) {
            write_expert_load(result, file);
        }
        if (result->trace.source[0] != '\0') {
            write_waterfall(result, file);
            report_write_transfers(result, file);
        }
    }
    fprintf(file, "memory: ");
    write_memory(result, file);
}

void report_write_text(const struct result *result, FILE *file)
{
    report_write_header(result, file);
    for (int64_t i = 0; i < result->step_count && !result_is_simulated(result); i++) {
        report_write_step(result, &result->steps[i], file);
    }
    report_write_result(result, file);
}
