// SPDX-License-Identifier: MIT
// Compares times of ops by CUDA events and by CUPTI. CUPTI reports when the GPU is busy, which cannot be longer than
// the time between the events of the op, and most ops must have such a time. trace_emulated.sh runs this with a fake
// CUPTI.
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "gswbench/step.h"
#include "layouts.h"

// The two times are from different steps, which clocks and caches make different. Also, an event is recorded
// microseconds after it is reached.
static const double MAXIMUM = 1.3, SLACK_SECONDS = 20e-6;

static int compare(const struct plan *plan, const struct op_time *events, const struct op_time *notes)
{
    double by_events = 0.0, by_notes = 0.0;
    int    wrong = 0, idle = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        double between = events[i].end - events[i].begin, worked = notes[i].end - notes[i].begin;
        by_events += between;
        by_notes += worked;
        idle += worked == 0.0;
        if (!(worked >= 0.0 && worked <= MAXIMUM * between + SLACK_SECONDS && notes[i].begin >= 0.0)) {
            printf("FAIL op %d, %s %s: %.1f us by CUPTI, %.1f us by events\n", i,
                   op_name((enum op_kind)plan->ops[i].kind), plan->ops[i].tag.role, 1e6 * worked, 1e6 * between);
            wrong++;
        }
    }
    printf("%d ops: %.1f us by CUPTI, %.1f us by events, %d without work\n", plan->op_count, 1e6 * by_notes,
           1e6 * by_events, idle);
    return wrong + (idle > plan->op_count / 4);
}

static void run_steps(struct step *step, const struct plan *plan)
{
    for (int i = 0; i < 2; i++) {
        data_fill(step, plan, DATA_UNIFORM, 1, i);
        step_run(step);
    }
}

// The model is small, since an emulated GPU must run it, too.
static void init(struct tiny *tiny)
{
    tiny_init(tiny);
    layout_apply(tiny, "hidden 64; head_dim 16; ffn 96; sequence 32; compute bf16");
}

int main(void)
{
    struct tiny       tiny;
    struct backend    backend = {.ops = &backend_cuda};
    struct local_hub *hub     = local_hub_open(1);
    struct comm       comm;
    struct step      *step;
    int64_t           lost;
    device_require();
    init(&tiny);
    tiny_plan_rank(&tiny, 1, 0);
    comm_open_local(&comm, hub, 0);
    device_check(backend.ops->open(&backend, &device_setup));
    device_check(step_prepare(&tiny.plan, &backend));
    device_check(step_open(&step, &tiny.plan, &backend, &comm));
    data_initialise(step, &tiny.plan, 1);
    struct op_time *events = calloc((size_t)tiny.plan.op_count, sizeof(*events));
    struct op_time *notes  = calloc((size_t)tiny.plan.op_count, sizeof(*notes));
    run_steps(step, &tiny.plan);
    step_trace(step, events);
    run_steps(step, &tiny.plan);
    status traced = step_trace_noted(step, notes);
    if (failed(&traced)) {
        printf("skipped: %s\n", traced.text);
        return DEVICE_SKIPPED;
    }
    run_steps(step, &tiny.plan);
    device_check(step_read_noted(step, &lost));
    step_trace(step, NULL);
    int wrong = compare(&tiny.plan, events, notes) + (lost != 0);
    free(events);
    free(notes);
    step_close(step);
    comm_close(&comm);
    local_hub_close(hub);
    backend_close(&backend);
    plan_free(&tiny.plan);
    return wrong != 0;
}
