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

// Device memory of the modelled framework during a step: the tensors of gswbench's plan, and other memory that the
// framework holds. Each part is one mechanism of the framework, with a formula for its bytes (docs/frameworks.md,
// Memory).

// clang-format off
// PART(NAME, name in text, key in JSON). The parts up to WORKSPACES are the peak of the memory that the allocator
// has allocated. The parts from GATHER_POOL to FRAGMENTS are memory that it has reserved in addition. The last two are
// outside the allocator.
#define FOOTPRINT(PART) \
    PART(WEIGHTS, "weights", "weights") \
    PART(GRADIENTS, "gradients", "gradients") \
    PART(OPTIMIZER, "optimizer", "optimizer") \
    PART(ACTIVATIONS, "activations", "activations")             /* of gswbench's plan, with inputs and results */ \
    PART(GEMMS, "products", "products")                         /* GEMM outputs that only the framework saves */ \
    PART(LOGITS, "logit-copies", "logit_copies")                /* copies made by the loss */ \
    PART(PLACEHOLDERS, "placeholders", "placeholders")          /* gradients that autograd requires, but no op reads */ \
    PART(ATTENTION, "attention", "attention")                   /* probabilities of unfused attention, and copies */ \
    PART(DROPOUT, "dropout-masks", "dropout_masks")             /* masks of the residual stream */ \
    PART(WHOLE_GRADIENTS, "whole-gradients", "whole_gradients") /* unsharded, until the last microbatch of a step */ \
    PART(WHOLE_WEIGHTS, "whole-weights", "whole_weights")       /* unsharded, kept across microbatches */ \
    PART(ROOT_WEIGHTS, "root-weights", "root_weights")          /* embedding, which FSDP gathers with the head */ \
    PART(PIPELINE, "pipeline-buffers", "pipeline_buffers")      /* receive buffers of a stage, and sent activations */ \
    PART(WORKSPACES, "workspaces", "workspaces")                /* of libraries such as cuBLAS */ \
    PART(GATHER_POOL, "gather-pool", "gather_pool")             /* separate pool for all-gather buffers */ \
    PART(CACHED, "cached-segments", "cached_segments")          /* freed by layers, too small for the logits */ \
    PART(FRAGMENTS, "fragments", "fragments") \
    PART(CONNECTIONS, "connections", "connections") \
    PART(CONTEXT, "context", "context")
#define FOOTPRINT_PART(NAME, ...) FOOTPRINT_##NAME,
enum footprint_part { FOOTPRINT(FOOTPRINT_PART) FOOTPRINT_PARTS };
// clang-format on
extern const char *const footprint_names[FOOTPRINT_PARTS];

struct footprint {
    int64_t bytes[FOOTPRINT_PARTS];
    int64_t allocated, reserved, device;    // sums of the parts up to WORKSPACES, up to FRAGMENTS, and of all parts
};
extern const struct json_field footprint_fields[];

// Whether the framework's memory is modelled. If not, footprint_find returns the memory of gswbench itself.
bool footprint_is_modelled(const struct software_config *software);

// Computes the memory of the plan's rank in the modelled framework. If its memory is not modelled, computes gswbench's:
// plan, NCCL's connections and CUDA context. Always returns the bytes of connections and context in gswbench.
int64_t footprint_find(struct footprint *footprint, const struct plan *plan, const struct software_config *software,
                       const struct hardware_config *hardware, int64_t ranks_per_node);

// Simulates streams of tasks. A task has a duration when it runs alone. A collective starts when all participants have
// reached it, and tasks that run at the same time slow each other down.

// Bit mask of the links that a communication task uses. Tasks of one actor (a rank, see below) with a common bit share
// that link.
enum {
    LINK_NODE_OUT    = 1,    // between devices of a node
    LINK_NODE_IN     = 2,
    LINK_NETWORK_OUT = 4,    // between nodes
    LINK_NETWORK_IN  = 8,
    LINK_BITS        = 4
};

struct task {
    double seconds;    // duration without slowdown; of a rendezvous, the maximum over its participants
    // index of the collective or send/receive pair that the task shares with other actors; -1: none
    int32_t rendezvous;
    int32_t wait[OP_WAITS];    // tasks of the same actor that must end before this task starts
    uint8_t stream, wait_count;
    uint8_t links;             // LINK_ bits; 0: compute task
    int16_t processors;        // SMs that the task takes from compute
    bool    is_read;           // the host reads the task's result, and launches nothing until the task has ended
    double  launch_seconds;    // host time to launch the task; the host launches an actor's tasks one by one
};

// A rank that represents all ranks with the same work. Tasks of one stream run in list order.
struct actor {
    struct task *tasks;
    int32_t      task_count;
    int32_t      node;     // index of the rank's node; the ranks of a node share its CPU cores
    double       ranks;    // number of ranks that the actor represents on the node
};

// CPU cores of a node, which ranks without a GPU share. Communication runs in threads, which wait for a core while all
// cores compute.
struct simulated_cores {
    double count;                  // cores of a node; 0: the ranks have GPUs
    double threads;                // compute threads of a rank
    double communication_delay;    // extra seconds of a communication task while all cores compute
};

struct simulation {
    struct actor *actors;
    int32_t       actor_count;
    int32_t      *participants;    // [rendezvous_count]: number of participants
    int32_t       rendezvous_count;
    // Seconds that compute loses per second of overlapping communication, below 1, in addition to the SMs that
    // communication takes.
    double                 contention;
    double                 processors;    // SMs per device; 0: communication takes none
    int32_t                sm_margin;     // SMs that compute never uses
    struct simulated_cores cores;
};

struct actor_time {
    double          end_seconds;        // end of the actor's last task
    double          compute_seconds;    // duration of the actor's compute tasks, with slowdown
    struct op_time *tasks;              // [task_count], allocated by the caller; NULL: not wanted
};

// Fills times[actor_count], except the pointers `tasks`, which the caller sets. Communication tasks on one link get
// equal shares of it, and a collective runs at the rate of its slowest participant. Returns an error if actors
// deadlock.
status simulate(const struct simulation *simulation, struct actor_time *times);

// Cache of GEMM costs for one machine. A plan repeats a few GEMM shapes many times, and they are the slowest costs to
// compute. A zeroed cache is empty. Not thread-safe; start a new one when the machine changes.
enum { GEMM_MEMO = 64 };
struct known_gemm {
    int64_t                  m, n, k;
    const struct format_row *format;
    double                   seconds;
    bool                     accumulates, sums_fast, is_mxfp8;
};
struct gemm_memo {
    struct known_gemm known[GEMM_MEMO];
};

// Inputs of the cost model.
struct machine {
    const struct hardware_config *hardware;
    const struct software_config *software;     // the defaults describe gswbench itself
    const struct measured_ops    *measured;     // override the cost model; NULL: none
    int64_t                       sm_margin;    // SM margin, run.sm_margin
    bool                          zero_cta;     // run.zero_cta
    struct gemm_memo             *gemms;        // NULL: no cache
};

struct prediction {
    double step_seconds;
    // part of step_seconds: wait for the slowest replica, and exchanges of FP8 amax values
    double  straggler_seconds;
    int64_t stages, busiest_stage;
    // excess of the busiest stage's compute time over the mean of all stages
    double imbalance_percent;
    double measured_percent;    // share of the busiest stage's compute time that was measured
    // rank with the largest plan among the first ranks of the stages, and bytes of this plan
    int64_t largest_rank, largest_bytes;
    int64_t own_bytes;    // memory of gswbench: plan + NCCL's connections + CUDA context, maximum over the stages
    // memory of the modelled framework on the stage with the largest `reserved`; `device`: maximum over the stages
    struct footprint footprint;
};

// Returns the device memory that the step needs, in gswbench and in the modelled framework, whichever is larger.
int64_t predict_device_bytes(const struct prediction *prediction, const struct software_config *software);

// Returns an error if the layout is illegal or [hardware] lacks a value that the job needs.
status predict_supports(const struct plan_request *request, const struct hardware_config *hardware);

// Returns the inputs of the cost model for a configuration. They point into config and measured, which must outlive
// them.
struct machine predict_machine(const struct config *config, const struct measured_ops *measured);

status predict(struct prediction *prediction, const struct plan_request *request, const struct machine *machine);

// Finds only the footprint that predict() would return. It runs no simulation, so [hardware] needs no rates.
status predict_footprint(struct footprint *largest, const struct plan_request *request, const struct machine *machine);

// predict_explain returns the same as predict(). If explanation is not NULL, it also explains the step: computes the
// waterfall of the stage with the longest compute time, and passes the op times of each stage to `visit`.
struct predict_view {    // argument of `visit`: the first rank of one pipeline stage
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

// Does the same as predict_explain, for a job. It sets the ideal time from the job's FLOPs and peak, so the caller sets
// only visit and context.
status predict_explain_job(struct predict_explanation *explanation, struct prediction *prediction,
                           const struct job *job, const struct machine *machine);

// Error estimate (range.c). Each effect is the change of the step time, in percent, when one value moves by one
// standard deviation. predict_range.percent is the square root of the sum of the effects' squares.
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
    double  stall_seconds;    // compute stalls for this time, even if the op overlaps with compute
    uint8_t links;            // LINK_ bits of a communication op; 0: compute
    int16_t processors;       // SMs that a communication op occupies
    bool    is_measured;
    bool    is_alone;          // compute waits for the communication op
    double  launch_seconds;    // host time to launch the op; 0: not modelled
    double  launch_alone;      // part of launch_seconds for which the GPU always waits, even with queued work
    bool    is_in_graph;       // the op is in a CUDA graph that is launched once per pass of a layer
    bool    is_read;           // the host reads the op's result, and launches nothing until the op has ended
};
// predict_cost_op returns the cost of an op (cost.c), predict_cost_communication the cost of a communication op without
// launches (cost_communication.c). docs/predictions.md has the formulas.
struct cost predict_cost_op(const struct machine *machine, const struct plan *plan, const struct op *op);
struct cost predict_cost_communication(const struct machine *machine, const struct plan *plan, const struct op *op);

// Simulation of a job (pipeline.c). Each pipeline stage is an actor: its first rank represents all ranks of the stage,
// so a collective within the stage has one participant. cost_model gives each op its cost.
struct cost_model {
    struct cost (*cost)(const void *state, const struct plan *plan, const struct op *op);
    const void *state;
};
struct predict_stage {
    struct plan plan;    // plan of the stage's first rank
    int64_t     rank, bytes;
    // sums over ops: cost of all compute ops, cost of those with a measured time, and cost.stall_seconds
    double compute_seconds, measured_seconds;
    double stall_seconds;
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
    status               support;    // error if the job cannot be predicted
    struct prediction    prediction;
    struct predict_range range;    // percent is NaN if not requested
    struct text_buffer   warnings;
    double               tokens_per_second, mfu;
    double               token_dollars;                       // dollars per million tokens; NaN: unknown
    double               published_seconds, error_percent;    // NaN: not published
    // predicted memory, reserved or allocated as in [published]; the error is NaN if no memory was published
    double memory_bytes, memory_error_percent;

    struct predict_explanation explanation;    // the caller may set visit
    char                       layout[256];
    bool                       is_fit, is_program_fit;    // gswbench and the modelled framework fit the device
    const bool                *fits, *program_fits;       // &is_fit, &is_program_fit; NULL: unknown
};

// Predicts row->job, which the caller has read. The caller frees row->warnings.
void predict_row_compute(struct predict_row *row, bool wants_range);
