// SPDX-License-Identifier: MIT
// Simulates pipelines with cost functions of a test, and checks waterfalls.
#pragma once

#include <criterion/criterion.h>

#include "gswbench/predict.h"
#include "layouts.h"
#include "success.h"

typedef struct cost cost_fn(const void *state, const struct plan *plan, const struct op *op);

// Returns the pipeline of a job, which is described by a row of layouts.h.
static inline struct predict_pipeline pipeline_of(const char *row)
{
    struct predict_pipeline pipeline;
    struct plan_request     request = layout_request(row);
    REQUIRE(predict_pipeline_init(&pipeline, &request));
    return pipeline;
}

// Returns the time at which the last of at most 16 stages ends.
static inline double simulate_with(struct predict_pipeline *pipeline, cost_fn *cost, const void *state)
{
    struct actor_time times[16] = {{.tasks = NULL}};
    double            end       = 0.0;
    predict_pipeline_cost(pipeline, &(struct cost_model){.cost = cost, .state = state});
    REQUIRE(simulate(&pipeline->simulation, times));
    for (int32_t stage = 0; stage < pipeline->simulation.actor_count; stage++) {
        end = times[stage].end_seconds > end ? times[stage].end_seconds : end;
    }
    return end;
}

static inline double simulate_row(const char *row, cost_fn *cost, const void *state)
{
    struct predict_pipeline pipeline = pipeline_of(row);
    double                  end      = simulate_with(&pipeline, cost, state);
    predict_pipeline_free(&pipeline);
    return end;
}

// Returns the sum of the parts. No part may be negative.
static inline double sum_parts(const struct waterfall *waterfall)
{
    double sum = 0.0;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        cr_expect_geq(waterfall->seconds[part], 0.0, "%s %.17g", waterfall_part_names[part], waterfall->seconds[part]);
        sum += waterfall->seconds[part];
    }
    return sum;
}

// Sets the spread of every value in a section to zero, as if the values were exact.
static inline void clear_spreads(const struct option *options, void *section)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        if (option->type == OPTION_QUANTITY) {
            option_quantity(option, section)->spread_percent = 0.0;
        }
    }
}
