// SPDX-License-Identifier: MIT
// Runs a step: replays its CUDA graph, or runs its streams (streams.c). Also reads and writes its tensors.
#include "internal.h"

#include <math.h>

#include "gswbench/clock.h"

static void run_device(struct step *step)
{
    const struct backend_streams *streams   = step->streams.device_streams;
    bool                          is_replay = step->is_captured && observers_allow_replay(&step->streams);
    fingerprints_begin(&step->streams, is_replay);
    streams->record(step->backend, STREAM_COMPUTE, step->begin);
    if (is_replay) {
        streams->capture_launch(step->backend, STREAM_COMPUTE);
    } else if (step->is_issued) {
        issue_run(step);
    } else {
        streams_run(&step->streams);
        for (int stream = 0; stream < STREAM_COUNT; stream++) {
            streams->synchronize(step->backend, stream);
        }
    }
    streams->record(step->backend, STREAM_COMPUTE, step->end);
    streams->synchronize(step->backend, STREAM_COMPUTE);
}

void step_run(struct step *step)
{
    const struct streams *streams = &step->streams;
    for (int i = 0; i < OBSERVER_COUNT; i++) {
        const struct op_observer *observer = &streams->observers[i];
        if (observer->hooks != NULL && observer->hooks->before_step != NULL) {
            observer->hooks->before_step(step, observer->state);
        }
    }
    if (streams->device_streams != NULL) {
        run_device(step);
    } else {
        fingerprints_begin(&step->streams, false);
        streams_run(&step->streams);
    }
    for (int i = OBSERVER_COUNT - 1; i >= 0; i--) {
        const struct op_observer *observer = &streams->observers[i];
        if (observer->hooks != NULL && observer->hooks->after_step != NULL) {
            observer->hooks->after_step(step, observer->state);
        }
    }
}

void step_set_progress(struct step *step, struct step_progress *progress)
{
    step->streams.progress = progress != NULL ? progress : &step->streams.unseen;
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        step->ops[i].shown = &step->streams.progress->op[step->ops[i].op->stream];
    }
}

static void begin_watched(struct streams *streams, const struct queued_op *queued, void *state)
{
    const struct step_watch *watch = state;
    (void)streams;
    watch->begin(watch->state, queued->op);
}

static void end_watched(struct streams *streams, const struct queued_op *queued, void *state)
{
    const struct step_watch *watch = state;
    (void)streams;
    watch->end(watch->state, queued->op);
}

// Calls the callbacks of `watch` before and after each op. The time between the two calls includes the op's waits for
// other streams.
void step_set_watch(struct step *step, const struct step_watch *watch)
{
    static const struct op_hooks hooks = {
        .before_waits = begin_watched, .after_event = end_watched, .allows_replay = true};
    step->watch = watch != NULL ? *watch : (struct step_watch){NULL, NULL, NULL};
    observers_set(&step->streams, OBSERVER_WATCH, watch != NULL ? &hooks : NULL, &step->watch);
}

bool step_can_capture(const struct step *step)
{
    return step->is_issued && step->check == NULL && step->streams.row_counts == NULL;
}

status step_capture(struct step *step)
{
    const struct backend_streams *streams = step->streams.device_streams;
    TRY(streams->capture_begin(step->backend, STREAM_COMPUTE));
    fingerprints_begin(&step->streams, false);
    issue_run(step);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        step->streams.queues[stream].captured = step->streams.queues[stream].fingerprint;
    }
    TRY(streams->capture_end(step->backend, STREAM_COMPUTE));
    step->is_captured = true;
    return OK;
}

void step_forget(struct step *step)
{
    if (step->is_captured) {
        step->streams.device_streams->capture_release(step->backend);
    }
    step->is_captured = false;
}

double step_device_seconds(const struct step *step)
{
    return step->streams.device_streams != NULL ? step->streams.device_streams->seconds_between(step->begin, step->end)
                                                : NAN;
}

void step_run_op(struct step *step, int32_t op)
{
    queued_op_run_alone(step, &step->ops[op]);
}

double step_time_communication(struct step *step, int32_t op)
{
    const struct queued_op       *queued  = &step->ops[op];
    const struct backend_streams *streams = step->streams.device_streams;
    if (streams == NULL) {
        double begin = clock_seconds();
        queued_op_communication(&step->streams, queued);
        return clock_seconds() - begin;
    }
    streams->record(step->backend, queued->op->stream, step->begin);
    queued_op_communication(&step->streams, queued);
    streams->record(step->backend, queued->op->stream, step->end);
    streams->synchronize(step->backend, queued->op->stream);
    return streams->seconds_between(step->begin, step->end);
}

void step_make_weights(struct step *step)
{
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        if (step->plan->ops[i].is_initial) {
            queued_op_run_alone(step, &step->ops[i]);
        }
    }
}

void step_gather_weights(struct step *step)
{
    struct streams     *streams = &step->streams;
    const struct queue *queue   = &streams->queues[STREAM_WEIGHT_GATHER];
    for (int32_t i = 0; i < queue->count; i++) {
        queued_op_communication(streams, queue->ops[i]);
    }
    streams_synchronize(streams, STREAM_WEIGHT_GATHER);
}

struct buffer step_buffer(const struct step *step, int32_t tensor)
{
    const struct tensor *shape   = &step->plan->tensors[tensor];
    char                *storage = step->storage[shape->storage];    // NULL: not allocated yet
    return (struct buffer){
        .data = storage != NULL ? storage + shape->offset : NULL, .elements = shape->elements, .format = shape->format};
}

void step_read(const struct step *step, int32_t tensor, void *to)
{
    step_read_run(step, tensor, 0, step->plan->tensors[tensor].bytes, to);
}

void step_read_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, void *to)
{
    const char *from = step_buffer(step, tensor).data;
    step->backend->ops->download(step->backend, to, from + offset, bytes);
}

void *step_host_memory(const struct step *step, int32_t tensor)
{
    return step->streams.device_streams == NULL ? step_buffer(step, tensor).data : NULL;
}

void step_write(const struct step *step, int32_t tensor, const void *from)
{
    step->backend->ops->upload(step->backend, step_buffer(step, tensor).data, from, step->plan->tensors[tensor].bytes);
}

int64_t step_connection_bytes(const struct step *step)
{
    return step->connection_bytes;
}

struct comm_choice step_chosen(const struct step *step, int32_t op)
{
    return step->chosen != NULL ? step->chosen[op] : (struct comm_choice){.algorithm = ""};
}
