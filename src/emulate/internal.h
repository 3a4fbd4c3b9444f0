// SPDX-License-Identifier: MIT
// simulated.c: what a result has of a step that no job has done.
#ifndef GSWBENCH_EMULATE_INTERNAL_H
#define GSWBENCH_EMULATE_INTERNAL_H

#include "gswbench/job.h"
#include "gswbench/predict.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// What the job's plans say.
status simulated_describe_plan(struct result *result, const struct job *job);

// The visitor of a struct predict_explanation, with the result: memory and turns in the course of the step.
void simulated_visit(void *result, const struct predict_view *view);

// Its one step; the verdict follows, when all reasons are added.
void simulated_add_step(struct result *result, double seconds);
void simulated_judge(struct result *result);

#endif
