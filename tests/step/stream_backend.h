// SPDX-License-Identifier: MIT
// A fake device with streams for tests of steps. It runs the host backend's ops later: run() appends an op to the queue
// of its stream. Queues advance only when a caller waits for a stream, and then in the worst order for the caller that
// events allow.
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"

enum { STREAM_ENTRIES = 16384 };

struct stream_event {
    int64_t recorded, reached;    // number of the latest record that was enqueued, and executed
    int64_t tick;                 // number of entries that the device had executed at that record
    bool    is_captured;
};

struct stream_entry {
    enum { STREAM_RUN, STREAM_COPY, STREAM_RECORD, STREAM_WAIT } action;
    int                  stream;
    struct op            op;
    struct buffer        buffers[OP_OPERANDS];
    void                *to;
    const void          *from;
    int64_t              bytes;
    struct stream_event *event;
    int64_t              number;    // number of this record, or of the record to wait for
};

struct stream_queue {
    struct stream_entry entries[STREAM_ENTRIES];    // a ring buffer
    int64_t             enqueued, executed;
};

struct stream_device {
    struct backend      host;
    pthread_mutex_t     mutex;
    struct stream_queue queues[STREAM_COUNT];
    struct stream_entry graph[STREAM_ENTRIES];
    int64_t             graph_count, ticks;    // graph_count 0: nothing was captured
    bool                is_capturing;
};

static void stream_enqueue(struct backend *backend, const struct stream_entry *entry)
{
    struct stream_device *device = backend->state;
    pthread_mutex_lock(&device->mutex);
    struct stream_entry numbered = *entry;
    if (entry->event != NULL) {
        numbered.number = entry->event->recorded += entry->action == STREAM_RECORD;
    }
    struct stream_queue *queue = &device->queues[entry->stream];
    if (queue->enqueued - queue->executed == STREAM_ENTRIES || device->graph_count == STREAM_ENTRIES) {
        FATAL(EXIT_INTERNAL, "the test's device is full");
    }
    if (device->is_capturing) {
        device->graph[device->graph_count++] = *entry;
    } else {
        queue->entries[queue->enqueued++ % STREAM_ENTRIES] = numbered;
    }
    pthread_mutex_unlock(&device->mutex);
}

// Executes the next entry of the stream. Returns false if there is none, or if it waits for an event.
static bool stream_advance(struct stream_device *device, int stream)
{
    struct stream_queue *queue = &device->queues[stream];
    if (queue->executed == queue->enqueued) {
        return false;
    }
    struct stream_entry *entry = &queue->entries[queue->executed % STREAM_ENTRIES];
    switch (entry->action) {
    case STREAM_RUN:
        device->host.ops->run[entry->op.kind](&device->host, &entry->op, entry->buffers);
        break;
    case STREAM_COPY:
        memcpy(entry->to, entry->from, (size_t)entry->bytes);
        break;
    case STREAM_RECORD:
        entry->event->reached = entry->number;
        entry->event->tick    = device->ticks;
        break;
    case STREAM_WAIT:
        if (entry->event->reached < entry->number) {
            return false;
        }
        break;
    }
    queue->executed++;
    device->ticks++;
    return true;
}

static void stream_synchronize(struct backend *backend, int stream)
{
    struct stream_device *device = backend->state;
    pthread_mutex_lock(&device->mutex);
    while (device->queues[stream].executed < device->queues[stream].enqueued) {
        bool moves = false;
        for (int other = STREAM_COUNT - 1; other >= 0 && !moves; other--) {
            moves = other != stream && stream_advance(device, other);
        }
        if (!moves && !stream_advance(device, stream)) {
            FATAL(EXIT_INTERNAL, "stream %d waits for an event that nobody records", stream);
        }
    }
    pthread_mutex_unlock(&device->mutex);
}

static void *stream_handle(struct backend *backend, int stream)
{
    return &((struct stream_device *)backend->state)->queues[stream];
}

static void stream_attach(struct backend *backend)
{
    (void)backend;
}

static void *stream_event_open(struct backend *backend, bool is_timed)
{
    (void)backend;
    (void)is_timed;
    return memory_allocate(sizeof(struct stream_event));
}

static void stream_record(struct backend *backend, int stream, void *event)
{
    stream_enqueue(backend, &(struct stream_entry){.action = STREAM_RECORD, .stream = stream, .event = event});
}

static void stream_wait(struct backend *backend, int stream, void *event)
{
    stream_enqueue(backend, &(struct stream_entry){.action = STREAM_WAIT, .stream = stream, .event = event});
}

// Returns the time between two events: 0.25 s for each executed entry.
static double stream_seconds_between(void *begin, void *end)
{
    struct stream_event *first = begin, *last = end;
    return first->reached > 0 && last->reached > 0 ? 0.25 * (double)(last->tick - first->tick) : -1;
}

static void stream_copy(struct backend *backend, int stream, void *to, const void *from, int64_t bytes)
{
    struct stream_entry entry = {.action = STREAM_COPY, .stream = stream, .to = to, .from = from, .bytes = bytes};
    stream_enqueue(backend, &entry);
}

static status stream_capture_begin(struct backend *backend, int stream)
{
    (void)stream;
    ((struct stream_device *)backend->state)->is_capturing = true;
    return OK;
}

// Checks CUDA's rules for captures: a stream enters a capture by waiting for an event in it. Before the capture ends,
// the compute stream must wait for the last record of each such stream.
static void stream_check_capture(const struct stream_device *device)
{
    bool is_inside[STREAM_COUNT] = {[STREAM_COMPUTE] = true}, is_joined[STREAM_COUNT] = {[STREAM_COMPUTE] = true};
    struct stream_event *last[STREAM_COUNT] = {NULL};
    for (int64_t i = 0; i < device->graph_count; i++) {
        const struct stream_entry *entry = &device->graph[i];
        if (!is_inside[entry->stream] && (entry->action != STREAM_WAIT || !entry->event->is_captured)) {
            FATAL(EXIT_INTERNAL, "stream %d works outside of the capture", entry->stream);
        }
        is_inside[entry->stream] = true;
        is_joined[entry->stream] = entry->stream == STREAM_COMPUTE;
        last[entry->stream]      = entry->action == STREAM_RECORD ? entry->event : NULL;
        if (entry->action == STREAM_RECORD) {
            entry->event->is_captured = true;
        }
        for (int stream = 0; stream < STREAM_COUNT && entry->action == STREAM_WAIT && entry->stream == STREAM_COMPUTE;
             stream++) {
            is_joined[stream] = is_joined[stream] || last[stream] == entry->event;
        }
    }
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (is_inside[stream] && !is_joined[stream]) {
            FATAL(EXIT_INTERNAL, "stream %d does not end in the capture", stream);
        }
    }
}

static status stream_capture_end(struct backend *backend, int stream)
{
    struct stream_device *device = backend->state;
    (void)stream;
    device->is_capturing = false;
    stream_check_capture(device);
    return OK;
}

static void stream_capture_launch(struct backend *backend, int stream)
{
    struct stream_device *device = backend->state;
    (void)stream;
    for (int64_t i = 0; i < device->graph_count; i++) {
        stream_enqueue(backend, &device->graph[i]);
    }
}

static void stream_capture_release(struct backend *backend)
{
    ((struct stream_device *)backend->state)->graph_count = 0;
}

static void stream_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct stream_entry entry = {.action = STREAM_RUN, .stream = op->stream, .op = *op};
    memcpy(entry.buffers, buffers, sizeof(entry.buffers));
    stream_enqueue(backend, &entry);
}

// The backend that this thread opened last. Communicators that enqueue on the fake device need it.
static _Thread_local struct backend *stream_latest;

static status stream_open(struct backend *backend, const struct backend_setup *setup)
{
    struct stream_device *device = memory_allocate(sizeof(*device));
    pthread_mutex_init(&device->mutex, NULL);
    backend->state = device;
    stream_latest  = backend;
    return backend_open(&device->host, "host", setup);
}

static void stream_close(struct backend *backend)
{
    struct stream_device *device = backend->state;
    if (device->graph_count > 0) {
        FATAL(EXIT_INTERNAL, "a captured step outlives what it uses");
    }
    backend_close(&device->host);
    pthread_mutex_destroy(&device->mutex);
    free(device);
}

static int64_t stream_scratch_bytes(struct backend *backend, const struct op *op)
{
    struct backend *host = &((struct stream_device *)backend->state)->host;
    return host->ops->scratch_bytes(host, op);
}

static void stream_reserve_scratch(struct backend *backend, int64_t bytes)
{
    backend_reserve_scratch(&((struct stream_device *)backend->state)->host, bytes);
}

static const struct backend_streams stream_streams = {
    .attach          = stream_attach,
    .handle          = stream_handle,
    .event_open      = stream_event_open,
    .event_close     = free,
    .record          = stream_record,
    .mark            = stream_record,
    .wait            = stream_wait,
    .synchronize     = stream_synchronize,
    .seconds_between = stream_seconds_between,
    .allocate_host   = backend_memory_allocate,
    .release_host    = backend_memory_release,
    .copy            = stream_copy,
    .capture_begin   = stream_capture_begin,
    .capture_end     = stream_capture_end,
    .capture_launch  = stream_capture_launch,
    .capture_release = stream_capture_release,
};

static op_run *stream_table[OP_COUNT];

static const struct backend_ops stream_backend = {
    .name            = "stream",
    .computes        = true,
    .open            = stream_open,
    .close           = stream_close,
    .run             = stream_table,
    .streams         = &stream_streams,
    .allocate        = backend_memory_allocate,
    .release         = backend_memory_release,
    .available_bytes = backend_memory_available,
    .upload          = backend_memory_copy,
    .download        = backend_memory_copy,
    .digest          = backend_memory_digest,
    .scratch_bytes   = stream_scratch_bytes,
    .reserve_scratch = stream_reserve_scratch,
};

// Fills the table of ops. Tests call it before they open the backend.
static void stream_fill_table(void)
{
    for (int kind = 0; kind < OP_COUNT; kind++) {
        stream_table[kind] = backend_host.run[kind] != NULL ? stream_run : NULL;
    }
}
