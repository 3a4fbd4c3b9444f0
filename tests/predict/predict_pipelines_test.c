// SPDX-License-Identifier: MIT
// Every published pipeline, simulated, against its closed form.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/config.h"
#include "gswbench/predict.h"
#include "tiny.h"

// A layer takes 1 second forward and 2 backward.
struct pipeline {
    int64_t stages, chunks, microbatches, layers, counts_embedding;
    double  hop_seconds;          // of a transfer between stages
    double  head_seconds;         // that the last stage computes more for each microbatch
    double  embedding_seconds;    // and the first, half of it backward
};

static struct price price_evenly(const void *state, const struct plan *plan, const struct op *op)
{
    const struct pipeline *pipeline = state;
    (void)plan;
    const double seconds[OP_COUNT] = {[OP_ATTENTION_FORWARD]  = 1.0,
                                      [OP_ATTENTION_BACKWARD] = 2.0,
                                      [OP_CROSS_ENTROPY]      = pipeline->head_seconds,
                                      [OP_EMBEDDING_FORWARD]  = pipeline->embedding_seconds / 3,
                                      [OP_EMBEDDING_BACKWARD] = pipeline->embedding_seconds * 2 / 3,
                                      [OP_SEND]               = pipeline->hop_seconds,
                                      [OP_RECEIVE]            = pipeline->hop_seconds};
    uint8_t      links             = op->kind == OP_SEND ? LINK_NODE_OUT : op->kind == OP_RECEIVE ? LINK_NODE_IN : 0;
    return (struct price){.seconds = seconds[op->kind], .links = links};
}

static double simulate_pipeline(const struct pipeline *pipeline)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.layers                        = pipeline->layers;
    tiny.parallel.pp                         = pipeline->stages;
    tiny.parallel.vp                         = pipeline->chunks;
    tiny.parallel.layers_per_chunk_embedding = pipeline->counts_embedding;
    tiny.train.accumulation                  = pipeline->microbatches;
    struct plan_request     request          = tiny_request(&tiny, pipeline->stages, 0);
    struct predict_pipeline predicted;
    struct actor_time       times[8] = {{.tasks = NULL}};
    status                  result   = predict_pipeline_init(&predicted, &request);
    cr_assert(!failed(&result), "%s", result.text);
    predict_pipeline_price(&predicted, &(struct pricing){.price = price_evenly, .state = pipeline});
    result = simulate(&predicted.simulation, times);
    cr_assert(!failed(&result), "%s", result.text);
    double end = 0.0;
    for (int64_t stage = 0; stage < pipeline->stages; stage++) {
        end = times[stage].end_seconds > end ? times[stage].end_seconds : end;
    }
    predict_pipeline_free(&predicted);
    return end;
}

// The microbatches on the slowest stage, the bubble, and the hops until the first microbatch has come to the end and
// back. Where embedding and head count as layers, the first and the last stage have one layer less each.
static double closed_form(const struct pipeline *pipeline)
{
    double stages = (double)pipeline->stages, chunks = (double)pipeline->chunks;
    double counted = pipeline->counts_embedding != 0 ? 1.0 : 0.0;
    double even    = 3.0 * ((double)pipeline->layers + 2.0 * counted) / stages;
    double first   = even + pipeline->embedding_seconds - 3.0 * counted,
           last    = even + pipeline->head_seconds - 3.0 * counted;
    double mean    = ((stages - 2.0) * even + first + last) / stages;
    return (double)pipeline->microbatches * fmax(even, fmax(first, last)) + (stages - 1) / chunks * mean +
           2 * (stages * chunks - 1) * pipeline->hop_seconds;
}

// To half a percent; exactly, where all stages do the same.
static void expect_closed_form(const struct pipeline *pipeline)
{
    double expected = closed_form(pipeline), actual = simulate_pipeline(pipeline);
    bool   is_even = pipeline->head_seconds == 0.0 && pipeline->embedding_seconds == 0.0;
    cr_expect_float_eq(actual, expected, (is_even ? 1e-9 : 0.005) * expected, "pp %d vp %d: %.12g, not %.12g",
                       (int)pipeline->stages, (int)pipeline->chunks, actual, expected);
}

// Even stages, and with transfers that take time and a head that makes the last stage slower.
static void expect_closed_forms(struct pipeline pipeline)
{
    pipeline.head_seconds = pipeline.embedding_seconds = pipeline.counts_embedding != 0 ? 3.0 : 0.0;
    expect_closed_form(&pipeline);
    pipeline.hop_seconds = 0.01;
    pipeline.head_seconds += 0.5;
    expect_closed_form(&pipeline);
}

// The pipelines of a configuration's rows of one precision: those that differ in more than the number of replicas.
static int expect_pipelines(const char *name, const char *precision)
{
    struct config_row     rows[CONFIG_ROWS_MAX];
    struct text_buffer    errors = {0};
    struct config         config;
    char                  compute[64];
    const char *const     overrides[] = {compute};
    struct config_request request     = {.name = name, .overrides = overrides};
    int                   count, pipelines = 0;
    int64_t               layers = 0;
    snprintf(compute, sizeof(compute), "precision.compute=%s", precision);
    cr_assert(!failed(&(status[]){config_rows(&request, rows, &count, &errors)}[0]), "%s", errors.text);
    for (int i = 0; i < count; i++) {
        request.ranks          = rows[i].ranks;
        request.override_count = 1;
        cr_assert(!failed(&(status[]){config_read(&config, &request, &errors)}[0]), "%s", errors.text);
        if (strcmp(rows[i].precision, precision) != 0 || config.parallel.pp == 1 || config.model.layers == layers) {
            continue;
        }
        config.train = resolved(&(struct plan_sections){&config.model, &config.parallel, &config.train,
                                                        &config.precision, rows[i].ranks})
                           .train;
        layers = config.model.layers;
        pipelines++;
        expect_closed_forms((struct pipeline){.stages           = config.parallel.pp,
                                              .chunks           = config.parallel.vp,
                                              .microbatches     = config.train.accumulation,
                                              .layers           = layers,
                                              .counts_embedding = config.parallel.layers_per_chunk_embedding});
    }
    return pipelines;
}

Test(predict_pipelines, take_as_long_as_their_closed_form)
{
    static const struct {
        const char *name;
        int         pipelines;
    } configs[] = {{"grok1-314b", 3}, {"nemotron4-340b", 1}, {"llama3.1-70b", 1}, {"llama3.1-405b", 3}};
    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        cr_expect_eq(expect_pipelines(configs[i].name, "bf16"), configs[i].pipelines, "%s", configs[i].name);
        cr_expect_eq(expect_pipelines(configs[i].name, "fp8"), configs[i].pipelines, "%s", configs[i].name);
    }
}

static struct price price_launches(const void *state, const struct plan *plan, const struct op *op)
{
    const double *launch   = state;
    bool          is_route = op->kind == OP_ROUTE_FORWARD || op->kind == OP_ROUTE_BACKWARD;
    bool          is_work  = op->kind == OP_GEMM || (op->lane == LANE_TENSOR && op->tag.layer >= 0);
    (void)plan;
    return (struct price){.seconds = is_work ? 1.0 : 0.0, .launch_seconds = is_route ? *launch : 0.0};
}

// Each pass of a block with experts takes no less than the host does for it, and what tp gathers and reduces is part of
// what it takes; nothing else is moved. In between is what is more than a forward pass takes, and less than a backward
// pass.
Test(predict_pipelines, waits_for_the_host_that_launches_experts)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.experts              = 4;
    tiny.model.top_k                = 2;
    tiny.model.capacity_factor      = 1.0;
    tiny.train.accumulation         = 2;
    tiny.parallel.tp                = 2;
    tiny.parallel.sequence_parallel = true;
    struct plan_request     request = tiny_request(&tiny, 2, 0);
    struct predict_pipeline pipeline;
    status                  result = predict_pipeline_init(&pipeline, &request);
    cr_assert(!failed(&result), "%s", result.text);
    const struct plan *plan   = &pipeline.stages[0].plan;
    double             passes = 0.0, there = 0.0, back = 0.0, moved = 0.0, seconds[3];
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        passes += op->kind == OP_ROUTE_FORWARD || op->kind == OP_ROUTE_BACKWARD;
        if (op->tag.layer >= 0 && op->tag.layer < tiny.model.layers && op->tag.microbatch >= 0 &&
            (op->kind == OP_GEMM || op->lane == LANE_TENSOR)) {
            *(op->tag.phase == PHASE_FORWARD ? &there : &back) += 1.0;
            moved += op->lane == LANE_TENSOR;
        }
    }
    cr_expect_eq(passes, 2.0 * 2.0 * (double)tiny.model.layers);
    cr_expect_gt(moved, 0.0);
    const double half = passes / 2.0, between = there / half + 1.0;
    cr_expect_leq(between, back / half);
    const double launches[] = {0.0, between, 1000.0};
    for (int i = 0; i < 3; i++) {
        struct actor_time times = {.tasks = NULL};
        predict_pipeline_price(&pipeline, &(struct pricing){.price = price_launches, .state = &launches[i]});
        result = simulate(&pipeline.simulation, &times);
        cr_assert(!failed(&result), "%s", result.text);
        seconds[i] = times.end_seconds;
    }
    cr_expect_float_eq(seconds[1], seconds[0] + half, 1e-6);
    cr_expect_float_eq(seconds[2], seconds[0] - there - back + 1000.0 * passes, 1e-6);
    predict_pipeline_free(&pipeline);
}

static struct price price_products(const void *state, const struct plan *plan, const struct op *op)
{
    const struct price *price = state;
    (void)plan;
    return op->kind == OP_GEMM && op->tag.layer >= 0 ? *price : (struct price){.seconds = 0.0};
}

// Of four experts that compute one after another, the host launches each product once: five of a block forward, and
// their data and weight gradients, ten. A block without experts has none to wait for.
Test(predict_pipelines, counts_what_experts_do_one_after_another_once)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.experts              = 4;
    tiny.model.top_k                = 2;
    tiny.model.capacity_factor      = 1.0;
    tiny.train.accumulation         = 2;
    struct plan_request     request = tiny_request(&tiny, 1, 0);
    struct predict_pipeline pipeline;
    status                  result = predict_pipeline_init(&pipeline, &request);
    cr_assert(!failed(&result), "%s", result.text);
    const double       blocks   = 2.0 * (double)tiny.model.layers;
    const struct price prices[] = {{.launch_seconds = 1.0},
                                   {.seconds = 1.0},
                                   {.seconds = 1.0, .launch_seconds = 0.25},
                                   {.seconds = 1.0, .launch_seconds = 0.25, .launch_alone = 0.125}};
    double             seconds[4];
    for (int i = 0; i < 4; i++) {
        struct actor_time times = {.tasks = NULL};
        predict_pipeline_price(&pipeline, &(struct pricing){.price = price_products, .state = &prices[i]});
        result = simulate(&pipeline.simulation, &times);
        cr_assert(!failed(&result), "%s", result.text);
        seconds[i] = times.end_seconds;
    }
    cr_expect_float_eq(seconds[0], 15.0 * blocks, 1e-6);
    cr_expect_float_eq(seconds[1], 3.0 * (3.0 + 2.0 * 4.0) * blocks, 1e-6);
    cr_expect_float_eq(seconds[2], seconds[1], 1e-6);
    cr_expect_float_eq(seconds[3], seconds[1] + 0.125 * 15.0 * blocks, 1e-6);
    predict_pipeline_free(&pipeline);
}
