// SPDX-License-Identifier: MIT
// Estimates the cost of verification from the plan: the bytes that the device reads, the bytes copied to the host, and
// the elements that the host computes. The rates are rough: within a factor of two of H100s and of hosts of 2023.
#include <stdlib.h>

#include "internal.h"

static const double DEVICE_RATE     = 1.5e12;    // bytes/s at which a device computes a digest
static const double HOST_RATE       = 2e9;       // bytes/s at which a core of the host computes a digest
static const double COPY_RATE       = 1e10;      // bytes/s between host and device
static const double PRODUCT_SECONDS = 1.5e-9, DRAW_SECONDS = 1e-8;    // seconds per element on a core of the host
enum { DRAWN = 1 << 20, PIECE = 16 << 20 };    // maximum random elements per operand; bytes per read

static double sum_bytes(const struct plan *plan, bool (*is_part)(const struct plan *plan, int32_t tensor))
{
    double bytes = 0;
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        bytes += is_part(plan, i) ? (double)plan->tensors[i].bytes : 0;
    }
    return bytes;
}

static bool is_digested(const struct plan *plan, int32_t tensor)
{
    return state_is_lasting(plan, tensor) && !step_is_model_state(plan, tensor);
}

static bool is_made_weight(const struct plan *plan, int32_t tensor)
{
    return state_is_lasting(plan, tensor) && plan->tensors[tensor].storage == STORAGE_WEIGHT;
}

// Returns the bytes that validating a repeated step moves, in addition to the step. The sample of the optimizer's state
// is copied out and back, AdamW repeats its update, and digests read the outputs of both updates.
static double step_bytes(const struct validation_setup *setup)
{
    const struct plan *plan   = setup->plan;
    double             sample = (double)sample_bytes(plan, setup->sample_bytes);
    double             share  = sample / (double)(sample_state_bytes(plan) + 1);
    double             both   = (double)(plan->storage_bytes[STORAGE_GRADIENT] + plan->storage_bytes[STORAGE_WEIGHT]);
    double             bytes  = 2 * sum_bytes(plan, is_digested) + 6 * sample + 3 * share * both;
    bytes += remakes_weights(plan) ? 3 * sum_bytes(plan, is_made_weight) : 0;
    return bytes + (setup->is_full ? 2 * sum_bytes(plan, state_is_lasting) : 0);
}

// Returns the seconds that the test of one op takes: random inputs are made and copied, and the host checks GEMMs.
static double op_seconds(const struct plan *plan, const struct op *op)
{
    double seconds = 0;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            const struct tensor *tensor = &plan->tensors[op->operand[slot]];
            double               drawn  = (double)(tensor->elements < DRAWN ? tensor->elements : DRAWN);
            seconds += drawn * DRAW_SECONDS + (double)tensor->bytes / COPY_RATE;
            seconds += op->kind == OP_GEMM ? (double)tensor->elements * PRODUCT_SECONDS : 0;
        }
    }
    return seconds;
}

static double ops_seconds(const struct validation_setup *setup)
{
    const struct plan *plan    = setup->plan;
    uint64_t          *known   = memory_allocate((size_t)plan->op_count * sizeof(*known));
    int32_t            count   = 0;
    double             seconds = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        uint64_t task   = ops_task(plan, &plan->ops[i], setup->fingerprint);
        bool     is_new = task != 0;
        for (int32_t j = 0; j < count && is_new; j++) {
            is_new = known[j] != task;
        }
        if (is_new) {
            known[count++] = task;
            seconds += op_seconds(plan, &plan->ops[i]);
        }
    }
    free(known);
    return seconds;
}

struct result_verification validation_expect(const struct validation_setup *setup, bool is_device, int64_t repeated)
{
    double sample = repeated > 0 ? (double)sample_bytes(setup->plan, setup->sample_bytes) : 0;
    double bytes  = repeated > 0 ? step_bytes(setup) : 0;
    double each   = bytes / (is_device ? DEVICE_RATE : HOST_RATE) + 2 * sample / COPY_RATE;
    return (struct result_verification){.device_bytes     = bytes,
                                        .host_bytes       = sample + PIECE,
                                        .expected_seconds = ops_seconds(setup) + (double)repeated * each};
}
