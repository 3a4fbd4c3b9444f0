// SPDX-License-Identifier: MIT
// A whole job from its request: the proof that it runs to its end, and what all of its stages execute.
#ifndef GSWBENCH_PROOF_H
#define GSWBENCH_PROOF_H

#include "gswbench/plan_build.h"
#include "gswbench/verify.h"

// As job_verify_plans, of the plans that plan_build makes; the request's rank does not matter.
status job_verify(const struct plan_request *request, struct job_proof *proof);

// What the whole mesh executes per sequence of the global batch; plan is one of the request's. Builds a plan of every
// other stage.
status plan_hardware_flops(const struct plan *plan, const struct plan_request *request, double *flops);

// What a backend of that name would refuse of the request's rank on every device. The ops of one rank are like those of
// all.
status proof_check_backend(const struct plan_request *request, const char *backend);

#endif
