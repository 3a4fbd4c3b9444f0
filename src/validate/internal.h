// SPDX-License-Identifier: MIT
// Shared by the files of this folder: the state of validation on one rank, and the functions of each file.
#pragma once

#include "gswbench/arena.h"
#include "gswbench/digest.h"
#include "gswbench/format.h"
#include "gswbench/step.h"
#include "gswbench/validate.h"

struct validation;

// repeat.c: returns whether a tensor keeps its content between steps. A tensor that is part of another one does not
// count.
bool state_is_lasting(const struct plan *plan, int32_t tensor);

// repeat.c: copies state back from the host, so that the latest step can run again: results, FP8 scales and router
// biases. Weights, gradients and moments are not copied.
void state_restore(const struct validation *validation);

// repeat.c: returns whether ops after the optimizer compute weights from its output, such as quantized weights.
bool remakes_weights(const struct plan *plan);

// optimizer.c: verifies AdamW on a sample of its inputs, which is kept in host memory.
struct sample {
    char   *data;    // the sample in host memory; NULL: none
    int64_t bytes;
    int64_t taken;    // number of samples compared so far; each takes other elements
};

// sample_state_bytes: size of the state that AdamW reads and writes. sample_bytes: size of the sample. It is the whole
// state if that has at most `maximum` bytes, else the same fraction of the state of every AdamW op.
int64_t sample_state_bytes(const struct plan *plan);
int64_t sample_bytes(const struct plan *plan, int64_t maximum);

// Copies a sample of master weights, weights and moments to the host before a step.
void sample_take(struct sample *sample, const struct validation_setup *setup);
void sample_close(struct sample *sample, const struct validation_setup *setup);

// After the step, runs AdamW again on the sample with the step's gradients. It writes the result to other memory, and
// compares it with the result of the step. Returns the first op that differs, or -1.
int32_t sample_compare(struct sample *sample, const struct validation_setup *setup);

// spread.c: bounds the difference between two runs of a step that has nondeterministic ops. spread_of_op returns the
// maximum difference that one such op makes, relative to the norm of its output.
double spread_of_op(const struct plan *plan, const struct op *op);

// The allowed difference of every tensor between two runs.
struct spread {
    double *variance;      // [tensors]: square of the difference relative to the norm; 0: the bits must be equal
    bool   *is_unknown;    // [tensors]: not comparable: depends on optimizer ops, which the first run leaves out
    bool    is_mixed;      // one run is eager, the other replays a CUDA graph
};

// spread_open computes the bounds. It is collective, because a nondeterministic op also affects data that other ranks
// receive. spread_bound returns the allowed relative difference of a tensor.
void   spread_open(struct spread *spread, const struct validation_setup *setup, bool is_mixed);
void   spread_close(struct spread *spread);
double spread_bound(const struct spread *spread, int32_t tensor);

struct validation {
    struct validation_setup setup;
    char                   *small;      // host copy of the state that state_restore restores; NULL: none
    struct sample           sample;     // optimizer state before the latest step that ran twice
    struct spread           spread;     // allowed differences between both runs
    struct digest         **first;      // [tensors]: digest after the first run; NULL: not compared
    uint64_t               *hashes;     // [tensors]: hash after the step `hashed`
    int64_t                 hashed;     // index of the latest verified step, if verify = full; -2: none
    int32_t                 changed;    // a tensor whose bits have changed since the step `hashed`; -1: none
};

// An error that a rank found, as text; "": none.
struct rank_error {
    char text[240];
};

// Result of the comparison of two runs.
struct found {
    struct rank_error rank_error;    // names the first wrong tensor
    double            difference;    // maximum difference of a tensor, relative to its norm
};

// ops.c: returns a hash of everything that determines the output of an op; 0: the op cannot be tested alone.
uint64_t ops_task(const struct plan *plan, const struct op *op, uint64_t fingerprint);

// numbers.c: inputs for tests of single ops. They are the same on every rank, and the product of a GEMM is known. An
// operand with more than `count` elements repeats the `count` numbers.
struct numbers {
    float  *number;    // [count]
    int64_t count;
};

// numbers_of_operand returns the numbers of an operand in storage order; numbers_write stores `count` of them in a
// format.
struct numbers numbers_of_operand(const struct op *op, int slot, enum format format, int64_t elements);
void           numbers_free(struct numbers *numbers);
void           numbers_write(const struct numbers *numbers, enum format format, void *data);

// Returns the number at index *at, and advances *at. After the last number, *at becomes 0.
static inline float numbers_next(const struct numbers *numbers, int64_t *at)
{
    float number = numbers->number[*at];
    *at          = *at + 1 == numbers->count ? 0 : *at + 1;
    return number;
}

// Returns the first wrong row of C after a GEMM on inputs of numbers_of_operand; -1: none, or not checked (numbers.c).
int64_t gemm_find_wrong_row(const struct validation_setup *setup, const struct op *op);

// A reason that makes the run INVALID. wrong_rank: rank that computed wrongly; -1: no single rank.
#define WRONG(name, wrong_rank, index_of_step)                                                                         \
    ((struct result_reason){name, VERDICT_INVALID, wrong_rank, index_of_step, ""})
