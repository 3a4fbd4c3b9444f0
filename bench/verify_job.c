// SPDX-License-Identifier: MIT
// Measures the cost of building a plan and of checking a job, by layers, microbatches and ranks of Llama 2 70B. Prints
// one row per job. Memory is the maximum of the process so far, so jobs are ordered by size.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "gswbench/clock.h"
#include "gswbench/job.h"
#include "gswbench/verify.h"

struct job_shape {
    int64_t layers, accumulation, fsdp, dp;
};

static double now_ms(void)
{
    return 1e3 * clock_seconds();
}

static void stop(status error)
{
    if (failed(&error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(error.exit_code);
    }
}

static int64_t plan_bytes(const struct plan *plan)
{
    return (int64_t)plan->op_count * (int64_t)sizeof(*plan->ops) +
           (int64_t)plan->tensor_count * (int64_t)sizeof(*plan->tensors) +
           (int64_t)plan->weight_count * (int64_t)sizeof(*plan->weights) + (int64_t)plan->arena.allocated_bytes;
}

static void measure(const struct job_shape *shape)
{
    struct model_config     model;
    struct parallel_config  parallel;
    struct train_config     train;
    struct precision_config precision;
    model_set_defaults(&model);
    option_set_defaults(parallel_options, &parallel);
    option_set_defaults(train_options, &train);
    option_set_defaults(precision_options, &precision);
    model.layers       = shape->layers;
    model.hidden       = 8192;
    model.heads        = 64;
    model.kv_heads     = 8;
    model.head_dim     = 128;
    model.ffn          = 28672;
    model.vocab        = 32000;
    train.sequence     = 4096;
    train.accumulation = shape->accumulation;
    train.recompute    = RECOMPUTE_FULL;
    parallel.fsdp      = shape->fsdp;
    parallel.dp        = shape->dp;

    struct plan_request request;
    stop(plan_resolve(&request,
                      &(struct plan_sections){&model, &parallel, &train, &precision, shape->fsdp * shape->dp}));
    struct plan      plan;
    struct job_proof proof;
    struct rusage    usage;
    double           start = now_ms();
    stop(plan_build(&plan, &request));
    double built = now_ms();
    stop(plan_verify(&plan, NULL));
    double  verified = now_ms();
    int64_t bytes    = plan_bytes(&plan);
    plan_free(&plan);
    double begin = now_ms();
    stop(job_verify(&request, &proof));
    double end = now_ms();
    getrusage(RUSAGE_SELF, &usage);
    printf("| %lld | %lld | %lld | %lld | %.1f | %.1f | %.1f | %lld | %.0f | %.0f |\n", (long long)request.mesh.world,
           (long long)shape->layers, (long long)shape->accumulation, (long long)proof.ops, built - start,
           verified - built, (double)bytes / 1e6, (long long)proof.built, end - begin,
           (double)usage.ru_maxrss / 1024.0);
    fflush(stdout);
}

int main(void)
{
    static const struct job_shape shapes[] = {
        {8, 1, 8, 1},      {80, 1, 8, 1},    {80, 1, 64, 1},  {80, 1, 128, 4},   {80, 1, 128, 16},
        {320, 1, 128, 16}, {80, 8, 128, 16}, {80, 32, 64, 1}, {80, 32, 128, 16},
    };
    printf(
        "| ranks | layers | microbatches | ops a rank | build a plan, ms | verify it, ms | plan, MB | plans compared | "
        "verify the job, ms | memory, MiB |\n|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        measure(&shapes[i]);
    }
    return EXIT_VALID;
}
