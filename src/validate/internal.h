// SPDX-License-Identifier: MIT
// State of validation, shared by repeat.c, optimizer.c, spread.c, ops.c, numbers.c and findings.c.
#pragma once

#include "gswbench/arena.h"
#include "gswbench/digest.h"
#include "gswbench/format.h"
#include "gswbench/step.h"
#include "gswbench/validate.h"

struct validation;

// repeat.c: whether a whole tensor keeps its content between steps.
bool state_is_lasting(const struct plan *plan, int32_t tensor);

// Restores from a host copy the small state before the latest step, so that the step can run again: results, FP8 scales
// and router biases, but no weights, gradients or moments.
void state_restore(const struct validation *validation);

// repeat.c: whether ops after AdamW derive weights from its output.
bool remakes_weights(const struct plan *plan);

// optimizer.c: verifies a step's optimizer on a sample of its inputs.
struct sample {
    char   *data;    // host memory; NULL: nothing saved
    int64_t bytes;
    int64_t taken;    // number of samples taken; each starts at other elements
};

// sample_state_bytes is the size of the state that AdamW reads and writes. sample_bytes is the size of the sample: the
// whole state if it fits in `maximum`, else the same share of each AdamW op.
int64_t sample_state_bytes(const struct plan *plan);
int64_t sample_bytes(const struct plan *plan, int64_t maximum);

// Saves a sample of master weights, weights and moments before a step.
void sample_take(struct sample *sample, const struct validation_setup *setup);
void sample_close(struct sample *sample, const struct validation_setup *setup);

// After the step, runs AdamW on the sample with the step's gradients, in other memory. Returns the first op whose
// output differs, or -1. elements: number of compared elements.
int32_t sample_compare(struct sample *sample, const struct validation_setup *setup, int64_t *elements);

// spread.c: bounds on the difference between two runs of a step with nondeterministic ops. spread_of_op is the maximum
// difference for one such op, relative to the norm of its output.
double spread_of_op(const struct plan *plan, const struct op *op);

struct spread {
    double *variance;      // [tensors]: the square of the relative difference; 0: same bits
    bool   *is_unknown;    // [tensors]: a step without the optimizer leaves another value
    bool    is_mixed;      // one run is issued, the other is a graph replay
};

// Collective, because a nondeterministic op affects data that other ranks receive.
void   spread_open(struct spread *spread, const struct validation_setup *setup, bool is_mixed);
void   spread_close(struct spread *spread);
double spread_bound(const struct spread *spread, int32_t tensor);

struct validation {
    struct validation_setup setup;
    char                   *small;      // small state before the latest step; NULL: none saved
    struct sample           sample;     // optimizer state before the latest repeated step
    struct spread           spread;     // allowed differences between its two runs
    struct digest         **first;      // [tensors], after the first run; NULL: not compared
    uint64_t               *hashes;     // [tensors], after the latest repeated step
    int64_t                 hashed;     // index of that step; -2: no hashes taken
    int32_t                 changed;    // a tensor whose bits changed since then; -1: none
};

// A rank's error; "": none.
struct complaint {
    char text[240];
};

struct found {
    struct complaint complaint;     // about the first wrong tensor
    double           difference;    // maximum, relative to the norm
};

// ops.c: hash of everything that determines an op's output; 0: the op cannot run in isolation.
uint64_t ops_task(const struct plan *plan, const struct op *op, uint64_t fingerprint);

// numbers.c: inputs for isolated ops, the same on every rank, and chosen so that a GEMM's product is known. An operand
// is a sequence of numbers that repeats after count.
struct numbers {
    float  *number;    // [count]
    int64_t count;
};

// Returns an operand's numbers in storage order.
struct numbers numbers_of_operand(const struct op *op, int slot, enum format format, int64_t elements);
void           numbers_free(struct numbers *numbers);
void           numbers_write(const struct numbers *numbers, enum format format, void *data);

// Returns the number at *at, and advances.
static inline float numbers_next(const struct numbers *numbers, int64_t *at)
{
    float number = numbers->number[*at];
    *at          = *at + 1 == numbers->count ? 0 : *at + 1;
    return number;
}

// First wrong row of C after the op has run; -1: none.
int64_t gemm_find_wrong_row(const struct validation_setup *setup, const struct op *op);

// A reason that makes the run invalid. number -1: not about one rank.
#define WRONG(name, number, index) ((struct result_reason){name, VERDICT_INVALID, number, index, ""})
