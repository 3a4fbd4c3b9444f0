// SPDX-License-Identifier: MIT
// Collects the distinct ops of a job: one per key, over the first rank of each stage.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "internal.h"

void distinct_add(struct distinct_ops *list, const struct plan *plan, const struct op *op)
{
    struct distinct_op distinct = {.op = *op, .count = 1};
    op_key_init(&distinct.key, plan, op);
    for (int32_t i = 0; i < list->count; i++) {
        if (memcmp(&list->ops[i].key, &distinct.key, sizeof(distinct.key)) == 0) {
            list->ops[i].count++;
            return;
        }
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            distinct.format[slot]   = plan->tensors[op->operand[slot]].format;
            distinct.elements[slot] = plan_operand_elements(plan, op, slot);
        }
    }
    if (op_is_transfer((enum op_kind)op->kind)) {
        distinct.axes = plan->groups[op->shape.transfer.group].axes;
    }
    if (op_is_link((enum op_kind)op->kind)) {    // the probe sends and receives at the same time
        int other                = op->operand[TRANSFER_IN] >= 0 ? TRANSFER_OUT : TRANSFER_IN;
        distinct.format[other]   = distinct.format[1 - other];
        distinct.elements[other] = distinct.elements[1 - other];
    }
    list->ops                = memory_resize(list->ops, (size_t)(list->count + 1) * sizeof(*list->ops));
    list->ops[list->count++] = distinct;
}

void distinct_add_probe(struct distinct_ops *list, struct op op, const enum format *formats, int operands)
{
    struct tensor tensors[OP_OPERANDS];
    op.operand_count = (uint8_t)operands;
    for (int slot = 0; slot < operands; slot++) {
        op.operand[slot] = slot;
        op.access[slot]  = (uint8_t)op_operand_access(&op, slot);
        tensors[slot]    = (struct tensor){.format = formats[slot], .elements = op_operand_elements(&op, slot)};
    }
    distinct_add(list, &(struct plan){.tensors = tensors}, &op);
}

status calibrate_collect(struct distinct_ops *list, const struct plan_request *request, int64_t *bytes)
{
    status result = OK;
    *list         = (struct distinct_ops){.count = 0};
    *bytes        = 0;
    for (int64_t stage = 0; stage < request->mesh.size[AXIS_PP] && !failed(&result); stage++) {
        struct plan plan;
        result        = plan_build_stage(&plan, request, stage);
        int64_t total = plan_total_bytes(&plan);
        *bytes        = total > *bytes ? total : *bytes;
        for (int32_t i = 0; i < plan.op_count && !failed(&result); i++) {
            distinct_add(list, &plan, &plan.ops[i]);
        }
        plan_free(&plan);
    }
    return result;
}

void calibrate_free(struct distinct_ops *list)
{
    free(list->ops);
}
