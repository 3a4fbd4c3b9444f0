// SPDX-License-Identifier: MIT
// Everything a run knows, and the figures derived from it, computed once: text, JSON, CSV and HTML read this struct.
// A real that is not known is NaN. Texts are as they came: whoever prints makes them safe.
#ifndef GSWBENCH_RESULT_H
#define GSWBENCH_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/mesh.h"
#include "gswbench/model.h"
#include "gswbench/op.h"
#include "gswbench/plan.h"
#include "gswbench/statistics.h"
#include "gswbench/waterfall.h"

// Numbers of different methods are not comparable: docs/method.md has the history.
enum { RESULT_METHOD = 1 };

// In order of weight: a run has the verdict of its gravest reason.
enum verdict {
    VERDICT_VALID,
    VERDICT_DEGRADED,
    VERDICT_EMULATED,
    VERDICT_UNVERIFIED,
    VERDICT_PARTIAL,
    VERDICT_INVALID,
    VERDICT_COUNT
};
extern const char *const result_verdict_names[];    // "valid", ...; ends with NULL

enum step_phase { STEP_WARMUP, STEP_MEASURE };
extern const char *const result_phase_names[];    // "warmup", "measure"

// A setting of the merged config ("section.key"), or a fact about the environment.
struct result_entry {
    char name[96], value[1024];
};

#define RESULT_PROFILED "profiled"    // the id of a note: a profiler watched a rank
struct result_reason {
    char    id[32];        // for programs: "loss-not-finite"
    int64_t verdict;       // enum verdict
    int64_t rank, step;    // -1: not one
    char    message[256];
};

struct result_step {
    int64_t index;
    int64_t phase;      // enum step_phase
    double  seconds;    // of the slowest rank
    double  rank0_seconds;
    double  device_seconds;    // of rank 0 by its device's clock; NaN without one
    int64_t slowest_rank;
    double  loss, gradient_norm;
    double  dropped;       // share of all choices of experts; NaN without experts
    bool    is_outlier;    // set by result_derive
};

// How evenly the experts of a layer are used, over all ranks.
enum load { LOAD_BUSIEST, LOAD_IDLEST, LOAD_DROPPED, LOAD_AUXILIARY, LOAD_COUNT };
struct result_layer {
    int64_t layer;
    double  last[LOAD_COUNT];    // of the last step
    double  mean[LOAD_COUNT];    // over the measured steps; NaN before the first
};

struct result_rank {
    int64_t rank, node, local_rank, threads;
    char    host[64];
    double  median_seconds;         // of its own measured steps
    double  clock_drift_seconds;    // of the wall clock against the clock that times steps, over the run
    int64_t allocated_bytes;
};

struct result_transfer {
    char    kind[24], axes[24], dtype[8];
    int64_t elements, group_size, count;    // elements of one transfer; count in one step
    double  bytes;                          // of one step
};

struct result_kind {
    char    kind[24];
    int64_t count;    // in one step of rank 0
};

// Ops of one kind and phase in the traced step.
struct result_op_time {
    char    kind[24], phase[16];
    int64_t count;
    double  seconds;    // from begin to end, one op after the other
};

// A step that is not among the measured ones, on the rank that computes longest.
struct result_trace {
    char             source[16];    // "measured", "emulated"; "": no step was traced, and the rest is NaN or 0
    int64_t          rank;
    double           step_seconds;    // of the slowest rank: what the parts add up to
    struct waterfall waterfall;
};

// One device in place of a job's; stages 0: it is none. Ops are those of the stage that computes longest.
struct result_emulation {
    int64_t stages, executed;    // of the job; on the device
    int64_t ops, measured_ops;
    double  measured_share;    // of the step's time
};

struct result_figures {
    struct statistics step;    // of the measured steps
    int64_t           warmup_steps, measured_steps;
    double            last_step_seconds, mean_35_44_seconds;
    double            tokens_per_step, tokens_per_second, tokens_per_second_per_rank;
    int64_t           convention;                  // of the headline: published where there is one, else full
    double            teraflops_per_rank;          // headline convention
    double            utilization[FLOPS_COUNT];    // share of the peak
    double            days_per_trillion_tokens;
    double            published_ratio;    // median over the published step time: below 1 is faster
};

struct result {
    int64_t method;
    char    version[32], compiler[64];             // version: with the commit
    char    run_id[32], started[24], ended[24];    // UTC
    int64_t verdict, exit_code;

    char    config_name[128], config_path[1024], config_hash[24];
    char    precision[8];
    char    communicator[16], backend[16], device[512];
    bool    computes;    // false: a backend that leaves the numbers out
    int64_t planned_steps, planned_warmup;

    // Layout and model.
    struct mesh mesh;
    int64_t     sequence, micro_batch, global_batch, accumulation;
    int64_t     layers;
    bool        is_proxy;    // fewer layers than the model has
    int64_t     parameters, active_parameters;
    double      flops_per_sequence[FLOPS_COUNT];

    // FLOP/s of one device: what utilization is set against, and what the published table set its own against.
    double peak, published_peak;
    char   peak_source[160];    // where the peak is from, or why there is none
    char   published_source[128];
    double published_seconds, published_percent;    // NaN: not published

    struct result_emulation emulation;

    // The plan of rank 0.
    int64_t storage_bytes[STORAGE_COUNT];
    int64_t live_bytes, allocated_bytes;    // allocated: with the backend's scratch
    double  flops[PHASE_COUNT];             // executed in a step
    int64_t tensor_count, op_count;

    struct result_trace trace;

    // What the checks look at.
    double  wall_seconds;        // of all steps and what lies between them
    int64_t step_allocations;    // of device memory, in steps
    int64_t replica_groups, replica_groups_equal;

    struct result_entry    *config, *environment;
    struct result_reason   *reasons;
    struct result_step     *steps;
    struct result_rank     *ranks;
    struct result_transfer *transfers;
    struct result_kind     *kinds;
    struct result_op_time  *op_times;       // of the traced step
    struct result_layer    *layer_loads;    // of a model with experts
    int64_t config_count, environment_count, reason_count, step_count, rank_count, transfer_count, kind_count;
    int64_t op_time_count, layer_load_count;

    struct result_figures figures;
};

// Frees the lists; a zeroed result has none.
void result_free(struct result *result);

// Copies what the plan knows: layout, model, FLOPs by convention, memory, ops, transfers. A proxy (is_proxy is set
// before) has no published figure.
void result_set_plan(struct result *result, const struct plan *plan, const struct published_config *published);

// Room for that many steps and ranks, whose counts stay 0, and layers with experts, whose loads are not known.
void result_reserve(struct result *result, int64_t steps, int64_t ranks, int64_t expert_layers);

void result_add_entry(struct result_entry **list, int64_t *count, const char *name, const char *value);

// Takes in how the last step of the list used the experts, as the plan has it: f32 [layers, experts + 2].
void result_add_routing(struct result *result, const float *routing, int64_t experts);

// Of the traced step, those that there are.
void result_set_op_times(struct result *result, const struct op_totals *totals);

// Seconds of a rank's share of the model's FLOPs at the peak; NaN without a peak.
double result_ideal_seconds(const struct result *result, enum flop_convention convention);

// Adds a reason and raises the verdict to the reason's.
void result_add_reason(struct result *result, const struct result_reason *reason);

// Judges steps, replicas, allocations and clocks; then exit_code follows from the verdict.
void result_check(struct result *result);

// Computes the figures and flags outliers.
void result_derive(struct result *result);

// Figures of a run that was not shown to be right are kept apart, and no text shows them as its result.
bool result_is_comparable(const struct result *result);

// Figures that may be shown: those, and those of an emulation, which says that it is one.
bool result_is_shown(const struct result *result);

// result.json, schema "gswbench.result/1". Reading trusts nothing in the file and derives the figures anew.
bool   result_write_json(const struct result *result, FILE *file);
status result_read_json(struct result *result, const char *path);

#endif
