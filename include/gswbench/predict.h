// SPDX-License-Identifier: MIT
// Predicts the step time of a job without ranks or a GPU. The cost model gives each op of the plan its seconds on the
// machine of [hardware]; a simulation then runs the streams of every pipeline stage with these costs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/hardware.h"
#include "gswbench/job.h"
#include "gswbench/json.h"
#include "gswbench/measured.h"
#include "gswbench/op.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/software.h"
#include "gswbench/status.h"
#include "gswbench/text.h"
#include "gswbench/waterfall.h"

// Device memory of a framework during a step: the tensors of the plan, and other memory that the framework holds. Each
// part is one mechanism of the framework, with a formula for its bytes (docs/frameworks.md, Memory).

enum footprint_part {
    // Peak of the memory that the caching allocator has allocated.
    FOOTPRINT_WEIGHTS,
    FOOTPRINT_GRADIENTS,
    FOOTPRINT_OPTIMIZER,
    FOOTPRINT_ACTIVATIONS,        // of the plan, with inputs and results
    FOOTPRINT_GEMMS,              // GEMM outputs that the framework saves in a block instead of the plan's activations
    FOOTPRINT_LOGITS,             // copies of the logits made by the loss
    FOOTPRINT_PLACEHOLDERS,       // gradients that no op reads
    FOOTPRINT_ATTENTION,          // probabilities that unfused attention keeps, and copies of its inputs and outputs
    FOOTPRINT_DROPOUT,            // masks of the residual stream
    FOOTPRINT_WHOLE_GRADIENTS,    // unsharded gradients, until the last microbatch of a step
    FOOTPRINT_WHOLE_WEIGHTS,      // unsharded weights, kept across microbatches
    FOOTPRINT_ROOT_WEIGHTS,       // embedding weights, gathered while the head's are
    FOOTPRINT_PIPELINE,           // receive buffers of stages, and sent activations
    FOOTPRINT_WORKSPACES,         // of libraries
    // Memory that the allocator has reserved beyond that.
    FOOTPRINT_GATHER_POOL,    // separate pool of gather buffers
    FOOTPRINT_CACHED,         // free segments that are too small for the logits
    FOOTPRINT_FRAGMENTS,
    // Memory outside the allocator.
    FOOTPRINT_CONNECTIONS,
    FOOTPRINT_CONTEXT,
    FOOTPRINT_PARTS
};
extern const char *const footprint_names[FOOTPRINT_PARTS];

struct footprint {
    int64_t bytes[FOOTPRINT_PARTS];
    int64_t allocated, reserved, device;    // sums of the first group of parts, the first two, and all three
};
extern const struct json_field footprint_fields[];

// Whether the framework's memory is modelled. If it is not, its footprint is the plan of gswbench.
bool footprint_is_modelled(const struct software_config *software);

// For the rank of the plan. software NULL: gswbench itself, which holds exactly the memory of the plan.
void footprint_find(struct footprint *footprint, const struct plan *plan, const struct software_config *software,
                    int64_t ranks_per_node);

// Simulates streams of tasks. A task has a duration when it runs alone. A collective starts when all participants have
// reached it, and tasks that run at the same time slow each other down.

// Bit mask of the links that a communication task uses. Tasks of one actor with a common bit share that link.
enum {
    LINK_NODE_OUT    = 1,    // between devices of a node
    LINK_NODE_IN     = 2,
    LINK_NETWORK_OUT = 4,    // between nodes
    LINK_NETWORK_IN  = 8,
    LINK_BITS        = 4
};

struct task {
    double  seconds;           // duration alone; of a rendezvous, the longest of its participants
    int32_t rendezvous;        // rendezvous with tasks of other actors; -1: none
    int32_t wait[OP_WAITS];    // tasks of the same actor that end first
    uint8_t stream, wait_count;
    uint8_t links;             // 0: compute
    int16_t processors;        // SMs that it takes from compute
    bool    is_read;           // the host launches nothing until it has ended
    double  launch_seconds;    // host time; a task starts after the host has launched it and all before it
};

// A rank that represents all ranks with the same work. Tasks of one stream run in list order.
struct actor {
    struct task *tasks;
    int32_t      task_count;
    int32_t      node;     // 0 .. actor_count - 1: actors of one node share cores
    double       ranks;    // ranks that it represents on the node
};

// CPU ranks share the cores of their node. Threads communicate, and get a core late while it computes.
struct simulated_cores {
    double count;                  // per node; 0: ranks have devices
    double threads;                // per computing rank
    double communication_delay;    // extra seconds of a communication task while all cores compute
};

struct simulation {
    struct actor *actors;
    int32_t       actor_count;
    int32_t      *participants;    // [rendezvous_count]: participants
    int32_t       rendezvous_count;
    // Seconds that compute loses per second of overlapping communication, below 1, in addition to the SMs that
    // communication takes.
    double                 contention;
    double                 processors;    // SMs per device; 0: communication takes none
    int32_t                sm_margin;     // SM margin that compute leaves free at all times
    struct simulated_cores cores;
};

struct actor_time {
    double          end_seconds;        // end of its last task
    double          compute_seconds;    // duration of its compute tasks, with slowdown
    struct op_time *tasks;              // [task_count], allocated by the caller; NULL: not wanted
};

// Fills times[actor_count]; the caller sets their tasks. Communication tasks on one link get equal shares of it, and a
// collective runs at the rate of its slowest participant. Returns an error if actors deadlock.
status simulate(const struct simulation *simulation, struct actor_time *times);

// Cache of GEMM costs for one machine. A plan repeats a few GEMM shapes many times, and they are the slowest costs to
// compute. A zeroed cache is empty. Not thread-safe; start a new one when the machine changes.
enum { GEMM_MEMO = 64 };
struct known_gemm {
    int64_t                  m, n, k;
    const struct format_row *format;
    double                   seconds;
    bool                     accumulates, sums_fast;
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
    double           straggler_seconds;    // part of step_seconds: waits for the slowest replica, amax exchanges
    int64_t          stages, busiest_stage;
    double           imbalance_percent;              // compute time of the busiest stage, over the mean
    double           measured_percent;               // share of the busiest stage's compute time that was measured
    int64_t          largest_rank, largest_bytes;    // largest plan of any stage's first rank
    struct footprint footprint;                      // memory of the modelled framework on the stage that reserves most
};

// Returns an error if the layout is illegal or [hardware] lacks a value that the job needs.
status predict_supports(const struct plan_request *request, const struct hardware_config *hardware);

// Returns the machine of a configuration. It points into config and measured, which must outlive it.
struct machine predict_machine(const struct config *config, const struct measured_ops *measured);

status predict(struct prediction *prediction, const struct plan_request *request, const struct machine *machine);

// Finds the footprint that predict would return, without a simulation: [hardware] needs no rates.
status predict_footprint(struct footprint *largest, const struct plan_request *request, const struct machine *machine);

// Same as predict, and explains the step, unless explanation is NULL: a waterfall of the stage that computes longest,
// and each stage's op times.
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

// Each pipeline stage of a job is an actor of a simulation (pipeline.c): its first rank represents all its ranks, so
// collectives within a stage have no other participant. cost_model gives each op its cost.
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

// Predicts a job and compares it with its published result.

struct predict_row {
    struct job           job;
    status               support;    // why the job cannot be predicted
    struct prediction    prediction;
    struct predict_range range;    // percent is NaN if not requested
    struct text_buffer   warnings;
    double               tokens_per_second, mfu;
    double               token_dollars;                         // per million; NaN: unknown
    double               published_seconds, error_percent;      // NaN: not published
    double               memory_bytes, memory_error_percent;    // allocated or reserved, as published; NaN: none

    struct predict_explanation explanation;    // the caller may set visit
    char                       layout[256];
    bool                       fits;    // gswbench's plan fits the device
    bool                       is_program_fit;
    const bool                *program_fits;    // is_program_fit; NULL: the program's memory is not modelled
};

// Predicts row->job, which the caller has read. The caller frees row->warnings.
void predict_row_compute(struct predict_row *row, bool wants_range);
