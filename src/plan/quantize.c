// SPDX-License-Identifier: MIT
// Copies of tensors in FP8 for the products of linears, as they are and transposed.
#include "internal.h"

static int32_t append_quantize(struct builder *builder, int32_t tensor)
{
    struct plan  *plan   = builder->plan;
    struct tensor from   = plan->tensors[tensor];
    const char   *factor = arena_format(&plan->arena, "factor of %s", from.name);
    struct op     op     = builder_op(builder, OP_QUANTIZE, from.name);
    builder_operand(&op, QUANTIZE_IN, ACCESS_READ, tensor);
    builder_operand(&op, QUANTIZE_FACTOR, ACCESS_WRITE,
                    builder_tensor(builder, factor, STORAGE_ACTIVATION, DTYPE_F32, DIMS(1)));
    op.shape.quantize = (struct quantize_shape){.rows = from.dim[0], .columns = from.elements / from.dim[0]};
    return builder_append(builder, &op);
}

struct fp8_copy quantize_copy(struct builder *builder, int32_t tensor, enum dtype format, bool is_transposed)
{
    struct plan *plan = builder->plan;
    int32_t     *made = &builder->usage[tensor].quantizer;
    int          slot = is_transposed ? QUANTIZE_TRANSPOSED : QUANTIZE_OUT;
    if (*made < 0 || !builder_is_current(builder, *made, tensor)) {
        int32_t appended = append_quantize(builder, tensor);
        made             = &builder->usage[tensor].quantizer;
        *made            = appended;
    }
    int32_t op = *made;
    if (plan->ops[op].operand[slot] < 0) {
        struct quantize_shape shape = plan->ops[op].shape.quantize;
        const char    *name = arena_format(&plan->arena, "%s in %s%s", plan->tensors[tensor].name, dtype_name(format),
                                        is_transposed ? ", transposed" : "");
        const int64_t *dim  = is_transposed ? DIMS(shape.columns, shape.rows) : DIMS(shape.rows, shape.columns);
        builder_add_output(builder, op, slot, builder_tensor(builder, name, STORAGE_ACTIVATION, format, dim));
    }
    return (struct fp8_copy){plan->ops[op].operand[slot], plan->ops[op].operand[QUANTIZE_FACTOR]};
}
