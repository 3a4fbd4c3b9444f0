// SPDX-License-Identifier: MIT
// Trains under mpirun with replicas, with a pipeline, and with tp and cp. Losses must equal one rank's. A run with
// threads and a second run must give the same bits.
#include "equivalence.h"
#include "gswbench/fatal.h"

#include <stdio.h>

// Layouts of four ranks: four replicas; two stages with two chunks each and two replicas; tp 2 and cp 2, both with ring
// overlap.
enum layout { REPLICAS, PIPELINE, RINGS, LAYOUTS };

static struct training init(int64_t ranks, enum layout layout)
{
    enum { LAYERS = 4 };

    struct training         training = equivalence_init(ranks, 2);
    struct parallel_config *parallel = &training.tiny.parallel;
    training.tiny.model.layers       = LAYERS;
    if (layout == PIPELINE && ranks > 1) {
        parallel->pp = 2;
        parallel->vp = 2;
        parallel->dp = ranks / 2;
    } else if (layout == RINGS && ranks > 1) {
        parallel->tp         = 2;
        parallel->cp         = ranks / 2;
        parallel->dp         = 1;
        parallel->tp_overlap = 1;
        parallel->context    = CONTEXT_RING;
    }
    training.tiny.train.micro_batch = EQUIVALENCE_SEQUENCES / parallel->dp / 2;
    return training;
}

static struct training train(struct comm *comm, enum layout layout)
{
    struct training training    = init(comm->topology.ranks, layout);
    int64_t         allocations = training_run_rank(&training, comm);
    if (allocations != 0) {
        FATAL(EXIT_INTERNAL, "%d allocations in steps", (int)allocations);
    }
    return training;
}

// Trains twice with processes, once with threads, and once on one rank, and compares them as described above. Returns
// the number of failures on rank 0.
static int compare(struct comm *comm, enum layout layout)
{
    struct training first  = train(comm, layout);
    struct training second = train(comm, layout);
    if (comm->topology.rank != 0) {
        return 0;
    }
    struct training threads = init(comm->topology.ranks, layout), one = init(1, layout);
    training_run(&threads);
    training_run(&one);
    int differs = equivalence_count_differences(&first, &one) > 0;
    return differs + !equivalence_same_bits(&first, &second) + !equivalence_same_bits(&first, &threads);
}

int main(void)
{
    struct comm comm;
    training_require(comm_open_mpi(&comm));
    int failures = 0;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        failures += compare(&comm, (enum layout)layout);
    }
    if (comm.topology.rank == 0) {
        printf("%d passed, %d failed\n", 3 * LAYOUTS - failures, failures);
    }
    comm.ops->share(&comm, &failures, sizeof(failures), 0);
    comm_close(&comm);
    return failures > 0;
}
