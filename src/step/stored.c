// SPDX-License-Identifier: MIT
// Quantizes frozen weights to FP8 or FP4 on the host before the first step, because devices have no copy of these
// weights in BF16.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/backend.h"
#include "gswbench/fp8.h"
#include "gswbench/number.h"
#include "gswbench/op_operands.h"
#include "gswbench/step.h"

static enum format format_of(const struct plan *plan, const struct plan_unit *unit)
{
    return plan->tensors[unit->weight].format;
}

// Quantizes a weight into `codes`, after rounding `values` to BF16 in place. Writes the scales of the weight, and its
// transposed copy if it has one, to the memory of the step.
static void quantize(struct step *step, const struct plan *plan, const struct weight *weight, struct backend *host,
                     float *values, struct buffer codes)
{
    const struct op *stored               = weight->stored;
    struct buffer    buffers[OP_OPERANDS] = {{NULL, 0, FORMAT_F32}};
    for (int64_t i = 0; i < codes.elements; i++) {
        element_write(FORMAT_BF16, values, i, values[i]);
    }
    buffers[QUANTIZE_IN]  = (struct buffer){values, codes.elements, FORMAT_BF16};
    buffers[QUANTIZE_OUT] = codes;
    for (int slot = QUANTIZE_TRANSPOSED; slot < stored->operand_count; slot++) {
        if (stored->operand[slot] >= 0) {
            const struct tensor *tensor = &plan->tensors[stored->operand[slot]];
            buffers[slot] = (struct buffer){memory_allocate((size_t)tensor->bytes), tensor->elements, tensor->format};
        }
    }
    backend_reserve_scratch(host, host->ops->scratch_bytes(host, stored));
    host->ops->run[OP_QUANTIZE](host, stored, buffers);
    for (int slot = QUANTIZE_TRANSPOSED; slot < stored->operand_count; slot++) {
        if (stored->operand[slot] >= 0) {
            step_write(step, stored->operand[slot], buffers[slot].data);
            free(buffers[slot].data);
        }
    }
}

// Returns the range of a weight's elements that is in this rank's shard of the FSDP unit.
static struct plan_slice kept_run(const struct plan_unit *unit, const struct weight *weight)
{
    int64_t begin = number_max(weight->first, unit->kept.first);
    int64_t end   = number_min(weight->first + weight->rows * weight->columns, unit->kept.first + unit->kept.elements);
    return (struct plan_slice){begin, number_max(end - begin, 0)};
}

// Every rank that has a shard of a matrix quantizes the whole matrix, so that all ranks use the same scale.
status data_store_unit(struct step *step, const struct plan *plan, const struct plan_unit *unit,
                       const struct weight_reader *reader)
{
    struct backend       host;
    struct backend_setup setup  = {.threads = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    enum format          format = format_of(plan, unit);
    uint8_t             *kept   = memory_allocate((size_t)plan->tensors[unit->weight].bytes);
    status               result = backend_open(&host, "host", &setup);
    bool                 opened = !failed(&result);
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weight_count && !failed(&result); w++) {
        const struct weight *weight   = &plan->weights[w];
        int64_t              elements = weight->rows * weight->columns;
        struct plan_slice    run      = kept_run(unit, weight);
        float               *values   = memory_allocate((size_t)elements * sizeof(*values));
        uint8_t             *codes    = memory_allocate((size_t)format_bytes(format, elements));
        result                        = reader->read(reader->context, weight, values);
        if (!failed(&result)) {
            quantize(step, plan, weight, &host, values, (struct buffer){codes, elements, format});
            memcpy(kept + format_bytes(format, run.first - unit->kept.first),
                   codes + format_bytes(format, run.first - weight->first), (size_t)format_bytes(format, run.elements));
        }
        free(codes);
        free(values);
    }
    if (!failed(&result)) {
        step_write(step, unit->weight, kept);
    }
    if (opened) {
        backend_close(&host);
    }
    free(kept);
    return result;
}

static void *read_operand(const struct step *step, const struct plan *plan, int32_t tensor)
{
    void *data = tensor >= 0 ? memory_allocate((size_t)plan->tensors[tensor].bytes) : NULL;
    if (data != NULL) {
        step_read(step, tensor, data);
    }
    return data;
}

void data_read_stored(const struct step *step, const struct plan *plan, const struct plan_unit *unit, float *values)
{
    uint8_t *codes = read_operand(step, plan, unit->weight);
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weight_count; w++) {
        const struct weight         *weight  = &plan->weights[w];
        const struct quantize_shape *shape   = &weight->stored->shape.quantize;
        int32_t                      factor  = weight->stored->operand[QUANTIZE_INVERSE_SCALE];
        enum format                  format  = plan->tensors[factor].format;
        struct plan_slice            run     = kept_run(unit, weight);
        void                        *factors = read_operand(step, plan, factor);
        float *tensor_scale                  = read_operand(step, plan, weight->stored->operand[QUANTIZE_TENSOR_SCALE]);
        for (int64_t i = 0; i < run.elements; i++) {
            int64_t at = run.first + i - weight->first, place = run.first + i - unit->kept.first;
            int64_t part  = scaling_inverse_at((enum scaling)shape->scaling, shape->rows, shape->columns,
                                               at / shape->columns, at % shape->columns);
            values[place] = element_read(format_of(plan, unit), codes, place) * element_read(format, factors, part) *
                            (tensor_scale != NULL ? *tensor_scale : 1.0F);
        }
        free(tensor_scale);
        free(factors);
    }
    free(codes);
}
