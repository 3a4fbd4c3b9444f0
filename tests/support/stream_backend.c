// SPDX-License-Identifier: MIT
// Lanes as queues in memory, and the order of their execution.
#include "stream_backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/backend_memory.h"
#include "gswbench/fatal.h"

enum { STREAM_ENTRIES = 16384 };

// Action of a queue entry.
enum stream_action { STREAM_RUN, STREAM_COPY, STREAM_RECORD, STREAM_WAIT };

struct stream_event {
    int64_t recorded, reached;    // number of the latest record enqueued, and executed
    int64_t tick;                 // entries executed by the device at that time
    bool    is_captured;
};

struct stream_entry {
    enum stream_action   action;
    struct op            op;
    struct buffer        buffers[OP_OPERANDS];
    void                *to;
    const void          *from;
    int64_t              bytes;
    struct stream_event *event;
    int64_t              number;    // of the record; for a wait, of the record that it waits for
};

struct stream_queue {
    struct stream_entry *entries;    // ring of [STREAM_ENTRIES]
    int64_t              enqueued, executed;
};

struct stream_device {
    struct backend       host;
    pthread_mutex_t      mutex;
    struct stream_queue  queues[LANE_COUNT];
    struct stream_entry *graph;    // [STREAM_ENTRIES]
    uint8_t             *graph_lanes;
    int64_t              graph_count;    // 0: no graph
    bool                 is_capturing;
    int64_t              launches, ticks;
};

static void stream_enqueue(struct backend *backend, int lane, const struct stream_entry *entry)
{
    struct stream_device *device = backend->state;
    pthread_mutex_lock(&device->mutex);
    struct stream_entry numbered = *entry;
    if (entry->action == STREAM_RECORD) {
        numbered.number = ++entry->event->recorded;
    } else if (entry->action == STREAM_WAIT) {
        numbered.number = entry->event->recorded;
    }
    struct stream_queue *queue   = &device->queues[lane];
    bool                 is_full = queue->enqueued - queue->executed == STREAM_ENTRIES;
    if (is_full || device->graph_count == STREAM_ENTRIES) {
        FATAL(EXIT_INTERNAL, "the test's device is full");
    }
    if (device->is_capturing) {
        device->graph_lanes[device->graph_count] = (uint8_t)lane;
        device->graph[device->graph_count++]     = *entry;
    } else {
        queue->entries[queue->enqueued++ % STREAM_ENTRIES] = numbered;
    }
    pthread_mutex_unlock(&device->mutex);
}

// Executes the lane's next entry. Returns false if there is none or an event blocks it.
static bool stream_advance(struct stream_device *device, int lane)
{
    struct stream_queue *queue = &device->queues[lane];
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

static void stream_synchronize(struct backend *backend, int lane)
{
    struct stream_device *device = backend->state;
    pthread_mutex_lock(&device->mutex);
    while (device->queues[lane].executed < device->queues[lane].enqueued) {
        bool moves = false;
        for (int other = LANE_COUNT - 1; other >= 0 && !moves; other--) {
            moves = other != lane && stream_advance(device, other);
        }
        if (!moves && !stream_advance(device, lane)) {
            FATAL(EXIT_INTERNAL, "lane %d waits for an event that nobody records", lane);
        }
    }
    pthread_mutex_unlock(&device->mutex);
}

static void *stream_handle(struct backend *backend, int lane)
{
    struct stream_device *device = backend->state;
    return &device->queues[lane];
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

static void stream_record(struct backend *backend, int lane, void *event)
{
    stream_enqueue(backend, lane, &(struct stream_entry){.action = STREAM_RECORD, .event = event});
}

static void stream_wait(struct backend *backend, int lane, void *event)
{
    stream_enqueue(backend, lane, &(struct stream_entry){.action = STREAM_WAIT, .event = event});
}

// Each entry takes 0.25 s.
static double stream_seconds_between(void *begin, void *end)
{
    struct stream_event *first = begin, *last = end;
    return first->reached > 0 && last->reached > 0 ? 0.25 * (double)(last->tick - first->tick) : -1;
}

void stream_copy(struct backend *backend, int lane, void *to, const void *from, int64_t bytes)
{
    stream_enqueue(backend, lane,
                   &(struct stream_entry){.action = STREAM_COPY, .to = to, .from = from, .bytes = bytes});
}

static status stream_capture_begin(struct backend *backend, int lane)
{
    struct stream_device *device = backend->state;
    (void)lane;
    device->is_capturing = true;
    return OK;
}

// Whether, after this place in the capture, the compute lane waits for the event recorded there.
static bool stream_is_joined(const struct stream_device *device, int64_t place)
{
    const struct stream_entry *last      = &device->graph[place];
    bool                       is_joined = false;
    for (int64_t i = place + 1; i < device->graph_count && last->action == STREAM_RECORD; i++) {
        is_joined = is_joined || (device->graph_lanes[i] == LANE_COMPUTE && device->graph[i].action == STREAM_WAIT &&
                                  device->graph[i].event == last->event);
    }
    return is_joined;
}

// CUDA's rules for capture: a lane enters it by waiting for an event in it, and must be joined by a wait of the compute
// lane.
static void stream_check_capture(struct stream_device *device)
{
    bool    is_inside[LANE_COUNT] = {[LANE_COMPUTE] = true};
    int64_t last[LANE_COUNT]      = {0};
    for (int64_t i = 0; i < device->graph_count; i++) {
        struct stream_entry *entry = &device->graph[i];
        int                  lane  = device->graph_lanes[i];
        if (!is_inside[lane] && (entry->action != STREAM_WAIT || !entry->event->is_captured)) {
            FATAL(EXIT_INTERNAL, "lane %d works outside of the capture", lane);
        }
        if (entry->action == STREAM_RECORD) {
            entry->event->is_captured = true;
        }
        is_inside[lane] = true;
        last[lane]      = i;
    }
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (lane != LANE_COMPUTE && is_inside[lane] && !stream_is_joined(device, last[lane])) {
            FATAL(EXIT_INTERNAL, "lane %d does not end in the capture", lane);
        }
    }
}

static status stream_capture_end(struct backend *backend, int lane)
{
    struct stream_device *device = backend->state;
    (void)lane;
    device->is_capturing = false;
    stream_check_capture(device);
    return OK;
}

static void stream_capture_launch(struct backend *backend, int lane)
{
    struct stream_device *device = backend->state;
    (void)lane;
    device->launches++;
    for (int64_t i = 0; i < device->graph_count; i++) {
        stream_enqueue(backend, device->graph_lanes[i], &device->graph[i]);
    }
}

static void stream_capture_release(struct backend *backend)
{
    struct stream_device *device = backend->state;
    device->graph_count          = 0;
}

static void stream_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct stream_entry entry = {.action = STREAM_RUN, .op = *op};
    memcpy(entry.buffers, buffers, sizeof(entry.buffers));
    stream_enqueue(backend, op->lane, &entry);
}

_Thread_local struct backend *stream_latest;

static status stream_open(struct backend *backend, const struct backend_setup *setup)
{
    struct stream_device *device = memory_allocate(sizeof(*device));
    device->graph                = memory_allocate(STREAM_ENTRIES * sizeof(*device->graph));
    device->graph_lanes          = memory_allocate(STREAM_ENTRIES);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        device->queues[lane].entries = memory_allocate(STREAM_ENTRIES * sizeof(struct stream_entry));
    }
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
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        free(device->queues[lane].entries);
    }
    pthread_mutex_destroy(&device->mutex);
    free(device->graph);
    free(device->graph_lanes);
    free(device);
}

static int64_t stream_scratch_bytes(struct backend *backend, const struct op *op)
{
    struct stream_device *device = backend->state;
    return device->host.ops->scratch_bytes(&device->host, op);
}

static void stream_reserve_scratch(struct backend *backend, int64_t bytes)
{
    struct stream_device *device = backend->state;
    backend_reserve_scratch(&device->host, bytes);
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

const struct backend_ops stream_backend = {
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

void stream_fill_table(void)
{
    for (int kind = 0; kind < OP_COUNT; kind++) {
        stream_table[kind] = backend_host.run[kind] != NULL ? stream_run : NULL;
    }
}
