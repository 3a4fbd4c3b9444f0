// SPDX-License-Identifier: MIT
// Verifies a whole job from its request, and sums the FLOPs of its pipeline stages.
#pragma once

#include "gswbench/job.h"
#include "gswbench/plan_build.h"
#include "gswbench/verify.h"

// job_verify_plans with plan_build; ignores the request's rank.
status job_verify(const struct plan_request *request, struct job_proof *proof);

// Executed FLOPs of the whole mesh per sequence of the global batch. plan must come from request. Builds a plan of
// every other pipeline stage.
status plan_hardware_flops(const struct plan *plan, const struct plan_request *request, double *flops);

// Returns why the named backend cannot run the job on any device, or OK. Checks only the ops of the request's rank,
// since other ranks have the same kinds.
status proof_check_backend(const struct plan_request *request, const char *backend);

// prove.c: a job, and its proof if this version can run it. FLOPs by convention; NaN: unknown.
struct proved_job {
    struct job       job;
    double           flops[FLOPS_COUNT];
    struct job_proof proof;
    int64_t          connection_bytes;                   // estimate for the rank with the largest plan
    char             excess[192];                        // warning about SMs that communication may occupy; "": none
    double           published_mfu, published_tokens;    // derived from the published step time; NaN: not published
    char             layout[256], warning_text[128];
    const char      *warning;    // NULL: none
    bool             is_fit;
    const bool      *fits;    // is_fit; NULL: the device's memory is unknown
    // The program of [software] on its largest rank. job_prove leaves these fields to its caller.
    int64_t     program_bytes;    // 0: its memory is not modelled
    bool        is_program_fit;
    const bool *program_fits;    // is_program_fit; NULL: unknown
};

// Fills the other fields of a zeroed proved_job from its job.
status job_prove(struct proved_job *proved);
