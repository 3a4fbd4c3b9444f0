// SPDX-License-Identifier: MIT
// Divides the time of a step into parts (a waterfall), from the start and end of each op. Busy time of the compute
// stream is divided by op kind, and each of its gaps by the ops that the next compute op waited for.
#include "gswbench/waterfall.h"

#include <math.h>
#include <stdlib.h>

#include "gswbench/json.h"
#include "gswbench/op_table.h"

// clang-format off
// The parts of a step, except exposed communication, which has a part per axis: NAME, JSON key.
#define FIRST_PARTS(PART) \
    PART(IDEAL, ideal) PART(GEMM, gemm) PART(ATTENTION, attention) PART(MEMORY, memory) PART(CAST, cast) \
    PART(RECOMPUTE, recompute) PART(OPTIMIZER, optimizer) PART(BUBBLE, bubble)
#define LAST_PARTS(PART) \
    PART(LAUNCH, launch) PART(CONTENTION, contention) PART(STRAGGLERS, stragglers) PART(UNEXPLAINED, unexplained)
#define PART_NAME(NAME, key)      [WATERFALL_##NAME] = #key,
#define EXPOSED_NAME(NAME, key, ...) [WATERFALL_EXPOSED_##NAME] = "exposed-" #key,
const char *const waterfall_part_names[] = {
    FIRST_PARTS(PART_NAME) AXES(EXPOSED_NAME) LAST_PARTS(PART_NAME) [WATERFALL_PARTS] = NULL};

#define PLACE(key, part)           JSON_PLACE(JSON_FIELD_REAL, key, part, sizeof(double)),
#define PART_FIELD(NAME, key)      PLACE(#key, WATERFALL_##NAME)
#define EXPOSED_FIELD(NAME, key, ...) PLACE("exposed_" #key, WATERFALL_EXPOSED_##NAME)
const struct json_field waterfall_fields[] = {
    FIRST_PARTS(PART_FIELD) AXES(EXPOSED_FIELD) LAST_PARTS(PART_FIELD) JSON_END};
// clang-format on

enum { NONE = -1 };

// Communication ops with the same kind, group and size: the first of them, and the shortest time among them in seconds.
struct op_class {
    const struct op *first;
    double           shortest;
};

struct analysis {
    const struct waterfall_step *step;
    struct op_time              *times;       // [op_count]: start of each op after its launch overhead, and its end
    double                      *seconds;     // [WATERFALL_PARTS]: the result, seconds of each part
    int32_t                     *previous;    // [op_count]: the previous op on the op's stream; NONE: it is the first
    struct op_class             *op_classes;
    int32_t                      op_class_count;
};

static const struct op *op_at(const struct analysis *analysis, int32_t op)
{
    return &analysis->step->plan->ops[op];
}

static double duration(const struct analysis *analysis, int32_t op)
{
    return analysis->times[op].end - analysis->times[op].begin;
}

// Returns the axes of an op's group. Expert-parallel collectives count for ep, even if their group has only tp and cp
// ranks.
static uint32_t axes_of(const struct plan *plan, const struct op *op)
{
    return plan->groups[op->shape.communication.group].axes | (op->stream == STREAM_EXPERT ? 1u << AXIS_EP : 0);
}

static bool crosses_stages(const struct analysis *analysis, int32_t op)
{
    return (axes_of(analysis->step->plan, op_at(analysis, op)) & 1u << AXIS_PP) != 0;
}

// Returns whether an OP_CAST counts as a conversion. With equal formats it counts as a copy, and with accumulation as
// an addition.
static bool is_cast(const struct plan *plan, const struct op *op)
{
    const struct tensor *tensors = plan->tensors;
    return !op->accumulates && tensors[op->operand[CAST_IN]].format != tensors[op->operand[CAST_OUT]].format;
}

static enum waterfall_part part_of_compute(const struct plan *plan, const struct op *op)
{
    if (op->tag.phase == PHASE_RECOMPUTE) {
        return WATERFALL_RECOMPUTE;
    }
    if (op->tag.phase == PHASE_REDUCE || op->tag.phase == PHASE_OPTIMIZER) {
        return WATERFALL_OPTIMIZER;
    }
    switch ((enum op_part)op_table[op->kind].part) {
    case OP_PART_GEMM:
        return WATERFALL_GEMM;
    case OP_PART_ATTENTION:
        return WATERFALL_ATTENTION;
    case OP_PART_MEMORY:
        return WATERFALL_MEMORY;
    case OP_PART_CAST:
        return WATERFALL_CAST;
    case OP_PART_CONVERSION:
        return is_cast(plan, op) ? WATERFALL_CAST : WATERFALL_MEMORY;
    case OP_PART_NONE:
    case OP_PART_EXPOSED:
        break;
    }
    return WATERFALL_UNEXPLAINED;
}

enum waterfall_part waterfall_exposed(uint32_t axes)
{
    // clang-format off
#define AXIS_PART(NAME, ...) [AXIS_##NAME] = WATERFALL_EXPOSED_##NAME,
    static const enum waterfall_part parts[] = {AXES(AXIS_PART) [AXIS_COUNT] = WATERFALL_UNEXPLAINED};
    // clang-format on
    return parts[axis_claims(axes)];    // AXIS_COUNT if `axes` is 0
}

static bool are_alike(const struct op *a, const struct op *b)
{
    return a->kind == b->kind && a->shape.communication.group == b->shape.communication.group &&
           a->shape.communication.elements == b->shape.communication.elements;
}

static struct op_class *find_op_class(struct analysis *analysis, const struct op *op)
{
    for (int32_t i = 0; i < analysis->op_class_count; i++) {
        if (are_alike(analysis->op_classes[i].first, op)) {
            return &analysis->op_classes[i];
        }
    }
    struct op_class *added = LIST_ADD(analysis->op_classes, analysis->op_class_count);
    *added                 = (struct op_class){.first = op, .shortest = INFINITY};
    return added;
}

static double launch_seconds(const struct analysis *analysis, int32_t op)
{
    return analysis->step->launches != NULL ? analysis->step->launches[op] : 0.0;
}

// Returns the seconds of launch overhead at the start of an op's predicted time, in which the op does not run yet.
static double wait_seconds(const struct analysis *analysis, int32_t op)
{
    return launch_seconds(analysis, op) * analysis->step->launch_alone;
}

static void init(struct analysis *analysis)
{
    const struct waterfall_step *step = analysis->step;
    const struct plan           *plan = step->plan;
    int32_t                      last[STREAM_COUNT];
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        last[stream] = NONE;
    }
    analysis->previous = memory_allocate((size_t)plan->op_count * sizeof(*analysis->previous));
    analysis->times    = memory_allocate((size_t)plan->op_count * sizeof(*analysis->times));
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op      *op   = &plan->ops[i];
        const struct op_time *time = &step->times[i];
        // Ends are limited to the end of the step, because the clocks of step and ops differ by their resolution.
        analysis->times[i] =
            (struct op_time){.begin = fmin(time->begin + wait_seconds(analysis, i), step->step_seconds),
                             .end   = fmin(time->end, step->step_seconds)};
        int stream            = step->alone != NULL && step->alone[i] ? STREAM_COMPUTE : op->stream;
        analysis->previous[i] = last[stream];
        last[stream]          = i;
        if (op_is_communication((enum op_kind)op->kind)) {
            struct op_class *op_class = find_op_class(analysis, op);
            op_class->shortest        = fmin(op_class->shortest, duration(analysis, i));
        }
    }
}

// Returns when the data of a communication op starts to move. A measured op between pipeline stages begins when its
// stream reaches it, and may first wait for the other stage. Time beyond the shortest op with the same kind, group and
// size counts as waiting.
static double communication_begin(struct analysis *analysis, int32_t op)
{
    const struct op_time *time = &analysis->times[op];
    if (analysis->step->costs != NULL || !crosses_stages(analysis, op)) {
        return time->begin;
    }
    return time->end - find_op_class(analysis, op_at(analysis, op))->shortest;
}

// Returns the op that ended last among those that an op waits for: the previous op of its stream, ops of other streams,
// and in a simulation also the op step->held[index]. NONE: it waits for no op.
static int32_t cause_of(const struct analysis *analysis, int32_t index)
{
    const struct op      *op    = op_at(analysis, index);
    const struct op_time *times = analysis->times;
    int32_t               cause = analysis->previous[index];
    for (int i = 0; i < op->wait_count; i++) {
        cause = cause == NONE || times[op->wait[i]].end > times[cause].end ? op->wait[i] : cause;
    }
    int32_t held = analysis->step->held != NULL ? analysis->step->held[index] : NONE;
    if (held != NONE && (cause == NONE || times[held].end > times[cause].end)) {
        cause = held;
    }
    return cause;
}

enum waterfall_part waterfall_part_of(const struct plan *plan, const struct op *op)
{
    return op_is_communication((enum op_kind)op->kind) ? waterfall_exposed(axes_of(plan, op))
                                                       : part_of_compute(plan, op);
}

static void add(struct analysis *analysis, enum waterfall_part part, double seconds)
{
    analysis->seconds[part] += fmax(seconds, 0.0);    // clocks of streams differ, so `seconds` can be below 0
}

// Returns the time when all dependencies of an op had ended, but not before the gap that starts at `begin`.
static double ready_at(const struct analysis *analysis, double begin, int32_t cause)
{
    return cause == NONE ? begin : fmax(begin, analysis->times[cause].end);
}

// Adds the time from `ready` to the start of the op as launch overhead. Only a simulation has launch times of ops; in a
// measured step this time stays unexplained.
static void explain_host(struct analysis *analysis, int32_t op, double ready)
{
    if (launch_seconds(analysis, op) > 0.0) {
        add(analysis, WATERFALL_LAUNCH, analysis->times[op].begin - ready);
    }
}

// Divides a gap of the compute stream, from its end back to its start, along the chain of ops that the next compute op
// waited for. While an op of the chain ran, the gap is exposed communication. While it was ready but did not run yet,
// the gap is a bubble if the op is between pipeline stages, else launch overhead (explain_host).
static void explain_gap(struct analysis *analysis, double begin, double end, int32_t cause)
{
    while (cause != NONE && analysis->times[cause].end > begin) {
        int32_t before = cause_of(analysis, cause);
        double  ready  = ready_at(analysis, begin, before);
        double  began  = fmax(ready, communication_begin(analysis, cause));
        add(analysis, waterfall_exposed(axes_of(analysis->step->plan, op_at(analysis, cause))),
            fmin(end, analysis->times[cause].end) - began);
        if (crosses_stages(analysis, cause)) {
            add(analysis, WATERFALL_BUBBLE, began - ready);
        } else {
            explain_host(analysis, cause, ready);
        }
        cause = before;
    }
}

static void explain_compute(struct analysis *analysis, int32_t op)
{
    const struct waterfall_step *step    = analysis->step;
    double                       seconds = duration(analysis, op);
    double                       taken   = seconds + wait_seconds(analysis, op);
    double                       lost    = step->costs != NULL ? fmax(taken - step->costs[op], 0.0) : 0.0;
    add(analysis, part_of_compute(step->plan, op_at(analysis, op)), seconds - lost);
    add(analysis, WATERFALL_CONTENTION, lost);
}

// Assigns the time until the end of the rank's last op to the parts. In the rest of the step only other ranks are busy:
// a bubble if the job has a pipeline, else stragglers.
static void explain_streams(struct analysis *analysis)
{
    const struct plan    *plan  = analysis->step->plan;
    const struct op_time *times = analysis->times;
    double                idle  = 0.0;
    int32_t               last  = NONE;
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (plan->ops[i].stream == STREAM_COMPUTE) {
            int32_t cause = cause_of(analysis, i);
            explain_host(analysis, i, ready_at(analysis, idle, cause));
            explain_gap(analysis, idle, times[i].begin, cause);
            explain_compute(analysis, i);
            idle = times[i].end;
        }
        last = last == NONE || times[i].end > times[last].end ? i : last;
    }
    double end = last == NONE ? 0.0 : times[last].end;
    explain_gap(analysis, idle, end, last);
    add(analysis, plan->mesh.size[AXIS_PP] > 1 ? WATERFALL_BUBBLE : WATERFALL_STRAGGLERS,
        analysis->step->step_seconds - end);
}

// Moves `seconds` from a part to the ideal time, but not more than the part has: a FLOP convention may count more FLOPs
// than the step executes.
static void move_to_ideal(struct waterfall *waterfall, enum waterfall_part part, double seconds)
{
    double moved = fmin(seconds, waterfall->seconds[part]);
    waterfall->seconds[WATERFALL_IDEAL] += moved;
    waterfall->seconds[part] -= moved;
}

void waterfall_compute(struct waterfall *waterfall, const struct waterfall_step *step)
{
    *waterfall               = (struct waterfall){.seconds = {0.0}};
    struct analysis analysis = {.step = step, .seconds = waterfall->seconds};
    init(&analysis);
    explain_streams(&analysis);
    free(analysis.times);
    free(analysis.previous);
    free(analysis.op_classes);

    double attention = step->ideal_seconds * step->attention_share;
    move_to_ideal(waterfall, WATERFALL_ATTENTION, attention);
    move_to_ideal(waterfall, WATERFALL_GEMM, step->ideal_seconds - attention);
    double explained = 0.0;
    for (int part = 0; part < WATERFALL_UNEXPLAINED; part++) {
        explained += waterfall->seconds[part];
    }
    waterfall->seconds[WATERFALL_UNEXPLAINED] = fmax(step->step_seconds - explained, 0.0);
}

double waterfall_compute_seconds(const struct plan *plan, const struct op_time *times)
{
    double seconds = 0.0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        seconds += plan->ops[i].stream == STREAM_COMPUTE ? times[i].end - times[i].begin : 0.0;
    }
    return seconds;
}

void waterfall_add_op(struct op_totals *totals, const struct plan *plan, const struct op *op, double seconds)
{
    totals->count[op->kind][op->tag.phase]++;
    totals->seconds[op->kind][op->tag.phase] += seconds;
    totals->flops[op->kind][op->tag.phase] += op_flops(op);
    totals->bytes[op->kind][op->tag.phase] += plan_op_bytes(plan, op);
}

void waterfall_sum_ops(struct op_totals *totals, const struct plan *plan, const struct op_time *times)
{
    *totals = (struct op_totals){.count = {{0}}};
    for (int32_t i = 0; i < plan->op_count; i++) {
        waterfall_add_op(totals, plan, &plan->ops[i], times[i].end - times[i].begin);
    }
}

static double sum_of(const struct waterfall *waterfall)
{
    double sum = 0.0;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        sum += waterfall->seconds[part];
    }
    return sum;
}

bool waterfall_shows(const struct waterfall *waterfall, enum waterfall_part part)
{
    return fabs(waterfall->seconds[part]) >= 0.0005 * sum_of(waterfall);
}

void waterfall_print(const struct waterfall *waterfall, const struct waterfall *expected, FILE *file)
{
    double sum      = sum_of(waterfall);
    int    decimals = sum < 1.0 ? 6 : 3;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        bool is_expected = expected != NULL && waterfall_shows(expected, (enum waterfall_part)part);
        if (!waterfall_shows(waterfall, (enum waterfall_part)part) && !is_expected) {
            continue;
        }
        fprintf(file, "  %-13s %*.*f s %6.1f %%", waterfall_part_names[part], 10, decimals, waterfall->seconds[part],
                100.0 * waterfall->seconds[part] / sum);
        if (expected != NULL) {
            fprintf(file, "  expected %*.*f s %+*.*f s", 10, decimals, expected->seconds[part], 10, decimals,
                    waterfall->seconds[part] - expected->seconds[part]);
        }
        fputc('\n', file);
    }
}
