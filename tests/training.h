// SPDX-License-Identifier: MIT
// Trains a tiny model on the host backend with ranks as threads, for tests that compare whole steps.
#ifndef GSWBENCH_TESTS_TRAINING_H
#define GSWBENCH_TESTS_TRAINING_H

#include <pthread.h>

#include "gswbench/data.h"
#include "tiny.h"

enum { TRAINING_STEPS_MAX = 32, TRAINING_RANKS_MAX = 16 };

struct training {
    struct tiny tiny;    // set with tiny_init, then changed as the test wants
    int         ranks, steps, threads;
    uint64_t    seed;
    // Results.
    float   loss[TRAINING_STEPS_MAX], norm[TRAINING_STEPS_MAX];    // of rank 0
    int64_t storage_bytes[STORAGE_COUNT];                          // allocated by rank 0
    int64_t planned_bytes[STORAGE_COUNT];
    int64_t allocations_in_steps;    // of all ranks
};

struct training_rank {
    struct training  *training;
    struct local_hub *hub;
    int               rank;
    int64_t           allocations;
    pthread_t         thread;
};

static void *training_rank_run(void *argument)
{
    struct training_rank *self     = argument;
    struct training      *training = self->training;
    struct tiny           tiny     = training->tiny;
    struct comm           comm;
    struct backend        backend;
    struct step          *step;
    comm_open_local(&comm, self->hub, self->rank);
    tiny_plan_rank(&tiny, training->ranks, self->rank);
    status result = backend_open(&backend, "host", self->rank, training->threads);
    cr_assert(!failed(&result), "%s", result.text);
    result = step_open(&step, &tiny.plan, &backend, &comm);
    cr_assert(!failed(&result), "%s", result.text);
    data_initialise(step, &tiny.plan, training->seed);

    int64_t before = backend.allocations;
    for (int i = 0; i < training->steps; i++) {
        data_fill(step, &tiny.plan, DATA_UNIFORM, training->seed, i);
        step_run(step);
        if (self->rank == 0) {
            step_read(step, tiny.plan.loss, &training->loss[i]);
            step_read(step, tiny.plan.gradient_norm, &training->norm[i]);
        }
    }
    self->allocations = backend.allocations - before;
    for (int storage = 0; storage < STORAGE_COUNT && self->rank == 0; storage++) {
        training->storage_bytes[storage] = step_storage_bytes(step, (enum storage)storage);
        training->planned_bytes[storage] = tiny.plan.storage_bytes[storage];
    }
    step_close(step);
    backend_close(&backend);
    comm_close(&comm);
    plan_free(&tiny.plan);
    return NULL;
}

static inline void training_run(struct training *training)
{
    struct local_hub    *hub = local_hub_open(training->ranks);
    struct training_rank ranks[TRAINING_RANKS_MAX];
    training->allocations_in_steps = 0;
    for (int rank = 0; rank < training->ranks; rank++) {
        ranks[rank] = (struct training_rank){.training = training, .hub = hub, .rank = rank};
        pthread_create(&ranks[rank].thread, NULL, training_rank_run, &ranks[rank]);
    }
    for (int rank = 0; rank < training->ranks; rank++) {
        pthread_join(ranks[rank].thread, NULL);
        training->allocations_in_steps += ranks[rank].allocations;
    }
    local_hub_close(hub);
}

#endif
