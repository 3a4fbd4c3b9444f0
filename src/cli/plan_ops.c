// SPDX-License-Identifier: MIT
// The ops of a plan as a table.
#include <inttypes.h>
#include <stdio.h>

#include "gswbench/number.h"
#include "gswbench/op_table.h"
#include "internal.h"

static const struct op_field *fields_of(const struct op *op)
{
    return op_table[op->kind].shape;
}

const char *plan_access_name(int access)
{
    return access == ACCESS_READ ? "read" : access == ACCESS_WRITE ? "write" : "update";
}

static void print_op(const struct plan *plan, int32_t index)
{
    const struct op *op        = &plan->ops[index];
    const char      *separator = "";
    printf("%6" PRId32 " %-20s %-16s %-9s %5d %5" PRId32 "  %-32s", index, op_name((enum op_kind)op->kind),
           op_lane_name((enum lane)op->lane), op_phase_name((enum phase)op->tag.phase), op->tag.layer,
           op->tag.microbatch, op->tag.role);
    for (const struct op_field *field = fields_of(op); field->name != NULL; field++) {
        if (field->uses & OP_FIELD_SHOWN) {
            printf("%s%s %" PRId64, separator, field->name, op_field_value(op, field));
            separator = ", ";
        }
    }
    separator = ";";
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            char name[128];
            printf("%s %s %s", separator, plan_access_name(op->access[slot]),
                   plan_tensor_name(plan, op->operand[slot], name, sizeof(name)));
            separator = ",";
        }
    }
    for (int i = 0; i < op->wait_count; i++) {
        printf("%s %" PRId32, i == 0 ? "; waits for" : ",", op->wait[i]);
    }
    printf("\n");
}

void plan_print_ops(const struct plan *plan)
{
    printf("%6s %-20s %-16s %-9s %5s %5s  %-32s%s\n", "op", "kind", "lane", "phase", "layer", "micro", "role",
           "shape; operands; waits");
    for (int32_t i = 0; i < plan->op_count; i++) {
        print_op(plan, i);
    }
}
