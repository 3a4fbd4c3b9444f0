// SPDX-License-Identifier: MIT
// Device memory and SMs that NCCL communicators of a job take.
#include <stdlib.h>

#include "gswbench/connection.h"
#include "gswbench/plan_build.h"
#include "internal.h"

static status count(const struct job *job, int64_t rank, struct plan_connections *connections)
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
status cli_check_connections(const struct job *job, int64_t largest_rank, int64_t *bytes, char *excess)
{
    const struct config    *config                  = &job->config;
    const struct mesh      *mesh                    = &job->request.mesh;
    int64_t                 coordinates[AXIS_COUNT] = {[AXIS_PP] = mesh->size[AXIS_PP] / 2};
    struct plan_connections connections;
    TRY(count(job, largest_rank, &connections));
    *bytes = connections.bytes;
    free(connections.list);
    TRY(count(job, mesh_rank(mesh, coordinates), &connections));
    plan_connections_excess(&connections, config->hardware.multiprocessors, config->run.spared_processors, excess,
                            CLI_EXCESS_BYTES);
    free(connections.list);
    return OK;
}
