// SPDX-License-Identifier: MIT
// Handmade plans, and a backend whose ops are slow, so that a missing dependency gives a wrong value.
#pragma once

#include "gswbench/step.h"

enum { OPS_MAX = 4096, TENSORS = 4 };

// A plan with a few scalar tensors and no ops. Even tensors are activations, odd ones are results.
struct hand {
    struct tensor     tensors[TENSORS];
    struct op         ops[OPS_MAX];
    struct plan_group group;
    int64_t           ranks[2];
    struct plan       plan;
};

// The caller releases it with free().
struct hand *hand_new(int64_t ranks, int64_t rank);

// Appends an op on up to three operands that waits for one op, or none (-1). Returns its index.
int32_t hand_append(struct hand *hand, enum op_kind kind, enum stream stream, const int32_t operands[3], int32_t wait);

#define OPERANDS(...) ((const int32_t[3]){__VA_ARGS__})

void sleep_ms(int64_t milliseconds);

// OP_GEMM sets a value slowly, OP_CAST adds one; there are no other ops.
extern const struct backend_ops hand_backend;
extern int64_t                  hand_available_bytes;    // memory; a test may reduce it
extern _Atomic int64_t          hand_reserved_bytes;     // scratch of the latest reservation

// One rank of a job.
struct bench {
    struct local_hub *hub;
    struct backend    backend;
    struct comm       comm;
    struct comm_ops   comm_ops;
    struct step      *step;
};

typedef void communication_fn(struct comm_group *group, const struct op *op, const void *in, void *out,
                              enum format format);

// communication NULL: the communicator's own.
void  bench_open(struct bench *bench, struct hand *hand, struct local_hub *hub, communication_fn *communication);
void  bench_close(struct bench *bench);
float bench_value(const struct bench *bench, int32_t tensor);
