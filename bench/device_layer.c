// SPDX-License-Identifier: MIT
// One block of published models on a device, forward and backward, inside whole training steps of a model that has a
// single block and a small vocabulary: the block's time, each op's beside its bound, and what lies between them; in
// BF16 and in FP8.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/data.h"
#include "gswbench/fatal.h"
#include "gswbench/peak.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/statistics.h"
#include "gswbench/step.h"
#include "support/device.h"

static const double warm_up_seconds = 5;

struct layer {
    const char *name;
    int64_t     hidden, heads, kv_heads, ffn, sequence, batch;
    double      forward, backward;    // FLOP/s of attention, as published for cuDNN 9.19 on an H200
    double      utilization;          // of the block in BF16: what is expected of this program
    double      fp8_utilization;
};

struct recipe {
    const char            *name;
    enum compute_precision compute;
    enum scaling_recipe    fp8;
};

struct bench {
    struct device       *device;
    const struct layer  *layer;
    const struct recipe *recipe;
    char                 name[96];
    struct plan          plan;
    struct step         *step;
    struct comm          comm;
    struct local_hub    *hub;
    struct buffer (*buffers)[OP_OPERANDS];    // [plan.op_count]
    int32_t begin[2], end[2];                 // ops of the block, forward and backward
};

static void build(struct bench *bench)
{
    const struct layer     *layer = bench->layer;
    struct model_config     model;
    struct parallel_config  parallel;
    struct train_config     train;
    struct precision_config precision;
    option_set_defaults(model_options, &model);
    option_set_defaults(parallel_options, &parallel);
    option_set_defaults(train_options, &train);
    option_set_defaults(precision_options, &precision);
    model.layers         = 1;
    model.hidden         = layer->hidden;
    model.heads          = layer->heads;
    model.kv_heads       = layer->kv_heads;
    model.head_dim       = 128;
    model.ffn            = layer->ffn;
    model.vocab          = 1024;
    train.sequence       = layer->sequence;
    train.micro_batch    = layer->batch;
    train.recompute      = RECOMPUTE_NONE;
    parallel.dp          = 1;
    precision.compute    = bench->recipe->compute;
    precision.fp8_recipe = bench->recipe->fp8;
    struct plan_request request;
    device_require(plan_resolve(&request, &(struct plan_sections){&model, &parallel, &train, &precision, 1}));
    device_require(plan_build(&bench->plan, &request));
}

static bool is_of_block(const struct op *op)
{
    return op->tag.layer == 0 && (op->tag.phase == PHASE_FORWARD || op->tag.phase == PHASE_BACKWARD);
}

// Where the block's ops lie in the list, and the operands of all.
static void find_ops(struct bench *bench)
{
    const struct plan *plan = &bench->plan;
    bench->buffers          = memory_allocate((size_t)plan->op_count * sizeof(*bench->buffers));
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->lane != LANE_COMPUTE) {
            FATAL(EXIT_INTERNAL, "a plan of one rank has ops beside the compute lane");
        }
        for (int slot = 0; slot < op->operand_count; slot++) {
            if (op->operand[slot] >= 0) {
                bench->buffers[i][slot] = step_buffer(bench->step, op->operand[slot]);
            }
        }
        int pass = op->tag.phase == PHASE_BACKWARD;
        if (is_of_block(op)) {
            bench->begin[pass] = bench->end[pass] == 0 ? i : bench->begin[pass];
            bench->end[pass]   = i + 1;
        }
    }
}

static void open_bench(struct bench *bench, struct device *device, const struct layer *layer,
                       const struct recipe *recipe)
{
    *bench = (struct bench){.device = device, .layer = layer, .recipe = recipe, .hub = local_hub_open(1)};
    snprintf(bench->name, sizeof(bench->name), "%s, %s", layer->name, recipe->name);
    build(bench);
    comm_open_local(&bench->comm, bench->hub, 0);
    device_require(step_prepare(&bench->plan, &device->backend));
    device_require(step_open(&bench->step, &bench->plan, &device->backend, &bench->comm));
    data_initialise(bench->step, &bench->plan, 1);
    data_fill(bench->step, &bench->plan, DATA_UNIFORM, 1, 0);
    find_ops(bench);
}

static void close_bench(struct bench *bench)
{
    step_close(bench->step);
    comm_close(&bench->comm);
    local_hub_close(bench->hub);
    plan_free(&bench->plan);
    free(bench->buffers);
}

// Events before ops [event], and one after the last. marks: op numbers, ascending, [marks[count - 1] <= op_count].
static void enqueue_step(struct bench *bench, const int32_t *marks, void *const *events, int32_t count)
{
    struct device *device = bench->device;
    int32_t        next   = 0;
    for (int32_t i = 0; i <= bench->plan.op_count; i++) {
        for (; next < count && marks[next] == i; next++) {
            device->streams->record(&device->backend, LANE_COMPUTE, events[next]);
        }
        if (i < bench->plan.op_count) {
            const struct op *op = &bench->plan.ops[i];
            device->backend.ops->run[op->kind](&device->backend, op, bench->buffers[i]);
        }
    }
    device->streams->synchronize(&device->backend, LANE_COMPUTE);
}

// Median seconds from each mark to the next: [count - 1].
static void measure(struct bench *bench, const int32_t *marks, int32_t count, double *medians)
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

static double bound_of(const struct bench *bench, int32_t index)
{
    const struct op *op      = &bench->plan.ops[index];
    double           memory  = device_op_bytes(op, bench->buffers[index]) / device_memory_bytes;
    double           rate    = op->kind == OP_ATTENTION_FORWARD    ? bench->layer->forward
                               : op->kind == OP_ATTENTION_BACKWARD ? bench->layer->backward
                                                                   : device_gemm_flops(op, bench->buffers[index][GEMM_A].format);
    double           compute = op_flops(op) / rate;
    return compute > memory ? compute : memory;
}

struct sums {
    double seconds, bound_seconds, forward_flops;    // of the block
};

static struct sums report_ops(struct bench *bench, const double *seconds)
{
    struct sums sums = {0};
    for (int32_t i = 0; i < bench->plan.op_count; i++) {
        const struct op *op = &bench->plan.ops[i];
        char             name[96];
        snprintf(name, sizeof(name), "%s%s%s", op->tag.role,
                 op->tag.phase == PHASE_BACKWARD && strstr(op->tag.role, "gradient") == NULL ? ", backward" : "",
                 is_of_block(op) ? "" : ", outside");
        device_report(bench->device, &(struct device_record){.bench         = bench->name,
                                                             .name          = name,
                                                             .seconds       = seconds[i],
                                                             .bound_seconds = bound_of(bench, i),
                                                             .flops         = op_flops(op),
                                                             .bytes         = device_op_bytes(op, bench->buffers[i])});
        if (is_of_block(op)) {
            sums.seconds += seconds[i];
            sums.bound_seconds += bound_of(bench, i);
            sums.forward_flops += op->tag.phase == PHASE_FORWARD ? op_flops(op) : 0;
        }
    }
    return sums;
}

static void warm_up(struct bench *bench)
{
    for (double start = clock_seconds(); clock_seconds() - start < warm_up_seconds;) {
        step_run(bench->step);
    }
}

static double step_median(struct bench *bench)
{
    double seconds[DEVICE_RUNS];
    for (int run = 0; run < DEVICE_RUNS; run++) {
        step_run(bench->step);
        seconds[run] = step_device_seconds(bench->step);
    }
    struct statistics statistics;
    statistics_compute(&statistics, seconds, DEVICE_RUNS);
    return statistics.median;
}

// Dense FLOP/s of the device at hand; NaN where no profile of a machine has it.
static struct peak device_peak(struct device *device, enum rate rate)
{
    char                         name[1][DEVICE_NAME_BYTES];
    const struct hardware_config none = {.profile = "none"};
    device->backend.ops->device_name(&device->backend, name[0], sizeof(name[0]));
    return peak_of_devices((const char(*)[DEVICE_NAME_BYTES])name, 1, &none, rate);
}

// Model FLOPs of a block: those of its forward pass three times.
static void report_block(struct bench *bench, const double *passes, const struct sums *sums)
{
    const struct layer *layer   = bench->layer;
    double              seconds = passes[0] + passes[2], flops = 3 * sums->forward_flops;
    const char         *names[] = {"the block, forward", "", "the block, backward"};
    for (int pass = 0; pass < 3; pass += 2) {
        device_report(bench->device,
                      &(struct device_record){.bench = bench->name, .name = names[pass], .seconds = passes[pass]});
    }
    device_report(bench->device, &(struct device_record){.bench         = bench->name,
                                                         .name          = "the block",
                                                         .seconds       = seconds,
                                                         .bound_seconds = sums->bound_seconds,
                                                         .flops         = flops});
    bool        is_fp8 = bench->recipe->compute == COMPUTE_FP8;
    struct peak peak   = device_peak(bench->device, precision_rate(bench->recipe->compute));
    double      share  = peak_share(flops / peak.flops, seconds);
    printf("its ops one by one %.3f ms", 1e3 * sums->seconds);
    if (isnan(peak.flops)) {
        printf("; no share of a peak: %s\n", peak.source);
    } else if (isnan(share)) {
        printf("; INVALID: shorter than its causal FLOPs take at the peak of %.0f TFLOP/s\n", peak.flops / 1e12);
    } else {
        printf("; %.1f %% of the peak of %.0f TFLOP/s, causal FLOPs (expected: %.0f %%)\n", 100 * share,
               peak.flops / 1e12, 100 * (is_fp8 ? layer->fp8_utilization : layer->utilization));
    }
}

// Returns the block's seconds.
static double measure_layer(struct device *device, const struct layer *layer, const struct recipe *recipe)
{
    struct bench bench;
    open_bench(&bench, device, layer, recipe);
    printf("\n%s\n", bench.name);
    warm_up(&bench);

    int32_t  block[] = {bench.begin[0], bench.end[0], bench.begin[1], bench.end[1]}, count = bench.plan.op_count;
    int32_t *all     = memory_allocate((size_t)(count + 1) * sizeof(*all));
    double  *seconds = memory_allocate((size_t)count * sizeof(*seconds)), passes[3];
    for (int32_t i = 0; i <= count; i++) {
        all[i] = i;
    }
    measure(&bench, block, 4, passes);
    measure(&bench, all, count + 1, seconds);
    struct sums sums = report_ops(&bench, seconds);
    report_block(&bench, passes, &sums);

    struct device_record whole = {.bench = bench.name, .name = "whole step", .seconds = step_median(&bench)};
    device_report(device, &whole);
    step_capture(bench.step);
    whole.name    = "whole step, captured";
    whole.seconds = step_median(&bench);
    device_report(device, &whole);
    free(all);
    free(seconds);
    close_bench(&bench);
    return passes[0] + passes[2];
}

// In BF16 and, where the device has it, in FP8.
static void bench_layer(struct device *device, const struct layer *layer)
{
    static const struct recipe plain   = {.name = "BF16", .compute = COMPUTE_BF16};
    static const struct recipe fp8[]   = {{"FP8 by current values", COMPUTE_FP8, RECIPE_CURRENT},
                                          {"FP8 by history", COMPUTE_FP8, RECIPE_DELAYED}};
    double                     seconds = measure_layer(device, layer, &plain);
    for (size_t i = 0; i < sizeof(fp8) / sizeof(fp8[0]) && device_has_fp8(device); i++) {
        printf("%.2f times as fast as in BF16\n", seconds / measure_layer(device, layer, &fp8[i]));
    }
}

int main(int argc, char **argv)
{
    // clang-format off
    static const struct layer layers[] = {
        {"Llama 3 8B block, 1 x 8192 tokens",  4096, 32, 8, 14336, 8192, 1, 644e12, 541e12, 0.62, 0.39},
        {"Llama 2 70B block, 2 x 4096 tokens", 8192, 64, 8, 28672, 4096, 2, 591e12, 474e12, 0.67, 0.46},
    };
    // clang-format on
    struct device device;
    device_open(&device, argc, argv);
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        bench_layer(&device, &layers[i]);
    }
    device_close(&device);
    return EXIT_VALID;
}
