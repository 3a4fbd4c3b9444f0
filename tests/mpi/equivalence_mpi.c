// SPDX-License-Identifier: MIT
// Data-parallel training under mpirun gives the losses of one rank, the bits of ranks as threads, and the same bits
// every time.
#include "../equivalence.h"

static struct training train(struct comm *comm, int64_t accumulation)
{
    struct training training    = equivalence_init(comm->place.ranks, accumulation);
    int64_t         allocations = training_run_rank(&training, comm);
    if (allocations != 0) {
        FATAL(EXIT_INTERNAL, "%d allocations in steps", (int)allocations);
    }
    return training;
}

int main(void)
{
    struct comm comm;
    training_require(comm_open_mpi(&comm));
    int64_t         accumulation = 2;
    struct training first        = train(&comm, accumulation);
    struct training second       = train(&comm, accumulation);
    int             failures     = 0;
    if (comm.place.rank == 0) {
        struct training threads = equivalence_train(comm.place.ranks, accumulation);
        struct training one     = equivalence_train(1, 1);
        int             differs = equivalence_count_differences(&first, &one) > 0;
        failures = differs + !equivalence_same_bits(&first, &second) + !equivalence_same_bits(&first, &threads);
        printf("%d passed, %d failed\n", 3 - failures, failures);
    }
    comm.ops->share(&comm, &failures, sizeof(failures));
    comm_close(&comm);
    return failures > 0;
}
