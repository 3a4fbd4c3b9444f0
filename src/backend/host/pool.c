// SPDX-License-Identifier: MIT
// Thread pool: a generation counter starts a loop, and a counter of pending threads ends it.
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/cores.h"
#include "gswbench/fatal.h"
#include "gswbench/status.h"

// Spins before a thread sleeps, because ops follow each other within microseconds.
enum { SPINS = 2000 };

struct worker {
    struct pool *pool;
    pthread_t    handle;
    int          thread;
};

struct pool {
    int             threads;
    struct worker  *workers;    // [threads - 1]
    pthread_mutex_t mutex;
    pthread_cond_t  started, finished;
    atomic_uint     generation;    // of the current loop; incremented under the mutex
    atomic_int      pending;       // workers still running the current loop

    // The current loop; body NULL ends the workers. Written before the generation increments.
    pool_body *body;
    void      *context;
    int64_t    count;
};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void run_share(const struct pool *pool, int thread)
{
    int64_t first = pool->count * thread / pool->threads;
    int64_t last  = pool->count * (thread + 1) / pool->threads;
    if (first < last) {
        pool->body(pool->context, first, last, thread);
    }
}

static void wait_for_start(struct pool *pool, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool->generation) != seen) {
            return;
        }
        pause_briefly();
    }
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load(&pool->generation) == seen) {
        pthread_cond_wait(&pool->started, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct pool   *pool   = worker->pool;
    for (unsigned seen = 0;; seen++) {
        wait_for_start(pool, seen);
        if (pool->body == NULL) {
            return NULL;
        }
        run_share(pool, worker->thread);
        if (atomic_fetch_sub(&pool->pending, 1) == 1) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->finished);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

static void start(struct pool *pool, pool_body *body, void *context, int64_t count)
{
    pool->body    = body;
    pool->context = context;
    pool->count   = count;
    atomic_store(&pool->pending, pool->threads - 1);
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->started);
    pthread_mutex_unlock(&pool->mutex);
}

struct pool *pool_open(int threads)
{
    struct pool *pool = memory_allocate(sizeof(*pool));
    pool->threads     = threads > 0 ? threads : cores_usable();
    pool->workers     = memory_allocate(sizeof(*pool->workers) * (size_t)pool->threads);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->started, NULL);
    pthread_cond_init(&pool->finished, NULL);
    for (int i = 0; i < pool->threads - 1; i++) {
        struct worker *worker = &pool->workers[i];
        worker->pool          = pool;
        worker->thread        = i + 1;
        int error             = pthread_create(&worker->handle, NULL, worker_main, worker);
        if (error != 0) {
            FATAL(EXIT_LAUNCH, "cannot start thread %d of %d: %s", i + 2, pool->threads, strerror(error));
        }
    }
    return pool;
}

void pool_close(struct pool *pool)
{
    start(pool, NULL, NULL, 0);
    for (int i = 0; i < pool->threads - 1; i++) {
        pthread_join(pool->workers[i].handle, NULL);
    }
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->started);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}

int pool_threads(const struct pool *pool)
{
    return pool->threads;
}

void pool_run(struct pool *pool, pool_body *body, void *context, int64_t count)
{
    if (pool->threads == 1 || count <= 1) {
        if (count > 0) {
            body(context, 0, count, 0);
        }
        return;
    }
    start(pool, body, context, count);
    run_share(pool, 0);
    for (int i = 0; i < SPINS && atomic_load(&pool->pending) > 0; i++) {
        pause_briefly();
    }
    if (atomic_load(&pool->pending) > 0) {
        pthread_mutex_lock(&pool->mutex);
        while (atomic_load(&pool->pending) > 0) {
            pthread_cond_wait(&pool->finished, &pool->mutex);
        }
        pthread_mutex_unlock(&pool->mutex);
    }
}
