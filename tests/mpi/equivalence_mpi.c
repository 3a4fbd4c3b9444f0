// SPDX-License-Identifier: MIT
// Training under mpirun, with replicas or in a pipeline, gives the losses of one rank, the bits of ranks as threads,
// and the same bits every time.
#include "../equivalence.h"

// A pipeline instead of replicas: with four ranks, two stages of two chunks with two replicas each.
static struct training init(int64_t ranks, bool is_pipeline)
{
    enum { LAYERS = 4 };

    struct training training   = equivalence_init(ranks, 2);
    training.tiny.model.layers = LAYERS;
    if (is_pipeline && ranks > 1) {
        training.tiny.parallel.pp       = 2;
        training.tiny.parallel.vp       = 2;
        training.tiny.parallel.dp       = ranks / 2;
        training.tiny.train.micro_batch = EQUIVALENCE_SEQUENCES / training.tiny.parallel.dp / 2;
    }
    return training;
}

static struct training train(struct comm *comm, bool is_pipeline)
{
    struct training training    = init(comm->place.ranks, is_pipeline);
    int64_t         allocations = training_run_rank(&training, comm);
    if (allocations != 0) {
        FATAL(EXIT_INTERNAL, "%d allocations in steps", (int)allocations);
    }
    return training;
}

// Counts failures on rank 0.
static int compare(struct comm *comm, bool is_pipeline)
{
    struct training first  = train(comm, is_pipeline);
    struct training second = train(comm, is_pipeline);
    if (comm->place.rank != 0) {
        return 0;
    }
    struct training threads = init(comm->place.ranks, is_pipeline), one = init(1, false);
    training_run(&threads);
    training_run(&one);
    int differs = equivalence_count_differences(&first, &one) > 0;
    return differs + !equivalence_same_bits(&first, &second) + !equivalence_same_bits(&first, &threads);
}

int main(void)
{
    struct comm comm;
    training_require(comm_open_mpi(&comm));
    int failures = compare(&comm, false) + compare(&comm, true);
    if (comm.place.rank == 0) {
        printf("%d passed, %d failed\n", 6 - failures, failures);
    }
    comm.ops->share(&comm, &failures, sizeof(failures));
    comm_close(&comm);
    return failures > 0;
}
