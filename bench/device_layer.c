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
#include "gswbench/peak.h"
#include "gswbench/statistics.h"
#include "support/device_block.h"
#include "support/device_op.h"

static const double warm_up_seconds = 10.0 / DEVICE_SHRINKS;

// What this process reaches of what bounds a block: the speed of light is made of it.
struct ceilings {
    double copy_bytes, gemm_flops, fp8_fast_flops, fp8_flops;    // a second; 0: not to be had
};

struct bench {
    struct device_block block;
    struct ceilings     ceilings;    // after seconds of work, as the block runs
};

// What well-written code is published to take, or what this process could; the second is the speed of light.
static double bound_of(const struct bench *bench, int32_t index, const struct ceilings *ceilings)
{
    const struct op *op     = &bench->block.plan.ops[index];
    bool             is_fp8 = format_is_narrow(bench->block.buffers[index][GEMM_A].format);
    double gemm    = !is_fp8 ? ceilings->gemm_flops : op->sums_fast ? ceilings->fp8_fast_flops : ceilings->fp8_flops;
    double memory  = device_op_bytes(op, bench->block.buffers[index]) / ceilings->copy_bytes;
    double rate    = op->kind == OP_ATTENTION_FORWARD    ? bench->block.layer->forward
                     : op->kind == OP_ATTENTION_BACKWARD ? bench->block.layer->backward
                                                         : gemm;
    double compute = op_flops(op) / rate;
    return op_flops(op) > 0 && compute > memory ? compute : memory;
}

struct sums {
    double seconds, bound_seconds, light_seconds, forward_flops;    // of the block
};

static struct sums report_ops(struct bench *bench, const double *seconds)
{
    const struct ceilings published = {device_memory_bytes, device_bf16_flops, device_fast_fp8_flops, device_fp8_flops};
    struct sums           sums      = {0};
    for (int32_t i = 0; i < bench->block.plan.op_count; i++) {
        const struct op *op = &bench->block.plan.ops[i];
        char             name[96];
        snprintf(name, sizeof(name), "%s%s%s", op->tag.role,
                 op->tag.phase == PHASE_BACKWARD && strstr(op->tag.role, "gradient") == NULL ? ", backward" : "",
                 is_of_block(op) ? "" : ", outside");
        device_report(bench->block.device,
                      &(struct device_record){.bench         = bench->block.name,
                                              .name          = name,
                                              .seconds       = seconds[i],
                                              .bound_seconds = bound_of(bench, i, &published),
                                              .flops         = op_flops(op),
                                              .bytes         = device_op_bytes(op, bench->block.buffers[i])});
        if (is_of_block(op)) {
            sums.seconds += seconds[i];
            sums.bound_seconds += bound_of(bench, i, &published);
            sums.light_seconds += bound_of(bench, i, &bench->ceilings);
            sums.forward_flops += op->tag.phase == PHASE_FORWARD ? op_flops(op) : 0;
        }
    }
    return sums;
}

static void warm_up(struct bench *bench)
{
    for (double start = clock_seconds(); clock_seconds() - start < warm_up_seconds;) {
        step_run(bench->block.step);
    }
}

static double step_median(struct bench *bench)
{
    double seconds[DEVICE_RUNS];
    for (int run = 0; run < DEVICE_RUNS; run++) {
        step_run(bench->block.step);
        seconds[run] = step_device_seconds(bench->block.step);
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
    const struct layer *layer   = bench->block.layer;
    double              seconds = passes[0] + passes[2], flops = 3 * sums->forward_flops;
    const char         *names[] = {"the block, forward", "", "the block, backward"};
    for (int pass = 0; pass < 3; pass += 2) {
        device_report(
            bench->block.device,
            &(struct device_record){.bench = bench->block.name, .name = names[pass], .seconds = passes[pass]});
    }
    device_report(bench->block.device, &(struct device_record){.bench         = bench->block.name,
                                                               .name          = "the block",
                                                               .seconds       = seconds,
                                                               .bound_seconds = sums->bound_seconds,
                                                               .flops         = flops});
    bool        is_fp8 = bench->block.recipe->compute == COMPUTE_FP8;
    struct peak peak   = device_peak(bench->block.device, precision_rate(bench->block.recipe->compute));
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

static double gemm_flops(struct bench *bench, const char *operands, bool sums_fast)
{
    enum { SIDE = 8192 / DEVICE_SHRINKS };
    struct device_op one = {.op       = {.kind       = OP_GEMM,
                                         .sums_fast  = sums_fast,
                                         .shape.gemm = {.m = SIDE, .n = SIDE, .k = SIDE, .transpose_b = true}},
                            .operands = operands};
    device_require(device_op_open(&one, bench->block.device));
    double rate = op_flops(&one.op) / device_op_seconds(&one, 0.5);
    device_op_close(&one);
    return rate;
}

static struct ceilings find_ceilings(struct bench *bench, const char *when)
{
    struct ceilings found = {.copy_bytes = device_copy_rate(bench->block.device, (1 << 30) / DEVICE_SHRINKS, 0.5),
                             .gemm_flops = gemm_flops(bench, "bbb", false)};
    if (bench->block.recipe->compute == COMPUTE_FP8) {
        found.fp8_fast_flops = gemm_flops(bench, "44bff", true);
        found.fp8_flops      = gemm_flops(bench, "54bff", false);
    }
    printf("ceilings %s: copy %.2f TB/s, GEMM %.0f TFLOP/s, in FP8 %.0f and %.0f\n", when, found.copy_bytes / 1e12,
           found.gemm_flops / 1e12, found.fp8_fast_flops / 1e12, found.fp8_flops / 1e12);
    return found;
}

// A block that computes nonsense measures nothing.
static void check_numbers(struct bench *bench)
{
    float loss, norm;
    step_read(bench->block.step, bench->block.plan.loss, &loss);
    step_read(bench->block.step, bench->block.plan.gradient_norm, &norm);
    printf("loss %.4f, gradient norm %.4f\n", (double)loss, (double)norm);
    if (!isfinite(loss) || !isfinite(norm) || loss <= 0 || norm <= 0) {
        device_require(
            fail_as(EXIT_INVALID, "%s: its loss or its gradient norm is no number above 0", bench->block.name));
    }
}

static void report_light(const struct bench *bench, double seconds, const struct sums *sums)
{
    printf("%.1f %% of the speed of light, %.3f ms from the ceilings of this process%s\n",
           100 * sums->light_seconds / seconds, 1e3 * sums->light_seconds, " (attention: as published for cuDNN 9.19)");
    device_report(bench->block.device, &(struct device_record){.bench         = bench->block.name,
                                                               .name          = "the block, speed of light",
                                                               .seconds       = seconds,
                                                               .bound_seconds = sums->light_seconds});
}

static void measure_layer(struct device *device, const struct layer *layer, const struct recipe *recipe)
{
    struct bench bench;
    open_block(&bench.block, device, layer, recipe);
    printf("%s\n", bench.block.name);
    find_ceilings(&bench, "at first");
    warm_up(&bench);
    check_numbers(&bench);

    int32_t block[]  = {bench.block.begin[0], bench.block.end[0], bench.block.begin[1], bench.block.end[1]},
            count    = bench.block.plan.op_count;
    int32_t *all     = memory_allocate((size_t)(count + 1) * sizeof(*all));
    double  *seconds = memory_allocate((size_t)count * sizeof(*seconds)), passes[3];
    for (int32_t i = 0; i <= count; i++) {
        all[i] = i;
    }
    measure_marks(&bench.block, block, 4, passes);
    measure_marks(&bench.block, all, count + 1, seconds);
    bench.ceilings   = find_ceilings(&bench, "after that");
    struct sums sums = report_ops(&bench, seconds);
    report_block(&bench, passes, &sums);
    report_light(&bench, passes[0] + passes[2], &sums);

    struct device_record whole = {.bench = bench.block.name, .name = "whole step", .seconds = step_median(&bench)};
    device_report(device, &whole);
    status captured = step_capture(bench.block.step);
    if (failed(&captured)) {
        printf("not captured: %s\n", captured.text);
    } else {
        whole.name    = "whole step, captured";
        whole.seconds = step_median(&bench);
        device_report(device, &whole);
    }
    check_numbers(&bench);
    free(all);
    free(seconds);
    close_block(&bench.block);
}

// A block in a precision.
struct layer_case {
    struct device_case  base;
    const struct layer *layer;
    struct recipe       recipe;
};

static void run_case(struct device *device, const struct device_case *base)
{
    const struct layer_case *one = (const struct layer_case *)base;    // its first member
    if (one->recipe.compute == COMPUTE_FP8) {
        device_require_fp8(device);
    }
    measure_layer(device, one->layer, &one->recipe);
}

// clang-format off
static const struct layer llama3_8b  = {"Llama 3 8B block, 1 x 8192 tokens",  4096, 32, 8, 14336, 8192, 1, 644e12, 541e12, 0.62, 0.39};
static const struct layer llama2_70b = {"Llama 2 70B block, 2 x 4096 tokens", 8192, 64, 8, 28672, 4096, 2, 591e12, 474e12, 0.67, 0.46};

static const struct layer_case cases[] = {
    {{"llama3-8b/bf16",         run_case}, &llama3_8b,  {"BF16",                  COMPUTE_BF16, RECIPE_CURRENT}},
    {{"llama2-70b/bf16",        run_case}, &llama2_70b, {"BF16",                  COMPUTE_BF16, RECIPE_CURRENT}},
    {{"llama3-8b/fp8-current",  run_case}, &llama3_8b,  {"FP8 by current values", COMPUTE_FP8,  RECIPE_CURRENT}},
    {{"llama2-70b/fp8-current", run_case}, &llama2_70b, {"FP8 by current values", COMPUTE_FP8,  RECIPE_CURRENT}},
    {{"llama3-8b/fp8-delayed",  run_case}, &llama3_8b,  {"FP8 by history",        COMPUTE_FP8,  RECIPE_DELAYED}},
    {{"llama2-70b/fp8-delayed", run_case}, &llama2_70b, {"FP8 by history",        COMPUTE_FP8,  RECIPE_DELAYED}},
};
// clang-format on

int main(int argc, char **argv)
{
    return device_main(argc, argv, cases, sizeof(cases[0]), (int)(sizeof(cases) / sizeof(cases[0])));
}
