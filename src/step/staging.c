// SPDX-License-Identifier: MIT
// Stages communication through host memory. The stream's own thread waits for its device stream, runs the op on host
// buffers, and enqueues the copy back. Other streams continue, so a plan without deadlocks on the host has none here.
#include "gswbench/clock.h"
#include "gswbench/status.h"
#include "internal.h"

static int64_t buffer_bytes(const struct buffer *buffer)
{
    return buffer->data != NULL ? format_bytes(buffer->format, buffer->elements) : 0;
}

// Worst case for a row count known only in the step.
static int64_t most_bytes(const struct queued_op *queued, int slot)
{
    int64_t             bytes = buffer_bytes(&queued->buffers[slot]);
    const struct tally *tally = queued->tally;
    return tally != NULL ? bytes / tally->expected * tally->most : bytes;
}

static void open_slot(struct lanes *lanes, struct queue *queue, int slot)
{
    int64_t most = 0;
    for (int32_t i = 0; i < queue->count; i++) {
        int64_t bytes = queue->ops[i]->group != NULL ? most_bytes(queue->ops[i], slot) : 0;
        most          = bytes > most ? bytes : most;
    }
    queue->staging.data[slot] = most > 0 ? lanes->streams->allocate_host(lanes->backend, most) : NULL;
}

void staging_open(struct lanes *lanes)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        open_slot(lanes, &lanes->queues[lane], TRANSFER_IN);
        open_slot(lanes, &lanes->queues[lane], TRANSFER_OUT);
    }
}

void staging_close(struct lanes *lanes)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        for (int slot = TRANSFER_IN; slot <= TRANSFER_OUT; slot++) {
            if (lanes->queues[lane].staging.data[slot] != NULL) {
                lanes->streams->release_host(lanes->backend, lanes->queues[lane].staging.data[slot]);
            }
        }
    }
}

void staging_run(struct lanes *lanes, const struct queued_op *queued)
{
    const struct backend_streams *streams = lanes->streams;
    int                           lane    = queued->op->lane;
    void *const                  *host    = lanes->queues[lane].staging.data;
    const struct buffer          *in = &queued->buffers[TRANSFER_IN], *out = &queued->buffers[TRANSFER_OUT];
    for (int slot = TRANSFER_IN; slot <= TRANSFER_OUT; slot++) {
        if (queued->op->access[slot] & ACCESS_READ) {
            const struct buffer *from = &queued->buffers[slot];
            streams->copy(lanes->backend, lane, host[slot], from->data, buffer_bytes(from));
        }
    }
    // Also waits for the previous op's copy back, because this op overwrites its host buffer.
    streams->synchronize(lanes->backend, lane);
    double begin = lanes->carried != NULL ? clock_seconds() : 0;
    lanes->comm_ops->run(queued->group, queued->op, in->data != NULL ? host[TRANSFER_IN] : NULL,
                         out->data != NULL ? host[TRANSFER_OUT] : NULL, out->data != NULL ? out->format : in->format);
    if (lanes->carried != NULL) {    // activity records lack this time, because the device only waits
        lanes->carried[queued->number - 1] = (struct op_time){.begin = begin, .end = clock_seconds()};
    }
    if (queued->op->access[TRANSFER_OUT] & ACCESS_WRITE) {
        streams->copy(lanes->backend, lane, out->data, host[TRANSFER_OUT], buffer_bytes(out));
    }
}
