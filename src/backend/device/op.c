// SPDX-License-Identifier: MIT
// Launch target and operand types.
#include "gswbench/fatal.h"
#include "internal.h"

struct kernel_target device_target(const struct backend *backend, const struct op *op)
{
    const struct device *device = device_of(backend);
    return (struct kernel_target){device->streams[op->lane], device->processors, device->shared_bytes};
}

enum format device_type(const struct op *op, const struct buffer buffers[], int slot, int other)
{
    if (buffers[slot].format != buffers[other].format) {
        FATAL(EXIT_INTERNAL, "%s: operand %d is %s, operand %d %s", op_name((enum op_kind)op->kind), slot,
              format_name(buffers[slot].format), other, format_name(buffers[other].format));
    }
    return buffers[slot].format;
}
