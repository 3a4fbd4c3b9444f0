// SPDX-License-Identifier: MIT
// Splits a batch over ranks and microbatches, and compares results with tolerances.
#include "equivalence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct training equivalence_init(int64_t ranks, int64_t accumulation)
{
    struct training training = {.ranks = (int)ranks, .steps = EQUIVALENCE_STEPS, .threads = 1, .seed = 11};
    tiny_init(&training.tiny);
    training.tiny.parallel.dp        = ranks;
    training.tiny.train.accumulation = accumulation;
    training.tiny.train.micro_batch  = EQUIVALENCE_SEQUENCES / ranks / accumulation;
    return training;
}

struct training equivalence_train(int64_t ranks, int64_t accumulation)
{
    struct training training = equivalence_init(ranks, accumulation);
    training_run(&training);
    return training;
}

static int equivalence_differs(float value, float reference, double tolerance, const char *what, int step)
{
    double difference = fabs((double)value - (double)reference) / fabs((double)reference);
    if (difference <= tolerance) {
        return 0;
    }
    fprintf(stderr, "%s of step %d: %.9g, reference %.9g\n", what, step, (double)value, (double)reference);
    return 1;
}

int equivalence_count_differences(const struct training *cut, const struct training *reference)
{
    int differences = 0;
    for (int step = 0; step < EQUIVALENCE_STEPS; step++) {
        differences += equivalence_differs(cut->loss[step], reference->loss[step], 1e-6, "loss", step);
        differences += equivalence_differs(cut->norm[step], reference->norm[step], 1e-5, "gradient norm", step);
    }
    return differences;
}

bool equivalence_same_bits(const struct training *a, const struct training *b)
{
    return memcmp(a->loss, b->loss, sizeof(a->loss)) == 0 && memcmp(a->norm, b->norm, sizeof(a->norm)) == 0;
}
