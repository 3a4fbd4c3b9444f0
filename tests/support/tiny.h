// SPDX-License-Identifier: MIT
// Builds plans of a small model for tests.
#pragma once

#include "gswbench/plan.h"
#include "gswbench/plan_build.h"

// All parts to which a plan request points. Change fields before tiny_plan.
struct tiny {
    struct model_config     model;
    struct parallel_config  parallel;
    struct train_config     train;
    struct precision_config precision;
    struct plan             plan;
};

// Sets two layers with hidden size 16, GQA, SwiGLU and RMSNorm; 2 sequences of 8 tokens; fp32; one rank.
void tiny_init(struct tiny *tiny);

// Returns the request for a plan of these sections, which must be valid.
struct plan_request resolved(const struct plan_sections *sections);

// Returns a request with copies of the sections, so later changes do not affect it.
struct plan_request tiny_request(const struct tiny *tiny, int64_t world, int64_t rank);
void                tiny_plan_rank(struct tiny *tiny, int64_t world, int64_t rank);
void                tiny_plan(struct tiny *tiny);
