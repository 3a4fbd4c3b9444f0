// SPDX-License-Identifier: MIT
// Builds the plans of a job without a device: verifies them, counts FLOPs, memory and NCCL connections, and checks that
// a backend has all its ops.
#include "gswbench/job.h"

#include <stdlib.h>

#include "gswbench/backend.h"
#include "gswbench/connection.h"
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
        struct plan built    = {.tensors = NULL};
        coordinates[AXIS_PP] = stage;
        status result = stage == own ? OK : build_requested(request, mesh_rank(&plan->mesh, coordinates), &built);
        if (!failed(&result)) {
            plan_account(stage == own ? plan : &built, &account);
            *flops += account.hardware_flops / (double)stages;
        }
        plan_free(&built);
        TRY(result);
    }
    return OK;
}

// Fails, with the reason, if the named backend cannot run an op of the plan on any device.
static status check_backend(const struct plan *plan, const char *backend)
{
    status result = OK;
    for (int32_t i = 0; i < plan->op_count && !failed(&result); i++) {
        const struct op *op                   = &plan->ops[i];
        struct buffer    buffers[OP_OPERANDS] = {{.data = NULL}};
        for (int slot = 0; slot < op->operand_count; slot++) {
            if (op->operand[slot] >= 0) {
                buffers[slot].format = plan->tensors[op->operand[slot]].format;
            }
        }
        result = backend_check_op(backend, op, buffers);
    }
    return result;
}

static status build_supported(const void *state, int64_t rank, struct plan *plan)
{
    const struct job *job = state;
    TRY(build_requested(&job->request, rank, plan));
    return check_backend(plan, job->config.run.backend);
}

static status list_connections(const struct job *job, int64_t rank, struct plan_connections *connections)
{
    struct plan plan;
    status      result = build_requested(&job->request, rank, &plan);
    if (!failed(&result)) {
        plan_connections(connections, &plan, hardware_domain(&job->config.hardware, plan.mesh.world));
    }
    plan_free(&plan);
    return result;
}

// Estimates NCCL's memory for the largest plan, and warns if communication may occupy all SMs. The warning uses a
// middle pipeline stage, which has two neighbours; the stage of the largest plan may have one.
static status estimate_connections(struct proved_job *proved)
{
    const struct job       *job                     = &proved->job;
    const struct config    *config                  = &job->config;
    const struct mesh      *mesh                    = &job->request.mesh;
    int64_t                 coordinates[AXIS_COUNT] = {[AXIS_PP] = mesh->size[AXIS_PP] / 2};
    struct plan_connections connections;
    TRY(list_connections(job, proved->proof.largest_rank, &connections));
    proved->connection_bytes = connections.bytes;
    free(connections.list);
    TRY(list_connections(job, mesh_rank(mesh, coordinates), &connections));
    plan_connections_excess(&connections, config->hardware.multiprocessors, config->run.sm_margin, proved->excess,
                            sizeof(proved->excess));
    free(connections.list);
    return OK;
}

int64_t job_device_bytes(const struct proved_job *proved)
{
    return proved->proof.largest_bytes + proved->connection_bytes +
           hardware_context_bytes(&proved->job.config.hardware);
}

status job_prove(struct proved_job *proved)
{
    const struct config *config = &proved->job.config;
    proved->published_mfu       = job_published_mfu(&proved->job);
    proved->published_tokens    = job_published_tokens_per_second(&proved->job);
    job_layout(&proved->job, proved->layout, sizeof(proved->layout));
    proved->warning = job_warning(&proved->job, proved->warning_text, sizeof(proved->warning_text));
    for (int convention = 0; convention < FLOPS_COUNT; convention++) {
        proved->flops[convention] =
            layers_flops(&config->model, &config->published, (enum flop_convention)convention, config->train.sequence);
    }
    if (failed(&proved->job.support)) {
        return OK;
    }
    const struct job_plans plans = {.build = build_supported, .state = &proved->job};
    TRY(job_verify_plans(&plans, &proved->proof));
    proved->flops[FLOPS_HARDWARE] = proved->proof.flops / (double)config->train.global_batch;
    if (proved->proof.world > 1) {
        TRY(estimate_connections(proved));
    }
    const struct hardware_config *hardware = &proved->job.config.hardware;
    proved->is_fit                         = hardware_holds(hardware, job_device_bytes(proved));
    proved->fits                           = hardware->memory_gb.value > 0.0 ? &proved->is_fit : NULL;
    return OK;
}
