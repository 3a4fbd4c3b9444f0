// SPDX-License-Identifier: MIT
// Row counts of ops and tensors that are known only during a step.
#include "gswbench/assembly.h"
#include "gswbench/op_table.h"

const struct tally *plan_op_tally(const struct plan *plan, const struct op *op)
{
    for (int slot = 0; slot < op->operand_count && plan->tally_count > 0; slot++) {
        int32_t tally = op->operand[slot] >= 0 ? plan->tensors[op->operand[slot]].tally : 0;
        if (tally > 0) {
            return &plan->tallies[tally - 1];
        }
    }
    return NULL;
}

// The columns of a transposed copy are the rows.
int64_t plan_row_elements(const struct plan *plan, int32_t tensor)
{
    const struct tensor *tallied = &plan->tensors[tensor];
    return tallied->elements / (tallied->has_rows_across ? tallied->dim[1] : tallied->dim[0]);
}

struct op plan_op_of_rows(const struct plan *plan, const struct op *op, int64_t rows)
{
    struct op of_rows = *op;
    if (plan_op_tally(plan, op) == NULL) {
        return of_rows;
    }
    if (op_is_transfer((enum op_kind)op->kind)) {
        of_rows.shape.transfer.elements = rows * plan_row_elements(plan, op->operand[TRANSFER_IN]);
    } else if (op->kind == OP_GEMM) {
        bool is_depth = plan->tensors[op->operand[GEMM_C]].tally == 0;    // weight gradient: the rows are its depth
        *(is_depth ? &of_rows.shape.gemm.k : &of_rows.shape.gemm.m) = rows;
    } else if (op->kind == OP_QUANTIZE) {
        of_rows.shape.quantize.rows = rows;
    } else {
        of_rows.shape.rows.rows = rows;
    }
    return of_rows;
}

int64_t plan_operand_elements(const struct plan *plan, const struct op *op, int slot)
{
    const struct tensor *tensor = &plan->tensors[op->operand[slot]];
    if (tensor->tally == 0) {
        return tensor->elements;
    }
    return op_is_transfer((enum op_kind)op->kind)
               ? plan->tallies[tensor->tally - 1].expected * plan_row_elements(plan, op->operand[slot])
               : op_operand_elements(op, slot);
}

int32_t assembly_tally(struct assembly *assembly, const struct tally *tally)
{
    struct plan *plan = assembly->plan;
    LIST_APPEND(plan->tallies, plan->tally_count, *tally);
    return plan->tally_count - 1;
}

int64_t assembly_rows(const struct assembly *assembly, int32_t tensor)
{
    const struct tensor *of = &assembly->plan->tensors[tensor];
    return of->tally > 0 ? assembly->plan->tallies[of->tally - 1].expected : of->dim[0];
}

int64_t assembly_most_rows(const struct assembly *assembly, int32_t tensor)
{
    const struct tensor *of = &assembly->plan->tensors[tensor];
    return of->tally > 0 ? assembly->plan->tallies[of->tally - 1].most : of->dim[0];
}

int32_t assembly_alike(struct assembly *assembly, const char *name, int32_t tensor, int64_t columns)
{
    int32_t made = assembly_activation(assembly, name, DIMS(assembly_most_rows(assembly, tensor), columns));
    assembly->plan->tensors[made].tally = assembly->plan->tensors[tensor].tally;
    return made;
}

int64_t assembly_elements(const struct assembly *assembly, int32_t tensor)
{
    const struct tensor *of = &assembly->plan->tensors[tensor];
    return of->tally > 0 ? assembly_rows(assembly, tensor) * plan_row_elements(assembly->plan, tensor) : of->elements;
}
