// SPDX-License-Identifier: MIT
// Decides about CUDA graphs. On one node replay saves host time at no cost. Between nodes, network proxy threads serve
// the collectives, so warm-up steps are timed in both modes and the faster one stays.
#include "internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "gswbench/clock.h"
#include "gswbench/statistics.h"

enum { TRIED_MAX = 3 };

struct graphs_plan graphs_plan(enum graphs choice, bool can_capture, int nodes, int64_t warmup)
{
    struct graphs_plan plan = {.capture_after = -1};
    if (choice == GRAPHS_OFF || !can_capture) {
        return plan;
    }
    // The first step and the first replay are cold.
    int64_t room       = (warmup - 2) / 2;
    plan.tried         = choice != GRAPHS_AUTO || nodes == 1 || room < 1 ? 0 : room < TRIED_MAX ? room : TRIED_MAX;
    plan.capture_after = plan.tried;
    return plan;
}

bool graphs_is_captured_faster(const struct graphs_plan *plan, const struct result_step *steps, double seconds[2])
{
    double times[2][TRIED_MAX];
    for (int64_t i = 0; i < plan->tried; i++) {
        times[0][i] = steps[1 + i].seconds;
        times[1][i] = steps[plan->capture_after + 2 + i].seconds;
    }
    seconds[0] = statistics_median(times[0], plan->tried);
    seconds[1] = statistics_median(times[1], plan->tried);
    return seconds[1] <= seconds[0];
}

// If one rank cannot capture, none does: eager and replayed steps must not be mixed.
static status capture(struct steps *steps)
{
    ranges_begin(steps->ranges, RANGE_CAPTURE, 0);
    double began = clock_seconds();
    status own   = step_capture(steps->step);
    steps->result->capture_seconds += clock_seconds() - began;
    ranges_end(steps->ranges);
    status captured = comm_agree(steps->comm, own);
    if (!failed(&captured)) {
        return OK;
    }
    if (steps->benchmark->job.config.run.graphs == GRAPHS_ON) {
        return fail_as(captured.exit_code, "[run] graphs = on: %.800s; use graphs = auto to run without a CUDA graph",
                       captured.text);
    }
    step_forget(steps->step);
    steps->graphs.tried = 0;
    result_note(steps->result, NOTE("graphs-off"), "no CUDA graph, ops are launched one by one: %.180s", captured.text);
    return OK;
}

status graphs_follow(struct steps *steps, int64_t index)
{
    if (index == 0 && steps->backend->ops->streams != NULL && steps->plan->row_count_total > 0 &&
        steps->benchmark->job.config.run.graphs == GRAPHS_AUTO) {
        result_note(steps->result, NOTE("graphs-off"),
                    "no CUDA graph, ops are launched one by one: dropless experts need token counts on the host");
    }
    return index == steps->graphs.capture_after ? capture(steps) : OK;
}

// Rank 0 decides and broadcasts, which guarantees one answer.
void graphs_decide(struct steps *steps, int64_t index)
{
    const struct graphs_plan *plan   = &steps->graphs;
    struct result            *result = steps->result;
    double                    seconds[2];
    if (plan->tried == 0 || index != plan->capture_after + 1 + plan->tried) {
        return;
    }
    int32_t stays = graphs_is_captured_faster(plan, result->steps, seconds);
    steps->comm->ops->share(steps->comm, &stays, sizeof(stays), 0);
    result->eager_seconds  = seconds[0];
    result->replay_seconds = seconds[1];
    if (stays == 0) {
        step_forget(steps->step);
    }
    result_note(result, NOTE("graphs-timed"),
                "on %d nodes, a step takes %.6g s as a CUDA graph and %.6g s op by op (medians of %" PRId64
                " warm-up steps each): steps run %s",
                steps->comm->topology.nodes, seconds[1], seconds[0], plan->tried,
                stays != 0 ? "as a CUDA graph" : "op by op");
}
