// SPDX-License-Identifier: MIT
// Verifies a job and derives the figures that need no device: FLOPs, memory, NCCL connections, published MFU.
#include <stdlib.h>

#include "gswbench/connection.h"
#include "gswbench/job.h"
#include "gswbench/plan_build.h"

static status list_connections(const struct job *job, int64_t rank, struct plan_connections *connections)
{
    struct plan_request request = job->request;
    struct plan         plan;
    request.rank = rank;
    TRY(plan_build(&plan, &request));
    plan_connections(connections, &plan, hardware_domain(&job->config.hardware, plan.mesh.world));
    plan_free(&plan);
    return OK;
}

// The SM warning uses a middle pipeline stage, which has more neighbours than the stage with the largest plan may have.
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

// Compares the largest plan plus NCCL memory with the memory of the [hardware] device.
static void set_fits(struct proved_job *proved)
{
    double device_bytes = proved->job.config.hardware.memory_gb.value * 1e9;
    proved->is_fit      = (double)(proved->proof.largest_bytes + proved->connection_bytes) <= device_bytes;
    proved->fits        = device_bytes > 0.0 ? &proved->is_fit : NULL;
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
    TRY(proof_check_backend(&proved->job.request, proved->job.config.run.backend));
    TRY(job_verify(&proved->job.request, &proved->proof));
    proved->flops[FLOPS_HARDWARE] = proved->proof.flops / (double)config->train.global_batch;
    if (proved->proof.world > 1) {
        TRY(estimate_connections(proved));
    }
    set_fits(proved);
    return OK;
}
