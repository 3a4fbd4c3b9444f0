// SPDX-License-Identifier: MIT
// The activation of an MLP. Gated activations read gate and up from one tensor.
#include "activation.h"

static struct op activation_op(const struct builder *builder, enum op_kind kind, const char *role, int32_t in)
{
    const struct model_config *model   = &builder->plan->model;
    int64_t                    columns = builder->plan->tensors[in].dim[1];
    struct op                  op      = assembly_op(&builder->assembly, kind, role);
    op.shape.rows                      = (struct rows_shape){.rows    = assembly_rows(&builder->assembly, in),
                                                             .columns = model_is_gated(model) ? columns / 2 : columns,
                                                             .variant = (int32_t)model->activation};
    return op;
}

int32_t activation_forward(struct builder *builder, int32_t in)
{
    struct op op  = activation_op(builder, OP_ACTIVATION_FORWARD, "activation", in);
    int32_t   out = assembly_alike(&builder->assembly, "activation", in, op.shape.rows.columns);

    assembly_operand(&op, ACTIVATION_IN, ACCESS_READ, in);
    assembly_operand(&op, ACTIVATION_OUT, ACCESS_WRITE, out);
    assembly_append(&builder->assembly, &op);
    return out;
}

int32_t activation_backward(struct builder *builder, int32_t gradient, int32_t in)
{
    struct op op   = activation_op(builder, OP_ACTIVATION_BACKWARD, "activation gradient", in);
    int32_t   d_in = assembly_alike(&builder->assembly, "fc1 gradient", in, builder->plan->tensors[in].dim[1]);

    assembly_operand(&op, ACTIVATION_GRADIENT_OUT, ACCESS_READ, gradient);
    assembly_operand(&op, ACTIVATION_GRADIENT_IN_IN, ACCESS_READ, in);
    assembly_operand(&op, ACTIVATION_GRADIENT_IN, ACCESS_WRITE, d_in);
    assembly_append(&builder->assembly, &op);
    return d_in;
}
