// SPDX-License-Identifier: MIT
#include "op_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
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
    device->ops->streams->synchronize(device, op->stream);
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

static const double floor_share = 0.1;    // the norm of a row counts as at least this part of the average

int64_t compare_row(const struct op *op, int slot, int64_t elements)
{
    enum { WITHOUT_ROWS = 64 };
    int64_t rows = 0;
    switch ((int)op->kind) {
    case OP_GEMM:
        return op->shape.gemm.n;
    case OP_ATTENTION_FORWARD:
        return slot == ATTENTION_STATISTICS ? op->shape.attention.sequence : attention_value_dim(&op->shape.attention);
    case OP_SINK_FORWARD:
        return slot == SINK_STATISTICS ? op->shape.attention.sequence : op->shape.attention.head_dim;
    case OP_ATTENTION_MERGE:
        return attention_value_dim(&op->shape.attention);
    case OP_ATTENTION_BACKWARD:
    case OP_ROPE_FORWARD:
    case OP_ROPE_BACKWARD:
        return op->shape.attention.head_dim;
    case OP_EMBEDDING_FORWARD:
    case OP_EMBEDDING_BACKWARD:
        return op->shape.rows.columns;
    case OP_NORM_FORWARD:
    case OP_NORM_BACKWARD:
    case OP_ACTIVATION_FORWARD:
    case OP_ACTIVATION_BACKWARD:
    case OP_CROSS_ENTROPY:
        rows = op->shape.rows.rows;
        break;
    case OP_DISPATCH:
    case OP_COMBINE:
    case OP_COMBINE_BACKWARD:
        return op->shape.routing.columns;
    default:
        break;
    }
    bool has_rows = rows > 0 && elements % rows == 0 && elements > rows;
    return has_rows ? elements / rows : WITHOUT_ROWS;
}

// Returns whether two elements are equal. Two NaNs are equal; FP8 codes must have the same bits otherwise.
static bool is_same_element(const struct buffer *one, const struct buffer *other, int64_t i)
{
    double first = get(one, i), second = get(other, i);
    if (isnan(first) && isnan(second)) {
        return true;
    }
    bool is_same = first == second && signbit(first) == signbit(second);
    return one->format == FORMAT_E2M1             ? is_same
           : format_is_low_precision(one->format) ? ((uint8_t *)one->data)[i] == ((uint8_t *)other->data)[i]
                                                  : first == second;
}

static bool guards_are_intact(const struct buffer *found)
{
    struct buffer guards = {.data = memory_allocate(GUARDS * 4), .elements = GUARDS, .format = found->format};
    poison(&guards, 0, GUARDS);
    bool are_intact = memcmp(guards.data, (char *)found->data + format_offset(found->format, found->elements),
                             (size_t)format_bytes(found->format, GUARDS)) == 0;
    free(guards.data);
    return are_intact;
}

// Returns the largest absolute value. Errors are computed relative to it, so that squares do not overflow.
static double largest_value(const struct buffer *expected)
{
    double largest = 0;
    for (int64_t i = 0; i < expected->elements; i++) {
        double value = fabs(get(expected, i));
        largest      = isfinite(value) ? fmax(largest, value) : largest;
    }
    return largest > 0 ? largest : 1;
}

static double average_square(const struct buffer *expected, double unit)
{
    double sum = 0;
    for (int64_t i = 0; i < expected->elements; i++) {
        double value = get(expected, i) / unit;
        sum += isfinite(value) ? value * value : 0;
    }
    return sum / (double)expected->elements;
}

double compare_rows(const struct buffer *found, const struct buffer *expected, int64_t row)
{
    double unit = largest_value(expected), minimum = floor_share * floor_share * average_square(expected, unit);
    double worst = 0;
    for (int64_t first = 0; first < expected->elements; first += row) {
        double  norm = 0, error = 0;
        int64_t end = first + row < expected->elements ? first + row : expected->elements;
        for (int64_t i = first; i < end; i++) {
            double wanted = get(expected, i), got = get(found, i);
            bool   is_comparable = isfinite(got) && isfinite(wanted) && !format_is_low_precision(expected->format);
            if (!is_comparable && !is_same_element(found, expected, i)) {
                return INFINITY;
            }
            if (is_comparable) {
                norm += wanted / unit * (wanted / unit);
                error += (got - wanted) / unit * ((got - wanted) / unit);
            }
        }
        double scale = fmax(norm, minimum * (double)(end - first));
        worst        = error > 0 ? fmax(worst, sqrt(error / fmax(scale, 1e-60))) : worst;
    }
    return guards_are_intact(found) ? worst : INFINITY;
}
