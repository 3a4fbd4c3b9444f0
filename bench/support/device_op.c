// SPDX-License-Identifier: MIT
// Times one op, or a device-to-device copy.
#include "device_op.h"

#include <string.h>

static void run_op(void *argument)
{
    struct device_op *one = argument;
    backend_run(&one->device->backend, one->prepared, &one->op, one->buffers);
}

status device_op_open(struct device_op *one, struct device *device)
{
    static const enum format types[] = {
        ['f'] = FORMAT_F32, ['b'] = FORMAT_BF16, ['4'] = FORMAT_E4M3, ['5'] = FORMAT_E5M2};
    struct backend *backend = &device->backend;
    struct op      *op      = &one->op;
    one->device             = device;
    op->tag.role            = "a single op";
    op->operand_count       = (uint8_t)strlen(one->operands);
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        bool is_there     = slot < op->operand_count && one->operands[slot] != '-';
        op->operand[slot] = is_there ? slot : -1;
        if (is_there) {
            op->access[slot] = (uint8_t)op_operand_access(op, slot);
            one->buffers[slot] =
                device_operand(device, types[(unsigned char)one->operands[slot]], op_operand_elements(op, slot));
        }
    }
    TRY(backend_prepare(backend, op, one->buffers, &one->prepared));
    backend_reserve_scratch(backend, backend->ops->scratch_bytes(backend, op));
    return OK;
}

static void release(struct device *device, struct buffer *buffer)
{
    if (buffer->data != NULL) {
        backend_release(&device->backend, buffer->data, format_bytes(buffer->format, buffer->elements));
    }
    *buffer = (struct buffer){.data = NULL};
}

void device_op_close(struct device_op *one)
{
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        release(one->device, &one->buffers[slot]);
    }
}

double device_op_seconds(struct device_op *one, double warm_up)
{
    double seconds = device_median_seconds(one->device, run_op, one, warm_up);
    for (int slot = 0; slot < one->op.operand_count; slot++) {
        if (one->op.access[slot] & ACCESS_WRITE) {
            device_require_numbers(one->device, &one->buffers[slot], op_name((enum op_kind)one->op.kind));
        }
    }
    return seconds;
}

struct copy {
    struct device *device;
    struct buffer  from, to;
    int64_t        bytes;
};

static void run_copy(void *argument)
{
    struct copy *copy = argument;
    copy->device->streams->copy(&copy->device->backend, STREAM_COMPUTE, copy->to.data, copy->from.data, copy->bytes);
}

double device_copy_rate(struct device *device, int64_t bytes, double warm_up)
{
    int64_t     elements = format_elements(FORMAT_BF16, bytes);
    struct copy copy     = {.device = device,
                            .from   = device_operand(device, FORMAT_BF16, elements),
                            .to     = device_operand(device, FORMAT_BF16, elements),
                            .bytes  = bytes};
    double      rate     = 2.0 * (double)bytes / device_median_seconds(device, run_copy, &copy, warm_up);
    release(device, &copy.from);
    release(device, &copy.to);
    return rate;
}
