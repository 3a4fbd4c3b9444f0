// SPDX-License-Identifier: MIT
// Tests the step's communication ops on inputs with known results.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

// A rank's result; count: ops checked.
struct examined {
    int64_t count;
    char    text[200];    // "": no error
};

static void describe(const struct plan *plan, const struct step_finding *finding, struct examined *own)
{
    char op[240], tensor[160];
    plan_op_name(plan, finding->op, op, sizeof(op));
    plan_tensor_name(plan, finding->tensor, tensor, sizeof(tensor));
    snprintf(own->text, sizeof(own->text), "%.90s brought %g as element %" PRId64 " of %.60s", op,
             (double)finding->value, finding->element, tensor);
}

// With pipeline stages, waiting for an enqueued op could block the rank of another stage.
static bool can_examine(const struct validation_setup *setup)
{
    return !setup->comm->ops->is_enqueued || setup->plan->mesh.size[AXIS_PP] == 1;
}

bool validation_examine(struct validation *validation, int64_t step)
{
    const struct validation_setup *setup = &validation->setup;
    struct step_finding            finding;
    struct examined                own   = {.text = ""};
    int                            ranks = setup->comm->topology.ranks, wrong = 0;
    if (!can_examine(setup)) {
        return true;
    }
    own.count = step_test_transfers(setup->step, &finding);
    if (finding.tensor >= 0) {
        describe(setup->plan, &finding, &own);
    }
    struct examined *all = comm_gather(setup->comm, &own, sizeof(own));
    for (int rank = 0; rank < ranks; rank++) {
        setup->result->examined_transfers += all[rank].count;
        if (all[rank].text[0] != '\0' && wrong++ == 0) {
            char message[256];
            snprintf(message, sizeof(message), "rank %d, test of collectives %s the steps: %.200s", rank,
                     step < 0 ? "before" : "after", all[rank].text);
            validation_add_reason(validation, "transfer-wrong", rank, step, message);
        }
    }
    free(all);
    return wrong == 0;
}
