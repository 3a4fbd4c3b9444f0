// SPDX-License-Identifier: MIT
// Searches op outputs, weights and optimizer state for NaN and infinity.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/element.h"
#include "gswbench/fatal.h"
#include "check.h"
#include "tallies.h"

// Index of the first NaN or infinity; -1: none.
static int64_t find(struct backend *backend, const struct buffer *buffer, float *value)
{
    enum { TOGETHER = 1 << 22 };
    int64_t found = -1, most = buffer->elements < TOGETHER ? buffer->elements : TOGETHER;
    if (buffer->data == NULL || buffer->format == FORMAT_I32) {
        return -1;
    }
    void *copy = memory_allocate((size_t)format_bytes(buffer->format, most));
    for (int64_t first = 0; first < buffer->elements && found < 0; first += most) {
        int64_t count = buffer->elements - first < most ? buffer->elements - first : most;
        backend->ops->download(backend, copy, (const char *)buffer->data + format_offset(buffer->format, first),
                               format_bytes(buffer->format, count));
        for (int64_t i = 0; i < count && found < 0; i++) {
            *value = element_read(buffer->format, copy, i);
            found  = isfinite(*value) ? -1 : first + i;
        }
    }
    free(copy);
    return found;
}

// Slot of an input that holds a NaN or an infinity; -1: none. A collective may have delivered it unchecked.
static int find_source(const struct lanes *lanes, const struct queue_entry *entry)
{
    float value;
    for (int slot = 0; slot < entry->op->operand_count; slot++) {
        if (entry->op->access[slot] == ACCESS_READ && find(lanes->backend, &entry->buffers[slot], &value) >= 0) {
            return slot;
        }
    }
    return -1;
}

// Streams report concurrently; the op that comes first in the list wins.
static void note(struct check *check, const struct step_finding *finding)
{
    pthread_mutex_lock(&check->mutex);
    if (check->finding->tensor < 0 || finding->op < check->finding->op) {
        *check->finding = *finding;
    }
    pthread_mutex_unlock(&check->mutex);
}

noreturn static void end_job(const struct lanes *lanes, const struct queue_entry *entry,
                             const struct step_finding *finding, int source)
{
    const struct check *check = lanes->check;
    char                op[240], tensor[160], read[160];
    enum format         format = check->plan->tensors[finding->tensor].format;
    plan_op_name(check->plan, finding->op, op, sizeof(op));
    plan_tensor_name(check->plan, finding->tensor, tensor, sizeof(tensor));
    if (source >= 0) {
        plan_tensor_name(check->plan, entry->op->operand[source], read, sizeof(read));
    }
    FATAL(EXIT_NUMBER, "step %lld, %s: wrote %g as element %lld of %s (%s)%s%s", (long long)check->step, op,
          (double)finding->value, (long long)finding->element, tensor, format_name(format),
          source >= 0 ? ", having read one in " : "", source >= 0 ? read : "");
}

void check_op(const struct lanes *lanes, const struct queue_entry *entry)
{
    struct check    *check = lanes->check;
    const struct op *op    = entry->op;
    // Waiting for an enqueued collective here could deadlock: its peer may need ops that this rank has not issued.
    if (entry->group != NULL && lanes->streams != NULL && lanes->comm_ops->is_enqueued) {
        return;
    }
    if (lanes->streams != NULL) {
        lanes->streams->synchronize(lanes->backend, op->lane);
    }
    struct tallied now;
    int32_t        number = entry->number - 1;
    if (tallies_apply(lanes, entry, &now)) {
        entry = &now.entry;
        if (now.rows == 0 && op->kind != OP_GEMM) {
            return;    // it did not run
        }
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        struct step_finding finding = {.op = number, .tensor = op->operand[slot]};
        finding.element =
            (op->access[slot] & ACCESS_WRITE) ? find(lanes->backend, &entry->buffers[slot], &finding.value) : -1;
        if (finding.element >= 0) {
            int source          = find_source(lanes, entry);
            finding.is_received = entry->group != NULL || source >= 0;
            if (check->finding == NULL) {
                end_job(lanes, entry, &finding, source);
            }
            note(check, &finding);
            return;
        }
    }
}

bool step_find_held(const struct step *step, struct step_finding *finding)
{
    const struct plan *plan = step->plan;
    *finding                = (struct step_finding){.op = -1, .tensor = -1};
    for (int32_t tensor = 0; tensor < plan->tensor_count; tensor++) {
        enum storage storage = plan->tensors[tensor].storage;
        if (plan->tensors[tensor].whole != tensor || (storage != STORAGE_WEIGHT && storage != STORAGE_OPTIMIZER)) {
            continue;
        }
        struct buffer buffer = step_buffer(step, tensor);
        finding->element     = find(step->backend, &buffer, &finding->value);
        if (finding->element >= 0) {
            finding->tensor = tensor;
            return true;
        }
    }
    return false;
}
