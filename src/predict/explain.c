// SPDX-License-Identifier: MIT
// Computes the waterfall of a simulated step, and calls the caller's function `visit` for the first rank of each stage.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

// Adds the stalls of compute, which the simulation leaves out, to the exposed communication.
static void add_stalls(struct waterfall *waterfall, const struct machine *machine, const struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op_is_communication((enum op_kind)op->kind)) {
            uint32_t axes = plan->groups[op->shape.communication.group].axes;
            waterfall->seconds[waterfall_exposed(axes)] += predict_cost_op(machine, plan, op).stall_seconds;
        }
    }
}

// Returns the index of the task for which this task waits in addition to the waits of its op in the plan; -1: none.
// pipeline.c adds at most one such wait per task, if the modelled framework blocks compute during all-to-alls.
static int32_t find_held(const struct task *task, const struct op *op)
{
    for (int w = 0; w < task->wait_count; w++) {
        if (w >= op->wait_count || task->wait[w] != op->wait[w]) {
            return task->wait[w];
        }
    }
    return -1;
}

static void explain_stage(struct predict_explanation *explanation, const struct prediction *prediction,
                          const struct explained *explained)
{
    int64_t                       stage     = prediction->busiest_stage;
    const struct predict_stage   *costed    = &explained->pipeline->stages[stage];
    const struct hardware_config *hardware  = explained->machine->hardware;
    const struct plan            *plan      = &costed->plan;
    double                        overhead  = explained->machine->software->step_overhead.value;
    double                        beside    = prediction->straggler_seconds + overhead + costed->stall_seconds;
    double                       *costs     = memory_allocate((size_t)plan->op_count * sizeof(*costs));
    bool                         *alone     = memory_allocate((size_t)plan->op_count * sizeof(*alone));
    int32_t                      *held      = memory_allocate((size_t)plan->op_count * sizeof(*held));
    double                       *launches  = memory_allocate((size_t)plan->op_count * sizeof(*launches));
    struct waterfall             *waterfall = &explanation->waterfall;
    struct waterfall_step         step      = {.plan            = plan,
                                               .times           = explained->times[stage].tasks,
                                               .costs           = costs,
                                               .alone           = alone,
                                               .held            = held,
                                               .launches        = launches,
                                               .launch_alone    = hardware->launch_alone.value,
                                               .step_seconds    = prediction->step_seconds - beside,
                                               .ideal_seconds   = explanation->ideal_seconds,
                                               .attention_share = explanation->attention_share};
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct task *task = &explained->pipeline->simulation.actors[stage].tasks[i];
        costs[i]                = task->seconds;
        alone[i]                = task->stream != plan->ops[i].stream;
        held[i]                 = find_held(task, &plan->ops[i]);
        launches[i]             = task->launch_seconds;
    }
    waterfall_compute(waterfall, &step);
    add_stalls(waterfall, explained->machine, plan);
    waterfall->seconds[WATERFALL_STRAGGLERS] += prediction->straggler_seconds;
    waterfall->seconds[WATERFALL_UNEXPLAINED] += overhead;
    free(costs);
    free(alone);
    free(held);
    free(launches);
}

static bool shows(const void *state, int64_t rank)
{
    const struct explained *explained = state;
    for (int32_t stage = 0; stage < explained->pipeline->simulation.actor_count; stage++) {
        if (explained->pipeline->stages[stage].plan.rank == rank) {
            return true;
        }
    }
    return false;
}

void explain_pipeline(struct predict_explanation *explanation, const struct prediction *prediction,
                      const struct explained *explained)
{
    explain_stage(explanation, prediction, explained);
    for (int64_t stage = 0; stage < prediction->stages && explanation->visit != NULL; stage++) {
        explanation->visit(explanation->context,
                           &(struct predict_view){.plan       = &explained->pipeline->stages[stage].plan,
                                                  .times      = explained->times[stage].tasks,
                                                  .ranks      = {shows, explained},
                                                  .is_first   = stage == 0,
                                                  .is_busiest = stage == prediction->busiest_stage});
    }
}

status predict_explain_job(struct predict_explanation *explanation, struct prediction *prediction,
                           const struct job *job, const struct machine *machine)
{
    double ideal                 = job_ideal_seconds(job);
    explanation->ideal_seconds   = isnan(ideal) ? 0.0 : ideal;
    explanation->attention_share = job_attention_share(job);
    return predict_explain(explanation, prediction, &job->request, machine);
}
