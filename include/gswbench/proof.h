// SPDX-License-Identifier: MIT
// A whole job, from its request: the proof that it runs to its end, and the FLOPs that all of its stages execute.
#ifndef GSWBENCH_PROOF_H
#define GSWBENCH_PROOF_H

#include "gswbench/plan_build.h"
#include "gswbench/verify.h"

// job_verify_plans for the plans that plan_build makes; the request's rank does not matter.
status job_verify(const struct plan_request *request, struct job_proof *proof);

// What the whole mesh executes per sequence of the global batch; plan is one of the request's. Builds a plan of every
// other stage.
status plan_hardware_flops(const struct plan *plan, const struct plan_request *request, double *flops);

// Why a backend of that name cannot run the job on any device, or success. Only the ops of the request's rank are
// looked at: those of the others are alike.
status proof_check_backend(const struct plan_request *request, const char *backend);

#endif
