// SPDX-License-Identifier: MIT
// Applies injected faults to the configured steps.
#include <inttypes.h>
#include <stdio.h>

#include "gswbench/text.h"
#include "internal.h"

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
        .verdict = VERDICT_DEGRADED, .id = RESULT_FAULT, .rank = fault->rank, .step = fault->step};
    snprintf(reason.message, sizeof(reason.message),
             "[fault] kind = %s was injected on rank %" PRId64 " in step %" PRId64 ": the result is not a measurement",
             kind->names[fault->kind], fault->rank, fault->step);
    result_add_reason(result, &reason);
}
