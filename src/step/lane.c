// SPDX-License-Identifier: MIT
// Streams as host threads with one queue each. Only dependencies order ops of different streams. A stream publishes how
// many of its ops are complete; on a device that means enqueued, and events provide the order. A waiting stream first
// yields its core, then sleeps.
#include "internal.h"

#include <sched.h>

#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/status.h"

enum { POLLS = 256 };    // yields before sleeping; a wake-up costs more than these yields

// Sequentially consistent, to avoid a lost wake-up: publish writes the counter, then reads sleepers; await writes
// sleepers, then reads the counter. At least one of them sees the other's write.
static void publish(struct queue *queue, int32_t completed)
{
    atomic_store(&queue->completed, completed);
    if (atomic_load(&queue->sleepers) > 0) {
        pthread_mutex_lock(&queue->mutex);
        pthread_cond_broadcast(&queue->progressed);
        pthread_mutex_unlock(&queue->mutex);
    }
}

static bool has_completed(const struct queue *queue, int32_t count)
{
    return atomic_load_explicit(&queue->completed, memory_order_acquire) >= count;
}

static void await(struct queue *queue, int32_t count)
{
    for (int i = 0; i < POLLS; i++) {
        if (has_completed(queue, count)) {
            return;
        }
        sched_yield();
    }
    pthread_mutex_lock(&queue->mutex);
    atomic_fetch_add(&queue->sleepers, 1);
    while (atomic_load(&queue->completed) < count) {
        pthread_cond_wait(&queue->progressed, &queue->mutex);
    }
    atomic_fetch_sub(&queue->sleepers, 1);
    pthread_mutex_unlock(&queue->mutex);
}

// Only the compute stream reads the clock, and only when it stalls. noinline keeps this out of the loop, because most
// ops do not wait.
__attribute__((noinline)) static void wait_for(struct queue *queue, const struct wait *wait)
{
    struct queue *other = &queue->lanes->queues[wait->lane];
    if (has_completed(other, wait->count)) {
        return;
    }
    bool   is_timed = queue == &queue->lanes->queues[LANE_COMPUTE];
    double began    = is_timed ? clock_seconds() : 0;
    await(other, wait->count);
    queue->waited_seconds += is_timed ? clock_seconds() - began : 0;
}

static void run_queue(struct queue *queue)
{
    struct lanes *lanes   = queue->lanes;
    queue->waited_seconds = 0;
    for (int32_t i = 0; i < queue->count; i++) {
        const struct queued_op *queued = queue->ops[i];
        for (int32_t j = 0; j < queued->wait_count; j++) {
            wait_for(queue, &queued->waits[j]);
        }
        queued_op_run(lanes, queued);
        if (queued->is_awaited) {
            publish(queue, i + 1);
        }
    }
}

static void *serve(void *argument)
{
    struct queue *queue = argument;
    struct lanes *lanes = queue->lanes;
    fatal_set_rank(lanes->rank);
    if (lanes->streams != NULL) {
        lanes->streams->attach(lanes->backend);
    }
    for (int64_t step = 1;; step++) {
        pthread_mutex_lock(&lanes->mutex);
        while (lanes->steps < step && !lanes->is_closing) {
            pthread_cond_wait(&lanes->changed, &lanes->mutex);
        }
        bool is_closing = lanes->is_closing;
        pthread_mutex_unlock(&lanes->mutex);
        if (is_closing) {
            return NULL;
        }

        run_queue(queue);

        pthread_mutex_lock(&lanes->mutex);
        if (--lanes->running == 0) {
            pthread_cond_broadcast(&lanes->changed);
        }
        pthread_mutex_unlock(&lanes->mutex);
    }
}

void lanes_open(struct lanes *lanes)
{
    pthread_mutex_init(&lanes->mutex, NULL);
    pthread_cond_init(&lanes->changed, NULL);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        struct queue *queue = &lanes->queues[lane];
        queue->lanes        = lanes;
        pthread_mutex_init(&queue->mutex, NULL);
        pthread_cond_init(&queue->progressed, NULL);
        if (lane != LANE_COMPUTE && queue->count > 0) {
            if (pthread_create(&queue->thread, NULL, serve, queue) != 0) {
                FATAL(EXIT_INTERNAL, "cannot start a thread for the %s stream", op_lane_name((enum lane)lane));
            }
            lanes->threads++;
        }
    }
}

void lanes_run(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->mutex);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        atomic_store_explicit(&lanes->queues[lane].completed, 0, memory_order_relaxed);
    }
    lanes->running = lanes->threads;
    lanes->steps++;
    pthread_cond_broadcast(&lanes->changed);
    pthread_mutex_unlock(&lanes->mutex);

    double began = clock_seconds();
    run_queue(&lanes->queues[LANE_COMPUTE]);
    lanes->compute_seconds = clock_seconds() - began - lanes->queues[LANE_COMPUTE].waited_seconds;
    if (lanes->pauses != NULL) {
        pauses_finish(lanes);
    }

    pthread_mutex_lock(&lanes->mutex);
    while (lanes->running > 0) {
        pthread_cond_wait(&lanes->changed, &lanes->mutex);
    }
    pthread_mutex_unlock(&lanes->mutex);
}

void lanes_close(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->mutex);
    lanes->is_closing = true;
    pthread_cond_broadcast(&lanes->changed);
    pthread_mutex_unlock(&lanes->mutex);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        struct queue *queue = &lanes->queues[lane];
        if (lane != LANE_COMPUTE && queue->count > 0) {
            pthread_join(queue->thread, NULL);
        }
        pthread_cond_destroy(&queue->progressed);
        pthread_mutex_destroy(&queue->mutex);
    }
    pthread_cond_destroy(&lanes->changed);
    pthread_mutex_destroy(&lanes->mutex);
}

// Dependencies come earlier in the list, so their events are already recorded.
void issue_open(struct issue *issue, struct lanes *lanes, struct queued_op *ops, int32_t count)
{
    *issue       = (struct issue){.lanes = lanes, .ops = ops, .count = count};
    issue->begin = lanes->streams->event_open(lanes->backend, false);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (lane != LANE_COMPUTE && lanes->queues[lane].count > 0) {
            issue->ends[lane] = lanes->streams->event_open(lanes->backend, false);
        }
    }
}

// All streams fork from the compute stream and join it at the end, so that one capture includes them all.
void issue_run(const struct issue *issue)
{
    struct lanes                 *lanes   = issue->lanes;
    struct backend               *backend = lanes->backend;
    const struct backend_streams *streams = lanes->streams;
    streams->record(backend, LANE_COMPUTE, issue->begin);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (issue->ends[lane] != NULL) {
            streams->wait(backend, lane, issue->begin);
        }
    }
    for (int32_t i = 0; i < issue->count; i++) {
        queued_op_run(lanes, &issue->ops[i]);
    }
    if (lanes->pauses != NULL) {
        pauses_finish(lanes);
    }
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (issue->ends[lane] != NULL) {
            streams->record(backend, lane, issue->ends[lane]);
            streams->wait(backend, LANE_COMPUTE, issue->ends[lane]);
        }
    }
}

void issue_close(struct issue *issue)
{
    const struct backend_streams *streams = issue->lanes->streams;
    streams->event_close(issue->begin);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (issue->ends[lane] != NULL) {
            streams->event_close(issue->ends[lane]);
        }
    }
}
