// SPDX-License-Identifier: MIT
// Reads result.json and validates it. A verdict or figure that contradicts the steps in the file is an error.
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gswbench/input.h"
#include "gswbench/status.h"
#include "internal.h"

enum { FILE_BYTES_MAX = 512 << 20 };    // a run of 1,000,000 steps writes 350 MB

// Checks that sizes and counts are not below their minimum.
static status check_sizes(const struct result *result)
{
    const struct {
        const char *field;
        int64_t     value, minimum;
    } sizes[] = {
        {"config.steps", result->planned_steps, 1},
        {"config.warmup", result->planned_warmup, 0},
        {"config.layout.ranks", result->mesh.world, 1},
        {"config.layout.etp", result->mesh.etp, 1},
        {"config.layout.vp", result->mesh.vp, 1},
        {"config.layout.sequence", result->sequence, 1},
        {"config.layout.micro_batch", result->micro_batch, 1},
        {"config.layout.global_batch", result->global_batch, 1},
        {"config.layout.accumulation", result->accumulation, 1},
        {"config.model.layers", result->layers, 1},
        {"config.model.parameters", result->parameters, 1},
        {"config.model.active_parameters", result->active_parameters, 1},
        {"memory.allocated_bytes", result->allocated_bytes, 0},
        {"memory.connection_bytes", result->connection_bytes, 0},
        {"validation.step_allocations", result->step_allocations, 0},
        {"validation.replica_groups_equal", result->replica_groups_equal, 0},
        {"emulation.stages", result->emulation.stages, 0},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i].value < sizes[i].minimum) {
            return fail("%s is %" PRId64 ", but must be %" PRId64 " or more", sizes[i].field, sizes[i].value,
                        sizes[i].minimum);
        }
    }
    return OK;
}

static status check_reals(const struct result *result)
{
    const struct {
        const char *field;
        double      value;
    } reals[] = {
        {"device.peak_flops", result->peak},
        {"config.published.step_s", result->published_seconds},
        {"config.published.mfu", result->published_mfu},
        {"config.published.peak_flops", result->published_peak},
        {"config.model.flops_per_sequence.full", result->flops_per_sequence[FLOPS_FULL]},
        {"config.model.flops_per_sequence.causal", result->flops_per_sequence[FLOPS_CAUSAL]},
        {"config.model.flops_per_sequence.published", result->flops_per_sequence[FLOPS_PUBLISHED]},
        {"config.model.flops_per_sequence.six_n", result->flops_per_sequence[FLOPS_6N]},
        {"config.model.flops_per_sequence.hardware", result->flops_per_sequence[FLOPS_HARDWARE]},
    };
    for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
        if (reals[i].value <= 0) {    // NaN means unknown and passes
            return fail("%s is %g, but must be above 0, or null", reals[i].field, reals[i].value);
        }
    }
    return OK;
}

static status check_preparation(const struct result *result)
{
    const double seconds[] = {result->tune_seconds, result->connect_seconds, result->capture_seconds};
    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        if (!(seconds[i] >= 0)) {
            return fail("preparation has %g seconds, but must have 0 or more", seconds[i]);
        }
    }
    return OK;
}

static status check_steps(const struct result *result)
{
    if (result->step_count > result->planned_steps) {
        return fail("steps has %" PRId64 " of config.steps %" PRId64, result->step_count, result->planned_steps);
    }
    int64_t first_step = result->checkpoint.first_step;
    if (first_step < 0 || first_step > INT64_MAX - result->planned_steps) {
        return fail("checkpoint.first_step is %" PRId64 ", which no run has", first_step);
    }
    double seconds = 0;
    for (int64_t i = 0; i < result->step_count; i++) {
        const struct result_step *step  = &result->steps[i];
        enum step_phase           phase = i < result->planned_warmup ? STEP_WARMUP : STEP_MEASURE;
        if (step->index != i || step->phase != (int64_t)phase) {
            return fail("steps[%" PRId64 "] is step %" PRId64 ", %s: not the step of this index", i, step->index,
                        result_phase_names[step->phase]);
        }
        if (step->slowest_rank < 0 || step->slowest_rank >= result->mesh.world) {
            return fail("steps[%" PRId64 "].slowest_rank is %" PRId64 " of %" PRId64, i, step->slowest_rank,
                        result->mesh.world);
        }
        seconds += step->seconds > 0 ? step->seconds : 0;
    }
    // Steps run one after the other, so the sum of their times is at most the wall time. The tolerance is the same as
    // in check_clocks.
    bool is_run = result->step_count > 0;
    if (is_run && !result_is_simulated(result) && !(1.01 * result->wall_seconds + 0.01 >= seconds)) {
        return fail("validation.wall_s is %g, but the steps took %g", result->wall_seconds, seconds);
    }
    return OK;
}

static status check_compute_times(const struct result *result)
{
    for (int64_t i = 0; i < result->compute_time_count; i++) {
        const struct result_compute_time *time = &result->compute_times[i];
        bool is_of_ranks = time->rank >= 0 && time->ranks >= 1 && time->rank <= result->mesh.world - time->ranks;
        bool is_of_steps = time->step >= 0 && time->steps >= 1 && time->step <= result->planned_steps - time->steps;
        if (!is_of_ranks || !is_of_steps) {
            return fail("compute_times[%" PRId64 "] is of %" PRId64 " ranks from %" PRId64 " and %" PRId64
                        " steps from %" PRId64 ", which this run does not have",
                        i, time->ranks, time->rank, time->steps, time->step);
        }
    }
    return OK;
}

// Checks the memory timeline and the pipeline actions.
static status check_curve(const struct result *result)
{
    for (int64_t i = 0; i < result->moment_count; i++) {
        const struct result_moment *moment = &result->moments[i];
        if (!(moment->seconds >= 0) || moment->bytes < 0) {
            return fail("memory.course[%" PRId64 "] has %" PRId64 " bytes from %g s, outside the step", i,
                        moment->bytes, moment->seconds);
        }
    }
    for (int64_t i = 0; i < result->action_count; i++) {
        const struct result_action *action = &result->actions[i];
        if (action->stage < 0 || action->stage >= result->mesh.asked[AXIS_PP] || !(action->begin >= 0) ||
            !(action->end >= action->begin)) {
            return fail("waterfall.turns[%" PRId64 "] is of stage %" PRId64
                        " from %g to %g s, which this run does not have",
                        i, action->stage, action->begin, action->end);
        }
    }
    return OK;
}

static void raise(struct result *result, enum verdict verdict)
{
    result->verdict = result->verdict < (int64_t)verdict ? (int64_t)verdict : result->verdict;
}

// Runs the checks again, which add their own reasons. The verdict becomes the worst verdict among the new reasons and
// the reasons in the file. Reasons that say that a profiler, run.check or an injected fault slowed the run are kept,
// because the checks depend on them.
static void judge(struct result *result, const struct result_reason *reasons, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        raise(result, (enum verdict)reasons[i].verdict);
        if (result_reason_slows(&reasons[i])) {
            result_add_reason(result, &reasons[i]);
        }
    }
    if (result_is_simulated(result)) {
        raise(result, result_is_predicted(result) ? VERDICT_PREDICTED : VERDICT_EMULATED);
        result_check_peak(result);
        result->exit_code = result->verdict == VERDICT_INVALID ? EXIT_INVALID : EXIT_VALID;
        return;
    }
    if (result->step_count < result->planned_steps) {
        raise(result, VERDICT_PARTIAL);
    }
    if (result->repeated_equal != result->repeated_steps) {
        raise(result, VERDICT_INVALID);
    }
    result_check(result);
}

// Repeats all checks on the values in the file, and fails if they give another verdict or exit code than the file has.
// The checks add reasons to an empty list. At the end, the list of the file is restored.
static status judge_again(struct result *result)
{
    struct result_reason *reasons = result->reasons;
    int64_t               count = result->reason_count, verdict = result->verdict, code = result->exit_code;
    status                judged = OK;
    TRY(check_sizes(result));
    TRY(check_reals(result));
    TRY(check_preparation(result));
    TRY(check_steps(result));
    TRY(check_compute_times(result));
    TRY(check_curve(result));
    result->reasons      = NULL;
    result->reason_count = 0;
    result->verdict      = VERDICT_VALID;
    judge(result, reasons, count);
    if (result->verdict != verdict) {
        const struct result_reason *why = NULL;
        for (int64_t i = 0; i < result->reason_count; i++) {
            why = result->reasons[i].verdict == result->verdict ? &result->reasons[i] : why;
        }
        judged = fail("status is %s, but the values of the file give %s%s%s", result_verdict_names[verdict],
                      result_verdict_names[result->verdict], why != NULL ? ": " : "", why != NULL ? why->message : "");
    } else if (result->exit_code != code) {
        judged = fail("exit_code is %" PRId64 ", but %s runs end with %" PRId64, code, result_verdict_names[verdict],
                      result->exit_code);
    }
    free(result->reasons);
    result->reasons      = reasons;
    result->reason_count = count;
    result->verdict      = verdict;
    result->exit_code    = code;
    return judged;
}

static double number_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

// Compares the figures in the file with figures derived from its steps. A figure without a value is null. The tolerance
// allows for processors that round the last digits differently.
static status compare_figures(const char *key, const json_t *written, json_t *derived)
{
    const double slack = 1e-6;
    const char  *member;
    size_t       i;
    json_t      *value;
    json_object_foreach(derived, member, value)
    {
        TRY(compare_figures(member, json_object_get(written, member), value));
    }
    json_array_foreach(derived, i, value)
    {
        TRY(compare_figures(key, json_array_get(written, i), value));
    }
    double was = number_of(written), is = number_of(derived);
    return (isnan(was) && isnan(is)) || fabs(was - is) <= slack * fabs(is)
               ? OK
               : fail("%s is %.9g, but the steps of the file give %.9g", key, was, is);
}

// Decides the acceptance test again, and fails if the verdict differs from the file.
static status check_acceptance(struct result *result)
{
    int64_t verdict = result->acceptance.verdict;
    if (result->acceptance.basis[0] == '\0') {
        return verdict == ACCEPTANCE_NONE ? OK : fail("acceptance.verdict is set, but acceptance.basis is missing");
    }
    result_accept(result);
    return result->acceptance.verdict == verdict
               ? OK
               : fail("acceptance.verdict is %s, but the values of the file give %s", result_acceptance_names[verdict],
                      result_acceptance_names[result->acceptance.verdict]);
}

static status read_document(struct result *result, const json_t *document)
{
    TRY(result_from_json(result, document));
    result_derive(result);
    TRY(judge_again(result));
    TRY(check_acceptance(result));
    const char *key      = result_figures_key(result);
    json_t     *figures  = json_from_struct(result_figure_fields, &result->figures);
    status      compared = compare_figures(key, json_object_get(document, key), figures);
    json_decref(figures);
    return failed(&compared) ? fail("%s: %.900s", key, compared.text) : OK;
}

status result_load_document(const char *path, json_t **document)
{
    json_error_t error;
    char        *text;
    size_t       bytes;
    status       read = input_load(path, FILE_BYTES_MAX, &text, &bytes);
    if (failed(&read)) {
        return fail("%s: %s", path, read.text);
    }
    *document = json_parse(text, bytes, &error);
    free(text);
    return *document != NULL ? OK : fail("%s:%d:%d: not a result: %s", path, error.line, error.column, error.text);
}

status result_read_json(struct result *result, const char *path)
{
    json_t *document;
    TRY(result_load_document(path, &document));
    status read = read_document(result, document);
    json_decref(document);
    if (failed(&read)) {
        result_free(result);
        return fail_as(read.exit_code, "%s: %s", path, read.text);
    }
    return OK;
}
