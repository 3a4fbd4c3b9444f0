// SPDX-License-Identifier: MIT
// What a simulated job did with its time. The plan of a stage is built again: those of all stages would take more
// memory than all else that a prediction keeps.
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/timeline.h"
#include "internal.h"

// Compute stands still for a transfer beside what the simulation knows of it: it is exposed.
static void add_stalls(struct waterfall *waterfall, const struct machine *machine, const struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op_is_transfer((enum op_kind)op->kind)) {
            uint32_t axes = plan->groups[op->shape.transfer.group].axes;
            waterfall->seconds[waterfall_exposed(axes)] += predict_price_op(machine, plan, op).stall_seconds;
        }
    }
}

static void explain_stage(struct predict_explanation *explanation, const struct prediction *prediction,
                          const struct explained *explained, const struct plan *plan)
{
    int64_t           stage    = prediction->busiest_stage;
    double            overhead = explained->machine->hardware->step_overhead.value;
    double            beside   = prediction->straggler_seconds + overhead + explained->job->stages[stage].stall_seconds;
    double           *prices   = memory_allocate((size_t)plan->op_count * sizeof(*prices));
    struct waterfall *waterfall = &explanation->waterfall;
    struct waterfall_step step  = {.plan            = plan,
                                   .times           = explained->times[stage].tasks,
                                   .prices          = prices,
                                   .step_seconds    = prediction->step_seconds - beside,
                                   .ideal_seconds   = explanation->ideal_seconds,
                                   .attention_share = explanation->attention_share};
    for (int32_t i = 0; i < plan->op_count; i++) {
        prices[i] = predict_price_op(explained->machine, plan, &plan->ops[i]).seconds;
    }
    waterfall_compute(waterfall, &step);
    add_stalls(waterfall, explained->machine, plan);
    waterfall->seconds[WATERFALL_STRAGGLERS] += prediction->straggler_seconds;
    waterfall->seconds[WATERFALL_UNEXPLAINED] += overhead;
    free(prices);
}

status explain_job(struct predict_explanation *explanation, const struct prediction *prediction,
                   const struct explained *explained)
{
    for (int64_t stage = 0; stage < prediction->stages; stage++) {
        bool                is_busiest = stage == prediction->busiest_stage;
        struct plan         plan;
        struct plan_request own = *explained->request;
        if (!is_busiest && explanation->timeline == NULL) {
            continue;
        }
        own.rank      = explained->job->stages[stage].rank;
        status result = plan_build(&plan, &own);
        if (is_busiest && !failed(&result)) {
            explain_stage(explanation, prediction, explained, &plan);
        }
        if (explanation->timeline != NULL && !failed(&result)) {
            timeline_write_rank(&plan, explained->times[stage].tasks, stage == 0, explanation->timeline);
        }
        plan_free(&plan);
        TRY(result);
    }
    return OK;
}
