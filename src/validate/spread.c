// SPDX-License-Identifier: MIT
// Bounds the difference between two runs of a step that has nondeterministic ops. Computes the difference that each
// such op makes (Source), and propagates it through the plan (Propagation).
//
// Source. A nondeterministic op adds n terms x in fp32 in varying order, and stores the sum. With u = 2^-24, two such
// sums differ by at most 2 (n - 1) u sum |x|. Rounding errors of n additions are a random walk, so sqrt(n) u times the
// largest partial sum is typical. In attention's gradients the terms cancel, because the gradients of a query's scores
// sum to zero; so we take n u times the final sum. Two neighbours in bf16 differ by up to d = 2^-7, relative to their
// size. Sums that differ by n u then round differently in a fraction n u / d of the elements, by d each. The norm of
// this difference is sqrt(n u d). The allowed variance, the square of the norm, is SAFETY n u d + FEW d^2 / N: SAFETY
// times the expected one, plus FEW such elements in a tensor of N. It is at most d^2 if N >= FEW.
//
// Propagation. If the inputs of an op differ by a variance v, its output differs by v + r^2. Here r is the rounding of
// both runs: at most one unit roundoff of the format for each run, and 0.4 of that on average. v is the maximum over
// the op's inputs. A difference never counts as more than half the norm.
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// UNIT is u and STEP is d above; SAFETY and FEW are factors of the allowed variance. MAXIMUM: the largest variance,
// for a difference of half the norm. TILE: keys per block of an attention kernel; the largest kernels use twice that.
enum { SAFETY = 16, FEW = 16, TILE = 64 };

static const double UNIT = 0x1p-24, STEP = 0x1p-7, MAXIMUM = 0.25;

static double limit_variance(double variance)
{
    return variance < MAXIMUM ? variance : MAXIMUM;
}

static int64_t summands_of(const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    return (shape->earlier + shape->sequence + TILE - 1) / TILE;
}

static double variance_of_op(const struct plan *plan, const struct op *op)
{
    double elements = INFINITY;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0 && (op->access[slot] & ACCESS_WRITE)) {
            elements = fmin(elements, (double)plan->tensors[op->operand[slot]].elements);
        }
    }
    double variance = SAFETY * (double)summands_of(op) * UNIT * STEP + FEW * STEP * STEP / elements;
    return variance < STEP * STEP || elements < FEW ? variance : STEP * STEP;
}

double spread_of_op(const struct plan *plan, const struct op *op)
{
    return sqrt(variance_of_op(plan, op));
}

// Returns the square of the format's unit roundoff.
static double squared_rounding(enum format format)
{
    return format == FORMAT_I32 ? 0 : ldexp(1, -2 * (format_table[format].mantissa_bits + 1));
}

// The nondeterministic ops of the job.
struct sources {
    uint8_t phases[OP_COUNT];    // [op kind]: bit `phase` is set if the op is nondeterministic there on some rank
    double  received;            // variance of data from other pipeline stages
};

// Returns the variance of a reduction: over n ranks, each of the two runs rounds n times.
static double variance_of_communication(const struct plan *plan, const struct op *op)
{
    double ranks = (double)plan->groups[op->shape.communication.group].size;
    return 2 * ranks * squared_rounding(plan->tensors[op->operand[COMMUNICATION_OUT]].format);
}

static bool is_nondeterministic(const struct sources *sources, const struct op *op)
{
    return sources->phases[op->kind] >> op->tag.phase & 1;
}

// Returns whether any op in this phase or an earlier one is nondeterministic.
static bool may_receive(const struct sources *sources, int phase)
{
    unsigned phases = 0;
    for (int kind = 0; kind < OP_COUNT; kind++) {
        phases |= sources->phases[kind];
    }
    return (phases & ((2u << phase) - 1)) != 0;
}

static double find_input_variance(const struct spread *spread, const struct plan *plan, const struct sources *sources,
                                  const struct op *op, bool *is_unknown)
{
    double variance = op->kind == OP_RECEIVE && may_receive(sources, op->tag.phase) ? sources->received : 0;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0 && (op->access[slot] & ACCESS_READ)) {
            int32_t whole = plan->tensors[op->operand[slot]].whole;
            variance      = fmax(variance, spread->variance[whole]);
            *is_unknown |= spread->is_unknown[whole];
        }
    }
    return op->kind == OP_SQUARE_SUM ? 4 * variance : variance;    // a square has twice the relative difference
}

static void propagate(const struct spread *spread, const struct plan *plan, const struct sources *sources,
                      int32_t index)
{
    const struct op *op         = &plan->ops[index];
    bool             is_unknown = step_op_updates(plan, index);
    double           variance   = find_input_variance(spread, plan, sources, op, &is_unknown);
    if (is_nondeterministic(sources, op)) {
        variance += op_is_communication((enum op_kind)op->kind) ? variance_of_communication(plan, op)
                                                                : variance_of_op(plan, op);
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0 && (op->access[slot] & ACCESS_WRITE)) {
            const struct tensor *written = &plan->tensors[op->operand[slot]];
            double               more = variance > 0 ? limit_variance(variance + squared_rounding(written->format)) : 0;
            spread->variance[written->whole] = fmax(spread->variance[written->whole], more);
            spread->is_unknown[written->whole] |= is_unknown;
        }
    }
}

// Computes the allowed variance of every tensor. Returns the maximum over tensors sent to another pipeline stage.
static double propagate_all(const struct spread *spread, const struct plan *plan, const struct sources *sources)
{
    double sent = 0;
    memset(spread->variance, 0, (size_t)plan->tensor_count * sizeof(double));
    memset(spread->is_unknown, 0, (size_t)plan->tensor_count * sizeof(bool));
    for (int32_t i = 0; i < plan->op_count; i++) {
        propagate(spread, plan, sources, i);
        if (plan->ops[i].kind == OP_SEND) {
            sent = fmax(sent, spread->variance[plan->tensors[plan->ops[i].operand[COMMUNICATION_IN]].whole]);
        }
    }
    return sent;
}

static void find_sources(struct sources *sources, const struct validation_setup *setup, bool is_mixed)
{
    int            ranks = setup->comm->topology.ranks;
    struct sources own   = {.received = 0};
    for (int32_t i = 0; i < setup->plan->op_count; i++) {
        const struct op *op = &setup->plan->ops[i];
        own.phases[op->kind] |= (uint8_t)(step_op_varies(setup->step, i, is_mixed) << op->tag.phase);
    }
    struct sources *all = comm_gather(setup->comm, &own, sizeof(own));
    *sources            = (struct sources){.received = 0};
    for (int rank = 0; rank < ranks; rank++) {
        for (int kind = 0; kind < OP_COUNT; kind++) {
            sources->phases[kind] |= all[rank].phases[kind];
        }
    }
    free(all);
}

void spread_open(struct spread *spread, const struct validation_setup *setup, bool is_mixed)
{
    const struct plan *plan = setup->plan;
    struct sources     sources;
    *spread = (struct spread){.variance   = memory_allocate((size_t)plan->tensor_count * sizeof(double)),
                              .is_unknown = memory_allocate((size_t)plan->tensor_count * sizeof(bool)),
                              .is_mixed   = is_mixed};
    find_sources(&sources, setup, is_mixed);
    double sent = propagate_all(spread, plan, &sources);
    if (plan->mesh.size[AXIS_PP] > 1) {    // assume the maximum for every chunk
        double maximum   = comm_largest(setup->comm, sent);
        sources.received = limit_variance((double)plan->assignment.chunks * maximum);
        propagate_all(spread, plan, &sources);
    }
}

void spread_close(struct spread *spread)
{
    free(spread->variance);
    free(spread->is_unknown);
    *spread = (struct spread){.variance = NULL};
}

double spread_bound(const struct spread *spread, int32_t tensor)
{
    return sqrt(spread->variance[tensor]);
}
