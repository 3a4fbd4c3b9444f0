// SPDX-License-Identifier: MIT
// Looks at what each op wrote, before the next one runs.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/arithmetic.h"
#include "gswbench/fatal.h"
#include "gswbench/fp8.h"
#include "internal.h"

static float number_at(const void *data, enum format format, int64_t i)
{
    return format == FORMAT_F32    ? ((const float *)data)[i]
           : format == FORMAT_BF16 ? bf16_to_float(((const bf16 *)data)[i])
                                   : fp8_to_float(format, ((const uint8_t *)data)[i]);
}

// The first element that is no number, or infinite; -1: there is none.
static int64_t find(struct backend *backend, const struct buffer *buffer, float *value)
{
    int64_t found = -1, bytes = format_bytes(buffer->format, buffer->elements);
    if (buffer->data == NULL || buffer->format == FORMAT_I32) {
        return -1;
    }
    void *copy = memory_allocate((size_t)bytes);
    backend->ops->download(backend, copy, buffer->data, bytes);
    for (int64_t i = 0; i < buffer->elements && found < 0; i++) {
        *value = number_at(copy, buffer->format, i);
        found  = isfinite(*value) ? -1 : i;
    }
    free(copy);
    return found;
}

// ", having read one in X": where a transfer brought it, which nobody waited for.
static void name_source(const struct lanes *lanes, const struct queue_entry *entry, char *text, size_t bytes)
{
    float value;
    text[0] = '\0';
    for (int slot = 0; slot < entry->op->operand_count; slot++) {
        bool reads = entry->op->access[slot] == ACCESS_READ;
        if (reads && find(lanes->backend, &entry->buffers[slot], &value) >= 0) {
            char name[160];
            plan_tensor_name(lanes->check->plan, entry->op->operand[slot], name, sizeof(name));
            snprintf(text, bytes, ", having read one in %s", name);
            return;
        }
    }
}

void check_op(const struct lanes *lanes, const struct queue_entry *entry)
{
    const struct check *check = lanes->check;
    const struct op    *op    = entry->op;
    // Who waits for a transfer that is only enqueued may hold up the rank that it comes from.
    if (entry->group != NULL && lanes->streams != NULL && lanes->comm_ops->is_enqueued) {
        return;
    }
    if (lanes->streams != NULL) {
        lanes->streams->synchronize(lanes->backend, op->lane);
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        float   value;
        int64_t element = (op->access[slot] & ACCESS_WRITE) ? find(lanes->backend, &entry->buffers[slot], &value) : -1;
        if (element >= 0) {
            char name[240], tensor[160], source[200];
            plan_op_name(check->plan, (int32_t)(entry - check->entries), name, sizeof(name));
            plan_tensor_name(check->plan, op->operand[slot], tensor, sizeof(tensor));
            name_source(lanes, entry, source, sizeof(source));
            FATAL(EXIT_NUMBER, "step %lld, %s: wrote %g as element %lld of %s (%s)%s", (long long)check->step, name,
                  (double)value, (long long)element, tensor, format_name(entry->buffers[slot].format), source);
        }
    }
}
