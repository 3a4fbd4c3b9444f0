// SPDX-License-Identifier: MIT
// Attention sinks as separate ops after attention. They rescale the output and increase the log-sum-exp. Attention's
// backward pass uses only these two, so it needs no change.
#include "sink.h"

#include "gswbench/linear.h"
#include "attention.h"
#include "context.h"

// Under cp, attention output and statistics are organised by runs.
static struct op sink_op(const struct sublayer *sublayer, enum op_kind kind, const char *role)
{
    const struct builder *builder = sublayer->builder;
    struct op             op      = attention_op(builder, kind, role);
    if (builder->plan->mesh.size[AXIS_CP] > 1) {
        op.shape.attention.batch    = context_runs(builder);
        op.shape.attention.sequence = builder->sequence / HALVES;
    }
    return op;
}

void sink_forward(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         sinks   = sublayer->weights[WEIGHT_SINKS];
    if (sinks < 0) {
        return;
    }
    struct op op = sink_op(sublayer, OP_SINK_FORWARD, "sinks");
    assembly_operand(&op, SINK_SINKS, ACCESS_READ, builder->plan->weights[sinks].tensor);
    assembly_operand(&op, SINK_OUT, ACCESS_UPDATE, values[VALUE_O]);
    assembly_operand(&op, SINK_STATISTICS, ACCESS_UPDATE, values[VALUE_LSE]);
    assembly_append(&builder->assembly, &op);
}

void sink_backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         sinks   = sublayer->weights[WEIGHT_SINKS];
    if (sinks < 0) {
        return;
    }
    struct op op   = sink_op(sublayer, OP_SINK_BACKWARD, "sinks gradient");
    op.accumulates = gradient_accumulates(builder, sinks);
    assembly_operand(&op, SINK_GRADIENT_SINKS, ACCESS_READ, builder->plan->weights[sinks].tensor);
    assembly_operand(&op, SINK_GRADIENT_OUT, ACCESS_READ, gradient);
    assembly_operand(&op, SINK_GRADIENT_OUT_IN, ACCESS_READ, values[VALUE_O]);
    assembly_operand(&op, SINK_GRADIENT_STATISTICS, ACCESS_READ, values[VALUE_LSE]);
    assembly_operand(&op, SINK_GRADIENT_SINK, op.accumulates ? ACCESS_UPDATE : ACCESS_WRITE,
                     builder->plan->weights[sinks].gradient);
    assembly_append(&builder->assembly, &op);
}
