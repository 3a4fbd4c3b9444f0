// SPDX-License-Identifier: MIT
// Handles ops and tensors whose number of rows is known only during a step, as in dropless experts (struct row_count).
#include <math.h>

#include "gswbench/assembly.h"

const struct row_count *plan_op_row_count(const struct plan *plan, const struct op *op)
{
    for (int slot = 0; slot < op->operand_count && plan->row_count_total > 0; slot++) {
        int32_t row_count = op->operand[slot] >= 0 ? plan->tensors[op->operand[slot]].row_count : 0;
        if (row_count > 0) {
            return &plan->row_counts[row_count - 1];
        }
    }
    return NULL;
}

// The rows of a transposed copy are its second dimension.
int64_t plan_row_elements(const struct plan *plan, int32_t tensor)
{
    const struct tensor *known_rows = &plan->tensors[tensor];
    return known_rows->elements / (known_rows->has_rows_across ? known_rows->dim[1] : known_rows->dim[0]);
}

struct op plan_op_of_rows(const struct plan *plan, const struct op *op, int64_t rows)
{
    struct op of_rows = *op;
    if (plan_op_row_count(plan, op) == NULL) {
        return of_rows;
    }
    if (op_is_communication((enum op_kind)op->kind)) {
        of_rows.shape.communication.elements = rows * plan_row_elements(plan, op->operand[COMMUNICATION_IN]);
    } else if (op->kind == OP_GEMM) {
        bool is_depth = plan->tensors[op->operand[GEMM_C]].row_count == 0;    // weight gradient: the rows are k
        *(is_depth ? &of_rows.shape.gemm.k : &of_rows.shape.gemm.m) = rows;
    } else if (op->kind == OP_QUANTIZE) {
        of_rows.shape.quantize.rows = rows;
    } else {
        of_rows.shape.rows.rows = rows;
    }
    return of_rows;
}

// Returns the load of an expert relative to the mean over all experts. Skewed routing loads the first top_k experts
// more.
static double load_of(const struct routing_shape *shape, int64_t expert)
{
    double each = (double)shape->top_k / (double)shape->experts;
    return 1 - shape->hot + (expert < shape->top_k ? shape->hot / each : 0);
}

struct op plan_op_of_load(const struct plan *plan, const struct op *op)
{
    const struct row_count *row_count = plan_op_row_count(plan, op);
    if (row_count == NULL || plan->train.routing != ROUTING_SKEWED) {
        return *op;
    }
    const struct routing_shape *shape = &plan->ops[row_count->reader].shape.routing;
    const struct row_count     *first = row_count;
    while (first > plan->row_counts && first[-1].reader == row_count->reader) {
        first--;
    }
    int64_t per_owner = shape->experts / shape->owners;
    int64_t local     = (row_count - first) / (shape->owners > 1 ? 2 : 1);    // index of the local expert
    int64_t own       = mesh_group_index(&plan->mesh, plan->rank, plan->mesh.owner_axes);
    double  load      = load_of(shape, own * per_owner + local);
    for (int64_t owner = 0; owner < shape->owners && op_is_communication((enum op_kind)op->kind); owner++) {
        load = fmax(load, load_of(shape, owner * per_owner + local));
    }
    return plan_op_of_rows(plan, op, llround((double)row_count->expected * load));
}

int64_t plan_operand_elements(const struct plan *plan, const struct op *op, int slot)
{
    const struct tensor *tensor = &plan->tensors[op->operand[slot]];
    if (tensor->row_count == 0) {
        return tensor->elements;
    }
    return op_is_communication((enum op_kind)op->kind)
               ? plan->row_counts[tensor->row_count - 1].expected * plan_row_elements(plan, op->operand[slot])
               : op_operand_elements(op, slot);
}

int32_t assembly_row_count(struct assembly *assembly, const struct row_count *row_count)
{
    struct plan *plan = assembly->plan;
    LIST_APPEND(plan->row_counts, plan->row_count_total, *row_count);
    return plan->row_count_total - 1;
}

int64_t assembly_rows(const struct assembly *assembly, int32_t tensor)
{
    const struct tensor *of = &assembly->plan->tensors[tensor];
    return of->row_count > 0 ? assembly->plan->row_counts[of->row_count - 1].expected : of->dim[0];
}

int64_t assembly_max_rows(const struct assembly *assembly, int32_t tensor)
{
    const struct tensor *of = &assembly->plan->tensors[tensor];
    return of->row_count > 0 ? assembly->plan->row_counts[of->row_count - 1].maximum : of->dim[0];
}

int32_t assembly_alike(struct assembly *assembly, const char *name, int32_t tensor, int64_t columns)
{
    int32_t made = assembly_activation(assembly, name, DIMS(assembly_max_rows(assembly, tensor), columns));
    assembly->plan->tensors[made].row_count = assembly->plan->tensors[tensor].row_count;
    return made;
}

int64_t assembly_elements(const struct assembly *assembly, int32_t tensor)
{
    const struct tensor *of = &assembly->plan->tensors[tensor];
    return of->row_count > 0 ? assembly_rows(assembly, tensor) * plan_row_elements(assembly->plan, tensor)
                             : of->elements;
}
