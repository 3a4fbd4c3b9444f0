// SPDX-License-Identifier: MIT
// Simulates every published pipeline, and compares its time with a closed form.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/job.h"
#include "line.h"
#include "simulated.h"

// A pipeline in which a layer takes 1 second forward and 2 seconds backward.
struct pipeline {
    int64_t stages, chunks, microbatches, layers, counts_embedding;
    double  hop_seconds;          // of a send between two stages
    double  head_seconds;         // extra compute of the last stage per microbatch
    double  embedding_seconds;    // extra compute of the first stage, two thirds of it backward
};

static struct cost cost_evenly(const void *state, const struct plan *plan, const struct op *op)
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
    return (struct cost){.seconds = seconds[op->kind], .links = links};
}

static double simulate_pipeline(const struct pipeline *pipeline)
{
    const char *row = line_of("layers %d; pp %d; vp %d; layers_per_chunk_embedding %s; accumulation %d",
                              (int)pipeline->layers, (int)pipeline->stages, (int)pipeline->chunks,
                              pipeline->counts_embedding != 0 ? "yes" : "no", (int)pipeline->microbatches);
    return simulate_row(row, cost_evenly, pipeline);
}

// The expected time is the slowest stage's time for all microbatches, plus the bubble, plus the hops of the first
// microbatch to the last stage and back. If embedding and head count as layers, the first and the last stage have one
// layer less.
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

// Expects the closed form exactly if all stages take the same time, else within 0.5 %.
static void expect_closed_form(const struct pipeline *pipeline)
{
    double expected = closed_form(pipeline), actual = simulate_pipeline(pipeline);
    bool   is_even = pipeline->head_seconds == 0.0 && pipeline->embedding_seconds == 0.0;
    cr_expect_float_eq(actual, expected, (is_even ? 1e-9 : 0.005) * expected, "pp %d vp %d: %.12g, not %.12g",
                       (int)pipeline->stages, (int)pipeline->chunks, actual, expected);
}

// Compares first with equal stages, then with communication time, and then with a head that slows down the last stage.
static void expect_closed_forms(struct pipeline pipeline)
{
    pipeline.head_seconds = pipeline.embedding_seconds = pipeline.counts_embedding != 0 ? 3.0 : 0.0;
    expect_closed_form(&pipeline);
    pipeline.hop_seconds = 0.01;
    pipeline.head_seconds += 0.5;
    expect_closed_form(&pipeline);
}

// Tests each distinct pipeline among the rows of a configuration with this precision. Rows that differ only in replicas
// have the same pipeline.
static int expect_pipelines(const char *name, const char *precision)
{
    struct config_row     rows[CONFIG_ROWS_MAX];
    struct text_buffer    errors  = {0};
    struct config_request request = {.name = name};
    int                   count, pipelines = 0;
    int64_t               layers = 0;
    REQUIRE(config_rows(&request, rows, &count, &errors));
    for (int i = 0; i < count; i++) {
        struct job                    job;
        const struct parallel_config *parallel = &job.config.parallel;
        if (strcmp(rows[i].precision, precision) != 0) {
            continue;
        }
        layout_job(&job, name, rows[i].ranks, line_of("precision.compute=%s", precision));
        if (parallel->pp == 1 || job.config.model.layers == layers) {
            continue;
        }
        layers = job.config.model.layers;
        pipelines++;
        expect_closed_forms((struct pipeline){.stages           = parallel->pp,
                                              .chunks           = parallel->vp,
                                              .microbatches     = job.request.train.accumulation,
                                              .layers           = layers,
                                              .counts_embedding = parallel->layers_per_chunk_embedding});
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
