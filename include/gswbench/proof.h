// SPDX-License-Identifier: MIT
// Verifies a whole job from its request, and sums the FLOPs of its pipeline stages.
#ifndef GSWBENCH_PROOF_H
#define GSWBENCH_PROOF_H

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

#endif
