// SPDX-License-Identifier: MIT
// Finds the op that first produced a NaN or an infinity, by running the step again op by op on every rank. Also tests
// the step's communication ops on inputs with known results.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

// Where a rank found the NaN or infinity: before the step, in an op's output, in received data, or nowhere.
enum origin { ORIGIN_HELD, ORIGIN_MADE, ORIGIN_RECEIVED, ORIGIN_NONE };

struct origin_found {
    int32_t origin;    // enum origin
    int32_t op;        // the op that produced or received the value; below 0: no op
    char    text[200];
};

static void describe(const struct validation *validation, const struct step_finding *finding,
                     struct origin_found *found)
{
    const struct plan *plan = validation->setup.plan;
    char               tensor[160], op[240];
    plan_tensor_name(plan, finding->tensor, tensor, sizeof(tensor));
    if (finding->op < 0) {
        snprintf(found->text, sizeof(found->text), "the step began with %g as element %" PRId64 " of %.100s",
                 (double)finding->value, finding->element, tensor);
        return;
    }
    plan_op_name(plan, finding->op, op, sizeof(op));
    snprintf(found->text, sizeof(found->text), "%.80s wrote %g as element %" PRId64 " of %.60s", op,
             (double)finding->value, finding->element, tensor);
}

// Returns whether one rank's finding comes before another's. A NaN or infinity that existed before the step comes
// first, then one that an op made from finite inputs, then a received one; within each kind, the earlier op.
static bool is_before(const struct origin_found *one, const struct origin_found *other)
{
    return one->origin < other->origin || (one->origin == other->origin && one->op < other->op);
}

static int gather_origin(const struct validation *validation, const struct step_finding *finding,
                         struct origin_found *first)
{
    struct comm        *comm = validation->setup.comm;
    struct origin_found own  = {.origin = ORIGIN_NONE, .op = finding->op};
    int                 rank = 0;
    if (finding->tensor >= 0) {
        own.origin = finding->op < 0 ? ORIGIN_HELD : finding->is_received ? ORIGIN_RECEIVED : ORIGIN_MADE;
        describe(validation, finding, &own);
    }
    struct origin_found *all = comm_gather(comm, &own, sizeof(own));
    for (int i = 1; i < comm->topology.ranks; i++) {
        rank = is_before(&all[i], &all[rank]) ? i : rank;
    }
    *first = all[rank];
    free(all);
    return first->origin == ORIGIN_NONE ? -1 : rank;
}

void validation_find(struct validation *validation, int64_t index)
{
    const struct validation_setup *setup = &validation->setup;
    struct step_finding            finding;
    struct origin_found            first;
    step_find_held(setup->step, &finding);
    int rank = gather_origin(validation, &finding, &first);
    if (rank < 0) {
        state_restore(validation);
        step_find_made(setup->step, &finding);
        rank = gather_origin(validation, &finding, &first);
    }
    if (rank >= 0) {
        result_note(setup->result, WRONG("not-finite", rank, index), "step %" PRId64 ", rank %d: %.200s", index, rank,
                    first.text);
    } else {
        result_note(setup->result, WRONG("not-finite", -1, index),
                    "step %" PRId64
                    ": loss or gradient norm is not finite, but is finite when the step is repeated: a transient fault",
                    index);
    }
}

// The result of a rank's test. count: number of tested ops.
struct tested {
    int64_t count;
    char    text[200];    // the error that the test found; "": none
};

static void describe_communication(const struct plan *plan, const struct step_finding *finding, struct tested *own)
{
    char op[240], tensor[160];
    plan_op_name(plan, finding->op, op, sizeof(op));
    plan_tensor_name(plan, finding->tensor, tensor, sizeof(tensor));
    snprintf(own->text, sizeof(own->text), "%.90s brought %g as element %" PRId64 " of %.60s", op,
             (double)finding->value, finding->element, tensor);
}

// Returns whether communication ops can be tested. The test waits for each op. If collectives are enqueued on a device
// and there are pipeline stages, the op may wait for an op of another stage that waits for this rank: a deadlock.
static bool can_test(const struct validation_setup *setup)
{
    return !setup->comm->ops->is_enqueued || setup->plan->mesh.size[AXIS_PP] == 1;
}

bool validation_test_communications(struct validation *validation, int64_t step)
{
    const struct validation_setup *setup = &validation->setup;
    struct step_finding            finding;
    struct tested                  own   = {.text = ""};
    int                            ranks = setup->comm->topology.ranks, wrong = 0;
    if (!can_test(setup)) {
        return true;
    }
    own.count = step_test_communications(setup->step, &finding);
    if (finding.tensor >= 0) {
        describe_communication(setup->plan, &finding, &own);
    }
    struct tested *all = comm_gather(setup->comm, &own, sizeof(own));
    for (int rank = 0; rank < ranks; rank++) {
        setup->result->examined_communications += all[rank].count;
        if (all[rank].text[0] != '\0' && wrong++ == 0) {
            result_note(setup->result, WRONG("transfer-wrong", rank, step),
                        "rank %d, test of collectives %s the steps: %.200s", rank, step < 0 ? "before" : "after",
                        all[rank].text);
        }
    }
    free(all);
    return wrong == 0;
}
