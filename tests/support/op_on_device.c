// SPDX-License-Identifier: MIT
// Copies operands to a device, runs the op, and copies them back with their guards.
#include "op_on_device.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "op_operands.h"

static int64_t room_bytes(const struct buffer *buffer, int beside)
{
    return guarded_bytes(buffer) + format_bytes(buffer->format, beside);
}

void run_on_device(struct backend *device, const struct op *op, int beside, struct buffer operands[OP_OPERANDS])
{
    struct buffer buffers[OP_OPERANDS];
    memcpy(buffers, operands, sizeof(buffers));
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (operands[slot].data != NULL) {
            char *room         = backend_allocate(device, room_bytes(&operands[slot], beside));
            buffers[slot].data = room + format_bytes(operands[slot].format, beside);
            device->ops->upload(device, buffers[slot].data, operands[slot].data, guarded_bytes(&operands[slot]));
        }
    }
    const struct prepared *prepared;
    status                 prepares = backend_prepare(device, op, buffers, &prepared);
    if (failed(&prepares)) {
        FATAL(EXIT_INTERNAL, "%s: %s", op->tag.role, prepares.text);
    }
    backend_reserve_scratch(device, device->ops->scratch_bytes(device, op));
    backend_run(device, prepared, op, buffers);
    device->ops->streams->synchronize(device, op->lane);
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (operands[slot].data != NULL) {
            device->ops->download(device, operands[slot].data, buffers[slot].data, guarded_bytes(&operands[slot]));
            char *room = (char *)buffers[slot].data - format_bytes(operands[slot].format, beside);
            backend_release(device, room, room_bytes(&operands[slot], beside));
        }
    }
}

void run_apart_on_device(struct backend *device, const struct op *op, struct buffer operands[OP_OPERANDS])
{
    int            slot  = op_fused_output((enum op_kind)op->kind);
    struct op      maker = *op, quantize = op_quantize_of(op);
    struct buffer  made[OP_OPERANDS] = {{.data = NULL}}, copies[OP_OPERANDS] = {{.data = NULL}};
    struct buffer *output = &made[slot];
    memcpy(made, operands, sizeof(*made) * OP_FUSED);
    memcpy(copies, operands + OP_FUSED, sizeof(*copies) * (OP_OPERANDS - OP_FUSED));
    bool is_absent = output->data == NULL;
    if (is_absent) {
        *output      = (struct buffer){.elements = op_operand_elements(op, slot), .format = operands[0].format};
        output->data = memory_allocate((size_t)guarded_bytes(output));
    }
    maker.operand_count = OP_FUSED;
    run_on_device(device, &maker, 0, made);
    copies[QUANTIZE_IN] = *output;
    run_on_device(device, &quantize, 0, copies);
    if (is_absent) {
        free(output->data);
    }
}
