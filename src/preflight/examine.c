// SPDX-License-Identifier: MIT
// Verifies the job's ops and collectives on inputs whose results are known or must agree between ranks, as a run does
// before its first step and in the same memory.
#include <math.h>
#include <stdio.h>

#include "gswbench/text.h"
#include "gswbench/validate.h"
#include "judge.h"
#include "internal.h"

static void name_wrong(struct flight *flight, const struct result_reason *reason)
{
    static const struct preflight_class numbers = {.name = "numbers"};
    struct preflight_report            *report  = &flight->report;
    const struct preflight_rank        *rank    = &report->ranks[reason->rank];
    struct preflight_outlier           *added   = judge_add(report, &numbers, BLAME_NUMBERS, NAN);
    added->rank                                 = reason->rank;
    text_copy(added->host, sizeof(added->host), rank->host);
    snprintf(added->text, sizeof(added->text), "device %d of host %s: %.255s", (int)rank->local_rank, rank->host,
             reason->message);
}

static void beat(void *context)
{
    const struct flight *flight = context;
    if (flight->watch != NULL) {
        watch_beat(flight->watch);
    }
}

static void examine(struct flight *flight, struct step *step)
{
    struct result                 result     = {.reasons = NULL};
    const struct validation_setup setup      = {.plan    = &flight->plan,
                                                .step    = step,
                                                .comm    = flight->comm,
                                                .result  = &result,
                                                .kin     = environment_fingerprint(&flight->environment.backend),
                                                .beat    = beat,
                                                .context = flight};
    struct validation            *validation = validation_open(&setup);
    step_set_fault(step, flight->fault.kind != FAULT_NONE ? &flight->fault : NULL);
    flight_run(flight, &flight->plan, step, "numbers");
    validation_test_ops(validation, -1);
    validation_test_transfers(validation, -1);
    for (int64_t i = 0; i < result.reason_count; i++) {
        name_wrong(flight, &result.reasons[i]);
    }
    flight->report.examined_ops       = result.examined_ops;
    flight->report.examined_transfers = result.examined_transfers;
    flight->report.op_bound           = result.verification.op_bound;
    flight->report.op_difference      = result.verification.op_difference;
    validation_close(validation);
    result_free(&result);
}

status flight_examine(struct flight *flight)
{
    struct step *step = NULL;
    TRY(comm_agree(flight->comm, step_prepare(&flight->plan, &flight->environment.backend)));
    status opened = step_open(&step, &flight->plan, &flight->environment.backend, flight->comm);
    if (!failed(&opened)) {
        examine(flight, step);
    }
    flight_meet(flight, "the numbers");
    if (step != NULL) {
        step_close(step);
    }
    return comm_agree(flight->comm, opened);
}
