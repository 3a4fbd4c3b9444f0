// SPDX-License-Identifier: MIT
// Parts of a result: its verdict, and the elements of its lists. An unknown real is NaN.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/model.h"
#include "gswbench/statistics.h"
#include "gswbench/waterfall.h"

// In order of severity: a run gets the verdict of its worst reason.
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

// A setting of the merged config ("section.key"), or a fact about the environment.
struct result_entry {
    char name[96], value[1024];
};

// Ids of notes: a profiler was attached or asked to collect; run.check examined every op; a [fault] was injected.
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
    double  seconds;    // slowest rank
    double  rank0_seconds;
    double  device_seconds;    // rank 0, by device events; NaN without a device
    int64_t slowest_rank;
    double  loss, gradient_norm;
    double  prediction_loss;    // mean over the MTP depths; NaN without MTP
    double  dropped;            // share of dropped expert choices; NaN without experts
    bool    is_run_twice;       // the step ran twice, and both runs must agree
    bool    is_outlier;         // set by result_derive
};

// Load balance of a layer's experts, over all ranks.
enum load { LOAD_BUSIEST, LOAD_IDLEST, LOAD_DROPPED, LOAD_AUXILIARY, LOAD_COUNT };
struct result_layer {
    int64_t layer;
    double  last[LOAD_COUNT];    // last step
    double  mean[LOAD_COUNT];    // mean over the measured steps; NaN before the first
};

// Time to load and save a checkpoint, maximum over the ranks, and bytes of all ranks. 0: no checkpoint. After several
// saves, the figures are those of the last one.
struct result_checkpoint {
    int64_t first_step;    // step number over all runs that the checkpoint went through
    int64_t saves;
    double  load_seconds, load_bytes, load_bandwidth;
    double  save_seconds, save_bytes, save_bandwidth;
    double  stall_seconds;    // seconds in which no step could run
    // Measured steps that ran while a checkpoint was written: their number, their median, and the median of the other
    // steps.
    int64_t steps_beside;
    double  beside_seconds, other_seconds;
};

// Attention implementation on rank 0; "": not applicable.
struct result_attention {
    char provider[24], library[32];    // "cudnn", "own", "cudnn and own"; "cuDNN 9.19.0"
    char engines[64];                  // cuDNN engine numbers: "forward 2, backward 6"
    char refusal[256];                 // why own kernels replace the requested cuDNN
};

// Result of the acceptance test, set by result_accept.
enum acceptance { ACCEPTANCE_NONE, ACCEPTANCE_ACCEPT, ACCEPTANCE_REFUSE, ACCEPTANCE_CANNOT_TELL };
extern const char *const result_acceptance_names[];    // "none", "accept", ...; ends with NULL

// Acceptance test of a machine. basis "": not requested.
struct result_acceptance {
    int64_t verdict;                      // enum acceptance
    char    basis[16];                    // source of the expectation: "published", "predicted", "nothing"
    double  expected_seconds, percent;    // seconds per step and tolerance; NaN: unknown
    int64_t outliers;                     // number of preflight outliers
    char    drain[1024];                  // hosts to drain, comma-separated
    char    reason[512];                  // message that explains the verdict
};

struct result_communication {
    char    kind[24], axes[24], format[8];
    int64_t elements, group_size, count;    // elements of one communication op; count per step
    double  bytes;                          // per step
};

struct result_kind {
    char    kind[24];
    int64_t count;    // per step of rank 0
};

// Emulation of a job on one device; stages 0: not an emulation. ops counts the stage that computes longest.
struct result_emulation {
    int64_t stages, executed;    // pipeline stages of the job; stages executed
    int64_t ops, measured_ops;
    double  measured_share;    // share of the step time
};

// Cost of verification, and how numbers were compared: bit for bit (bound 0), or within a share of their norm.
struct result_verification {
    double expected_seconds, seconds;          // in addition to the timed steps
    double device_bytes, host_bytes;           // per verified step: device memory traffic; host memory in use
    double op_bound, op_difference;            // between ranks: the largest bound, and the largest difference found
    double repeat_bound, repeat_difference;    // between two runs of a step
};

struct result_rank {
    int64_t rank, node, local_rank, threads;
    char    host[64];
    double  median_seconds;         // measured steps, by the rank's own clock
    double  clock_drift_seconds;    // wall clock minus the step timer's clock, over the run
    int64_t allocated_bytes;
    int64_t processors;    // processors of the host that ranks of the job may use
    double  foreign;       // number of these that other processes took during measured steps; NaN: unknown
    // Compute time of measured steps without waiting for other ranks; NaN: unknown.
    int64_t class;             // lowest rank with the same work
    double compute_seconds;    // median
    double excess;             // median of compute time over class median, minus 1; NaN: alone in its class
    double load_seconds, load_bytes, save_seconds, save_bytes;    // same fields as the job's checkpoint
    double excess_low;    // lower confidence bound of excess; NaN: too few steps, or shared cores or device
};

// Compute time of a range of ranks and steps, beginning at rank and step: maximum over the ranks, mean over the steps.
struct result_compute_time {
    int64_t rank, ranks, step, steps;
    double  seconds, excess;    // as in struct result_rank
};

// A value of the environment that differs from rank 0's.
struct result_deviation {
    char    name[64], value[128];    // "none": not set
    int64_t count;
    char    ranks[96], host[64];    // "1,4-7", truncated to the buffer; host of the first rank
};

// Ops of one kind and phase in the traced step.
struct result_op_time {
    char    kind[24], phase[16];
    int64_t count;
    double  seconds;
    double  flops;    // executed
    double  bytes;    // read and written; of a communication op, its elements
};

// Communication ops of one kind, size, type, group and stream, in the traced step and in isolation.
struct result_communication_time {
    char    kind[24], axes[24], format[8];
    int64_t elements, group_size, count;
    double  bytes, seconds,
        moving_seconds;    // medians of one op: as a rank sees it, and after the last rank has arrived
    double  alone_seconds, predicted_seconds;    // in isolation; by the cost model with the job's [hardware]
    double  bandwidth, alone_bandwidth;          // bus bandwidth, bytes/s
    int64_t late_rank;                   // rank that arrives last most often, in the group that waits longest; -1: none
    double  late_share, wait_seconds;    // share of ops in which it is last; extra wait of the first rank
    char    algorithm[32], protocol[16];    // as NCCL names them; "": not reported
    int64_t channels;                       // 0: not reported
};

// How the times of a traced step came about. RESULT_UNTRACED: there is none, and its fields are NaN or 0.
enum result_source { RESULT_UNTRACED, RESULT_MEASURED, RESULT_EMULATED, RESULT_PREDICTED };
extern const char *const result_source_names[];    // "", "measured", ...; ends with NULL

// The traced step, which is not a measured one, on the rank that computes longest.
struct result_trace {
    int64_t          source;          // enum result_source
    char             timed_by[16];    // "cupti", "events", "clock" (host clock); "": ops were not timed
    int64_t          lost_records;    // records that CUPTI dropped, over all ranks: op times are then lower bounds
    int64_t          rank;
    double           step_seconds;    // of the slowest rank; the waterfall parts add up to it
    struct waterfall waterfall;
};

// Two predictions with the same profiles share most of their error. Of changes up to 20 % between published rows that
// differ by one option, 80 % are predicted within this percentage (docs/atlas.md).
#define PREDICTED_CHANGE_ERROR 7.7

// Predicted step time of this program on this machine.
struct result_expectation {
    char             profile[1024];             // [hardware] profile of the prediction; "": none
    char             reason[128];               // why there is no prediction
    double           step_seconds, percent;     // percent: one standard deviation
    double           measured_share;            // share of compute time whose cost was measured on such a machine
    double           peak, memory_bandwidth;    // of the profile, for the run's precision; NaN: unknown
    struct waterfall waterfall;
};

// Maximum of activation memory on rank 0 from this time to the next; the step is cut into RESULT_MOMENTS equal parts.
enum { RESULT_MOMENTS = 128 };
struct result_moment {
    double  seconds;
    int64_t bytes;
};

// A pipeline action: one phase of one microbatch and chunk, or a stage's reductions and optimizer (chunk and microbatch
// -1).
struct result_action {
    int64_t stage;
    char    phase[16];
    int64_t chunk, microbatch;
    double  begin, end;    // seconds
};

// NCCL features that connected the devices, on rank 0.
struct result_connections {
    bool    allocates;              // buffers of collectives are allocated by NCCL (ncclMemAlloc)
    int64_t windows, registered;    // registered storages: symmetric windows; per-rank buffers
    int64_t refused;                // storages that NCCL would not register
    int64_t copying;                // communicators whose gathers and all-to-alls may use copy engines
    int64_t putting;                // communicators whose ring steps are one-sided puts
    bool    exchanges;              // an all-to-all is one ncclAlltoAll call
    int64_t scalable;               // communicators initialized with several unique ids
    double  library_bytes;          // device memory by NCCL's own count; NaN: not reported
};

struct result_figures {
    struct statistics step;    // measured steps
    int64_t           warmup_steps, measured_steps;
    double            last_step_seconds, mean_35_44_seconds;
    double            tokens_per_step, tokens_per_second, tokens_per_second_per_rank;
    int64_t           convention;                  // headline convention: published if available, else full
    double            teraflops_per_rank;          // headline convention
    double            utilization[FLOPS_COUNT];    // MFU; NaN if the convention counts more than the peak allows
    double            days_per_trillion_tokens;
    double            joules_per_step, tokens_per_joule;    // all ranks together; NaN if one is unknown
    double            published_ratio;                      // median over published step time; below 1 is faster
};
