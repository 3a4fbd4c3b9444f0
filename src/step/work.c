// SPDX-License-Identifier: MIT
// One op: at once where run() computes, between events where it enqueues.
#include "internal.h"

void work_transfer(struct lanes *lanes, const struct work *work)
{
    const struct buffer *in = &work->buffers[TRANSFER_IN], *out = &work->buffers[TRANSFER_OUT];
    if (lanes->streams != NULL && !lanes->comm_ops->is_enqueued) {
        staging_run(lanes, work);
    } else {
        lanes->comm_ops->run(work->group, work->op, in->data, out->data, out->data != NULL ? out->format : in->format);
    }
}

void work_run(struct lanes *lanes, const struct work *work)
{
    for (int32_t i = 0; i < work->wait_count && lanes->streams != NULL; i++) {
        lanes->streams->wait(lanes->backend, work->op->lane, work->waits[i].event);
    }
    if (lanes->trace != NULL) {
        trace_begin(lanes, work);
    }
    if (work->run != NULL) {
        work->run(lanes->backend, work->op, work->buffers);
    } else if (work->prepared != NULL) {
        work->prepared->run(lanes->backend, work->prepared, work->op, work->buffers);
    } else {
        work_transfer(lanes, work);
    }
    if (lanes->trace != NULL) {
        trace_end(lanes, work);
    }
    if (work->event != NULL) {
        lanes->streams->record(lanes->backend, work->op->lane, work->event);
    }
}
