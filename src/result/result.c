// SPDX-License-Identifier: MIT
// Collects settings, ranks and steps of a run, and derives its figures such as step time and MFU.
#include "gswbench/result.h"

#include <stdarg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/peak.h"
#include "gswbench/plan_build.h"
#include "gswbench/text.h"
#include "gswbench/verify.h"
#include "internal.h"

const char *const result_verdict_names[] = {[VERDICT_VALID] = "valid",           [VERDICT_DEGRADED] = "degraded",
                                            [VERDICT_EMULATED] = "emulated",     [VERDICT_PREDICTED] = "predicted",
                                            [VERDICT_UNVERIFIED] = "unverified", [VERDICT_PARTIAL] = "partial",
                                            [VERDICT_INVALID] = "invalid",       [VERDICT_COUNT] = NULL};

const char *const result_source_names[] = {[RESULT_UNTRACED]  = "",
                                           [RESULT_MEASURED]  = "measured",
                                           [RESULT_EMULATED]  = "emulated",
                                           [RESULT_PREDICTED] = "predicted",
                                           NULL};

const char *const result_phase_names[] = {[STEP_WARMUP] = "warmup", [STEP_MEASURE] = "measure", NULL};

void result_free(struct result *result)
{
    free(result->config);
    free(result->environment);
    free(result->deviations);
    free(result->reasons);
    free(result->steps);
    free(result->ranks);
    free(result->communications);
    free(result->kinds);
    free(result->op_times);
    free(result->moments);
    free(result->actions);
    free(result->layer_loads);
    free(result->observations);
    free(result->compute_times);
    free(result->communication_times);
    *result = (struct result){0};
}

void result_reserve(struct result *result, int64_t steps, int64_t ranks, int64_t expert_layers)
{
    result->steps            = memory_allocate((size_t)steps * sizeof(*result->steps));
    result->ranks            = memory_allocate((size_t)ranks * sizeof(*result->ranks));
    result->layer_loads      = memory_allocate((size_t)expert_layers * sizeof(*result->layer_loads));
    result->layer_load_count = expert_layers;
    for (int64_t layer = 0; layer < expert_layers; layer++) {
        struct result_layer *load = &result->layer_loads[layer];
        load->layer               = layer;
        for (int i = 0; i < LOAD_COUNT; i++) {
            load->last[i] = load->mean[i] = NAN;
        }
    }
}

// Computes the load figures of one MoE layer, and returns its number of choices (token-expert pairs). routing[] has the
// number of choices of each expert, then the number of dropped choices, then the auxiliary loss.
static double measure_load(double load[LOAD_COUNT], const float *routing, int64_t experts)
{
    double choices = 0, busiest = 0, idlest = INFINITY;
    for (int64_t expert = 0; expert < experts; expert++) {
        choices += (double)routing[expert];
        busiest = fmax(busiest, (double)routing[expert]);
        idlest  = fmin(idlest, (double)routing[expert]);
    }
    load[LOAD_BUSIEST]   = busiest * (double)experts / choices;
    load[LOAD_IDLEST]    = idlest * (double)experts / choices;
    load[LOAD_DROPPED]   = (double)routing[experts] / choices;
    load[LOAD_AUXILIARY] = (double)routing[experts + 1];
    return choices;
}

void result_add_routing(struct result *result, const float *routing, int64_t experts)
{
    struct result_step *step     = &result->steps[result->step_count - 1];
    int64_t             measured = step->index + 1 - result->planned_warmup;
    double              choices = 0, dropped = 0;
    for (int64_t layer = 0; layer < result->layer_load_count; layer++, routing += experts + 2) {
        struct result_layer *load = &result->layer_loads[layer];
        choices += measure_load(load->last, routing, experts);
        dropped += (double)routing[experts];
        for (int i = 0; i < LOAD_COUNT && measured > 0; i++) {
            double mean   = measured > 1 ? load->mean[i] : 0;
            load->mean[i] = mean + (load->last[i] - mean) / (double)measured;
        }
    }
    step->dropped = dropped / choices;
}

void result_set_op_times(struct result *result, const struct op_totals *totals)
{
    result->op_times      = memory_resize(result->op_times, OP_COUNT * PHASE_COUNT * sizeof(*result->op_times));
    result->op_time_count = 0;
    for (int kind = 0; kind < OP_COUNT; kind++) {
        for (int phase = 0; phase < PHASE_COUNT; phase++) {
            if (totals->count[kind][phase] > 0) {
                struct result_op_time *ops = &result->op_times[result->op_time_count++];
                *ops                       = (struct result_op_time){.count   = totals->count[kind][phase],
                                                                     .seconds = totals->seconds[kind][phase],
                                                                     .flops   = totals->flops[kind][phase],
                                                                     .bytes   = totals->bytes[kind][phase]};
                text_copy(ops->kind, sizeof(ops->kind), op_name((enum op_kind)kind));
                text_copy(ops->phase, sizeof(ops->phase), op_phase_name((enum phase)phase));
            }
        }
    }
}

void result_add_entry(struct result_entry **list, int64_t *count, const char *name, const char *value)
{
    struct result_entry *entry = LIST_ADD(*list, *count);
    text_copy(entry->name, sizeof(entry->name), name);
    text_copy(entry->value, sizeof(entry->value), value);
}

void result_add_reason(struct result *result, const struct result_reason *reason)
{
    LIST_APPEND(result->reasons, result->reason_count, *reason);
    if (reason->verdict > result->verdict) {
        result->verdict = reason->verdict;
    }
}

const struct result_reason *result_find_reason(const struct result *result, const char *id)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        if (strcmp(result->reasons[i].id, id) == 0) {
            return &result->reasons[i];
        }
    }
    return NULL;
}

void result_note(struct result *result, struct result_reason reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason.message, sizeof(reason.message), format, arguments);
    va_end(arguments);
    result_add_reason(result, &reason);
}

// Compute times are a table with a row per rank (or range of ranks) and a column per step. It has at most RESULT_CELLS
// rows and columns. When it is full, pairs of neighbouring columns are merged, so a column then covers several steps.

// Merges `next` into `cell`: each value becomes the mean of both, weighted by their numbers of steps.
static void join_cells(struct result_compute_time *cell, const struct result_compute_time *next)
{
    double share = (double)next->steps / (double)(cell->steps + next->steps);
    cell->seconds += share * (next->seconds - cell->seconds);
    cell->excess += share * (next->excess - cell->excess);
    cell->steps += next->steps;
}

static void halve_columns(struct result *result, int64_t rows)
{
    struct result_compute_time *cells = result->compute_times;
    int64_t                     count = result->compute_time_count / 2;
    for (int64_t i = 0; i < count; i++) {
        struct result_compute_time cell = cells[i / rows * 2 * rows + i % rows];
        join_cells(&cell, &cells[i / rows * 2 * rows + rows + i % rows]);
        cells[i] = cell;
    }
    result->compute_time_count = count;
}

// Returns a cell with the maximum compute time and excess of the ranks from `first` to before `end`.
static struct result_compute_time measure_row(const double *seconds, const double *excess, int64_t first, int64_t end)
{
    struct result_compute_time cell = {.rank = first, .ranks = end - first, .steps = 1, .seconds = NAN, .excess = NAN};
    for (int64_t rank = first; rank < end; rank++) {
        cell.seconds = fmax(cell.seconds, seconds[rank]);
        cell.excess  = fmax(cell.excess, excess[rank]);
    }
    return cell;
}

void result_add_compute_times(struct result *result, const double *seconds, const double *excess, int64_t ranks)
{
    int64_t rows = number_min(ranks, RESULT_CELLS);
    if (result->compute_times == NULL) {
        result->compute_times = memory_allocate((size_t)(rows * RESULT_CELLS) * sizeof(*result->compute_times));
    }
    int64_t columns = result->compute_time_count / rows;
    // All columns except the last cover the same number of steps.
    struct result_compute_time *last    = columns > 0 ? &result->compute_times[(columns - 1) * rows] : NULL;
    bool                        is_full = last == NULL || last->steps == result->compute_times[0].steps;
    if (is_full && columns == RESULT_CELLS) {
        halve_columns(result, rows);
        columns /= 2;
    }
    int64_t step = columns > 0 ? last->step + last->steps : result->planned_warmup;
    for (int64_t row = 0; row < rows; row++) {
        struct result_compute_time cell = measure_row(seconds, excess, row * ranks / rows, (row + 1) * ranks / rows);
        cell.step                       = step;
        if (is_full) {
            result->compute_times[result->compute_time_count++] = cell;
        } else {
            join_cells(&last[row], &cell);
        }
    }
}

static void set_account(struct result *result, const struct account *account)
{
    memcpy(result->flops, account->flops, sizeof(result->flops));
    result->flops_per_sequence[FLOPS_HARDWARE] = account->hardware_flops;

    result->kinds = memory_allocate(OP_COUNT * sizeof(*result->kinds));
    for (int kind = 0; kind < OP_COUNT; kind++) {
        if (account->ops[kind] > 0) {
            struct result_kind *ops = &result->kinds[result->kind_count++];
            text_copy(ops->kind, sizeof(ops->kind), op_name((enum op_kind)kind));
            ops->count = account->ops[kind];
        }
    }
    result->communications = memory_allocate(PLAN_COMMUNICATIONS_MAX * sizeof(*result->communications));
    for (int32_t i = 0; i < account->communication_count; i++) {
        const struct plan_communication *from = &account->communications[i];
        struct result_communication     *to   = &result->communications[result->communication_count++];
        text_copy(to->kind, sizeof(to->kind), op_name(from->kind));
        axis_names(from->axes, to->axes, sizeof(to->axes));
        text_copy(to->format, sizeof(to->format), format_name(from->format));
        to->elements   = from->elements;
        to->group_size = from->group_size;
        to->count      = from->count;
        to->bytes      = (double)(from->count * format_bytes(from->format, from->elements));
    }
}

void result_add_communication_time(struct result *result, const struct result_communication_time *time,
                                   enum op_kind kind, uint32_t axes, enum format format)
{
    struct result_communication_time *to = LIST_ADD(result->communication_times, result->communication_time_count);
    *to                                  = *time;
    text_copy(to->kind, sizeof(to->kind), op_name(kind));
    axis_names(axes, to->axes, sizeof(to->axes));
    text_copy(to->format, sizeof(to->format), format_name(format));
}

// Sets the loss that initial weights must give, and its margin. Initial logits have a normal distribution with mean 0
// and `variance`, so the expected loss is log(vocab) + variance / 2. The margin is six standard errors of the mean loss
// of a step. Another nat allows for auxiliary losses, and for logits that are not quite normal.
//
// With scaled embeddings, the hidden state of a token may consist mostly of its embedding. A tied head then gives the
// token itself the logit `own`, and the loss may reach this value.
static void set_start_loss(struct result *result, const struct model_config *model)
{
    double deviation          = model->init_deviation * model->logit_scale;
    double variance           = (double)model->hidden * deviation * deviation;
    double tokens             = (double)(result->sequence * result->global_batch);
    double own                = model->tied && model->embedding_scale > 1.0 ? (double)model->hidden * deviation : 0.0;
    result->start_loss        = log((double)model->vocab) + variance / 2;
    result->start_loss_margin = 1 + 6 * sqrt(variance / tokens) + fmax(0.0, own - result->start_loss);
}

void result_set_plan(struct result *result, const struct plan *plan, const struct published_config *published)
{
    const struct model_config *model = &plan->model;

    result->mesh         = plan->mesh;
    result->sequence     = plan->train.sequence;
    result->micro_batch  = plan->train.micro_batch;
    result->global_batch = plan->train.global_batch;
    result->accumulation = plan->train.accumulation;
    result->layers       = model->layers;
    set_start_loss(result, model);
    result->parameters        = layers_parameters(model);
    result->active_parameters = layers_active_parameters(model);
    result->tensor_count      = plan->tensor_count;
    result->op_count          = plan->op_count;
    result->live_bytes        = plan->activation_live_bytes;
    memcpy(result->storage_bytes, plan->storage_bytes, sizeof(result->storage_bytes));
    for (int i = 0; i < FLOPS_HARDWARE; i++) {
        result->flops_per_sequence[i] = layers_flops(model, published, (enum flop_convention)i, result->sequence);
    }
    struct account *account = memory_allocate(sizeof(*account));
    plan_account(plan, account);
    set_account(result, account);
    free(account);
}

void result_set_published(struct result *result, const struct published_config *published, bool is_comparable)
{
    bool is_published = is_comparable && published->step_seconds > 0;
    text_copy(result->published_source, sizeof(result->published_source), published->source);
    result->published_seconds = is_published ? published->step_seconds : NAN;
    result->published_mfu     = is_published && published->mfu_percent > 0 ? published->mfu_percent / 100 : NAN;
}

// Returns the mean time of steps 35 to 44 of the run, which older published tables report; NaN: the run is shorter.
static double mean_35_44(const struct result *result)
{
    double sum = 0;
    if (result->step_count < 45) {
        return NAN;
    }
    for (int64_t i = 35; i <= 44; i++) {
        sum += result->steps[i].seconds;
    }
    return sum / 10;
}

// Returns the seconds of the measured steps and the index of the first one. The caller frees the array.
static double *measured_seconds(const struct result *result, int64_t *first)
{
    double *seconds = memory_allocate((size_t)(result->step_count + 1) * sizeof(*seconds));
    *first          = 0;
    while (*first < result->step_count && result->steps[*first].phase == STEP_WARMUP) {
        ++*first;
    }
    for (int64_t i = *first; i < result->step_count; i++) {
        seconds[i - *first] = result->steps[i].seconds;
    }
    return seconds;
}

double result_half_width(const struct result *result)
{
    int64_t first;
    double *seconds = measured_seconds(result, &first);
    double  width   = statistics_half_width(seconds, result->step_count - first);
    free(seconds);
    return width;
}

static void derive_steps(struct result *result)
{
    struct result_figures *figures = &result->figures;
    int64_t                first;
    double                *seconds = measured_seconds(result, &first);
    bool                  *flags   = memory_allocate((size_t)(result->step_count + 1) * sizeof(*flags));
    figures->warmup_steps          = first;
    figures->measured_steps        = result->step_count - first;
    statistics_compute(&figures->step, seconds, figures->measured_steps);
    statistics_flag_outliers(seconds, figures->measured_steps, flags);
    for (int64_t i = 0; i < result->step_count; i++) {
        result->steps[i].is_outlier = i >= first && flags[i - first];
    }
    figures->last_step_seconds  = result->step_count > 0 ? result->steps[result->step_count - 1].seconds : NAN;
    figures->mean_35_44_seconds = mean_35_44(result);
    free(seconds);
    free(flags);
}

double result_peak(const struct result *result, enum flop_convention convention)
{
    return peak_for_convention(convention, result->peak, result->published_peak);
}

double result_ideal_seconds(const struct result *result, enum flop_convention convention)
{
    return result->flops_per_sequence[convention] * (double)result->global_batch / (double)result->mesh.world /
           result_peak(result, convention);
}

double result_utilization(const struct result *result, enum flop_convention convention, double seconds)
{
    return peak_share(result_ideal_seconds(result, convention), seconds);
}

void result_derive(struct result *result)
{
    struct result_figures *figures = &result->figures;
    derive_steps(result);

    double sequences    = (double)result->global_batch / (figures->step.median * (double)result->mesh.world);
    figures->convention = isnan(result->flops_per_sequence[FLOPS_PUBLISHED]) ? FLOPS_FULL : FLOPS_PUBLISHED;
    for (int i = 0; i < FLOPS_COUNT; i++) {
        figures->utilization[i] = result_utilization(result, (enum flop_convention)i, figures->step.median);
    }
    figures->teraflops_per_rank         = result->flops_per_sequence[figures->convention] * sequences / 1e12;
    figures->tokens_per_step            = (double)result->global_batch * (double)result->sequence;
    figures->tokens_per_second_per_rank = (double)result->sequence * sequences;
    figures->tokens_per_second          = figures->tokens_per_step / figures->step.median;
    figures->days_per_trillion_tokens   = result->is_proxy ? NAN : 1e12 / figures->tokens_per_second / 86400;
    figures->published_ratio =
        result_slowed_by(result) != NULL ? NAN : figures->step.median / result->published_seconds;
    devices_derive_energy(result);
}

bool result_is_predicted(const struct result *result)
{
    return result->trace.source == RESULT_PREDICTED;
}

bool result_is_simulated(const struct result *result)
{
    return result->emulation.stages > 0 || result_is_predicted(result);
}

bool result_is_right(const struct result *result)
{
    return result->verdict == VERDICT_VALID || result->verdict == VERDICT_DEGRADED;
}

bool result_is_clean(const struct result *result)
{
    return result->verdict == VERDICT_VALID || result->verdict == VERDICT_EMULATED ||
           result->verdict == VERDICT_PREDICTED;
}

bool result_is_shown(const struct result *result)
{
    return result->verdict <= VERDICT_PREDICTED;
}

bool result_reason_slows(const struct result_reason *reason)
{
    const char *id = reason->id;
    return strcmp(id, RESULT_PROFILED) == 0 || strcmp(id, RESULT_CHECKED) == 0 || strcmp(id, RESULT_FAULT) == 0;
}

const char *result_slowed_by(const struct result *result)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        if (result_reason_slows(&result->reasons[i])) {
            return result->reasons[i].id;
        }
    }
    return NULL;
}
