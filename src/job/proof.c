// SPDX-License-Identifier: MIT
// Builds the plans of several ranks, to verify a job, count its FLOPs and check that a backend has all its ops.
#include "gswbench/job.h"

#include "gswbench/backend.h"
#include "gswbench/verify.h"

static status build_requested(const void *state, int64_t rank, struct plan *plan)
{
    struct plan_request request = *(const struct plan_request *)state;
    request.rank                = rank;
    return plan_build(plan, &request);
}

status job_verify(const struct plan_request *request, struct job_proof *proof)
{
    return job_verify_plans(&(struct job_plans){.build = build_requested, .state = request}, proof);
}

status plan_hardware_flops(const struct plan *plan, const struct plan_request *request, double *flops)
{
    int64_t        coordinates[AXIS_COUNT], stages = plan->mesh.size[AXIS_PP];
    struct account account;
    mesh_coordinates(&plan->mesh, plan->rank, coordinates);
    int64_t own = coordinates[AXIS_PP];
    *flops      = 0;
    for (int64_t stage = 0; stage < stages; stage++) {
        struct plan         built = {.tensors = NULL};
        struct plan_request other = *request;
        coordinates[AXIS_PP]      = stage;
        other.rank                = mesh_rank(&plan->mesh, coordinates);
        status result             = stage == own ? OK : plan_build(&built, &other);
        if (!failed(&result)) {
            plan_account(stage == own ? plan : &built, &account);
            *flops += account.hardware_flops / (double)stages;
        }
        plan_free(&built);
        if (failed(&result)) {
            return result;
        }
    }
    return OK;
}

status proof_check_backend(const struct plan_request *request, const char *backend)
{
    struct plan plan;
    TRY(plan_build(&plan, request));
    status result = OK;
    for (int32_t i = 0; i < plan.op_count && !failed(&result); i++) {
        const struct op *op                   = &plan.ops[i];
        struct buffer    buffers[OP_OPERANDS] = {{.data = NULL}};
        for (int slot = 0; slot < op->operand_count; slot++) {
            if (op->operand[slot] >= 0) {
                buffers[slot].format = plan.tensors[op->operand[slot]].format;
            }
        }
        result = backend_check_op(backend, op, buffers);
    }
    plan_free(&plan);
    return result;
}
