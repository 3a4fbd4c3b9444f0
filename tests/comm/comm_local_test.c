// SPDX-License-Identifier: MIT
// Tests that the `local` communicator, with ranks as threads, obeys the rules of every communicator, for several
// numbers of ranks.
#include "gswbench/comm.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "comm_contract.h"
#include "ranks.h"

struct contract {
    contract_function *check;
    int64_t            wrong[CONTRACT_RANKS_MAX];
};

static void run_rank(struct comm *comm, void *context)
{
    struct contract *contract            = context;
    contract->wrong[comm->topology.rank] = contract->check(comm);
}

// Runs the check on every rank of a job. Returns the number of errors on all ranks.
static int64_t run_ranks(int ranks, contract_function *check)
{
    struct contract contract = {.check = check};
    int64_t         wrong    = 0;
    ranks_run(ranks, run_rank, &contract);
    for (int rank = 0; rank < ranks; rank++) {
        wrong += contract.wrong[rank];
    }
    return wrong;
}

Test(comm_local, keeps_the_contract, .timeout = 300)
{
    for (const struct contract_check *check = contract_checks; check->name != NULL; check++) {
        for (int ranks = 1; ranks <= 5; ranks++) {
            cr_expect_eq(run_ranks(ranks, check->check), 0, "%s, %d ranks", check->name, ranks);
        }
    }
    cr_expect_eq(run_ranks(16, contract_check_control), 0);
}

static int64_t check_topology(struct comm *comm)
{
    const struct comm_topology *topology = &comm->topology;
    return (topology->ranks != 3) + (topology->local_ranks != 3) + (topology->local_rank != topology->rank) +
           (topology->nodes != 1) + (topology->node != 0) + (topology->host[0] == '\0');
}

Test(comm_local, every_rank_knows_its_topology)
{
    cr_expect_eq(run_ranks(3, check_topology), 0);
}

Test(comm, the_launcher_says_how_many_ranks_it_started)
{
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    unsetenv("SLURM_STEP_NUM_TASKS");
    setenv("SLURM_NTASKS", "16", 1);    // sbatch sets this for the batch script, which srun did not start
    cr_expect_eq(comm_launched_ranks(), 0);
    setenv("SLURM_STEP_NUM_TASKS", "16", 1);
    cr_expect_eq(comm_launched_ranks(), 16);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    cr_expect_eq(comm_launched_ranks(), 4);
    setenv("OMPI_COMM_WORLD_SIZE", "four", 1);
    cr_expect_eq(comm_launched_ranks(), 16);
}

Test(comm, a_launch_by_srun_without_pmix_is_an_error_that_names_the_remedy)
{
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    unsetenv("PMIX_RANK");
    setenv("SLURM_STEP_NUM_TASKS", "8", 1);
    setenv("SLURM_PROCID", "3", 1);
    status alone = comm_check_launch(false);

    cr_expect_eq(alone.exit_code, 4);
    cr_expect_not_null(strstr(alone.text, "srun started 8 processes"));
    cr_expect_not_null(strstr(alone.text, "--mpi=pmix"));
    cr_expect_eq(comm_launched_rank(), 3);

    setenv("PMI_SIZE", "8", 1);    // with --mpi=pmi2, which MPI libraries other than Open MPI may support
    status pmi2 = comm_check_launch(false);
    if (comm_mpi_asks_for_pmix()) {
        cr_expect_eq(pmi2.exit_code, 4);
        cr_expect_not_null(strstr(pmi2.text, "srun started 8 processes with PMI-2"));
        cr_expect_not_null(strstr(pmi2.text, "--mpi=pmix"));
    }
    cr_expect_eq(comm_check_launch(true).exit_code, 0);

    setenv("PMIX_RANK", "2", 1);
    cr_expect_eq(comm_check_launch(false).exit_code, 0);
    cr_expect_eq(comm_launched_rank(), 2);
}
