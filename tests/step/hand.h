// SPDX-License-Identifier: MIT
// Handmade plans, and a backend with slow ops, so that a missing dependency leads to a wrong value.
#pragma once

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gswbench/backend.h"
#include "gswbench/step.h"
#include "training.h"

enum { OPS_MAX = 4096, TENSORS = 4 };

// A plan with a few scalar tensors and no ops. Tensors with even numbers are activations, and with odd numbers results.
struct hand {
    struct tensor     tensors[TENSORS];
    struct op         ops[OPS_MAX];
    struct plan_group group;
    int64_t           ranks[2];
    struct plan       plan;
};

#define OPERANDS(...) ((const int32_t[3]){__VA_ARGS__})

static int64_t         hand_available_bytes = INT64_MAX;    // free memory of the device; a test may reduce it
static _Atomic int64_t hand_reserved_bytes;                 // scratch memory of the latest reservation

static inline void sleep_ms(int64_t milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static float *value_of(const struct buffer *buffer)
{
    return buffer->data;
}

// Sets a value slowly, so that an op without a dependency reads the old value.
static void run_set(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    sleep_ms(20);
    *value_of(&buffers[GEMM_C]) = op->shape.gemm.m == 0 ? 5.0f : (float)op->shape.gemm.m;
}

static void run_increment(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    (void)op;
    *value_of(&buffers[CAST_OUT]) = *value_of(&buffers[CAST_IN]) + 1.0f;
}

static int64_t hand_available(struct backend *backend)
{
    (void)backend;
    return hand_available_bytes;
}

static int64_t hand_scratch(struct backend *backend, const struct op *op)
{
    (void)backend;
    return op->kind == OP_GEMM ? 4096 : 0;
}

static void hand_reserve(struct backend *backend, int64_t bytes)
{
    (void)backend;
    hand_reserved_bytes = bytes;
}

static op_run *const hand_run[OP_COUNT] = {[OP_GEMM] = run_set, [OP_CAST] = run_increment};

// The backend has two ops: OP_GEMM sets a value slowly, and OP_CAST adds one.
static const struct backend_ops hand_backend = {
    .name            = "test",
    .run             = hand_run,
    .allocate        = backend_memory_allocate,
    .release         = backend_memory_release,
    .available_bytes = hand_available,
    .upload          = backend_memory_copy,
    .download        = backend_memory_copy,
    .scratch_bytes   = hand_scratch,
    .reserve_scratch = hand_reserve,
};

// Returns a new plan. The caller releases it with free().
static inline struct hand *hand_new(int64_t ranks, int64_t rank)
{
    struct hand *hand = calloc(1, sizeof(*hand));
    for (int i = 0; i < TENSORS; i++) {
        hand->tensors[i] = (struct tensor){.name     = "value",
                                           .storage  = i % 2 == 0 ? STORAGE_ACTIVATION : STORAGE_RESULT,
                                           .dims     = 1,
                                           .dim      = {1},
                                           .elements = 1,
                                           .bytes    = 4,
                                           .offset   = i / 2 * PLAN_ALIGNMENT};
    }
    hand->ranks[1] = 1;
    hand->group    = (struct plan_group){.size = ranks, .ranks = hand->ranks, .index = rank};
    hand->plan     = (struct plan){.rank         = rank,
                                   .tensors      = hand->tensors,
                                   .tensor_count = TENSORS,
                                   .ops          = hand->ops,
                                   .groups       = &hand->group,
                                   .group_count  = 1};
    hand->plan.storage_bytes[STORAGE_ACTIVATION] = 2 * PLAN_ALIGNMENT;
    hand->plan.storage_bytes[STORAGE_RESULT]     = 2 * PLAN_ALIGNMENT;
    return hand;
}

// Appends an op on up to three operands, which waits for one op (-1: none). Returns the index of the op.
static inline int32_t hand_append(struct hand *hand, enum op_kind kind, enum stream stream, const int32_t operands[3],
                                  int32_t wait)
{
    struct op *op      = &hand->ops[hand->plan.op_count];
    *op                = (struct op){.kind = (uint8_t)kind, .stream = (uint8_t)stream, .operand_count = 3};
    op->tag.role       = "step";
    op->tag.layer      = -1;
    op->tag.microbatch = -1;
    op->tag.chunk      = -1;
    memcpy(op->operand, operands, 3 * sizeof(*operands));
    if (wait >= 0) {
        op->wait[op->wait_count++] = wait;
    }
    if (op_is_communication(kind)) {
        op->shape.communication = (struct communication_shape){.elements = 1};
    }
    return hand->plan.op_count++;
}

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
static inline void bench_open(struct bench *bench, struct hand *hand, struct local_hub *hub,
                              communication_fn *communication)
{
    *bench = (struct bench){.hub = hub, .backend = {.ops = &hand_backend}};
    comm_open_local(&bench->comm, hub, (int)hand->plan.rank);
    bench->comm_ops = *bench->comm.ops;
    if (communication != NULL) {
        bench->comm_ops.run = communication;
    }
    bench->comm.ops = &bench->comm_ops;
    training_require(step_open(&bench->step, &hand->plan, &bench->backend, &bench->comm));
}

static inline void bench_close(struct bench *bench)
{
    step_close(bench->step);
    comm_close(&bench->comm);
    bench->step = NULL;
}

static inline float bench_value(const struct bench *bench, int32_t tensor)
{
    float value;
    step_read(bench->step, tensor, &value);
    return value;
}
