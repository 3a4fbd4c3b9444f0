// SPDX-License-Identifier: MIT
// What is common to all communicators, and which of them this build has.
#include "internal.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

int comm_launched_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text  = getenv(names[i]);
        long        ranks = text != NULL ? strtol(text, NULL, 10) : 0;
        if (ranks > 0 && ranks <= INT_MAX) {
            return (int)ranks;
        }
    }
    return 0;
}

#ifndef GSWBENCH_MPI
bool comm_has_mpi(void)
{
    return false;
}

status comm_open_mpi(struct comm *comm)
{
    (void)comm;
    return fail_as(EXIT_LAUNCH, "this gswbench was built without MPI: install Open MPI (libopenmpi-dev) or set "
                                "MPI_HOME, and build again; or use run.communicator = local");
}
#endif

void comm_close(struct comm *comm)
{
    comm->ops->close(comm);
}

int comm_meeting_lane(int lane)
{
    return lane == LANE_PIPELINE_RECEIVE ? LANE_PIPELINE_SEND : lane;
}

struct comm_place comm_place_on_one_host(int rank, int ranks)
{
    struct comm_place place = {.rank = rank, .ranks = ranks, .local_rank = rank, .local_ranks = ranks, .nodes = 1};
    gethostname(place.host, sizeof(place.host) - 1);
    return place;
}
