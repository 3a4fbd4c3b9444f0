// SPDX-License-Identifier: MIT
// Writes a result as text: header, verdict, figures, and the lines that explain them. report_end.c has the short form
// for the end of a run.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "internal.h"

const char *report_name_source(const struct result_trace *trace)
{
    return trace->source == RESULT_MEASURED ? "traced after the measured steps" : result_source_names[trace->source];
}

const char *report_name_timing(const struct result_trace *trace)
{
    bool is_cupti = strcmp(trace->timed_by, "cupti") == 0, is_events = strcmp(trace->timed_by, "events") == 0;
    return is_cupti ? ", ops timed by CUPTI" : is_events ? ", ops timed by events" : "";
}

void report_write_axes(const struct result *result, const char *before, const char *between, FILE *file)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (result->mesh.asked[axis] > 1) {
            fprintf(file, "%s%s%s%" PRId64, before, axis_rows[axis].name, between, result->mesh.asked[axis]);
        }
    }
    if (mesh_has_whole_experts(&result->mesh)) {
        fprintf(file, "%setp%s1", before, between);
    }
}

void report_write_batch(const struct result *result, FILE *file)
{
    fprintf(file, "sequence %" PRId64 "  micro batch %" PRId64 "  global batch %" PRId64 "  accumulation %" PRId64,
            result->sequence, result->micro_batch, result->global_batch, result->accumulation);
}

void report_write_layout(const struct result *result, FILE *file)
{
    fprintf(file, "ranks %" PRId64, result->mesh.world);
    report_write_axes(result, "  ", " ", file);
    fputc('\n', file);
}

// Writes the NCCL features in use: "connections with: memory of NCCL's, 12 symmetric windows, 3 storages registered".
static void write_connections(const struct result *result, FILE *file)
{
    const struct result_connections *connections = &result->connections;
    const char                      *separator   = "connections with: ";
    const struct {
        const char *what;
        int64_t     count;
        bool        is_flag;
    } parts[] = {
        {"memory of NCCL's", connections->allocates, true},
        {"symmetric windows", connections->windows, false},
        {"storages registered", connections->registered, false},
        {"storages that NCCL did not register", connections->refused, false},
        {"connections with zero CTAs", connections->copying, false},
        {"of them with rings of one-sided puts", connections->putting, false},
        {"ncclAlltoAll", connections->exchanges, true},
        {"connections opened by several ids", connections->scalable, false},
    };
    if (strcmp(result->communicator, "nccl") != 0) {
        return;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].count > 0 && parts[i].is_flag) {
            fprintf(file, "%s%s", separator, parts[i].what);
        } else if (parts[i].count > 0) {
            fprintf(file, "%s%" PRId64 " %s", separator, parts[i].count, parts[i].what);
        }
        separator = parts[i].count > 0 ? ", " : separator;
    }
    if (isfinite(connections->library_bytes)) {
        fprintf(file, "%s%s of the device by NCCL's own count", separator, report_bytes(connections->library_bytes));
        separator = ", ";
    }
    fprintf(file, "%s\n", separator[0] == ',' ? "" : "connections with: plain calls alone");
}

static void write_memory(const struct result *result, FILE *file)
{
    for (int i = 0; i < STORAGE_COUNT; i++) {
        fprintf(file, "%s %s  ", plan_storage_name((enum storage)i), report_bytes((double)result->storage_bytes[i]));
    }
    fprintf(file, "peak_memory_usage: %" PRId64 "\n", result->allocated_bytes);
    if (result->connection_bytes > 0) {
        fprintf(file,
                "before the steps: algorithms chosen in %.1f s, devices connected in %.1f s (%s), step captured in "
                "%.1f s\n",
                result->tune_seconds, result->connect_seconds, report_bytes((double)result->connection_bytes),
                result->capture_seconds);
    }
    write_connections(result, file);
}

static void write_attention(const struct result_attention *attention, FILE *file)
{
    if (attention->provider[0] == '\0') {
        return;
    }
    fprintf(file, "# attention %s", report_safe(attention->provider));
    if (attention->engines[0] != '\0') {
        fprintf(file, ": %s, engines %s", report_safe(attention->library), report_safe(attention->engines));
    }
    fputc('\n', file);
}

static void write_reasons(const struct result *result, FILE *file)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        const struct result_reason *reason = &result->reasons[i];
        fprintf(file, "# %s: %s: %s\n",
                reason->verdict == VERDICT_VALID ? "note" : result_verdict_names[reason->verdict],
                report_safe(reason->id), report_safe(reason->message));
    }
}

static bool is_verified(const struct result *result)
{
    return result->computes && result->verify[0] != '\0' && strcmp(result->verify, "off") != 0 &&
           !result_is_simulated(result);
}

static void write_verification_ahead(const struct result *result, FILE *file)
{
    const struct result_verification *verification = &result->verification;
    if (!is_verified(result)) {
        return;
    }
    fprintf(file, "# verify %s: ", report_safe(result->verify));
    if (verification->device_bytes > 0) {
        fprintf(file, "repeating a step copies %s of device memory and uses %s of host memory; ",
                report_bytes(verification->device_bytes), report_bytes(verification->host_bytes));
    }
    fprintf(file, "about %.2g s, and the steps\n", verification->expected_seconds);
}

static void write_bound(double bound, const char *before, const char *after, FILE *file)
{
    if (bound == 0) {
        fprintf(file, "bit for bit");
    } else {
        fprintf(file, "%s%.2g%s", before, bound, after);
    }
}

static void write_verification(const struct result *result, FILE *file)
{
    const struct result_verification *verification = &result->verification;
    if (!is_verified(result) || result->examined_ops == 0) {    // a result made from a journal has no record of ops
        return;
    }
    if (result->repeated_steps > 0) {
        fprintf(file, "proven: the numbers of %" PRId64 " of %" PRId64 " steps, on %s%" PRId64 " rank%s, run twice: ",
                result->repeated_equal, result->step_count, result->mesh.world > 1 ? "all " : "", result->mesh.world,
                result->mesh.world > 1 ? "s" : "");
        write_bound(verification->repeat_bound, "loss and gradients within ",
                    " of their norm, the optimizer bit for bit", file);
    } else {
        fprintf(file, "proven: no step's numbers");
    }
    fprintf(file, "; which ops ran, in every step; %" PRId64 " ops and %" PRId64 " transfers alone, ",
            result->examined_ops, result->examined_communications);
    write_bound(verification->op_bound, "bit for bit, or within ", " of the norm for ops that are not deterministic",
                file);
    fprintf(file, "; %.1f s (expected %.2g s and the steps)\n", verification->seconds, verification->expected_seconds);
}

const char *report_peak_source(const struct result *result)
{
    double peak = result_peak(result, (enum flop_convention)result->figures.convention);
    return peak == result->peak ? result->peak_source : "as published";
}

static void write_header(const struct result *result, FILE *file)
{
    int64_t convention = result->figures.convention;
    fprintf(file, "# gswbench %s  %s  run %s\n", report_safe(result->version), report_safe(result->compiler),
            report_safe(result->run_id));
    fprintf(file, "# config %s  xxh3:%s  precision %s\n# batch  ", report_safe(result->config_name),
            report_safe(result->config_hash), report_safe(result->precision));
    report_write_batch(result, file);
    fprintf(file, "\n# layout ");
    report_write_layout(result, file);
    fprintf(file, "# system %s communicator  %s backend: %s\n", report_safe(result->communicator),
            report_safe(result->backend), report_safe(result->device));
    write_attention(&result->attention, file);
    fprintf(file, "# model  %s parameters  flops %.6E per sequence (%s)  ", report_count((double)result->parameters),
            result->flops_per_sequence[convention], model_flop_names[convention]);
    if (isnan(result->peak)) {
        fprintf(file, "peak none: %s\n", report_safe(result->peak_source));
    } else {
        fprintf(file, "peak %.6g TFLOP/s (%s)\n", result_peak(result, (enum flop_convention)convention) / 1e12,
                report_safe(report_peak_source(result)));
    }
    if (result->is_proxy) {
        fprintf(file, "# proxy  layers %" PRId64 ": values are not those of the full model\n", result->layers);
    }
    fprintf(file, "# memory of rank 0: ");
    write_memory(result, file);
    write_verification_ahead(result, file);
    write_reasons(result, file);
}

void report_write_header(const struct result *result, FILE *file)
{
    struct text_stream text;
    text_stream_open(&text);
    write_header(result, text.file);
    text_print_lines(file, &text);
}

static void write_utilization(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    if (isnan(result->peak)) {
        fprintf(file, "Model flops utilization: none (%s)\n", report_safe(result->peak_source));
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

// Writes details of the step times that the short form (report_end.c) leaves out.
static void write_step_times(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    fprintf(file, "step times: %" PRId64 " outlier%s", figures->step.outliers, figures->step.outliers == 1 ? "" : "s");
    if (!isnan(figures->step.p95)) {
        fprintf(file, "  p95 %s", report_seconds(figures->step.p95));
    }
    if (!isnan(figures->step.drift)) {
        fprintf(file, "  drift %+.2f%%/step", 100 * figures->step.drift);
    }
    fprintf(file, "  last step: %s", report_seconds(figures->last_step_seconds));
    if (!isnan(figures->mean_35_44_seconds)) {
        fprintf(file, "  mean of steps 35-44: %s", report_seconds(figures->mean_35_44_seconds));
    }
    fputc('\n', file);
}

const struct waterfall *report_expected_parts(const struct result *result)
{
    bool is_other = result->expectation.profile[0] != '\0' && !result_is_predicted(result);
    return is_other ? &result->expectation.waterfall : NULL;
}

// Returns the seconds by which a waterfall part exceeds its prediction. The waterfall belongs to the traced step, so
// its parts are first scaled to the median step.
static double find_excess(const struct result *result, int part)
{
    double share = result->trace.waterfall.seconds[part] / result->trace.step_seconds;
    return share * result->figures.step.median - result->expectation.waterfall.seconds[part];
}

// Returns the waterfall part that explains most of the difference from the expected step. Returns WATERFALL_PARTS if no
// part explains a tenth of the difference.
static int find_part(const struct result *result, double difference)
{
    int    maximum = WATERFALL_PARTS;
    double minimum = fabs(difference) / 10.0;
    for (int part = 0; part < WATERFALL_PARTS && result->trace.source != RESULT_UNTRACED; part++) {
        double excess = copysign(1.0, difference) * find_excess(result, part);
        if (excess > minimum) {
            maximum = part;
            minimum = excess;
        }
    }
    return maximum;
}

// Writes the expected step, as in "12.480 s +- 2.4 % (h100-sxm, 98 % of its compute time measured)", then the measured
// step and the waterfall part that explains most of the difference.
static void write_expectation(const struct result *result, FILE *file)
{
    const struct result_expectation *expectation = &result->expectation;
    double median = result->figures.step.median, difference = median - expectation->step_seconds;
    if (report_expected_parts(result) == NULL) {
        if (!result_is_predicted(result) && expectation->reason[0] != '\0') {
            fprintf(file, "expected: unknown (%s)\n", report_safe(expectation->reason));
        }
        return;
    }
    fprintf(file, "expected: %s s +- %.1f %% (%s", report_seconds(expectation->step_seconds), expectation->percent,
            report_safe(expectation->profile));
    if (expectation->measured_share > 0.0) {
        fprintf(file, ", %.0f %% of its compute time measured", 100.0 * expectation->measured_share);
    }
    fprintf(file, ")");
    if (!isnan(median)) {
        int part = find_part(result, difference);
        fprintf(file, ", measured %s s: %+.1f %%", report_seconds(median),
                100.0 * difference / expectation->step_seconds);
        if (part < WATERFALL_PARTS) {
            fprintf(file, ", of which %s %+.*f s", waterfall_part_names[part], median < 1.0 ? 6 : 3,
                    find_excess(result, part));
        }
    }
    fputc('\n', file);
}

static void write_figures(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    if (!result_is_simulated(result)) {
        write_step_times(result, file);
    }
    fprintf(file, "Throughput in tokens per second: %.2f\n", figures->tokens_per_second);
    fprintf(file, "TFLOP/s per device: %.6g (%s)\n", figures->teraflops_per_rank,
            model_flop_names[figures->convention]);
    write_utilization(result, file);
    if (!isnan(figures->days_per_trillion_tokens)) {
        fprintf(file, "Time to train 1T tokens in days: %.2f\n", figures->days_per_trillion_tokens);
    }
    if (!isnan(figures->published_ratio)) {
        fprintf(file, "published: %s", report_seconds(result->published_seconds));
        if (!isnan(result->published_mfu)) {
            fprintf(file, " (%.2f%%)", 100 * result->published_mfu);
        }
        fprintf(file, "  ratio to it: %.3f%s  source: %s\n", figures->published_ratio, report_error_status(result),
                report_safe(result->published_source));
    } else if (result_slowed_by(result) != NULL && !isnan(result->published_seconds)) {
        fprintf(file, "published: not compared, since the run was %s\n", result_slowed_by(result));
    }
    write_expectation(result, file);
}

const struct result_rank *report_longest_rank(const struct result *result)
{
    const struct result_rank *longest = NULL;
    for (int64_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        if (!isnan(rank->excess) && (longest == NULL || rank->excess > longest->excess)) {
            longest = rank;
        }
    }
    return longest;
}

static void write_longest_compute(const struct result *result, FILE *file)
{
    const struct result_rank *longest = report_longest_rank(result);
    char                      name[128];
    if (longest == NULL) {
        return;
    }
    result_name_rank(result, longest->rank, name, sizeof(name));
    fprintf(file, "  computes longest: %s %+.1f%% to its peers", report_safe(name), 100 * longest->excess);
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
    fprintf(file, "ranks: slowest %" PRId64 " (%s) %+.1f%% to the fastest", slowest->rank, report_safe(slowest->host),
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

void report_write_result(const struct result *result, FILE *file)
{
    const struct result_trace *trace = &result->trace;
    report_write_whole_end(result, file);
    write_verification(result, file);
    if (result_is_shown(result)) {
        write_figures(result, file);
        if (result->rank_count > 1) {
            write_slowest_rank(result, file);
        }
        report_write_devices(result, file);
        if (result->layer_load_count > 0) {
            write_expert_load(result, file);
        }
        if (trace->source != RESULT_UNTRACED) {
            fprintf(file, "where a step goes: %s s, %s, on rank %" PRId64 "%s\n", report_seconds(trace->step_seconds),
                    report_name_source(trace), trace->rank, report_name_timing(trace));
            waterfall_print(&trace->waterfall, report_expected_parts(result), file);
            report_write_communications(result, file);
        }
    }
    fprintf(file, "memory of rank 0: ");
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
