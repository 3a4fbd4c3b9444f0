// SPDX-License-Identifier: MIT
// A result: everything that a run records, and the figures derived from it. All output formats (text, JSON, CSV, HTML)
// print this struct and compute nothing again. An unknown real is NaN. Strings are raw: the code that prints a string
// escapes it.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/mesh.h"
#include "gswbench/model.h"
#include "gswbench/observe.h"
#include "gswbench/op.h"
#include "gswbench/output.h"
#include "gswbench/plan.h"
#include "gswbench/result_parts.h"
#include "gswbench/status.h"

// Number of the measuring method. Results of different methods are not comparable; CHANGELOG.md lists the changes under
// Measures.
enum { RESULT_METHOD = 1 };

struct result {
    int64_t method;
    char    version[32], compiler[64];             // version: includes the commit
    char    run_id[32], started[24], ended[24];    // started, ended: UTC
    int64_t verdict, exit_code;

    // Number of lines in the run's journal (run.jsonl) when the result was written, and their digest. 0 lines: no
    // journal.
    int64_t journal_lines;
    char    journal_digest[24];
    char    source[64];    // for a result read from a file: whether the journal agrees with it

    char    config_name[128], config_path[1024], config_hash[24];
    char    precision[8];
    char    communicator[16], backend[16], device[512];
    bool    computes;    // false: the backend computes no numbers
    int64_t planned_steps, planned_warmup;

    // Layout and model.
    struct mesh mesh;
    int64_t     sequence, micro_batch, global_batch, accumulation;
    int64_t     layers;
    bool        is_proxy;    // the model has fewer layers than its preset
    int64_t     parameters, active_parameters;
    double      flops_per_sequence[FLOPS_COUNT];

    // Peak FLOP/s of one device, for the MFU, and the peak that the publisher used for the published MFU.
    double peak, published_peak;
    char   peak_source[160];    // source of the peak, or the reason why it is unknown
    char   published_source[128];
    double published_seconds, published_mfu;    // NaN: not published

    struct result_emulation   emulation;
    struct result_attention   attention;
    struct result_connections connections;
    struct result_acceptance  acceptance;
    struct result_checkpoint  checkpoint;

    // Memory, FLOPs and ops of rank 0, from its plan unless a comment says otherwise.
    int64_t storage_bytes[STORAGE_COUNT];
    int64_t live_bytes, allocated_bytes;    // peak of live activations; memory that the backend allocated (measured)
    int64_t connection_bytes;               // device memory that NCCL took for communicators; not in allocated_bytes
    double  flops[PHASE_COUNT];             // FLOPs executed per step
    int64_t tensor_count, op_count;

    struct result_trace       trace;
    struct result_expectation expectation;

    // Seconds of the preparation on rank 0: choice of GEMM algorithms, connections, graph capture.
    double tune_seconds, connect_seconds, capture_seconds;
    // step time in the warm-up, without and with a CUDA graph; NaN: not compared
    double eager_seconds, replay_seconds;

    // Inputs of the checks that decide the verdict.
    double  wall_seconds;        // from the first step to the last, including the time between steps
    int64_t step_allocations;    // allocations of device memory during steps
    int64_t replica_groups, replica_groups_equal;    // groups of replicas; groups with equal weights after the run
    double  start_loss,
        start_loss_margin;                   // expected loss of the first step with initial weights, and its tolerance
    char                       verify[8];    // "full", "quick", "light", "off"
    struct result_verification verification;
    // communication and compute ops that were run alone and checked, before and after the steps; sums over all ranks
    int64_t examined_communications, examined_ops;
    // steps that ran twice, and the number of them that gave the same bits
    int64_t repeated_steps, repeated_equal;

    struct result_entry              *config, *environment;    // of rank 0
    struct result_deviation          *deviations;
    struct result_reason             *reasons;
    struct result_step               *steps;
    struct result_rank               *ranks;
    struct result_communication      *communications;
    struct result_kind               *kinds;
    struct result_op_time            *op_times;               // of the traced step
    struct result_moment             *moments;                // activation memory in the traced step, on rank 0
    struct result_action             *actions;                // pipeline actions of the traced step, stage after stage
    struct result_layer              *layer_loads;            // of MoE layers
    struct observation               *observations;           // one per rank; none without a GPU
    struct result_communication_time *communication_times;    // of the traced step, over all ranks
    // by step and rank; with more than RESULT_CELLS steps or ranks, an element covers several of them
    struct result_compute_time *compute_times;
    int64_t config_count, environment_count, reason_count, step_count, rank_count, communication_count, kind_count,
        op_time_count, moment_count, action_count, layer_load_count, observation_count, deviation_count,
        compute_time_count, communication_time_count;

    struct result_figures figures;
};

// Frees the lists. A zeroed result has none.
void result_free(struct result *result);

// Copies the source, step time and MFU of the config's section [published]. is_comparable: this run has all layers
// of the config and the device of the published run. If false, the published step time and MFU are unknown.
void result_set_published(struct result *result, const struct published_config *published, bool is_comparable);
// Copies layout, model, FLOPs by convention, memory, ops and communication from the plan.
void result_set_plan(struct result *result, const struct plan *plan, const struct published_config *published);

// Allocates room for steps and ranks, with counts of 0, and for MoE layers, with unknown loads.
void result_reserve(struct result *result, int64_t steps, int64_t ranks, int64_t expert_layers);
void result_add_entry(struct result_entry **list, int64_t *count, const char *name, const char *value);

// Adds the routing statistics of the last step; routing is f32 [layers, experts + 2].
void result_add_routing(struct result *result, const float *routing, int64_t experts);

// Adds a measured step to compute_times. seconds and excess are [ranks]. If there are more than RESULT_CELLS ranks or
// steps, neighbouring ranks or steps are merged.
enum { RESULT_CELLS = 64 };    // maximum number of elements along ranks, and along steps
void result_add_compute_times(struct result *result, const double *seconds, const double *excess, int64_t ranks);
// Appends an entry to communication_times, and fills in the names of its kind, axes and format.
void result_add_communication_time(struct result *result, const struct result_communication_time *time,
                                   enum op_kind kind, uint32_t axes, enum format format);

// Sets the op times of the traced step, with an entry per kind and phase. A kind and phase without ops gets no entry.
void result_set_op_times(struct result *result, const struct op_totals *totals);

// Sets the timeline of activation memory from the plan of rank 0 and the times of its ops, [op_count].
void result_set_moments(struct result *result, const struct plan *plan, const struct op_time *times);

// Lists the pipeline actions of the plan's stage in order, and returns their number. If there are more than
// RESULT_ACTIONS, it divides the step into RESULT_ACTIONS equal times and lists the action in the middle of each.
enum { RESULT_ACTIONS = 256 };
int64_t result_find_actions(struct result_action actions[RESULT_ACTIONS], const struct plan *plan,
                            const struct op_time *times);
void    result_add_actions(struct result *result, const struct result_action *actions, int64_t count);

// Returns the peak FLOP/s that the MFU of a convention divides by.
double result_peak(const struct result *result, enum flop_convention convention);
// Returns the seconds that a rank's share of the model FLOPs takes at this peak. NaN without a peak.
double result_ideal_seconds(const struct result *result, enum flop_convention convention);
// Returns the MFU of a step that takes `seconds`; NaN if the MFU is unknown or above 1.
double result_utilization(const struct result *result, enum flop_convention convention, double seconds);
// Adds a reason. The result gets the reason's verdict if this is worse than its verdict so far.
void result_add_reason(struct result *result, const struct result_reason *reason);
// Adds a reason with a formatted message.
void result_note(struct result *result, struct result_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Labels of the NVML values of a GPU, and the unit of a gauge.
extern const struct device_label {
    const char *words, *unit;
} gauge_labels[], counter_labels[], throttle_labels[];

// Return the UUID of a rank's GPU ("" if unknown), and a printable name: "rank 3 (host, GPU-1234)".
const char *result_rank_gpu(const struct result *result, int64_t rank);
const char *result_name_rank(const struct result *result, int64_t rank, char *text, size_t bytes);

// Returns the half width of the median's confidence interval (statistics_half_width) for the measured steps so far.
double result_half_width(const struct result *result);

// Computes result->figures and marks outliers among the steps.
void result_derive(struct result *result);

// Returns the id of the reason that slowed the run on purpose: a profiler, run.check or an injected fault. NULL: none.
const char *result_slowed_by(const struct result *result);

// Whether the result is a simulated step (emulated or predicted), which has no training steps and no loss.
bool result_is_simulated(const struct result *result);
bool result_is_predicted(const struct result *result);
// Whether the run passed the numeric checks (VALID or DEGRADED). The figures of other runs are stored under another key
// and not printed as the result.
bool result_is_right(const struct result *result);
// Whether figures may be shown and compared: a correct run, or a simulation, which is marked as one.
bool result_is_shown(const struct result *result);
// Whether gswbench compare accepts the figures without --force: VALID runs and simulations.
bool result_is_clean(const struct result *result);

// Criteria for reliable step times; quality_check.c has their limits. They are the coefficient of variation, the
// relative drift over the run, the threads per core, and the share of a host's processors that other processes took.
enum quality { QUALITY_VARIATION, QUALITY_DRIFT, QUALITY_SHARING, QUALITY_FOREIGN, QUALITY_COUNT };
// Adds a note if value is above the first limit of the criterion, and makes the result DEGRADED above the second limit.
// NaN is above no limit. format is the start of the message.
void result_judge(struct result *result, enum quality quality, double value, int64_t rank, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// Marks the result INVALID if a step took less time than its executed FLOPs take at the peak.
void result_check_peak(struct result *result);

// Derives the figures, and checks steps, replicas, allocations and clocks. Sets exit_code from the verdict.
void result_check(struct result *result);

// Sets the verdict of the acceptance test and its reason from the expected step time and the verdict of the run
// (result_check.c).
void result_accept(struct result *result);
int  result_acceptance_code(enum acceptance verdict);

// Writes a result as JSON and reads it back.

// result.json has the schema "gswbench.result/5". result_read_json derives all figures of the file again, and fails if
// a figure differs. After a failure the result is empty.
bool   result_write_json(const struct result *result, FILE *file);
status result_read_json(struct result *result, const char *path);

// Parses a JSON file without checking its content. The caller owns the reference.
status result_load_document(const char *path, json_t **document);

// Converts a result without its figures to JSON. The caller owns the reference.
json_t *result_to_json(const struct result *result);

// Returns the key of the figures in result.json, which is one of result_figures_keys (ends with NULL).
extern const char *const       result_figures_keys[];
const char                    *result_figures_key(const struct result *result);
extern const struct json_field result_figure_fields[];    // of struct result_figures

// Returns the JSON Schema of result.json. The caller owns the reference.
json_t *result_schema(void);

// run.jsonl: the record of a run in progress. The first line describes the run, each step adds a line, and the last
// line has the digest of result.json. Every line has a checksum. If the run dies, a partial result with all printed
// steps can be built from it.

#define JOURNAL_FILE "run.jsonl"

// A zeroed journal is closed. Errors are EXIT_OUTPUT.
struct journal {
    bool   is_open;
    int    file;
    double synced;    // time of the last fdatasync, by clock_seconds
    char   path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];

    int64_t  lines;
    uint64_t digest;    // digest of all lines so far
};
status journal_open(struct journal *journal, const struct output_folder *folder, const struct result *result);
// Appends the last step of the result in one write, so that a line is complete or missing. Syncs if the last sync was a
// second or more ago.
status journal_add_step(struct journal *journal, const struct result *result);
void   journal_close(struct journal *journal);

// Whether the run that writes this journal still has it open.
bool journal_is_locked(const char *path);

// Link a result to its journal. Before result.json is written, journal_note stores the journal's number of lines and
// digest in the result. After it is written, journal_seal appends the digest of result.json, which ends the journal.
void   journal_note(const struct journal *journal, struct result *result);
status journal_seal(struct journal *journal, const struct output_folder *folder);

// Builds a partial result, with a verdict, from the complete lines of a journal. reason says why the run ended.
// further: another reason with a verdict worse than PARTIAL; NULL: none.
status journal_read(struct result *result, const char *path, const char *reason, const struct result_reason *further);

// Compares a result that was read from `path` with the journal in the same folder. The journal's digest, steps, seconds
// and losses must be the same in the result. If journal_seal has ended the journal, its last line must have the digest
// of the result file. Returns EXIT_COMPARE if they disagree. `source` receives a text: they agree, or a part is
// missing.
status journal_check(const struct result *result, const char *path, char *source, size_t bytes);
