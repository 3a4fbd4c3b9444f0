// SPDX-License-Identifier: MIT
// Tests the check of AdamW on a sample of its state.
#include <criterion/criterion.h>

#include "training.h"
#include "validate/internal.h"

enum { STEPS = 40, PIECE = 128 };    // pieces start at multiples of PIECE elements

// Returns an AdamW op with several whole pieces and a remainder.
static int32_t find_adamw(const struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        int64_t elements = plan->ops[i].shape.elements.elements;
        if (plan->ops[i].kind == OP_ADAMW && elements > PIECE && elements % PIECE != 0) {
            return i;
        }
    }
    cr_assert_fail("no such op");
    return -1;
}

// AdamW always computes a wrong last element. Each step samples an eighth of the state, so a few steps must find it.
Test(optimizer, samples_the_last_element_that_is_no_multiple_of_a_piece)
{
    struct tiny       tiny;
    struct backend    backend = {.ops = &backend_host};
    struct local_hub *hub     = local_hub_open(1);
    struct comm       comm;
    struct step      *step;
    struct sample     sample = {.data = NULL};
    int32_t           wrong  = -1;
    tiny_init(&tiny);
    tiny_plan(&tiny);
    const struct plan *plan = &tiny.plan;
    comm_open_local(&comm, hub, 0);
    training_require(backend.ops->open(&backend, &(struct backend_setup){.threads = 1, .cache = ""}));
    training_require(step_open(&step, plan, &backend, &comm));
    data_initialise(step, plan, 7);
    const struct validation_setup setup    = {.plan = plan, .step = step, .sample_bytes = sample_state_bytes(plan) / 8};
    int32_t                       adamw    = find_adamw(plan);
    int64_t                       elements = plan->ops[adamw].shape.elements.elements;
    const struct step_fault fault = {.kind = FAULT_FLIP, .op = adamw, .tensor = -1, .element = elements - 1, .bit = 20};
    step_set_fault(step, &fault);
    for (int i = 0; i < STEPS && wrong < 0; i++) {
        data_fill(step, plan, DATA_UNIFORM, 7, i);
        sample_take(&sample, &setup);
        step_run(step);
        wrong = sample_compare(&sample, &setup);
    }
    cr_expect_eq(wrong, adamw);
    sample_close(&sample, &setup);
    step_close(step);
    comm_close(&comm);
    local_hub_close(hub);
    backend_close(&backend);
    plan_free(&tiny.plan);
}
