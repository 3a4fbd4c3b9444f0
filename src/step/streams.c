// SPDX-License-Identifier: MIT
// Runs the ops of a step in one of two ways.
//
// issue_*: one thread enqueues the ops of every stream on the device, in the order of the plan. Used on a device,
// unless communication ops run on the host.
//
// streams_*: each stream is a host thread with its own queue, and only dependencies order ops of different streams. A
// stream publishes the number of its completed ops after each op for which another stream waits. A stream that waits
// first yields its core, then sleeps. If a device computes, an op counts as completed when it is enqueued, and the
// device orders the ops of different streams by events.
#include "internal.h"

#include <sched.h>

#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/status.h"

enum { POLLS = 256 };    // yields before a thread sleeps; a wake-up costs more time than these yields

// Publishes the number of completed ops. Its accesses are sequentially consistent, to avoid a lost wake-up: publish
// writes the counter, then reads `sleepers`; wait_for_count writes `sleepers`, then reads the counter. At least one of
// them sees the other's write.
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

static void wait_for_count(struct queue *queue, int32_t count)
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

// Waits until another stream has completed enough ops. The compute stream measures this time as a stall. noinline keeps
// the code out of the loop over ops, because most ops do not wait.
__attribute__((noinline)) static void wait_for_dependency(struct queue *queue, const struct wait *wait)
{
    struct queue *other = &queue->streams->queues[wait->stream];
    if (has_completed(other, wait->count)) {
        return;
    }
    bool   is_timed = queue == &queue->streams->queues[STREAM_COMPUTE];
    double began    = is_timed ? clock_seconds() : 0;
    wait_for_count(other, wait->count);
    queue->waited_seconds += is_timed ? clock_seconds() - began : 0;
}

static void run_queue(struct queue *queue)
{
    struct streams *streams = queue->streams;
    queue->waited_seconds   = 0;
    for (int32_t i = 0; i < queue->count; i++) {
        const struct queued_op *queued = queue->ops[i];
        for (int32_t j = 0; j < queued->wait_count; j++) {
            wait_for_dependency(queue, &queued->waits[j]);
        }
        queued_op_run(streams, queued);
        if (queued->is_awaited) {
            publish(queue, i + 1);
        }
    }
}

static void *serve(void *argument)
{
    struct queue   *queue   = argument;
    struct streams *streams = queue->streams;
    fatal_set_rank(streams->rank);
    if (streams->device_streams != NULL) {
        streams->device_streams->attach(streams->backend);
    }
    for (int64_t step = 1;; step++) {
        pthread_mutex_lock(&streams->mutex);
        while (streams->steps < step && !streams->is_closing) {
            pthread_cond_wait(&streams->changed, &streams->mutex);
        }
        bool is_closing = streams->is_closing;
        pthread_mutex_unlock(&streams->mutex);
        if (is_closing) {
            return NULL;
        }

        run_queue(queue);

        pthread_mutex_lock(&streams->mutex);
        if (--streams->running == 0) {
            pthread_cond_broadcast(&streams->changed);
        }
        pthread_mutex_unlock(&streams->mutex);
    }
}

void streams_open(struct streams *streams)
{
    pthread_mutex_init(&streams->mutex, NULL);
    pthread_cond_init(&streams->changed, NULL);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        struct queue *queue = &streams->queues[stream];
        queue->streams      = streams;
        pthread_mutex_init(&queue->mutex, NULL);
        pthread_cond_init(&queue->progressed, NULL);
        if (stream != STREAM_COMPUTE && queue->count > 0) {
            if (pthread_create(&queue->thread, NULL, serve, queue) != 0) {
                FATAL(EXIT_INTERNAL, "cannot start a thread for the %s stream", op_stream_name((enum stream)stream));
            }
            streams->threads++;
        }
    }
}

void streams_run(struct streams *streams)
{
    pthread_mutex_lock(&streams->mutex);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        atomic_store_explicit(&streams->queues[stream].completed, 0, memory_order_relaxed);
    }
    streams->running = streams->threads;
    streams->steps++;
    pthread_cond_broadcast(&streams->changed);
    pthread_mutex_unlock(&streams->mutex);

    double began = clock_seconds();
    run_queue(&streams->queues[STREAM_COMPUTE]);
    streams->compute_seconds = clock_seconds() - began - streams->queues[STREAM_COMPUTE].waited_seconds;
    stalls_mark_end(streams);

    pthread_mutex_lock(&streams->mutex);
    while (streams->running > 0) {
        pthread_cond_wait(&streams->changed, &streams->mutex);
    }
    pthread_mutex_unlock(&streams->mutex);
}

void streams_close(struct streams *streams)
{
    pthread_mutex_lock(&streams->mutex);
    streams->is_closing = true;
    pthread_cond_broadcast(&streams->changed);
    pthread_mutex_unlock(&streams->mutex);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        struct queue *queue = &streams->queues[stream];
        if (stream != STREAM_COMPUTE && queue->count > 0) {
            pthread_join(queue->thread, NULL);
        }
        pthread_cond_destroy(&queue->progressed);
        pthread_mutex_destroy(&queue->mutex);
    }
    pthread_cond_destroy(&streams->changed);
    pthread_mutex_destroy(&streams->mutex);
}

void issue_open(struct step *step)
{
    const struct backend_streams *device_streams = step->streams.device_streams;
    step->issue.begin                            = device_streams->event_open(step->backend, EVENT_UNTIMED);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (stream != STREAM_COMPUTE && step->streams.queues[stream].count > 0) {
            step->issue.ends[stream] = device_streams->event_open(step->backend, EVENT_UNTIMED);
        }
    }
}

// Enqueues all ops. All device streams fork from the compute stream and join it at the end, so that one graph capture
// includes them all. An op's dependencies come earlier in the list, so their events are already recorded when the op
// waits for them.
void issue_run(struct step *step)
{
    const struct issue           *issue          = &step->issue;
    struct backend               *backend        = step->backend;
    const struct backend_streams *device_streams = step->streams.device_streams;
    device_streams->record(backend, STREAM_COMPUTE, issue->begin);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (issue->ends[stream] != NULL) {
            device_streams->wait(backend, stream, issue->begin);
        }
    }
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        queued_op_run(&step->streams, &step->ops[i]);
    }
    stalls_mark_end(&step->streams);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (issue->ends[stream] != NULL) {
            device_streams->record(backend, stream, issue->ends[stream]);
            device_streams->wait(backend, STREAM_COMPUTE, issue->ends[stream]);
        }
    }
}

void issue_close(struct step *step)
{
    const struct backend_streams *device_streams = step->streams.device_streams;
    device_streams->event_close(step->issue.begin);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (step->issue.ends[stream] != NULL) {
            device_streams->event_close(step->issue.ends[stream]);
        }
    }
}
