// SPDX-License-Identifier: MIT
// The distinct ops of a job: those of every stage's first rank, each key once.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "internal.h"

void samples_add(struct sample_list *list, const struct plan *plan, const struct op *op)
{
    struct sample sample = {.op = *op, .count = 1};
    op_key_init(&sample.key, plan, op);
    for (int32_t i = 0; i < list->count; i++) {
        if (memcmp(&list->samples[i].key, &sample.key, sizeof(sample.key)) == 0) {
            list->samples[i].count++;
            return;
        }
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            sample.format[slot]   = plan->tensors[op->operand[slot]].format;
            sample.elements[slot] = plan->tensors[op->operand[slot]].elements;
        }
    }
    if (op_is_transfer((enum op_kind)op->kind)) {
        sample.axes = plan->groups[op->shape.transfer.group].axes;
    }
    if (op_is_link((enum op_kind)op->kind)) {    // who does one does the other, too
        int other              = op->kind == OP_SEND ? TRANSFER_OUT : TRANSFER_IN;
        sample.format[other]   = sample.format[1 - other];
        sample.elements[other] = sample.elements[1 - other];
    }
    list->samples                = memory_resize(list->samples, (size_t)(list->count + 1) * sizeof(*list->samples));
    list->samples[list->count++] = sample;
}

status calibrate_collect(struct sample_list *list, const struct plan_request *request, int64_t *bytes)
{
    status result = OK;
    *list         = (struct sample_list){.count = 0};
    *bytes        = 0;
    for (int64_t stage = 0; stage < request->mesh.size[AXIS_PP] && !failed(&result); stage++) {
        struct plan plan;
        result        = plan_build_stage(&plan, request, stage);
        int64_t total = plan_total_bytes(&plan);
        *bytes        = total > *bytes ? total : *bytes;
        for (int32_t i = 0; i < plan.op_count && !failed(&result); i++) {
            samples_add(list, &plan, &plan.ops[i]);
        }
        plan_free(&plan);
    }
    return result;
}

void calibrate_free(struct sample_list *list)
{
    free(list->samples);
}
