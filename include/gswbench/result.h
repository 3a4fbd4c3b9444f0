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
#include "gswbench/observation.h"
#include "gswbench/op.h"
#include "gswbench/plan.h"
#include "gswbench/result_connections.h"
#include "gswbench/result_course.h"
#include "gswbench/result_judge.h"
#include "gswbench/result_parts.h"

// Numbers of different methods are not comparable: docs/method.md has the history.
enum { RESULT_METHOD = 1 };

struct result {
    int64_t method;
    char    version[32], compiler[64];             // version: with the commit
    char    run_id[32], started[24], ended[24];    // UTC
    int64_t verdict, exit_code;

    // The lines that the run's journal had when the result was written, and a digest of them; 0 lines: no journal.
    int64_t journal_lines;
    char    journal_digest[24];
    char    source[64];    // of a result that was read: whether its journal agrees

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
    double published_seconds, published_mfu;    // NaN: not published

    struct result_emulation   emulation;
    struct result_attention   attention;
    struct result_connections connections;
    struct result_acceptance  acceptance;
    struct result_checkpoint  checkpoint;

    // The plan of rank 0.
    int64_t storage_bytes[STORAGE_COUNT];
    int64_t live_bytes, allocated_bytes;    // allocated: with the backend's scratch
    int64_t connection_bytes;               // of the device, by the library that connects devices; beside allocated
    double  flops[PHASE_COUNT];             // executed in a step
    int64_t tensor_count, op_count;

    struct result_trace       trace;
    struct result_expectation expectation;

    // What rank 0 did before the steps: it chose algorithms, connected to the others, captured the step.
    double tune_seconds, connect_seconds, capture_seconds;
    double eager_seconds, replay_seconds;    // a step each way, of the warm-up; NaN: it was not found out

    // For the checks.
    double  wall_seconds;        // of all steps and what lies between them
    int64_t step_allocations;    // of device memory, in steps
    int64_t replica_groups, replica_groups_equal;
    double  start_loss,
        start_loss_margin;    // of weights as they are drawn: expected in the first step, and how far from it
    char                       verify[8];    // "full", "quick", "light", "off"
    struct result_verification verification;
    int64_t                    examined_transfers, examined_ops;    // of all ranks, alone, before and after the steps
    int64_t                    repeated_steps, repeated_equal;      // run twice; with the same bits

    struct result_entry         *config, *environment;    // of rank 0
    struct result_deviation     *deviations;
    struct result_reason        *reasons;
    struct result_step          *steps;
    struct result_rank          *ranks;
    struct result_transfer      *transfers;
    struct result_kind          *kinds;
    struct result_op_time       *op_times;          // of the traced step
    struct result_moment        *moments;           // of the traced step, on rank 0
    struct result_turn          *turns;             // of the traced step, of every pipeline stage, one after the other
    struct result_layer         *layer_loads;       // of a model with experts
    struct observation          *observations;      // of each rank's device; none on a processor
    struct result_transfer_time *transfer_times;    // of the traced step, over all ranks
    struct result_compute_time  *compute_times;     // step by step, RESULT_CELLS ranks or runs of ranks each
    int64_t config_count, environment_count, reason_count, step_count, rank_count, transfer_count, kind_count,
        op_time_count, moment_count, turn_count, layer_load_count, observation_count, deviation_count,
        compute_time_count, transfer_time_count;

    struct result_figures figures;
};

// Frees the lists; a zeroed result has none.
void result_free(struct result *result);

// A proxy (is_proxy is set before) and a run on another machine than the table's have no published figures.
void result_set_published(struct result *result, const struct published_config *published, bool is_its_machine);
// Copies what the plan knows: layout, model, FLOPs by convention, memory, ops, transfers.
void result_set_plan(struct result *result, const struct plan *plan, const struct published_config *published);

// Room for that many steps and ranks, whose counts stay 0, and layers with experts, whose loads are not known.
void result_reserve(struct result *result, int64_t steps, int64_t ranks, int64_t expert_layers);
void result_add_entry(struct result_entry **list, int64_t *count, const char *name, const char *value);

// Adds the routing statistics of the last step in the list, as the plan has them: f32 [layers, experts + 2].
void result_add_routing(struct result *result, const float *routing, int64_t experts);

// Adds a measured step to compute_times; both lists are [ranks]. Ranks and steps that are too many to be told one by
// one are told together.
enum { RESULT_CELLS = 64 };    // at most, of ranks and of steps
void result_add_compute_times(struct result *result, const double *seconds, const double *excess, int64_t ranks);
// Adds it to transfer_times, with these names.
void result_add_transfer_time(struct result *result, const struct result_transfer_time *time, enum op_kind kind,
                              uint32_t axes, enum format format);

// The times of the traced step's ops, by kind and phase, where there are any.
void result_set_op_times(struct result *result, const struct op_totals *totals);

// Seconds of a rank's share of the model's FLOPs at the peak; NaN without a peak.
double result_ideal_seconds(const struct result *result, enum flop_convention convention);
// The share of the peak of a step that long; NaN where it is not known, or above 1.
double result_utilization(const struct result *result, enum flop_convention convention, double seconds);
// Adds a reason and raises the verdict to the reason's.
void result_add_reason(struct result *result, const struct result_reason *reason);

// The UUID of a rank's device, "" where it is not known; and a rank's name for people, "rank 3 (host, GPU-1234)".
const char *result_rank_gpu(const struct result *result, int64_t rank);
const char *result_name_rank(const struct result *result, int64_t rank, char *text, size_t bytes);

// Of the measured steps so far: statistics_half_width.
double result_half_width(const struct result *result);

// Computes the figures and flags outliers.
void result_derive(struct result *result);

// The id of the reason that says that the run was slowed on purpose, by a profiler, by run.check or by a fault; NULL:
// none.
const char *result_slowed_by(const struct result *result);
bool        result_reason_slows(const struct result_reason *reason);

#endif
