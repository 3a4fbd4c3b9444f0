// SPDX-License-Identifier: MIT
// Plans and opens the step, and times its ops between events.
#include "device_block.h"

#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/plan_build.h"
#include "gswbench/statistics.h"
#include "gswbench/step.h"

// Divisors of the model sizes on an emulated device, which is slow.
enum {
    HEADS_SHRINK    = DEVICE_SHRINKS > 1 ? 16 : 1,
    KV_HEADS_SHRINK = DEVICE_SHRINKS > 1 ? 8 : 1,
    HEAD_SHRINKS    = DEVICE_SHRINKS > 1 ? 4 : 1
};

static void build(struct device_block *bench)
{
    const struct layer     *layer = bench->layer;
    struct model_config     model;
    struct parallel_config  parallel;
    struct train_config     train;
    struct precision_config precision;
    model_set_defaults(&model);
    option_set_defaults(parallel_options, &parallel);
    option_set_defaults(train_options, &train);
    option_set_defaults(precision_options, &precision);
    model.layers      = 1;
    model.hidden      = layer->hidden / DEVICE_SHRINKS;
    model.heads       = layer->heads / HEADS_SHRINK;
    model.kv_heads    = layer->kv_heads / KV_HEADS_SHRINK;
    model.head_dim    = 128 / HEAD_SHRINKS;
    model.ffn         = layer->ffn / DEVICE_SHRINKS;
    model.vocab       = 1024 / HEADS_SHRINK;
    train.sequence    = layer->sequence / DEVICE_SHRINKS;
    train.micro_batch = layer->batch;
    train.recompute   = RECOMPUTE_NONE;
    parallel.dp       = 1;
    precision.compute = bench->recipe->compute;
    precision.recipe  = bench->recipe->fp8;
    struct plan_request request;
    device_require(plan_resolve(&request, &(struct plan_sections){&model, &parallel, &train, &precision, 1}));
    device_require(plan_build(&bench->plan, &request));
}

bool is_of_block(const struct op *op)
{
    return op->tag.layer == 0 && (op->tag.phase == PHASE_FORWARD || op->tag.phase == PHASE_BACKWARD);
}

// Finds the op ranges of the block, and the operands of every op.
static void find_ops(struct device_block *bench)
{
    const struct plan *plan = &bench->plan;
    bench->buffers          = memory_allocate((size_t)plan->op_count * sizeof(*bench->buffers));
    bench->prepared         = memory_allocate((size_t)plan->op_count * sizeof(*bench->prepared));
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->stream != STREAM_COMPUTE) {
            FATAL(EXIT_INTERNAL, "a plan of one rank has ops on streams other than compute");
        }
        for (int slot = 0; slot < op->operand_count; slot++) {
            if (op->operand[slot] >= 0) {
                bench->buffers[i][slot] = step_buffer(bench->step, op->operand[slot]);
            }
        }
        device_require(backend_prepare(&bench->device->backend, op, bench->buffers[i], &bench->prepared[i]));
        int pass = op->tag.phase == PHASE_BACKWARD;
        if (is_of_block(op)) {
            bench->begin[pass] = bench->end[pass] == 0 ? i : bench->begin[pass];
            bench->end[pass]   = i + 1;
        }
    }
}

void open_block(struct device_block *bench, struct device *device, const struct layer *layer,
                const struct recipe *recipe)
{
    *bench = (struct device_block){.device = device, .layer = layer, .recipe = recipe, .hub = local_hub_open(1)};
    snprintf(bench->name, sizeof(bench->name), "%s, %s", layer->name, recipe->name);
    build(bench);
    comm_open_local(&bench->comm, bench->hub, 0);
    device_require(step_prepare(&bench->plan, &device->backend));
    device_require(step_open(&bench->step, &bench->plan, &device->backend, &bench->comm));
    data_initialise(bench->step, &bench->plan, 1);
    data_fill(bench->step, &bench->plan, DATA_UNIFORM, 1, 0);
    find_ops(bench);
    gemm_cache_keep(device->backend.ops->choices->cache(&device->backend));    // a killed benchmark keeps its tuning
}

void close_block(struct device_block *bench)
{
    step_close(bench->step);
    comm_close(&bench->comm);
    local_hub_close(bench->hub);
    plan_free(&bench->plan);
    free(bench->prepared);
    free(bench->buffers);
}

// Enqueues a step. Records an event before each op in marks, and after the step if the last mark is op_count. marks are
// op indices in ascending order.
static void enqueue_step(struct device_block *bench, const int32_t *marks, void *const *events, int32_t count)
{
    struct device *device = bench->device;
    int32_t        next   = 0;
    for (int32_t i = 0; i <= bench->plan.op_count; i++) {
        for (; next < count && marks[next] == i; next++) {
            device->streams->record(&device->backend, STREAM_COMPUTE, events[next]);
        }
        if (i < bench->plan.op_count) {
            backend_run(&device->backend, bench->prepared[i], &bench->plan.ops[i], bench->buffers[i]);
        }
    }
    device->streams->synchronize(&device->backend, STREAM_COMPUTE);
}

struct alone {
    struct device_block *bench;
    int32_t              index;
};

static void run_alone(void *argument)
{
    const struct alone        *alone = argument;
    const struct device_block *bench = alone->bench;
    backend_run(&bench->device->backend, bench->prepared[alone->index], &bench->plan.ops[alone->index],
                bench->buffers[alone->index]);
}

double measure_alone(struct device_block *bench, int32_t index)
{
    struct alone alone = {bench, index};
    return device_median_seconds(bench->device, run_alone, &alone, 0.1);
}

void measure_marks(struct device_block *bench, const int32_t *marks, int32_t count, double *medians)
{
    struct device *device  = bench->device;
    void         **events  = memory_allocate((size_t)count * sizeof(*events));
    double        *seconds = memory_allocate((size_t)count * DEVICE_RUNS * sizeof(*seconds));
    for (int32_t i = 0; i < count; i++) {
        events[i] = device->streams->event_open(&device->backend, true);
    }
    for (int run = 0; run < DEVICE_RUNS; run++) {
        enqueue_step(bench, marks, events, count);
        for (int32_t i = 0; i + 1 < count; i++) {
            seconds[i * DEVICE_RUNS + run] = device->streams->seconds_between(events[i], events[i + 1]);
        }
    }
    for (int32_t i = 0; i + 1 < count; i++) {
        struct statistics statistics;
        statistics_compute(&statistics, &seconds[i * DEVICE_RUNS], DEVICE_RUNS);
        medians[i] = statistics.median;
    }
    for (int32_t i = 0; i < count; i++) {
        device->streams->event_close(events[i]);
    }
    free(events);
    free(seconds);
}
