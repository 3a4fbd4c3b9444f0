// SPDX-License-Identifier: MIT
// Sets the default options of a tiny model, and builds its plans.
#include "tiny.h"

#include "gswbench/fatal.h"

void tiny_init(struct tiny *tiny)
{
    model_set_defaults(&tiny->model);
    option_set_defaults(parallel_options, &tiny->parallel);
    option_set_defaults(train_options, &tiny->train);
    option_set_defaults(precision_options, &tiny->precision);
    tiny->model.layers         = 2;
    tiny->model.hidden         = 16;
    tiny->model.heads          = 4;
    tiny->model.kv_heads       = 2;
    tiny->model.head_dim       = 4;
    tiny->model.ffn            = 24;
    tiny->model.vocab          = 40;
    tiny->model.init_deviation = 0.2;
    tiny->train.sequence       = 8;
    tiny->train.micro_batch    = 2;
    tiny->train.global_batch   = 0;
    tiny->train.accumulation   = 1;
    tiny->parallel.dp          = 1;
    tiny->precision.compute    = COMPUTE_FP32;
}

struct plan_request resolved(const struct plan_sections *sections)
{
    struct plan_request request;
    status              result = plan_resolve(&request, sections);
    if (failed(&result)) {
        FATAL(EXIT_INTERNAL, "%s", result.text);
    }
    return request;
}

struct plan_request tiny_request(const struct tiny *tiny, int64_t world, int64_t rank)
{
    struct plan_request request =
        resolved(&(struct plan_sections){&tiny->model, &tiny->parallel, &tiny->train, &tiny->precision, world});
    request.rank = rank;
    return request;
}

void tiny_plan_rank(struct tiny *tiny, int64_t world, int64_t rank)
{
    struct plan_request request = tiny_request(tiny, world, rank);
    status              result  = plan_build(&tiny->plan, &request);
    if (failed(&result)) {
        FATAL(EXIT_INTERNAL, "%s", result.text);
    }
}

void tiny_plan(struct tiny *tiny)
{
    tiny_plan_rank(tiny, tiny->parallel.dp, 0);
}
