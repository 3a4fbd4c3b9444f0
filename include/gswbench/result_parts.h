// SPDX-License-Identifier: MIT
// Parts of a result: its verdict, and the elements of its lists. An unknown real is NaN.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/model.h"
#include "gswbench/statistics.h"
#include "gswbench/waterfall.h"

// Verdicts in order of severity. A run gets the verdict of its worst reason.
enum verdict {
    VERDICT_VALID,
    VERDICT_DEGRADED,
    VERDICT_EMULATED,
    VERDICT_PREDICTED,
    VERDICT_UNVERIFIED,
    VERDICT_PARTIAL,
    VERDICT_INVALID,
    VERDICT_COUNT
};
extern const char *const result_verdict_names[];    // "valid", ...; ends with NULL

enum step_phase { STEP_WARMUP, STEP_MEASURE };
extern const char *const result_phase_names[];    // "warmup", "measure"

// A setting of the merged configuration, named "section.key", or a fact about the environment.
struct result_entry {
    char name[96], value[1024];
};

// Ids of notes that say why a run was slow. A profiler was attached or requested; run.check examined every op; a
// [fault] was injected.
#define RESULT_PROFILED "profiled"
#define RESULT_CHECKED  "checked"
#define RESULT_FAULT    "faulted"
struct result_reason {
    char    id[32];        // machine-readable: "loss-not-finite"
    int64_t verdict;       // enum verdict
    int64_t rank, step;    // -1: none
    char    message[256];
};

struct result_step {
    int64_t index;
    int64_t phase;      // enum step_phase
    double  seconds;    // of the slowest rank
    double  rank0_seconds;
    double  device_seconds;    // of rank 0, by CUDA events; NaN without a GPU
    int64_t slowest_rank;
    double  loss, gradient_norm;
    double  prediction_loss;    // mean over the MTP depths; NaN without MTP
    double  dropped;            // share of token-expert pairs that were dropped; NaN without experts
    bool    is_run_twice;       // the step ran twice, and both runs must agree
    bool    is_outlier;         // set by result_derive
};

// Load balance of the experts of a layer, over all ranks: load of the busiest and of the idlest expert relative to the
// mean, share of dropped token-expert pairs, auxiliary loss.
enum load { LOAD_BUSIEST, LOAD_IDLEST, LOAD_DROPPED, LOAD_AUXILIARY, LOAD_COUNT };
struct result_layer {
    int64_t layer;
    double  last[LOAD_COUNT];    // in the last step
    double  mean[LOAD_COUNT];    // mean over the measured steps; NaN before the first
};

// Time to load and to save a checkpoint (maximum over the ranks), and its bytes (sum over the ranks). 0: no checkpoint.
// After several saves, the figures are from the last save.
struct result_checkpoint {
    int64_t first_step;    // number of the first step, counted over all runs that continued the checkpoint
    int64_t saves;
    double  load_seconds, load_bytes, load_bandwidth;
    double  save_seconds, save_bytes, save_bandwidth;
    double  stall_seconds;    // seconds in which no step could run
    // Measured steps that ran while a checkpoint was written: their number and their median. other_seconds: median of
    // the other measured steps.
    int64_t steps_beside;
    double  beside_seconds, other_seconds;
};

// Attention implementation on rank 0; "": not applicable.
struct result_attention {
    char provider[24], library[32];    // provider: "cudnn", "own", "cudnn and own"; library: "cuDNN 9.19.0"
    char engines[64];                  // cuDNN engine numbers: "forward 2, backward 6"
    char refusal[256];                 // why gswbench's kernels replace the requested cuDNN
};

// Verdict of the acceptance test, set by result_accept.
enum acceptance { ACCEPTANCE_NONE, ACCEPTANCE_ACCEPT, ACCEPTANCE_REFUSE, ACCEPTANCE_CANNOT_TELL };
extern const char *const result_acceptance_names[];    // "none", "accept", ...; ends with NULL

// Acceptance test of a machine. If basis is "", it was not requested.
struct result_acceptance {
    int64_t verdict;                      // enum acceptance
    char    basis[16];                    // source of the expected step time: "published", "predicted", "nothing"
    double  expected_seconds, percent;    // step time, and its tolerance in percent; NaN: unknown
    int64_t outliers;                     // number of outliers that the preflight found
    char    drain[1024];                  // hosts to drain, comma-separated
    char    reason[512];                  // message that explains the verdict
};

struct result_communication {
    char    kind[24], axes[24], format[8];
    int64_t elements, group_size, count;    // elements of one op; ops per step
    double  bytes;                          // per step
};

struct result_kind {
    char    kind[24];
    int64_t count;    // per step of rank 0
};

// Emulation of a job on one device. If stages is 0, the result is no emulation. ops: number of ops in the stage that
// computes longest.
struct result_emulation {
    int64_t stages, executed;    // pipeline stages of the job; stages executed
    int64_t ops, measured_ops;
    double  measured_share;    // share of the step time that was measured
};

// Cost of verifying steps, and largest differences that it found. A bound is the allowed share of a tensor's norm; 0:
// numbers must be equal bit for bit.
struct result_verification {
    double expected_seconds, seconds;          // expected and measured time that verification adds to the timed steps
    double device_bytes, host_bytes;           // per verified step: traffic of device memory, use of host memory
    double op_bound, op_difference;            // between ranks: largest bound, largest difference found
    double repeat_bound, repeat_difference;    // between two runs of a step: bound, largest difference found
};

struct result_rank {
    int64_t rank, node, local_rank, threads;
    char    host[64];
    double  median_seconds;         // median of the measured steps, by the clock of this rank
    double  clock_drift_seconds;    // wall clock minus the step timer's clock, over the run
    int64_t allocated_bytes;
    int64_t processors;    // processors of the rank's host that ranks of the job may use
    double  foreign;       // number of `processors` that processes outside the job used in measured steps; NaN: unknown
    // Compute time of measured steps, without waits for other ranks; NaN: unknown. A class is the set of ranks with the
    // same work.
    int64_t class;             // lowest rank of the class
    double compute_seconds;    // median
    // median over the steps of: compute time / median of the class, minus 1; NaN: alone in its class
    double excess;
    double load_seconds, load_bytes, save_seconds, save_bytes;    // as in struct result_checkpoint, for this rank
    double excess_low;    // lower confidence bound of excess; NaN: too few steps, or shared cores or device
};

// Compute time of `ranks` ranks from `rank` on, in `steps` steps from `step` on: maximum over the ranks, mean over the
// steps.
struct result_compute_time {
    int64_t rank, ranks, step, steps;
    double  seconds, excess;    // as in struct result_rank
};

// A value of the environment that differs between some ranks and rank 0.
struct result_deviation {
    char    name[64], value[128];    // value "none": not set
    int64_t count;
    char    ranks[96], host[64];    // "1,4-7", truncated to the buffer; host of the first rank
};

// Ops of one kind and phase in the traced step.
struct result_op_time {
    char    kind[24], phase[16];
    int64_t count;
    double  seconds;
    double  flops;    // executed
    double  bytes;    // read and written; a communication op counts its elements once
};

// Communication ops of one kind, size, type, group and stream, in the traced step and in isolation.
struct result_communication_time {
    char    kind[24], axes[24], format[8];
    int64_t elements, group_size, count;
    // bytes of one op; its median time: in total, and after the last rank has arrived (moving_seconds)
    double bytes, seconds, moving_seconds;
    // time when the op runs alone; time of the cost model with the job's [hardware]
    double  alone_seconds, predicted_seconds;
    double  bandwidth, alone_bandwidth;    // bus bandwidths in bytes/s: in the step, and when the op runs alone
    int64_t late_rank;    // rank that arrives last most often in the group that waits longest; -1: none
    // in this group: share of ops in which late_rank is last; mean wait of the rank that arrives first
    double  late_share, wait_seconds;
    char    algorithm[32], protocol[16];    // as NCCL names them; "": not reported
    int64_t channels;                       // 0: not reported
};

// Source of the times of a traced step. RESULT_UNTRACED: there is no traced step, and its fields are NaN or 0.
enum result_source { RESULT_UNTRACED, RESULT_MEASURED, RESULT_EMULATED, RESULT_PREDICTED };
extern const char *const result_source_names[];    // "", "measured", ...; ends with NULL

// The traced step, on the rank that computes longest. It does not count as a measured step.
struct result_trace {
    int64_t          source;          // enum result_source
    char             timed_by[16];    // "cupti", "events", "clock" (host clock); "": ops were not timed
    int64_t          lost_records;    // records that CUPTI dropped, over all ranks: op times are then lower bounds
    int64_t          rank;
    double           step_seconds;    // of the slowest rank; sum of the waterfall parts
    struct waterfall waterfall;
};

// Error, in percent, of the predicted change of the step time when one option changes: it covers 80 % of the published
// changes of up to 20 % (docs/atlas.md). Predictions with the same profiles share most of their error, which cancels.
#define PREDICTED_CHANGE_ERROR 7.7

// Step time that gswbench predicts for this run on this machine.
struct result_expectation {
    char   profile[1024];            // [hardware] profile of the prediction; "": none
    char   reason[128];              // why there is no prediction
    double step_seconds, percent;    // percent: one standard deviation
    // share of compute time with a cost that was measured on a machine of this profile
    double measured_share;
    // from the profile: peak FLOP/s for the run's precision, and bytes/s; NaN: unknown
    double           peak, memory_bandwidth;
    struct waterfall waterfall;
};

// Maximum of activation memory on rank 0 in one of the RESULT_MOMENTS equal parts of the step. seconds: start of the
// part.
enum { RESULT_MOMENTS = 128 };
struct result_moment {
    double  seconds;
    int64_t bytes;
};

// A pipeline action: a forward, recompute or backward phase of one microbatch and chunk. The gradient reductions and
// the optimizer of a stage are an action with chunk and microbatch -1.
struct result_action {
    int64_t stage;
    char    phase[16];
    int64_t chunk, microbatch;
    double  begin, end;    // seconds
};

// NCCL features that connected the devices, on rank 0.
struct result_connections {
    bool    allocates;              // buffers of collectives are allocated by NCCL (ncclMemAlloc)
    int64_t windows, registered;    // buffers registered with NCCL: symmetric windows, and per-rank buffers
    int64_t refused;                // buffers that NCCL refused to register
    int64_t copying;                // communicators that may use copy engines for all-gathers and all-to-alls
    int64_t putting;                // communicators with one-sided puts for ring steps
    bool    exchanges;              // an all-to-all is one ncclAlltoAll call
    int64_t scalable;               // communicators initialized with several unique ids
    double  library_bytes;          // device memory by NCCL's own count; NaN: not reported
};

struct result_figures {
    struct statistics step;    // statistics of the measured steps
    int64_t           warmup_steps, measured_steps;
    double            last_step_seconds, mean_35_44_seconds;
    double            tokens_per_step, tokens_per_second, tokens_per_second_per_rank;
    int64_t           convention;                  // headline convention: published if available, else full
    double            teraflops_per_rank;          // TFLOP/s per rank by this convention
    double            utilization[FLOPS_COUNT];    // MFU; NaN: unknown, or above 1
    double            days_per_trillion_tokens;
    double            joules_per_step, tokens_per_joule;    // all ranks together; NaN if one is unknown
    double            published_ratio;                      // median over published step time; below 1 is faster
};
