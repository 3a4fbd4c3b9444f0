// SPDX-License-Identifier: MIT
// simulated.c: fills a result from a simulated step.
#ifndef GSWBENCH_EMULATE_INTERNAL_H
#define GSWBENCH_EMULATE_INTERNAL_H

#include "gswbench/job.h"
#include "gswbench/predict.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// Describes the job's plans.
status simulated_describe_plan(struct result *result, const struct job *job);

// Visitor for struct predict_explanation, with the result as context: adds memory over the step and pipeline
// timelines.
void simulated_visit(void *result, const struct predict_view *view);

// Adds the single step. simulated_judge sets the verdict after all reasons are added.
void simulated_add_step(struct result *result, double seconds);
void simulated_judge(struct result *result);

#endif
