// SPDX-License-Identifier: MIT
// Proves the numbers of a run while it runs, between its timed steps: a step that is run twice leaves the same numbers,
// and where a loss is no number, the op that made it is found.
#ifndef GSWBENCH_VALIDATE_H
#define GSWBENCH_VALIDATE_H

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
    struct result     *result;    // reasons and counts go there, the same on every rank
    uint64_t           kin;       // the same on ranks whose ops find the same bits: of hardware and of who computes
    bool               is_full;
    int64_t            sample_bytes;    // of what the optimizer changes that are kept at most
    void (*beat)(void *context);        // told of each piece of work, for who watches that it goes on; NULL: nobody
    void *context;
};
void validation_beat(const struct validation_setup *setup);

struct validation;    // one rank's

// The most of what the optimizer changes that a run keeps: 1 GiB.
#define VALIDATION_SAMPLE_BYTES (INT64_C(1) << 30)

// What verification takes besides the steps that it runs, before anything is measured: the bytes of one step, and the
// seconds of all that are run twice, and of ops alone.
struct result_verification validation_expect(const struct validation_setup *setup, bool is_device, int64_t repeated);

struct validation *validation_open(const struct validation_setup *setup);
void               validation_close(struct validation *validation);

// Runs the step's transfers on whole numbers; nothing of what the step's memory holds is kept. step: -1 before the
// first, else the last. Returns false, with a reason in the result, when one brought another number than it should.
// Collective.
bool validation_examine(struct validation *validation, int64_t step);

// Likewise of the ops that compute, one of each shape: GEMMs on whole numbers, whose product is known, and all on
// numbers that are the same on every rank, whose outcome has to be. Of experts, only their GEMMs.
bool validation_examine_ops(struct validation *validation, int64_t step);

// Before a step, whose inputs are there: keeps what is needed to look at it again. A step that is to be run twice runs
// for the first time, without its optimizer. Collective.
void validation_begin(struct validation *validation, int64_t index, bool is_repeated);

// After a step that is run twice: compares it with its first run. Returns false, with a reason in the result, when the
// two left different numbers, the optimizer did, or memory changed since the step before. Collective.
bool validation_repeat(struct validation *validation, int64_t index);

// After a step whose loss or gradient norm is no finite number, which therefore changed no weight: runs it again op by
// op, and puts where that number is from into the result. Collective.
void validation_find(struct validation *validation, int64_t index);

#endif
