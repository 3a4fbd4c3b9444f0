// SPDX-License-Identifier: MIT
// Handmade plans, and a backend with slow ops, so that a missing dependency leads to a wrong value.
#pragma once

#include "gswbench/step.h"

enum { OPS_MAX = 4096, TENSORS = 4 };

// A plan with a few scalar tensors and no ops. Tensors with even numbers are activations, and with odd numbers results.
struct hand {
    struct tensor     tensors[TENSORS];
    struct op         ops[OPS_MAX];
    struct plan_group group;
    int64_t           ranks[2];
    struct plan       plan;
};

// Returns a new plan. The caller releases it with free().
struct hand *hand_new(int64_t ranks, int64_t rank);

// Appends an op on up to three operands, which waits for one op (-1: none). Returns the index of the op.
int32_t hand_append(struct hand *hand, enum op_kind kind, enum stream stream, const int32_t operands[3], int32_t wait);

#define OPERANDS(...) ((const int32_t[3]){__VA_ARGS__})

void sleep_ms(int64_t milliseconds);

// The backend has two ops: OP_GEMM sets a value slowly, and OP_CAST adds one.
extern const struct backend_ops hand_backend;
extern int64_t                  hand_available_bytes;    // free memory of the device; a test may reduce it
extern _Atomic int64_t          hand_reserved_bytes;     // scratch memory of the latest reservation

// A rank of a job, with its backend, communicator and step.
struct bench {
    struct local_hub *hub;
    struct backend    backend;
    struct comm       comm;
    struct comm_ops   comm_ops;
    struct step      *step;
};

typedef void communication_fn(struct comm_group *group, const struct op *op, const void *in, void *out,
                              enum format format);

// Opens the rank. If communication is NULL, collectives run on the local communicator.
void  bench_open(struct bench *bench, struct hand *hand, struct local_hub *hub, communication_fn *communication);
void  bench_close(struct bench *bench);
float bench_value(const struct bench *bench, int32_t tensor);
