// SPDX-License-Identifier: MIT
// Faults on purpose: which op of which step, found by its name.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/text.h"
#include "internal.h"

static const char tensor_word[] = "tensor ";

static int32_t find_op(const struct plan *plan, const char *words)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        char name[240];
        if (strstr(plan_op_name(plan, i, name, sizeof(name)), words) != NULL) {
            return i;
        }
    }
    return -1;
}

static int32_t find_tensor(const struct plan *plan, const char *words)
{
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        char name[160];
        if (strcmp(plan_tensor_name(plan, i, name, sizeof(name)), words) == 0) {
            return i;
        }
    }
    return -1;
}

status fault_find(struct steps *steps)
{
    const struct fault_config *fault     = &steps->benchmark->job.config.fault;
    bool                       is_tensor = strncmp(fault->at, tensor_word, strlen(tensor_word)) == 0;
    steps->fault                         = (struct step_fault){.op = -1, .tensor = -1};
    if (fault->kind == FAULT_NONE || fault->rank != steps->comm->place.rank) {
        return OK;
    }
    if (is_tensor) {
        steps->fault.tensor = find_tensor(steps->plan, fault->at + strlen(tensor_word));
    } else {
        steps->fault.op = find_op(steps->plan, fault->at);
    }
    if (steps->fault.op < 0 && steps->fault.tensor < 0) {
        return fail("[fault] at = %s: no %s of rank %" PRId64 " has that name: gswbench plan --ops --rank %" PRId64
                    " prints them",
                    fault->at, is_tensor ? "tensor" : "op", fault->rank, fault->rank);
    }
    steps->fault.kind    = (enum fault_kind)fault->kind;
    steps->fault.element = fault->element;
    steps->fault.bit     = fault->bit;
    steps->fault.amount  = fault->amount;
    return OK;
}

void fault_begin(struct steps *steps, int64_t index, bool is_repetition)
{
    const struct fault_config *fault = &steps->benchmark->job.config.fault;
    bool                       is_on = fault->kind == FAULT_SLOW ? index >= fault->step : index == fault->step;
    if (steps->fault.kind != FAULT_NONE && is_on && (!is_repetition || fault->repeats != 0)) {
        step_set_fault(steps->step, &steps->fault);
    }
}

void fault_end(struct steps *steps)
{
    step_set_fault(steps->step, NULL);
}

void fault_note(struct result *result, const struct fault_config *fault)
{
    if (fault->kind == FAULT_NONE) {
        return;
    }
    const struct option *kind   = option_find(fault_options, "kind");
    struct result_reason reason = {
        .verdict = VERDICT_VALID, .id = RESULT_FAULT, .rank = fault->rank, .step = fault->step};
    snprintf(reason.message, sizeof(reason.message),
             "[fault] kind = %s on rank %" PRId64 " in step %" PRId64 ": on purpose, so this is no measure",
             kind->names[fault->kind], fault->rank, fault->step);
    result_add_reason(result, &reason);
}
