// SPDX-License-Identifier: MIT
// Times a training step on the host backend by kind of op. GEMMs call BLAS in fp32. In BF16 they call gswbench's own
// kernels if the CPU has BF16 instructions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/step.h"

enum { WARMUP = 2, STEPS = 10 };

static const struct backend_ops *measured;
static double                    seconds[OP_COUNT];
static int64_t                   calls[OP_COUNT];

static void run_timed(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    double begin = clock_seconds();
    measured->run[op->kind](backend, op, buffers);
    seconds[op->kind] += clock_seconds() - begin;
    calls[op->kind]++;
}

static void require(status result)
{
    if (failed(&result)) {
        FATAL(EXIT_INTERNAL, "%s", result.text);
    }
}

static void build(struct plan *plan, int64_t compute)
{
    struct model_config     model;
    struct parallel_config  parallel;
    struct train_config     train;
    struct precision_config precision;
    model_set_defaults(&model);
    option_set_defaults(parallel_options, &parallel);
    option_set_defaults(train_options, &train);
    option_set_defaults(precision_options, &precision);
    model.layers      = 4;
    model.hidden      = 512;
    model.heads       = 8;
    model.kv_heads    = 4;
    model.head_dim    = 64;
    model.ffn         = 1536;
    model.vocab       = 8192;
    train.sequence    = 512;
    train.micro_batch = 2;
    parallel.dp       = 1;
    precision.compute = compute;
    precision.recipe  = RECIPE_CURRENT;
    struct plan_request request;
    require(plan_resolve(&request, &(struct plan_sections){&model, &parallel, &train, &precision, 1}));
    require(plan_build(plan, &request));
}

static void print_table(const char *name, double step_seconds)
{
    double sum = 0;
    printf("%s: %.1f ms a step\n  %-20s %8s %10s %8s\n", name, 1e3 * step_seconds, "kind", "calls", "ms", "share");
    for (int kind = 0; kind < OP_COUNT; kind++) {
        sum += seconds[kind] / STEPS;
        if (calls[kind] > 0) {
            printf("  %-20s %8lld %10.2f %7.1f%%\n", op_name((enum op_kind)kind), (long long)calls[kind] / STEPS,
                   1e3 * seconds[kind] / STEPS, 100 * seconds[kind] / STEPS / step_seconds);
        }
    }
    printf("  %-20s %8s %10.2f %7.1f%%\n", "between ops", "", 1e3 * (step_seconds - sum),
           100 * (1 - sum / step_seconds));
}

static void measure(const char *name, int64_t compute)
{
    struct plan        plan;
    struct backend     backend;
    struct comm        comm;
    struct step       *step;
    struct backend_ops timed;
    op_run            *table[OP_COUNT];
    struct local_hub  *hub = local_hub_open(1);
    build(&plan, compute);
    comm_open_local(&comm, hub, 0);
    require(backend_open(&backend, "host", &(struct backend_setup){.threads = 0}));

    measured = backend.ops;
    timed    = *backend.ops;
    for (int kind = 0; kind < OP_COUNT; kind++) {
        table[kind] = measured->run[kind] != NULL ? run_timed : NULL;
    }
    timed.run   = table;
    backend.ops = &timed;
    require(step_open(&step, &plan, &backend, &comm));
    data_initialise(step, &plan, 1);
    data_fill(step, &plan, DATA_UNIFORM, 1, 0);
    for (int i = 0; i < WARMUP; i++) {
        step_run(step);
    }
    memset(seconds, 0, sizeof(seconds));
    memset(calls, 0, sizeof(calls));
    double begin = clock_seconds();
    for (int i = 0; i < STEPS; i++) {
        step_run(step);
    }
    print_table(name, (clock_seconds() - begin) / STEPS);

    step_close(step);
    backend_close(&backend);
    comm_close(&comm);
    local_hub_close(hub);
    plan_free(&plan);
}

int main(void)
{
    printf("4 layers, hidden 512, ffn 1536, vocabulary 8192, 2 sequences of 512 tokens\n");
    measure("fp32", COMPUTE_FP32);
    measure("bf16", COMPUTE_BF16);
    measure("fp8", COMPUTE_FP8);
    return EXIT_VALID;
}
