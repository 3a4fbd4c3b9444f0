// SPDX-License-Identifier: MIT
// Builds the plan of one rank from a request: layers, pipeline schedule and optimizer, appended op by op.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/model.h"
#include "gswbench/plan.h"

// The configuration sections and the number of ranks. Together they determine the training step of every rank.
struct plan_sections {
    const struct model_config     *model;
    const struct parallel_config  *parallel;
    const struct train_config     *train;
    const struct precision_config *precision;
    int64_t                        world;    // number of ranks; 0: the product of the axis sizes
};

// The sections after plan_resolve, where no option is auto and all batch sizes are known; and the rank to build the
// plan for.
struct plan_request {
    struct model_config    model;
    struct parallel_config parallel;
    struct train_config    train;
    struct precision       precision;
    struct mesh            mesh;
    int64_t                rank;
    bool                   is_unplaced;    // compute only the peak of live activation bytes, not their offsets
};

// Fills in a request for rank 0: checks all sections and resolves options that are auto or omitted. The error has a
// line for each problem. If the axes do not match the number of ranks, mesh.world of the request is 0.
status plan_resolve(struct plan_request *request, const struct plan_sections *sections);

// Runs the checks of plan_resolve that do not depend on the number of ranks.
status plan_check(const struct plan_sections *sections);

// Returns an error if this version cannot run the request; the error names the option. Builds no plan.
status plan_supports(const struct plan_request *request);

// Returns the assignment of layers to pipeline chunks.
struct schedule_assignment plan_assignment(const struct plan_request *request);

// Returns the parameters of the pipeline schedule.
struct schedule_shape plan_schedule(const struct mesh *mesh, const struct train_config *train);

// Upper bounds of plan sizes, computed in microseconds without building a plan.
struct plan_size {
    double rank_ops;      // ops of a rank, maximum over ranks
    double stage_ops;     // ops of one rank per pipeline stage, summed
    double rank_bytes;    // bytes of a rank's tensors, without reuse of memory
};
struct plan_size plan_size(const struct plan_request *request);

// plan_check_layout checks that layers divide into pipeline chunks, and tokens over sequence-parallel ranks.
// plan_check_size checks that the plan is not too large to build.
status plan_check_layout(const struct plan_request *request);
status plan_check_size(const struct plan_request *request);

// A step is long if only its number of microbatches makes its plan too large to build; predictions then extrapolate
// from shorter steps. plan_shorten returns the request with at most this many microbatches. plan_enough_microbatches
// returns the number of microbatches of the longest of these shorter steps, a multiple of 3.
bool                plan_is_long(const struct plan_request *request);
struct plan_request plan_shorten(const struct plan_request *request, int64_t microbatches);
int64_t             plan_enough_microbatches(const struct plan_request *request);

// Builds the plan of the rank: blocks, schedule, optimizer, dependencies, memory offsets. Call plan_free even after an
// error.
status plan_build(struct plan *plan, const struct plan_request *request);

// Builds the plan of the first rank of a pipeline stage; ignores the request's rank.
status plan_build_stage(struct plan *plan, const struct plan_request *request, int64_t stage);

// Fills `declared` with the weights and FSDP units of another rank of the same job, but no ops. plan_free frees it.
void plan_declare(struct plan *declared, const struct plan *plan, int64_t rank);

// The following functions derive properties of a model from [model], without a plan.

// Checks the sizes, combinations and layer pattern of [model].
status layers_check(const struct model_config *model);

// Checks [train] against the layers: outputs in recompute_save and modules in recompute_modules must exist, and a table
// of learned positions must cover the sequence.
status layers_check_train(const struct model_config *model, const struct train_config *train);

// Return the number of layers with experts, and the layer number of the index-th of them.
int64_t layers_with_experts(const struct model_config *model);
int64_t layers_expert_layer(const struct model_config *model, int64_t index);

// Parameters without vocabulary padding. Active parameters count top_k experts per layer.
int64_t layers_parameters(const struct model_config *model);
int64_t layers_active_parameters(const struct model_config *model);
int64_t layers_trained_parameters(const struct model_config *model);    // adapters only, or all parameters

// Model FLOPs of one training step on one sequence, forward and backward. NaN for FLOPS_HARDWARE, and for
// FLOPS_PUBLISHED if no convention is published.
double layers_flops(const struct model_config *model, const struct published_config *published,
                    enum flop_convention convention, int64_t sequence);

// Returns the fraction of layers_flops that are FLOPs of attention.
double layers_attention_share(const struct model_config *model, const struct published_config *published,
                              enum flop_convention convention, int64_t sequence);
