// SPDX-License-Identifier: MIT
// Reads the environment variables of launchers. Also has functions that all communicators share, and stubs for
// communicators that this build lacks.
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

// Returns the name of the first environment variable with a number of at least `minimum`, and sets *found to the
// number. If there is none, returns NULL and sets -1.
static const char *find_variable(const char *const *names, long minimum, int *found)
{
    for (; *names != NULL; names++) {
        const char *text   = getenv(*names);
        char       *end    = NULL;
        long        number = text != NULL ? strtol(text, &end, 10) : -1;
        if (end != text && number >= minimum && number <= INT_MAX) {
            *found = (int)number;
            return *names;
        }
    }
    *found = -1;
    return NULL;
}

int comm_launched_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", NULL};
    int                      ranks;
    return find_variable(names, 1, &ranks) != NULL ? ranks : 0;
}

static const char *const rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};

int comm_launched_rank(void)
{
    int rank;
    find_variable(rank_variables, 0, &rank);
    return rank;
}

const char *comm_rank_variable(void)
{
    int rank;
    return find_variable(rank_variables, 0, &rank);
}

status comm_check_launch(bool is_named)
{
    static const char remedy[] = "use srun --mpi=pmix (srun --mpi=list says what this Slurm has), or mpirun";
    int               ranks    = comm_launched_ranks();
    bool              has_pmi2 = getenv("PMI_SIZE") != NULL;
    bool              is_direct =
        getenv("SLURM_STEP_NUM_TASKS") != NULL && getenv("OMPI_COMM_WORLD_SIZE") == NULL && getenv("PMIX_RANK") == NULL;
    if (ranks <= 1 || !is_direct) {
        return OK;
    }
    if (!has_pmi2) {
        return fail_as(EXIT_LAUNCH, "srun started %d processes without PMIx, so MPI cannot connect them: %s", ranks,
                       remedy);
    }
    if (comm_mpi_asks_for_pmix() && !is_named) {    // MPI would end the process without a clear message
        return fail_as(EXIT_LAUNCH,
                       "srun started %d processes with PMI-2 instead of PMIx, which few builds of Open MPI support: "
                       "%s; or force it with --comm mpi",
                       ranks, remedy);
    }
    return OK;
}

const char *comm_launcher(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL ? "Open MPI's mpirun (OMPI_COMM_WORLD_SIZE is set)"
           : getenv("PMIX_RANK") != NULL          ? "a launcher with PMIx, such as srun --mpi=pmix (PMIX_RANK is set)"
           : getenv("PMI_SIZE") != NULL           ? "mpirun of MPICH or Intel MPI, or srun --mpi=pmi2 (PMI_SIZE is set)"
           : getenv("SLURM_STEP_NUM_TASKS") != NULL ? "srun (SLURM_STEP_NUM_TASKS is set)"
                                                    : "no launcher";
}

#ifndef GSWBENCH_NCCL
status comm_detect_nccl(void)
{
    return fail_as(EXIT_LAUNCH, "this gswbench was built without NCCL: set NCCL_HOME, and build again");
}

status comm_open_nccl(struct comm *comm, struct comm *control, struct backend *backend,
                      const struct comm_nccl_setup *setup)
{
    (void)comm, (void)control, (void)backend, (void)setup;
    return comm_detect_nccl();
}
#endif

void comm_close(struct comm *comm)
{
    comm->ops->close(comm);
}

int64_t comm_ring_member(int64_t index, int64_t size)
{
    return (index % size + size) % size;
}

int comm_rendezvous_stream(int stream)
{
    return stream == STREAM_PIPELINE_RECEIVE ? STREAM_PIPELINE_SEND : stream;
}

struct comm_topology comm_one_host(int rank, int ranks)
{
    struct comm_topology topology = {
        .rank = rank, .ranks = ranks, .local_rank = rank, .local_ranks = ranks, .nodes = 1};
    gethostname(topology.host, sizeof(topology.host) - 1);
    return topology;
}

void *comm_gather(struct comm *comm, const void *own, size_t bytes)
{
    void *all = memory_allocate((size_t)comm->topology.ranks * bytes);
    comm->ops->gather_all(comm, own, all, (int64_t)bytes);
    return all;
}

static double choose(struct comm *comm, double own, double (*better)(double, double))
{
    double *all = comm_gather(comm, &own, sizeof(own));
    for (int i = 0; i < comm->topology.ranks; i++) {
        own = better(own, all[i]);
    }
    free(all);
    return own;
}

double comm_largest(struct comm *comm, double own)
{
    return choose(comm, own, fmax);
}

double comm_smallest(struct comm *comm, double own)
{
    return choose(comm, own, fmin);
}

status comm_find_failed(struct comm *comm, status own, int *first)
{
    status *all    = comm_gather(comm, &own, sizeof(own));
    status  result = OK;
    *first         = -1;
    for (int rank = comm->topology.ranks - 1; rank >= 0; rank--) {
        if (failed(&all[rank])) {
            *first = rank;
            result = all[rank];
        }
    }
    free(all);
    return result;
}

status comm_agree_first(struct comm *comm, status own, int *first)
{
    bool   has_hosts = comm->topology.nodes > 1;
    status error     = comm_find_failed(comm, own, first);
    if (!failed(&error)) {
        return error;
    }
    bool all_failed = comm_smallest(comm, failed(&own)) > 0.0;
    if (*first == 0 && (all_failed || !has_hosts)) {
        return error;
    }
    char host[sizeof(comm->topology.host)];
    memcpy(host, comm->topology.host, sizeof(host));
    comm->ops->share(comm, host, sizeof(host), *first);
    status named  = {.exit_code = error.exit_code};
    int    length = snprintf(named.text, sizeof(named.text), "rank %d%s%s: ", *first, has_hosts ? " on " : "",
                          has_hosts ? host : "");
    text_copy(named.text + length, sizeof(named.text) - (size_t)length, error.text);    // keeps line breaks
    return named;
}

status comm_agree(struct comm *comm, status own)
{
    int first;
    return comm_agree_first(comm, own, &first);
}
