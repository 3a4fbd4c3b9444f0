// SPDX-License-Identifier: MIT
// Runs a step, and reads and writes its tensors.
#include "gswbench/step.h"

#include <math.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "check.h"
#include "pauses.h"
#include "trace.h"

// Whether ops must be issued one by one, because a graph replay would skip the tracing, checks or faults.
static bool is_looked_into(const struct lanes *lanes)
{
    return lanes->trace != NULL || lanes->check != NULL || lanes->fault != NULL || lanes->exam != NULL ||
           lanes->left_out != NULL;
}

// Evaluated once per step, so that each op tests one flag.
static void note_observers(struct lanes *lanes)
{
    lanes->is_plain = lanes->watch == NULL && !is_looked_into(lanes);
}

static void run_device(struct step *step)
{
    const struct backend_streams *streams   = step->lanes.streams;
    bool                          is_replay = step->is_captured && !is_looked_into(&step->lanes);
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
    struct trace            *trace = step->lanes.trace;
    const struct step_fault *fault = step->lanes.fault;
    if (fault != NULL && fault->op < 0 && fault->tensor >= 0) {
        struct buffer buffer = step_buffer(step, fault->tensor);
        fault_poke(&step->lanes, &buffer, step->lanes.fault->element);
    }
    if (trace != NULL) {
        trace_start(&step->lanes);
    }
    note_observers(&step->lanes);
    if (step->lanes.streams != NULL) {
        run_device(step);
    } else {
        courses_begin(&step->lanes, false);
        lanes_run(&step->lanes);
    }
    if (trace != NULL) {
        trace_stop(&step->lanes, step->begin);
    }
    if (step->lanes.check != NULL) {
        step->lanes.check->step++;
    }
}

void step_check(struct step *step)
{
    step->lanes.check  = memory_allocate(sizeof(*step->lanes.check));
    *step->lanes.check = (struct check){.plan = step->plan};
}

void step_find_made(struct step *step, struct step_finding *finding)
{
    struct check *checks = step->lanes.check;
    struct check  notes  = {.plan = step->plan, .finding = finding};
    *finding             = (struct step_finding){.op = -1, .tensor = -1};
    pthread_mutex_init(&notes.mutex, NULL);
    step->lanes.check = &notes;
    step_run(step);
    step->lanes.check = checks;
    pthread_mutex_destroy(&notes.mutex);
}

void step_set_fault(struct step *step, const struct step_fault *fault)
{
    step->lanes.fault  = fault;
    step->lanes.faulty = fault != NULL && fault->op >= 0 ? &step->entries[fault->op] : NULL;
}

static status retrace(struct step *step, struct op_time *times, bool is_noted)
{
    struct lanes *lanes = &step->lanes;
    if (lanes->trace != NULL) {
        trace_close(lanes, lanes->trace);
        lanes->trace = NULL;
    }
    return times != NULL ? trace_open(&lanes->trace, lanes, step->entries, step->plan->op_count, times, is_noted) : OK;
}

void step_trace(struct step *step, struct op_time *times)
{
    retrace(step, times, false);    // cannot fail with events or the host's clock
}

status step_trace_noted(struct step *step, struct op_time *times)
{
    return retrace(step, times, true);
}

status step_read_noted(const struct step *step, int64_t *lost)
{
    return trace_read(&step->lanes, lost);
}

void step_set_progress(struct step *step, struct step_progress *progress)
{
    step->lanes.progress = progress != NULL ? progress : &step->lanes.unseen;
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        step->entries[i].shown = &step->lanes.progress->op[step->entries[i].op->lane];
    }
}

void step_set_watch(struct step *step, const struct step_watch *watch)
{
    step->lanes.watch = watch;
}

bool step_can_capture(const struct step *step)
{
    return step->is_issued && step->lanes.check == NULL && step->lanes.tallies == NULL;
}

status step_capture(struct step *step)
{
    const struct backend_streams *streams = step->lanes.streams;
    TRY(streams->capture_begin(step->backend, LANE_COMPUTE));
    note_observers(&step->lanes);
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
    const struct queue_entry *entry = &step->entries[op];
    double                    begin = clock_seconds();
    atomic_store_explicit(entry->shown, entry->number, memory_order_relaxed);
    if (step->lanes.fault == NULL || fault_before(&step->lanes, entry)) {
        backend_run(step->backend, entry->prepared, entry->op, entry->buffers);
    }
    if (step->lanes.streams != NULL) {
        step->lanes.streams->synchronize(step->backend, entry->op->lane);
    }
    if (step->lanes.fault != NULL) {
        fault_after(&step->lanes, entry, begin);
    }
    atomic_store_explicit(entry->shown, 0, memory_order_relaxed);
}

void step_time_pauses(struct step *step)
{
    if (step->lanes.streams != NULL) {
        step->lanes.pauses = pauses_open(&step->lanes, step->entries, step->plan->op_count);
    }
}

double step_compute_seconds(const struct step *step)
{
    if (step->lanes.streams == NULL) {
        return step->lanes.compute_seconds;
    }
    return step->lanes.pauses != NULL ? pauses_compute_seconds(&step->lanes, step->begin) : NAN;
}

double step_time_transfer(struct step *step, int32_t op)
{
    const struct queue_entry     *entry   = &step->entries[op];
    const struct backend_streams *streams = step->lanes.streams;
    if (streams == NULL) {
        double begin = clock_seconds();
        entry_transfer(&step->lanes, entry);
        return clock_seconds() - begin;
    }
    streams->record(step->backend, entry->op->lane, step->begin);
    entry_transfer(&step->lanes, entry);
    streams->record(step->backend, entry->op->lane, step->end);
    streams->synchronize(step->backend, entry->op->lane);
    return streams->seconds_between(step->begin, step->end);
}

void step_make_weights(struct step *step)
{
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        const struct queue_entry *entry = &step->entries[i];
        if (!entry->op->is_initial) {
            continue;
        }
        if (entry->group == NULL) {
            step_run_op(step, i);
            continue;
        }
        entry_transfer(&step->lanes, entry);
        if (step->lanes.streams != NULL) {
            step->lanes.streams->synchronize(step->backend, entry->op->lane);
        }
    }
}

void step_gather_weights(struct step *step)
{
    struct lanes       *lanes = &step->lanes;
    const struct queue *queue = &lanes->queues[LANE_WEIGHT_GATHER];
    for (int32_t i = 0; i < queue->count; i++) {
        entry_transfer(lanes, queue->entries[i]);
    }
    if (lanes->streams != NULL) {
        lanes->streams->synchronize(step->backend, LANE_WEIGHT_GATHER);
    }
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
