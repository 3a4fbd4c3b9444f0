// SPDX-License-Identifier: MIT
// Rows of tokens in slots of experts: dispatch, combine, and the gradient of gates.
#include "experts.h"

int32_t experts_new_slots(struct builder *builder, const char *name)
{
    const struct routing_shape *shape = &builder->routing;
    return assembly_activation(&builder->assembly, name, DIMS(routing_slots(shape), shape->columns));
}

void experts_fill_slots(struct sublayer *sublayer, const char *role, int32_t in, int32_t gates, int32_t slots)
{
    struct builder *builder = sublayer->builder;
    struct op       op      = experts_routing_op(builder, OP_DISPATCH, role);
    assembly_operand(&op, DISPATCH_IN, ACCESS_READ, in);
    assembly_operand(&op, DISPATCH_SOURCES, ACCESS_READ, sublayer->values->tensor[VALUE_SOURCES]);
    assembly_operand(&op, DISPATCH_OUT, ACCESS_WRITE, slots);
    if (gates >= 0) {
        assembly_operand(&op, DISPATCH_GATES, ACCESS_READ, gates);
    }
    assembly_append(&builder->assembly, &op);
}

void experts_sum_choices(struct sublayer *sublayer, const char *role, int32_t slots, int32_t gates, int32_t out,
                         bool adds)
{
    struct op op   = experts_routing_op(sublayer->builder, OP_COMBINE, role);
    op.accumulates = adds;
    assembly_operand(&op, COMBINE_IN, ACCESS_READ, slots);
    assembly_operand(&op, COMBINE_SLOTS, ACCESS_READ, sublayer->values->tensor[VALUE_SLOTS]);
    if (gates >= 0) {
        assembly_operand(&op, COMBINE_GATES, ACCESS_READ, gates);
    }
    assembly_operand(&op, COMBINE_OUT, op.accumulates ? ACCESS_UPDATE : ACCESS_WRITE, out);
    assembly_append(&sublayer->builder->assembly, &op);
}

int32_t experts_gate_gradients(struct sublayer *sublayer, const char *role, int32_t rows, int32_t slots, int32_t scaled)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    struct op       op      = experts_routing_op(builder, OP_COMBINE_BACKWARD, role);
    int32_t         gates   = assembly_tensor(&builder->assembly, "gate gradients", STORAGE_ACTIVATION, FORMAT_F32,
                                              DIMS(builder->routing.rows, builder->routing.top_k));
    assembly_operand(&op, COMBINE_GRADIENT_OUT, ACCESS_READ, rows);
    assembly_operand(&op, COMBINE_GRADIENT_IN_IN, ACCESS_READ, slots);
    assembly_operand(&op, COMBINE_GRADIENT_SLOTS, ACCESS_READ, values[VALUE_SLOTS]);
    assembly_operand(&op, COMBINE_GRADIENT_SOURCES, ACCESS_READ, values[VALUE_SOURCES]);
    assembly_operand(&op, COMBINE_GRADIENT_GATES_IN, ACCESS_READ, values[VALUE_GATES]);
    if (scaled >= 0) {
        assembly_operand(&op, COMBINE_GRADIENT_IN, ACCESS_WRITE, scaled);
    }
    assembly_operand(&op, COMBINE_GRADIENT_GATES, ACCESS_WRITE, gates);
    assembly_append(&builder->assembly, &op);
    return gates;
}
