// SPDX-License-Identifier: MIT
// What a result is made of: its verdict, and the elements of its lists. A real that is not known is NaN.
#ifndef GSWBENCH_RESULT_PARTS_H
#define GSWBENCH_RESULT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/result_trace.h"
#include "gswbench/model.h"
#include "gswbench/result_ranks.h"
#include "gswbench/statistics.h"
#include "gswbench/waterfall.h"

// In order of weight: a run has the verdict of its gravest reason.
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

// Ids of notes: a profiler watched a rank, or was told to collect; every op was looked at; something went wrong on
// purpose.
#define RESULT_PROFILED "profiled"
#define RESULT_CHECKED  "checked"
#define RESULT_FAULT    "faulted"
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
    double  prediction_loss;    // of further tokens, the mean; NaN: none is predicted
    double  dropped;            // share of all choices of experts; NaN without experts
    bool    is_run_twice;       // and has to leave the same numbers
    bool    is_outlier;         // set by result_derive
};

// How evenly the experts of a layer are used, over all ranks.
enum load { LOAD_BUSIEST, LOAD_IDLEST, LOAD_DROPPED, LOAD_AUXILIARY, LOAD_COUNT };
struct result_layer {
    int64_t layer;
    double  last[LOAD_COUNT];    // of the last step
    double  mean[LOAD_COUNT];    // over the measured steps; NaN before the first
};

// What loading and saving a checkpoint took, all ranks together: the longest time, and the bytes of all; 0: there was
// none. Of several that were saved, the last.
struct result_checkpoint {
    int64_t first_step;    // of the run, counted over all runs that the checkpoint went through
    int64_t saves;
    double  load_seconds, load_bytes, load_bandwidth;
    double  save_seconds, save_bytes, save_bandwidth;
    double  stall_seconds;    // of those seconds, in which no step could run
    // Of measured steps: how many ran while a checkpoint was written, and the median of these and of the others.
    int64_t steps_beside;
    double  beside_seconds, other_seconds;
};

// Who computes attention on rank 0; "" where nothing is to be said.
struct result_attention {
    char provider[24], library[32];    // "cudnn", "own", "cudnn and own"; "cuDNN 9.19.0"
    char engines[64];                  // cuDNN's numbers: "forward 2, backward 6"
    char refusal[256];                 // why own kernels do what cuDNN was first asked for
};

// Whether a machine passes: set by result_accept.
enum acceptance { ACCEPTANCE_NONE, ACCEPTANCE_ACCEPT, ACCEPTANCE_REFUSE, ACCEPTANCE_CANNOT_TELL };
extern const char *const result_acceptance_names[];    // "none", "accept", ...; ends with NULL

// What a run is to show; basis "": it was not asked.
struct result_acceptance {
    int64_t verdict;                      // enum acceptance
    char    basis[16];                    // of what is expected: "published", "predicted", "nothing"
    double  expected_seconds, percent;    // a step, more or less so much; NaN: nothing is known
    int64_t outliers;                     // of the preflight before the run
    char    drain[1024];                  // hosts, with commas
    char    reason[512];                  // what decided
};

struct result_transfer {
    char    kind[24], axes[24], format[8];
    int64_t elements, group_size, count;    // elements of one transfer; count in one step
    double  bytes;                          // of one step
};

struct result_kind {
    char    kind[24];
    int64_t count;    // in one step of rank 0
};

// One device in place of a job's; stages 0: it is none. Ops are those of the stage that computes longest.
struct result_emulation {
    int64_t stages, executed;    // of the job; on the device
    int64_t ops, measured_ops;
    double  measured_share;    // of the step's time
};

// What verification took, and how numbers were compared: within a share of their norm, or bit for bit, which is 0.
struct result_verification {
    double expected_seconds, seconds;          // besides the timed steps
    double device_bytes, host_bytes;           // of a step: through the device's memory; of the host's at a time
    double op_bound, op_difference;            // between ranks: the largest bound, and the largest that was found
    double repeat_bound, repeat_difference;    // between two runs of a step
};

struct result_figures {
    struct statistics step;    // of the measured steps
    int64_t           warmup_steps, measured_steps;
    double            last_step_seconds, mean_35_44_seconds;
    double            tokens_per_step, tokens_per_second, tokens_per_second_per_rank;
    int64_t           convention;                  // of the headline: published where there is one, else full
    double            teraflops_per_rank;          // headline convention
    double            utilization[FLOPS_COUNT];    // share of the peak; NaN where a convention counts more than that
    double            days_per_trillion_tokens;
    double            joules_per_step, tokens_per_joule;    // of all ranks together; NaN where one does not know
    double            published_ratio;                      // median over the published step time: below 1 is faster
};

#endif
