// SPDX-License-Identifier: MIT
// Times one transformer block of published models on a GPU, forward and backward, in BF16 and FP8. The block runs
// within complete training steps of a model with one block and a small vocabulary. Prints the time of the block, of
// each op with its lower bound, and of the gaps between ops.
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

struct bench {
    struct device_block block;
    struct device_rates ceilings;    // rates measured in this process, when warm
    double             *alone;       // [op_count]: seconds of a GEMM or attention alone; 0: not measured
};

// Lower bounds for the time of an op. PUBLISHED: from published rates. LIGHT: from measured rates; for attention from
// its published rate, or else its time alone. SHAPE: like LIGHT, but for GEMMs and attention their time alone.
enum bound { BOUND_PUBLISHED, BOUND_LIGHT, BOUND_SHAPE };

static bool is_attention(const struct op *op)
{
    return op->kind == OP_ATTENTION_FORWARD || op->kind == OP_ATTENTION_BACKWARD;
}

static double published_attention(const struct bench *bench, const struct op *op)
{
    const struct layer *layer = bench->block.layer;
    return !bench->block.device->is_h200 ? 0 : op->kind == OP_ATTENTION_FORWARD ? layer->forward : layer->backward;
}

// Returns the bound in seconds; 0: unknown.
static double bound_of(const struct bench *bench, int32_t index, enum bound bound)
{
    const struct op           *op        = &bench->block.plan.ops[index];
    const struct buffer       *buffers   = bench->block.buffers[index];
    const struct device_rates *rates     = bound == BOUND_PUBLISHED ? &bench->block.device->bounds : &bench->ceilings;
    double                     published = published_attention(bench, op), alone = bench->alone[index];
    if (alone > 0 && (bound == BOUND_SHAPE || (bound == BOUND_LIGHT && is_attention(op) && published == 0))) {
        return alone;
    }
    double rate    = is_attention(op) ? published : device_gemm_flops(rates, op, buffers[GEMM_A].format);
    double compute = device_bound(op_flops(op), rate);
    double memory  = device_bound(device_op_bytes(op, buffers), rates->copy_bytes);
    return op_flops(op) > 0 && (rate == 0 || compute > memory) ? compute : memory;
}

// Returns the sum of the bounds of the block's ops; 0 if one of the bounds is unknown.
static double block_bound(const struct bench *bench, enum bound bound)
{
    double sum = 0;
    for (int32_t i = 0; i < bench->block.plan.op_count; i++) {
        double seconds = is_of_block(&bench->block.plan.ops[i]) ? bound_of(bench, i, bound) : 0;
        if (is_of_block(&bench->block.plan.ops[i]) && seconds == 0) {
            return 0;
        }
        sum += seconds;
    }
    return sum;
}

static void report_op(struct bench *bench, int32_t index, const char *how, double seconds, double bound_seconds)
{
    const struct op *op = &bench->block.plan.ops[index];
    char             name[96];
    snprintf(name, sizeof(name), "%s%s%s%s", op->tag.role,
             op->tag.phase == PHASE_BACKWARD && strstr(op->tag.role, "gradient") == NULL ? ", backward" : "",
             is_of_block(op) ? "" : ", outside", how);
    device_report(bench->block.device,
                  &(struct device_record){.bench         = bench->block.name,
                                          .name          = name,
                                          .seconds       = seconds,
                                          .bound_seconds = bound_seconds,
                                          .flops         = op_flops(op),
                                          .bytes         = device_op_bytes(op, bench->block.buffers[index])});
}

static void report_ops(struct bench *bench, const double *seconds)
{
    double sum = 0;
    for (int32_t i = 0; i < bench->block.plan.op_count; i++) {
        report_op(bench, i, "", seconds[i], bound_of(bench, i, BOUND_PUBLISHED));
        sum += is_of_block(&bench->block.plan.ops[i]) ? seconds[i] : 0;
    }
    printf("its ops one by one %.3f ms\n", 1e3 * sum);
}

// Times each GEMM and attention op alone. If a GEMM alone has fewer FLOP/s than a GEMM of 8192 x 8192 x 8192, its shape
// is the cause. If it takes longer in the step than alone, its shape is not the cause.
static void measure_shapes(struct bench *bench)
{
    for (int32_t i = 0; i < bench->block.plan.op_count; i++) {
        const struct op *op = &bench->block.plan.ops[i];
        if (is_of_block(op) && (op->kind == OP_GEMM || is_attention(op))) {
            double light    = bound_of(bench, i, BOUND_LIGHT);
            bench->alone[i] = measure_alone(&bench->block, i);
            report_op(bench, i, ", alone", bench->alone[i], is_attention(op) ? 0 : light);
        }
    }
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

// Returns the dense peak of the device in FLOP/s; NaN without a hardware profile.
static struct peak device_peak(struct device *device, enum rate rate)
{
    char                         name[1][DEVICE_NAME_BYTES];
    const struct hardware_config none = {.profile = "none"};
    device->backend.ops->device_name(&device->backend, name[0], sizeof(name[0]));
    return peak_of_devices((const char(*)[DEVICE_NAME_BYTES])name, 1, &none, rate);
}

// Returns the model FLOPs of a block: three times the FLOPs of its forward pass.
static double block_flops(const struct bench *bench)
{
    double flops = 0;
    for (int32_t i = 0; i < bench->block.plan.op_count; i++) {
        const struct op *op = &bench->block.plan.ops[i];
        flops += is_of_block(op) && op->tag.phase == PHASE_FORWARD ? 3 * op_flops(op) : 0;
    }
    return flops;
}

static void report_block(struct bench *bench, const double *passes)
{
    const struct layer *layer   = bench->block.layer;
    double              seconds = passes[0] + passes[2], flops = block_flops(bench);
    const char         *names[] = {"the block, forward", "", "the block, backward"};
    for (int pass = 0; pass < 3; pass += 2) {
        device_report(
            bench->block.device,
            &(struct device_record){.bench = bench->block.name, .name = names[pass], .seconds = passes[pass]});
    }
    device_report(bench->block.device, &(struct device_record){.bench         = bench->block.name,
                                                               .name          = "the block",
                                                               .seconds       = seconds,
                                                               .bound_seconds = block_bound(bench, BOUND_PUBLISHED),
                                                               .flops         = flops});
    bool        is_fp8 = bench->block.recipe->compute == COMPUTE_FP8;
    struct peak peak   = device_peak(bench->block.device, precision_rate(bench->block.recipe->compute));
    double      share  = peak_share(flops / peak.flops, seconds);
    if (isnan(peak.flops)) {
        printf("no share of a peak: %s\n", peak.source);
    } else if (isnan(share)) {
        printf("INVALID: shorter than its causal FLOPs take at the peak of %.0f TFLOP/s\n", peak.flops / 1e12);
    } else {
        printf("%.1f %% of the peak of %.0f TFLOP/s, causal FLOPs (expected: %.0f %%)\n", 100 * share,
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

static struct device_rates find_ceilings(struct bench *bench, const char *when)
{
    struct device_rates found = {.copy_bytes = device_copy_rate(bench->block.device, (1 << 30) / DEVICE_SHRINKS, 0.5),
                                 .gemm_flops = gemm_flops(bench, "bbb", false)};
    if (bench->block.recipe->compute == COMPUTE_FP8) {
        found.fp8_fast_flops = gemm_flops(bench, "44bff", true);
        found.fp8_flops      = gemm_flops(bench, "54bff", false);
    }
    printf("ceilings %s: copy %.2f TB/s, GEMM %.0f TFLOP/s, in FP8 %.0f and %.0f\n", when, found.copy_bytes / 1e12,
           found.gemm_flops / 1e12, found.fp8_fast_flops / 1e12, found.fp8_flops / 1e12);
    return found;
}

// Exits if loss or norm is NaN, so that a block with wrong numbers is not timed.
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

static void report_light(const struct bench *bench, const char *name, enum bound bound, double seconds)
{
    double light = block_bound(bench, bound);
    printf("%.1f %% of %s, %.3f ms%s\n", 100 * light / seconds, name, 1e3 * light,
           bound == BOUND_LIGHT && bench->block.device->is_h200 ? " (attention: published for cuDNN 9.19 on an H200)"
                                                                : "");
    device_report(
        bench->block.device,
        &(struct device_record){.bench = bench->block.name, .name = name, .seconds = seconds, .bound_seconds = light});
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
    bench.alone = memory_allocate((size_t)count * sizeof(*bench.alone));
    measure_marks(&bench.block, block, 4, passes);
    report_block(&bench, passes);
    measure_marks(&bench.block, all, count + 1, seconds);
    report_ops(&bench, seconds);
    bench.ceilings = find_ceilings(&bench, "after that");
    measure_shapes(&bench);
    report_light(&bench, "the speed of light", BOUND_LIGHT, passes[0] + passes[2]);
    report_light(&bench, "the speed of light at its own shapes", BOUND_SHAPE, passes[0] + passes[2]);

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
    free(bench.alone);
    close_block(&bench.block);
}

// A case: a block in one precision.
struct layer_case {
    struct device_case  base;
    const struct layer *layer;
    struct recipe       recipe;
};

static void run_case(struct device *device, const struct device_case *base)
{
    const struct layer_case *one = (const struct layer_case *)base;    // base is its first member
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
