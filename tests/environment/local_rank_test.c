// SPDX-License-Identifier: MIT
// If launcher and MPI disagree on the local rank, a note must say so. Variables of the launcher that are about another
// process must give no note.
#include "environment/internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

// Replaces the gather of a job with two ranks. The rank that is not this process sends zeros.
static void gather_two(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    memset(out, 0, 2 * (size_t)bytes);
    memcpy((char *)out + comm->topology.rank * bytes, in, (size_t)bytes);
}

static void set(const char *const names[3], const char *const values[3])
{
    for (int i = 0; i < 3; i++) {
        setenv(names[i], values[i], 1);
    }
}

// Returns the note of rank 1, which has local rank 0 according to MPI.
static const char *note(void)
{
    static const struct comm_ops ops = {.name = "mpi", .gather_all = gather_two};
    static char                  text[256];
    struct comm             comm = {.ops = &ops, .topology = {.rank = 1, .ranks = 2, .local_ranks = 1, .host = "h1"}};
    struct rank_environment environment = {.comm = NULL};
    peers_meet(&environment, &comm);
    text_copy(text, sizeof(text), environment.notes.count == 0 ? "" : environment.notes.list[0].text);
    cr_expect(environment.notes.count == 0 || strcmp(environment.notes.list[0].id, "local-rank") == 0);
    free(environment.notes.list);
    free(environment.peers);
    return text;
}

static const char *const mpirun[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
static const char *const srun[]   = {"SLURM_LOCALID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};

Test(local_rank, is_the_same_to_launcher_and_mpi)
{
    set(mpirun, (const char *const[]){"0", "1", "2"});
    set(srun, (const char *const[]){"0", "1", "2"});
    cr_expect_str_empty(note());
}

Test(local_rank, is_noted_where_mpi_counts_otherwise)
{
    set(srun, (const char *const[]){"1", "1", "2"});
    cr_expect_str_eq(note(), "rank 1 on h1: SLURM_LOCALID = 1, but MPI has local rank 0, which is used: let ranks of a "
                             "host share its hostname and /dev/shm");
    set(srun, (const char *const[]){"0", "1", "2"});
    set(mpirun, (const char *const[]){"1", "1", "2"});
    cr_expect_str_eq(note(), "rank 1 on h1: OMPI_COMM_WORLD_LOCAL_RANK = 1, but MPI has local rank 0, which is used: "
                             "let ranks of a host share its hostname and /dev/shm");
}

Test(local_rank, of_the_batch_script_is_none_of_its_ranks)
{
    set(srun, (const char *const[]){"3", "0", "1"});
    cr_expect_str_empty(note());
}
