// SPDX-License-Identifier: MIT
// Implements a thread pool. Incrementing a generation counter starts a loop. The loop ends when a counter of pending
// threads is 0. This file also runs ops as loops over the pool, and divides scratch among the threads.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/status.h"
#include "internal.h"

// Number of checks before a waiting thread sleeps. Threads spin first, because ops follow each other within
// microseconds.
enum { SPINS = 2000 };

// Each thread gets whole cache lines of scratch.
enum { FLOATS_PER_LINE = 16 };

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
    atomic_uint     generation;    // number of the current loop; incremented under the mutex
    atomic_int      pending;       // workers still running the current loop

    // The current loop. It is written before the generation is incremented. If body is NULL, the workers exit.
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

int64_t host_count_rows(const struct op *op)
{
    return op->shape.rows.rows;
}

int64_t host_count_tokens(const struct op *op)
{
    return op->shape.attention.batch * op->shape.attention.sequence;
}

int64_t host_count_routed(const struct op *op)
{
    return op->shape.routing.rows;
}

int64_t host_count_groups(const struct op *op)
{
    return op->shape.mamba.groups;
}

int64_t host_part_floats(const struct op *op)
{
    (void)op;
    return 2 * HOST_PARTS;
}

// Returns the number of floats of scratch of this number of threads.
static int64_t thread_floats(const struct op *op, int threads)
{
    const struct host_op *row = host_ops[op->kind];
    int64_t each = row->each != NULL ? row->each(op) : row->rows > 0 ? row->rows * op->shape.rows.columns : 0;
    return threads * number_round_up(each, FLOATS_PER_LINE);
}

void *host_space(const struct loop *loop, int thread)
{
    return loop->host->scratch + thread_floats(loop->op, thread);
}

void *host_shared(const struct host *host, const struct op *op)
{
    return host->scratch + thread_floats(op, pool_threads(host->pool));
}

static int64_t scratch_floats(const struct host *host, const struct op *op)
{
    const struct host_op *row    = host_ops[op->kind];
    int64_t               shared = row->shared != NULL ? number_round_up(row->shared(op), FLOATS_PER_LINE) : 0;
    return thread_floats(op, pool_threads(host->pool)) + shared;
}

// Returns the offset in scratch of the output of an op with a fused quantization, for an output without memory in the
// plan. The scratch before it serves first the op, then the quantization.
static int64_t floats_before_output(const struct host *host, const struct op *op)
{
    struct op quantize = op_quantize_of(op);
    return number_max(scratch_floats(host, op), scratch_floats(host, &quantize));
}

int64_t host_scratch_bytes(struct backend *backend, const struct op *op)
{
    const struct host *host  = backend->state;
    int64_t            count = op_is_fused(op) ? floats_before_output(host, op) +
                                          op_operand_elements(op, op_fused_output((enum op_kind)op->kind))
                                               : scratch_floats(host, op);
    return count * (int64_t)sizeof(float);
}

static void run_part(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop *loop = context;
    loop->body(loop, first, last, thread);
}

void host_run_loop(struct backend *backend, const struct op *op, const struct buffer buffers[], host_body *body,
                   int64_t count)
{
    const struct host *host = backend->state;
    struct loop        loop = {.op = op, .buffers = buffers, .host = host, .body = body};
    pool_run(host->pool, run_part, &loop, count);
}

// Runs an op and then the quantization that is fused to it. If the op's output has no memory in the plan, it is written
// to scratch, from which the quantization reads it.
static void run_fused(struct backend *backend, const struct op *op, const struct buffer buffers[])
{
    const struct host    *host = backend->state;
    const struct host_op *row  = host_ops[op->kind];
    struct buffer         bound[OP_OPERANDS], copies[OP_OPERANDS] = {{.data = NULL}};
    struct op             quantize = op_quantize_of(op);
    int                   slot     = op_fused_output((enum op_kind)op->kind);
    struct buffer        *output   = &bound[slot];
    memcpy(bound, buffers, sizeof(bound));
    if (output->data == NULL) {    // not stored: use scratch, in the format of operand 0
        void *space = host->scratch + floats_before_output(host, op);
        *output     = (struct buffer){space, op_operand_elements(op, slot), buffers[0].format};
    }
    host_run_loop(backend, op, bound, row->body, row->count(op));
    memcpy(copies, bound + OP_FUSED, sizeof(*bound) * (OP_OPERANDS - OP_FUSED));
    copies[QUANTIZE_IN] = *output;
    host_quantize.run(backend, &quantize, copies);
}

void host_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct host_op *row = host_ops[op->kind];
    if (row->run != NULL) {
        row->run(backend, op, buffers);
    } else if (op_is_fused(op)) {
        run_fused(backend, op, buffers);
    } else if (row->body != NULL) {
        host_run_loop(backend, op, buffers, row->body, row->count(op));
    }
}
