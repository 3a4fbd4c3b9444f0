// SPDX-License-Identifier: MIT
// Launches the kernels of MoE (routing, dispatch, combine) and of the embedding. All these kernels move rows by index.
#include "gswbench/fatal.h"
#include "gswbench/status.h"
#include "internal.h"
#include "kernels/route.h"

int64_t device_route_forward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    return route_scratch_bytes(&op->shape.routing);
}

void device_route_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    if (shape->experts > ROUTE_EXPERTS_MAX) {
        FATAL(EXIT_INTERNAL, "%s: more than %d experts", op_name(op->kind), (int)ROUTE_EXPERTS_MAX);
    }
    DEVICE_LAUNCH(route_forward, .logits = DATA(ROUTE_LOGITS), .choices = DATA(ROUTE_CHOICES),
                  .slots = DATA(ROUTE_SLOTS), .gates = DATA(ROUTE_GATES), .sources = DATA(ROUTE_SOURCES),
                  .counts = DATA(ROUTE_COUNTS), .statistics = DATA(ROUTE_STATISTICS),
                  .token_counts = DATA(ROUTE_TOKEN_COUNTS), .bias = DATA(ROUTE_BIAS),
                  .scratch = device_of(backend)->scratch, .shape = *shape, .slot_count = routing_slots(shape),
                  .auxiliary_scale = (float)route_auxiliary_scale(shape), .accumulates = op->accumulates);
}

void device_route_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    DEVICE_LAUNCH(route_backward, .logits = DATA(ROUTE_GRADIENT_LOGITS_IN), .choices = DATA(ROUTE_GRADIENT_CHOICES),
                  .gates = DATA(ROUTE_GRADIENT_GATES_IN), .counts = DATA(ROUTE_GRADIENT_COUNTS),
                  .gates_gradient = DATA(ROUTE_GRADIENT_GATES), .logits_gradient = DATA(ROUTE_GRADIENT_LOGITS),
                  .shape = *shape, .auxiliary_scale = (float)route_auxiliary_scale(shape),
                  .type = buffers[ROUTE_GRADIENT_LOGITS].format);
}

void device_balance(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(balance, .loads = DATA(BALANCE_LOADS), .bias = DATA(BALANCE_BIAS), .scale = DATA(BALANCE_SCALE),
                  .layers = op->shape.rows.rows, .experts = op->shape.rows.columns, .rate = op->shape.rows.scale);
}

// Does nothing: src/step copies the token counts to the host and waits for them.
void device_read_token_counts(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend, (void)op, (void)buffers;
}

void device_dispatch(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    if (DATA(DISPATCH_GATES) != NULL) {
        DEVICE_LAUNCH(combine_backward, .gradient = DATA(DISPATCH_IN), .sources = DATA(DISPATCH_SOURCES),
                      .gates = DATA(DISPATCH_GATES), .out = DATA(DISPATCH_OUT), .rows = shape->rows,
                      .slots = routing_slots(shape), .columns = shape->columns, .top_k = shape->top_k,
                      .type = DEVICE_TYPE(DISPATCH_IN, DISPATCH_OUT));
        return;
    }
    DEVICE_LAUNCH(gather, .index = DATA(DISPATCH_SOURCES), .in = DATA(DISPATCH_IN), .out = DATA(DISPATCH_OUT),
                  .rows = routing_slots(shape), .columns = shape->columns, .first = 0,
                  .count = shape->rows * shape->top_k, .divisor = shape->top_k, .multiplier = 1,
                  .type = DEVICE_TYPE(DISPATCH_IN, DISPATCH_OUT));
}

void device_combine(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    DEVICE_LAUNCH(combine, .in = DATA(COMBINE_IN), .places = DATA(COMBINE_SLOTS), .gates = DATA(COMBINE_GATES),
                  .out = DATA(COMBINE_OUT), .rows = shape->rows, .columns = shape->columns, .top_k = shape->top_k,
                  .slots = routing_slots(shape), .accumulates = op->accumulates,
                  .type = DEVICE_TYPE(COMBINE_IN, COMBINE_OUT));
}

void device_combine_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    DEVICE_LAUNCH(combine_backward, .gradient = DATA(COMBINE_GRADIENT_OUT), .in = DATA(COMBINE_GRADIENT_IN_IN),
                  .sources = DATA(COMBINE_GRADIENT_SOURCES), .gates = DATA(COMBINE_GRADIENT_GATES_IN),
                  .out = DATA(COMBINE_GRADIENT_IN), .gates_gradient = DATA(COMBINE_GRADIENT_GATES), .rows = shape->rows,
                  .slots = routing_slots(shape), .columns = shape->columns, .top_k = shape->top_k,
                  .type = DEVICE_TYPE(COMBINE_GRADIENT_OUT, COMBINE_GRADIENT_IN_IN));
}

void device_embedding_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    DEVICE_LAUNCH(gather, .index = DATA(EMBEDDING_TOKENS), .in = DATA(EMBEDDING_TABLE), .out = DATA(EMBEDDING_OUT),
                  .rows = shape->rows, .columns = shape->columns, .first = shape->first, .count = shape->valid_columns,
                  .divisor = 1, .multiplier = shape->multiplier, .accumulates = op->accumulates,
                  .type = DEVICE_TYPE(EMBEDDING_TABLE, EMBEDDING_OUT));
}

int64_t device_embedding_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    return scatter_scratch_bytes(op->shape.rows.rows);
}

void device_embedding_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    const struct device     *device = device_of(backend);
    DEVICE_LAUNCH(scatter, .tokens = DATA(EMBEDDING_GRADIENT_TOKENS), .gradient = DATA(EMBEDDING_GRADIENT_OUT),
                  .table = DATA(EMBEDDING_GRADIENT_TABLE), .scratch = device->scratch, .rows = shape->rows,
                  .columns = shape->columns, .table_rows = shape->valid_columns, .first = shape->first,
                  .multiplier = shape->multiplier, .accumulates = op->accumulates,
                  .activation = buffers[EMBEDDING_GRADIENT_OUT].format,
                  .table_type = buffers[EMBEDDING_GRADIENT_TABLE].format);
}
