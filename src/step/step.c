// SPDX-License-Identifier: MIT
// Runs a step, and reads and writes its tensors.
#include "internal.h"

#include <math.h>

#include "gswbench/clock.h"

static void run_device(struct step *step)
{
    const struct backend_streams *streams   = step->lanes.streams;
    bool                          is_replay = step->is_captured && observers_allow_replay(&step->lanes);
    courses_begin(&step->lanes, is_replay);
    streams->record(step->backend, LANE_COMPUTE, step->begin);
    if (is_replay) {
        streams->capture_launch(step->backend, LANE_COMPUTE);
    } else if (step->is_issued) {
        issue_run(&step->issue);
    } else {
        lanes_run(&step->lanes);
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            streams->synchronize(step->backend, lane);
        }
    }
    streams->record(step->backend, LANE_COMPUTE, step->end);
    streams->synchronize(step->backend, LANE_COMPUTE);
}

void step_run(struct step *step)
{
    const struct lanes *lanes = &step->lanes;
    for (int i = 0; i < lanes->observer_count; i++) {
        const struct op_observer *observer = &lanes->observers[i];
        if (observer->hooks->before_step != NULL) {
            observer->hooks->before_step(step, observer->state);
        }
    }
    if (lanes->streams != NULL) {
        run_device(step);
    } else {
        courses_begin(&step->lanes, false);
        lanes_run(&step->lanes);
    }
    for (int i = lanes->observer_count - 1; i >= 0; i--) {
        const struct op_observer *observer = &lanes->observers[i];
        if (observer->hooks->after_step != NULL) {
            observer->hooks->after_step(step, observer->state);
        }
    }
}

void step_set_progress(struct step *step, struct step_progress *progress)
{
    step->lanes.progress = progress != NULL ? progress : &step->lanes.unseen;
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        step->ops[i].shown = &step->lanes.progress->op[step->ops[i].op->lane];
    }
}

static void begin_watched(struct lanes *lanes, const struct queued_op *queued, void *state)
{
    const struct step_watch *watch = state;
    (void)lanes;
    watch->begin(watch->state, queued->op);
}

static void end_watched(struct lanes *lanes, const struct queued_op *queued, void *state)
{
    const struct step_watch *watch = state;
    (void)lanes;
    watch->end(watch->state, queued->op);
}

// Callbacks include the op's waits.
void step_set_watch(struct step *step, const struct step_watch *watch)
{
    static const struct op_hooks hooks = {
        .before_waits = begin_watched, .after_event = end_watched, .allows_replay = true};
    step->watch = watch != NULL ? *watch : (struct step_watch){NULL, NULL, NULL};
    observers_set(&step->lanes, OBSERVER_WATCH, watch != NULL ? &hooks : NULL, &step->watch);
}

bool step_can_capture(const struct step *step)
{
    return step->is_issued && step->check == NULL && step->lanes.tallies == NULL;
}

status step_capture(struct step *step)
{
    const struct backend_streams *streams = step->lanes.streams;
    TRY(streams->capture_begin(step->backend, LANE_COMPUTE));
    courses_begin(&step->lanes, false);
    issue_run(&step->issue);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        step->lanes.queues[lane].captured = step->lanes.queues[lane].course;
    }
    TRY(streams->capture_end(step->backend, LANE_COMPUTE));
    step->is_captured = true;
    return OK;
}

void step_forget(struct step *step)
{
    if (step->is_captured) {
        step->lanes.streams->capture_release(step->backend);
    }
    step->is_captured = false;
}

double step_device_seconds(const struct step *step)
{
    return step->lanes.streams != NULL ? step->lanes.streams->seconds_between(step->begin, step->end) : NAN;
}

void step_run_op(struct step *step, int32_t op)
{
    queued_op_run_alone(step, &step->ops[op]);
}

double step_time_transfer(struct step *step, int32_t op)
{
    const struct queued_op       *queued  = &step->ops[op];
    const struct backend_streams *streams = step->lanes.streams;
    if (streams == NULL) {
        double begin = clock_seconds();
        queued_op_transfer(&step->lanes, queued);
        return clock_seconds() - begin;
    }
    streams->record(step->backend, queued->op->lane, step->begin);
    queued_op_transfer(&step->lanes, queued);
    streams->record(step->backend, queued->op->lane, step->end);
    streams->synchronize(step->backend, queued->op->lane);
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
    struct lanes       *lanes = &step->lanes;
    const struct queue *queue = &lanes->queues[LANE_WEIGHT_GATHER];
    for (int32_t i = 0; i < queue->count; i++) {
        queued_op_transfer(lanes, queue->ops[i]);
    }
    lanes_synchronize(lanes, LANE_WEIGHT_GATHER);
}

struct buffer step_buffer(const struct step *step, int32_t tensor)
{
    const struct tensor *shape = &step->plan->tensors[tensor];
    return (struct buffer){.data     = (char *)step->storage[shape->storage] + shape->offset,
                           .elements = shape->elements,
                           .format   = shape->format};
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
    return step->lanes.streams == NULL ? step_buffer(step, tensor).data : NULL;
}

void step_write(const struct step *step, int32_t tensor, const void *from)
{
    step->backend->ops->upload(step->backend, step_buffer(step, tensor).data, from, step->plan->tensors[tensor].bytes);
}

int64_t step_storage_bytes(const struct step *step, enum storage storage)
{
    return step->storage_bytes[storage];
}

int64_t step_connection_bytes(const struct step *step)
{
    return step->connection_bytes;
}

struct comm_choice step_chosen(const struct step *step, int32_t op)
{
    return step->chosen != NULL ? step->chosen[op] : (struct comm_choice){.algorithm = ""};
}
