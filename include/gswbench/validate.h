// SPDX-License-Identifier: MIT
// Validates a run's numbers between its timed steps. A step that runs twice must produce the same numbers. If a loss is
// NaN or infinite, the op that made it is found.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/result.h"
#include "gswbench/step.h"

struct validation_setup {
    const struct plan *plan;
    struct step       *step;
    struct comm       *comm;
    struct result     *result;    // receives reasons and counts, the same on every rank
    uint64_t fingerprint;     // equal on ranks whose ops must produce the same bits: a hash of hardware and libraries
    bool     is_full;         // run.verify = full
    int64_t  sample_bytes;    // maximum bytes of optimizer state to copy
    void (*beat)(void *context);    // called after each piece of work, for a watchdog; NULL: none
    void *context;
};
void validation_beat(const struct validation_setup *setup);

struct validation;    // one rank's state

// Optimizer state that a run copies at most: 1 GiB.
#define VALIDATION_SAMPLE_BYTES (INT64_C(1) << 30)

// Estimates the cost of verification beyond the steps themselves: bytes for one step, and seconds for all repeated
// steps and isolated ops.
struct result_verification validation_expect(const struct validation_setup *setup, bool is_device, int64_t repeated);

struct validation *validation_open(const struct validation_setup *setup);
void               validation_close(struct validation *validation);

// Runs the step's communication ops on integers with known results, and clears the step's memory. step is -1 before the
// first step, else the last step. Returns false, with a reason in the result, if an output was wrong. Collective.
bool validation_test_communications(struct validation *validation, int64_t step);

// Runs one compute op of each shape. GEMMs get integers with a known product. Other ops get the same inputs on every
// rank and must agree across ranks. Ops that read MoE routing indices are excluded. Returns false, with a reason in the
// result, if an output was wrong. Collective.
bool validation_test_ops(struct validation *validation, int64_t step);

// Called before a step, after its inputs are set. Saves the state needed to repeat the step later. If is_repeated,
// also runs the step a first time without its optimizer. Collective.
void validation_begin(struct validation *validation, int64_t index, bool is_repeated);

// Called after a repeated step: compares it with its first run. Returns false, with a reason in the result, if the
// numbers or the optimizer's output differ, or if memory changed since the previous step. Collective.
bool validation_repeat(struct validation *validation, int64_t index);

// Called after a step with a NaN or infinite loss or gradient norm, which has changed no weights. Runs the step again
// op by op, and reports in the result where the number came from. Collective.
void validation_find(struct validation *validation, int64_t index);
