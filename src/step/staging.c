// SPDX-License-Identifier: MIT
// Stages communication through host memory for communicators that cannot access device memory. The stream's own thread
// waits for its device stream, runs the op on host buffers, and enqueues the copy back. Other streams continue
// meanwhile, so staging adds no deadlock to a plan that has none.
#include "gswbench/clock.h"
#include "gswbench/status.h"
#include "internal.h"

static int64_t buffer_bytes(const struct buffer *buffer)
{
    return buffer->data != NULL ? format_bytes(buffer->format, buffer->elements) : 0;
}

// Returns the bytes of an operand. If its row count is known only in the step, assumes the maximum count.
static int64_t max_bytes(const struct queued_op *queued, int slot)
{
    int64_t                 bytes     = buffer_bytes(&queued->buffers[slot]);
    const struct row_count *row_count = queued->row_count;
    return row_count != NULL ? bytes / row_count->expected * row_count->maximum : bytes;
}

static void open_slot(struct streams *streams, struct queue *queue, int slot)
{
    int64_t maximum = 0;
    for (int32_t i = 0; i < queue->count; i++) {
        int64_t bytes = queue->ops[i]->group != NULL ? max_bytes(queue->ops[i], slot) : 0;
        maximum       = bytes > maximum ? bytes : maximum;
    }
    queue->staging.data[slot] = maximum > 0 ? streams->device_streams->allocate_host(streams->backend, maximum) : NULL;
}

void staging_open(struct streams *streams)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        open_slot(streams, &streams->queues[stream], COMMUNICATION_IN);
        open_slot(streams, &streams->queues[stream], COMMUNICATION_OUT);
    }
}

void staging_close(struct streams *streams)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        for (int slot = COMMUNICATION_IN; slot <= COMMUNICATION_OUT; slot++) {
            if (streams->queues[stream].staging.data[slot] != NULL) {
                streams->device_streams->release_host(streams->backend, streams->queues[stream].staging.data[slot]);
            }
        }
    }
}

void staging_run(struct streams *streams, const struct queued_op *queued)
{
    const struct backend_streams *device_streams = streams->device_streams;
    int                           stream         = queued->op->stream;
    void *const                  *host           = streams->queues[stream].staging.data;
    const struct buffer          *in = &queued->buffers[COMMUNICATION_IN], *out = &queued->buffers[COMMUNICATION_OUT];
    for (int slot = COMMUNICATION_IN; slot <= COMMUNICATION_OUT; slot++) {
        if (queued->op->access[slot] & ACCESS_READ) {
            const struct buffer *from = &queued->buffers[slot];
            device_streams->copy(streams->backend, stream, host[slot], from->data, buffer_bytes(from));
        }
    }
    // Also waits for the copy back of the stream's previous op, because this op overwrites the same host buffer.
    device_streams->synchronize(streams->backend, stream);
    double begin = streams->carried != NULL ? clock_seconds() : 0;
    streams->comm_ops->run(queued->group, queued->op, in->data != NULL ? host[COMMUNICATION_IN] : NULL,
                           out->data != NULL ? host[COMMUNICATION_OUT] : NULL,
                           out->data != NULL ? out->format : in->format);
    if (streams->carried != NULL) {    // on the device the stream only waits, so activity records lack this time
        streams->carried[queued->number - 1] = (struct op_time){.begin = begin, .end = clock_seconds()};
    }
    if (queued->op->access[COMMUNICATION_OUT] & ACCESS_WRITE) {
        device_streams->copy(streams->backend, stream, out->data, host[COMMUNICATION_OUT], buffer_bytes(out));
    }
}
