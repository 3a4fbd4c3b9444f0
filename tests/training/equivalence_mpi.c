// SPDX-License-Identifier: MIT
// Trains under mpirun with replicas, with a pipeline, and with tp and cp. Losses must equal one rank's. A run with
// threads and a second run must give the same bits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "layouts.h"
#include "training.h"

enum { STEPS = 5, SEQUENCES = 8 };

// Layouts of four ranks: four replicas; two stages with two chunks each and two replicas; tp 2 and cp 2, both with ring
// overlap.
enum layout { REPLICAS, PIPELINE, RINGS, LAYOUTS };

static struct training init(int64_t ranks, enum layout layout)
{
    struct training training = {
        .tiny = tiny_of("layers 4; accumulation 2"), .ranks = (int)ranks, .steps = STEPS, .threads = 1, .seed = 11};
    struct parallel_config *parallel = &training.tiny.parallel;
    parallel->dp                     = ranks;
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
    layout_assignment(&training.tiny, SEQUENCES);
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

static int differs(float value, float reference, double tolerance, const char *what, int step)
{
    double difference = fabs((double)value - (double)reference) / fabs((double)reference);
    if (difference <= tolerance) {
        return 0;
    }
    fprintf(stderr, "%s of step %d: %.9g, reference %.9g\n", what, step, (double)value, (double)reference);
    return 1;
}

static int count_differences(const struct training *cut, const struct training *reference)
{
    int differences = 0;
    for (int step = 0; step < STEPS; step++) {
        differences += differs(cut->loss[step], reference->loss[step], 1e-6, "loss", step);
        differences += differs(cut->norm[step], reference->norm[step], 1e-5, "gradient norm", step);
    }
    return differences;
}

static bool has_same_bits(const struct training *a, const struct training *b)
{
    return memcmp(a->loss, b->loss, sizeof(a->loss)) == 0 && memcmp(a->norm, b->norm, sizeof(a->norm)) == 0;
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
    return (count_differences(&first, &one) > 0) + !has_same_bits(&first, &second) + !has_same_bits(&first, &threads);
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
