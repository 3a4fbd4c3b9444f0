// SPDX-License-Identifier: MIT
// Executes one rank of each selected pipeline stage, without the other ranks (src/comm/alone.c), and collects the op
// times. simulated.c simulates the whole job with these times.
#include "gswbench/emulate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/statistics.h"
#include "gswbench/step.h"
#include "gswbench/verify.h"

static int by_key(const void *left, const void *right)
{
    const struct measured_op *a = left, *b = right;
    int                       order = memcmp(&a->key, &b->key, sizeof(a->key));
    return order != 0 ? order : (a->seconds.value > b->seconds.value) - (a->seconds.value < b->seconds.value);
}

void emulate_add(struct emulation *emulation, const struct measured_op *op)
{
    LIST_APPEND(emulation->measured, emulation->measured_count, *op);
}

// Adds the median time of each compute op of one stage. times: [repeats][op_count].
static void add_measured(struct emulation *emulation, const struct plan *plan, const struct op_time *times)
{
    double *seconds = memory_allocate((size_t)emulation->repeats * sizeof(*seconds));
    for (int32_t i = 0, before = -1; i < plan->op_count; i++) {
        if (plan->ops[i].stream != STREAM_COMPUTE) {
            continue;
        }
        int32_t previous = before;
        before           = i;
        if (op_is_communication((enum op_kind)plan->ops[i].kind)) {
            continue;
        }
        // The time of an op starts at the end of the previous op, so it includes the launch overhead. If the op waits
        // for another stream, its time starts at its own start.
        bool follows = previous >= 0 && plan->ops[i].wait_count == 0;
        for (int64_t repeat = 0; repeat < emulation->repeats; repeat++) {
            const struct op_time *own = times + repeat * plan->op_count;
            seconds[repeat]           = own[i].end - (follows ? own[previous].end : own[i].begin);
        }
        struct statistics statistics;
        statistics_compute(&statistics, seconds, emulation->repeats);
        struct measured_op op = {.seconds = {.value = statistics.median, .origin = QUANTITY_MEASURED}};
        op_key_init(&op.key, plan, &plan->ops[i]);
        emulate_add(emulation, &op);
    }
    free(seconds);
}

static void run_steps(struct emulation *emulation, const struct plan *plan, struct step *step)
{
    const struct run_config *run   = emulation->run;
    size_t                   count = (size_t)(emulation->repeats * plan->op_count);
    struct op_time          *times = memory_allocate(count * sizeof(*times));
    data_initialise(step, plan, (uint64_t)run->seed);
    for (int64_t i = 0; i <= emulation->repeats; i++) {
        data_fill(step, plan, (enum data_kind)run->data, (uint64_t)run->seed, i);
        step_trace(step, i > 0 ? times + (i - 1) * plan->op_count : NULL);
        step_run(step);
        float loss, norm;
        step_read(step, plan->loss, &loss);
        step_read(step, plan->gradient_norm, &norm);
        emulation->has_failed |= !isfinite(loss) || !isfinite(norm);
    }
    add_measured(emulation, plan, times);
    free(times);
}

static status execute(struct emulation *emulation, const struct plan *plan)
{
    struct comm  comm;
    struct step *step;
    comm_open_alone(&comm);
    TRY(step_prepare(plan, emulation->backend));
    status result = step_open(&step, plan, emulation->backend, &comm);
    if (!failed(&result)) {
        int64_t held               = emulation->backend->allocated_bytes;
        emulation->allocated_bytes = held > emulation->allocated_bytes ? held : emulation->allocated_bytes;
        run_steps(emulation, plan, step);
        step_close(step);
    }
    comm_close(&comm);
    return result;
}

// Returns whether to execute a stage. EMULATE_DISTINCT: only if it has a compute op that no earlier stage has.
static bool is_wanted(const struct emulation *emulation, const struct plan *plan, int64_t stage)
{
    bool is = emulation->stages == EMULATE_ALL || (emulation->stages == EMULATE_FIRST && stage == 0);
    if (emulation->stages == EMULATE_DISTINCT) {
        struct measured_ops list;
        emulate_list(emulation, &list);
        for (int32_t i = 0; i < plan->op_count && !is; i++) {
            is = plan->ops[i].stream == STREAM_COMPUTE && measured_find(&list, plan, &plan->ops[i]) == NULL;
        }
        measured_free(&list);
    }
    return is;
}

static status emulate_stage(struct emulation *emulation, int64_t stage)
{
    struct plan plan;
    status      result = plan_build_stage(&plan, emulation->request, stage);
    int64_t     rank   = plan.rank;
    if (!failed(&result) && is_wanted(emulation, &plan, stage)) {
        // On the host backend, the ops that replace communication would take cores from compute, so all streams run in
        // sequence.
        if (!emulation->backend->ops->is_device) {
            order_join_streams(&plan);
        }
        result = plan_verify(&plan, NULL);
        result = failed(&result) ? result : execute(emulation, &plan);
        emulation->executed++;
    }
    plan_free(&plan);
    return !failed(&result)
               ? OK
               : fail_as(result.exit_code, "stage %" PRId64 " (rank %" PRId64 "): %.900s", stage, rank, result.text);
}

status emulate(struct emulation *emulation)
{
    emulation->stage_count = emulation->request->mesh.size[AXIS_PP];
    for (int64_t stage = 0; stage < emulation->stage_count; stage++) {
        TRY(emulate_stage(emulation, stage));
    }
    return OK;
}

void emulate_free(struct emulation *emulation)
{
    free(emulation->measured);
}

// Returns the median of the sorted times of equal ops, and their standard deviation, estimated from the interquartile
// range.
static struct measured_op summarise(const struct measured_op *ops, int64_t count)
{
    struct measured_op middle = ops[count / 2];
    double             low = ops[count / 4].seconds.value, high = ops[3 * count / 4].seconds.value;
    double             median     = middle.seconds.value;
    middle.seconds.spread_percent = median > 0.0 ? 100.0 / 1.349 * (high - low) / median : 0.0;
    return middle;
}

void emulate_list(const struct emulation *emulation, struct measured_ops *list)
{
    size_t              bytes  = (size_t)emulation->measured_count * sizeof(*emulation->measured);
    struct measured_op *sorted = memory_allocate(bytes);
    *list                      = (struct measured_ops){.ops = sorted};
    if (emulation->measured_count > 0) {
        memcpy(sorted, emulation->measured, bytes);
        qsort(sorted, (size_t)emulation->measured_count, sizeof(*sorted), by_key);
    }
    for (int64_t first = 0, end; first < emulation->measured_count; first = end) {
        for (end = first + 1; end < emulation->measured_count; end++) {
            if (memcmp(&sorted[first].key, &sorted[end].key, sizeof(sorted[first].key)) != 0) {
                break;
            }
        }
        list->ops[list->count++] = summarise(&sorted[first], end - first);
    }
}
