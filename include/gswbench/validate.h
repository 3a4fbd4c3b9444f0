// SPDX-License-Identifier: MIT
// Checks the numbers of a run between its timed steps. A step that runs twice must produce the same numbers. If a loss
// is NaN or infinite, finds the op that produced it first.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/result.h"
#include "gswbench/step.h"

// The step to validate, and how.
struct validation_setup {
    const struct plan *plan;
    struct step       *step;
    struct comm       *comm;
    struct result     *result;          // receives reasons and counts, which are the same on every rank
    uint64_t           fingerprint;     // environment_fingerprint: ranks with equal hashes must produce the same bits
    bool               is_full;         // verify is "full" in [run]
    int64_t            sample_bytes;    // maximum bytes of optimizer state to copy
    // called after each piece of work, so that a watchdog sees progress; NULL: not called
    void (*beat)(void *context);
    void *context;
};
void validation_beat(const struct validation_setup *setup);

struct validation;    // state of one rank

// Maximum bytes of optimizer state that a run copies: 1 GiB.
#define VALIDATION_SAMPLE_BYTES (INT64_C(1) << 30)

// Estimates the cost of verification in addition to the steps: bytes read and copied for one step, and seconds for all
// repeated steps and tests of single ops.
struct result_verification validation_expect(const struct validation_setup *setup, bool is_device, int64_t repeated);

struct validation *validation_open(const struct validation_setup *setup);
void               validation_close(struct validation *validation);

// Runs the communication ops of a step on integers with known results. This overwrites the memory of the step. `step`
// is -1 before the first step, else the last step. Returns false, with a reason in the result, if an output is wrong.
// Collective.
bool validation_test_communications(struct validation *validation, int64_t step);

// Runs one compute op of each shape. GEMMs get integers with a known product. Other ops get the same inputs on every
// rank and must produce the same output on every rank. Ops that read routing indices of experts are left out. Returns
// false, with a reason in the result, if an output is wrong. Collective.
bool validation_test_ops(struct validation *validation, int64_t step);

// Called before a step, after its inputs are set. Saves the state that is needed to repeat the step. If is_repeated,
// also runs the step a first time, without its optimizer. Collective.
void validation_begin(struct validation *validation, int64_t index, bool is_repeated);

// Called after a step that ran twice: compares both runs. Returns false, with a reason in the result, if the numbers or
// the optimizer's output differ, or if memory has changed since the previous step. Collective.
bool validation_repeat(struct validation *validation, int64_t index);

// Called after a step with a NaN or infinite loss or gradient norm. Such a step has changed no weights. Runs the step
// again op by op, and adds the rank and op that produced the number first to the result. Collective.
void validation_find(struct validation *validation, int64_t index);
