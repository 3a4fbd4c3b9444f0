// SPDX-License-Identifier: MIT
// Predicts the step time of a job without ranks or a GPU. The cost model gives each op of the plan its seconds on the
// machine of [hardware]; a simulation then runs the streams of every pipeline stage with these costs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/footprint.h"
#include "gswbench/hardware.h"
#include "gswbench/job.h"
#include "gswbench/measured.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/simulate.h"
#include "gswbench/software.h"
#include "gswbench/status.h"
#include "gswbench/timeline.h"
#include "gswbench/waterfall.h"

// Cache of GEMM costs for one machine. A plan repeats a few GEMM shapes many times, and they are the slowest costs to
// compute. A zeroed cache is empty. Not thread-safe; start a new one when the machine changes.
enum { GEMM_MEMO = 64 };
struct known_gemm {
    int64_t                  m, n, k;
    const struct format_row *format;
    double                   seconds, group;
    bool                     accumulates;
};
struct gemm_memo {
    struct known_gemm known[GEMM_MEMO];
};

// Inputs of the cost model.
struct machine {
    const struct hardware_config *hardware;
    const struct software_config *software;     // NULL: gswbench itself
    const struct measured_ops    *measured;     // override the cost model; NULL: none
    int64_t                       sm_margin;    // SM margin, run.sm_margin
    bool                          zero_cta;     // run.zero_cta
    struct gemm_memo             *gemms;        // NULL: no cache
};

struct prediction {
    double           step_seconds;
    double           straggler_seconds;    // part of step_seconds: waiting for the slowest replica
    int64_t          stages, busiest_stage;
    double           imbalance_percent;              // compute time of the busiest stage, over the mean
    double           measured_percent;               // share of its compute time that was measured
    int64_t          largest_rank, largest_bytes;    // largest plan of any stage's first rank
    struct footprint footprint;                      // memory of the modelled framework on the stage that reserves most
};

// Returns an error if the layout is illegal or [hardware] lacks a value that the job needs.
status predict_supports(const struct plan_request *request, const struct hardware_config *hardware);

// Returns the machine of a configuration. It points into config and measured, which must outlive it.
struct machine predict_machine(const struct config *config, const struct measured_ops *measured);

status predict(struct prediction *prediction, const struct plan_request *request, const struct machine *machine);

// The footprint of a prediction without one: builds the plan of each stage, and simulates nothing. [hardware] needs no
// rates.
status predict_footprint(struct footprint *largest, const struct plan_request *request, const struct machine *machine);

// Same as predict, and explains the step: a waterfall of the stage that computes longest, and each stage's op times.
struct predict_view {    // first rank of one stage
    const struct plan    *plan;
    const struct op_time *times;    // [op_count]
    struct timeline_ranks ranks;    // ranks that the timeline shows
    bool                  is_first, is_busiest;
};
struct predict_explanation {
    double ideal_seconds, attention_share;                            // input, as in struct waterfall_step
    void (*visit)(void *context, const struct predict_view *view);    // input: called for each stage; may be NULL
    void            *context;
    struct waterfall waterfall;
};
status predict_explain(struct predict_explanation *explanation, struct prediction *prediction,
                       const struct plan_request *request, const struct machine *machine);

// Same for a job; the ideal time comes from its FLOPs and peak. The caller sets only visit and context.
status predict_explain_job(struct predict_explanation *explanation, struct prediction *prediction,
                           const struct job *job, const struct machine *machine);

// Error estimate (range.c). Each effect is the change of the step time, in percent, when one value moves by one
// standard deviation. percent is the root of the sum of their squares.
struct predict_effect {
    const char *section, *key;
    double      percent;
};
enum { PREDICT_EFFECTS_MAX = 96 };
struct predict_range {
    double                percent;
    struct predict_effect effects[PREDICT_EFFECTS_MAX];
    int                   effect_count;
};
status predict_range(struct predict_range *range, const struct plan_request *request, const struct machine *machine);

struct cost {
    double  seconds;
    double  stall_seconds;    // compute stops this long, whatever overlaps the op
    uint8_t links;            // LINK_ bits of a communication op; 0: compute
    int16_t processors;       // SMs that a communication op occupies
    bool    is_measured;
    bool    is_alone;          // compute waits for the communication op
    double  launch_seconds;    // host time to launch the op; 0: not modelled
    double  launch_alone;      // part of launch_seconds that the GPU always waits for
    bool    is_in_graph;       // launched once per pass of a layer, as a graph
    bool    is_read;           // the host launches nothing until the op has ended
};
// Cost of one compute op (cost.c) or one communication op (cost_communication.c). docs/predictions.md has the formulas.
struct cost predict_cost_op(const struct machine *machine, const struct plan *plan, const struct op *op);
struct cost predict_cost_communication(const struct machine *machine, const struct plan *plan, const struct op *op);

// The stages of a job as actors of a simulation (pipeline.c). The first rank represents all ranks of its stage, so
// collectives within a stage have no other participant.
struct cost_model {
    struct cost (*cost)(const void *state, const struct plan *plan, const struct op *op);
    const void *state;
};
struct predict_stage {
    struct plan plan;    // plan of the stage's first rank
    int64_t     rank, bytes;
    double      compute_seconds, measured_seconds;    // cost of compute ops; the measured part of it
    double      stall_seconds;
};
struct predict_pipeline {
    struct simulation     simulation;
    struct predict_stage *stages;    // [actor_count]
};
// Builds the plans and tasks of each stage once. predict_pipeline_cost sets the seconds of the tasks and may be
// called again with other costs.
status predict_pipeline_init(struct predict_pipeline *pipeline, const struct plan_request *request);
void   predict_pipeline_cost(struct predict_pipeline *pipeline, const struct cost_model *model);
void   predict_pipeline_free(struct predict_pipeline *pipeline);

// Predicts the step of a pipeline that was built for this request.
status predict_time_pipeline(struct prediction *prediction, struct predict_pipeline *pipeline,
                             const struct plan_request *request, const struct machine *machine);
