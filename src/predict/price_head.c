// SPDX-License-Identifier: MIT
// Cost of a head whose GEMMs run in FP8 in the modelled framework.
#include <string.h>

#include "gswbench/op_operands.h"
#include "internal.h"

bool predict_is_narrow_head(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    return software != NULL && software->fp8_head && plan->precision.narrow_linears != 0 && op->kind == OP_GEMM &&
           strncmp(op->tag.role, "head", strlen("head")) == 0;
}

// The input and the logit gradient are quantized in each microbatch, the weight once per step. Current scaling reads
// the tensor once more, and each tensor gets a row-wise and a column-wise copy.
double predict_head_casts(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct hardware_config *hardware = machine->hardware;
    const struct gemm_shape      *shape    = &op->shape.gemm;
    if (!predict_is_narrow_head(machine->software, plan, op) ||
        plan->tensors[op->operand[GEMM_B]].storage != STORAGE_WEIGHT) {    // weight gradient
        return 0.0;
    }
    bool   is_first = op->tag.phase == PHASE_FORWARD && op->tag.microbatch == 0;
    double elements = (double)(shape->m * shape->k) + (is_first ? (double)(shape->n * shape->k) : 0.0);
    double bytes    = plan->precision.recipe == RECIPE_CURRENT ? 2.0 + 2.0 + 2.0 : 2.0 + 2.0;
    return machine->software->cast_bytes.value * bytes * elements /
               (hardware->memory_efficiency.value * hardware->memory_bandwidth.value) +
           (is_first ? 2.0 : 1.0) * hardware->kernel_gap.value;
}
