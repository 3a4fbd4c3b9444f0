// SPDX-License-Identifier: MIT
// Launches the kernels of MoE (routing, dispatch, combine) and of the embedding, which also move rows by index.
#include "gswbench/fatal.h"
#include "gswbench/status.h"
#include "internal.h"
#include "kernels/route.h"

static struct route_shape route_shape_of(const struct op *op)
{
    const struct routing_shape *shape = &op->shape.routing;
    struct route_shape          route = {.rows          = shape->rows,
                                         .first         = shape->first,
                                         .total         = shape->total,
                                         .sequences     = shape->sequences,
                                         .sequence_rows = shape->sequence_rows,
                                         .experts       = shape->experts,
                                         .top_k         = shape->top_k,
                                         .owners        = shape->owners,
                                         .capacity      = shape->capacity,
                                         .multiple      = shape->multiple,
                                         .slots         = routing_slots(shape),
                                         .taken         = shape->taken,
                                         .balanced      = shape->balanced,
                                         .by_sigmoid    = shape->score == ROUTER_SIGMOID,
                                         .is_absolute   = shape->is_absolute,
                                         .hot           = shape->hot,
                                         .groups        = shape->groups,
                                         .top_groups    = shape->top_groups,
                                         .scale         = shape->scale};
    route.auxiliary_scale =
        (float)route_auxiliary_scale(shape->auxiliary, shape->experts, shape->top_k, shape->total / shape->sequences);
    if (shape->experts > ROUTE_EXPERTS_MAX) {
        FATAL(EXIT_INTERNAL, "%s: more than %d experts", op_name(op->kind), (int)ROUTE_EXPERTS_MAX);
    }
    return route;
}

int64_t device_route_forward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    struct route_shape shape = route_shape_of(op);
    return route_scratch_bytes(&shape);
}

void device_route_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct device *device = device_of(backend);
    DEVICE_LAUNCH(route_forward, .logits = buffers[ROUTE_LOGITS].data, .choices = buffers[ROUTE_CHOICES].data,
                  .slots = buffers[ROUTE_SLOTS].data, .gates = buffers[ROUTE_GATES].data,
                  .sources = buffers[ROUTE_SOURCES].data, .counts = buffers[ROUTE_COUNTS].data,
                  .statistics = buffers[ROUTE_STATISTICS].data, .token_counts = buffers[ROUTE_TOKEN_COUNTS].data,
                  .bias = buffers[ROUTE_BIAS].data, .scratch = device->scratch, .shape = route_shape_of(op),
                  .accumulates = op->accumulates);
}

void device_route_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(route_backward, .logits = buffers[ROUTE_GRADIENT_LOGITS_IN].data,
                  .choices = buffers[ROUTE_GRADIENT_CHOICES].data, .gates = buffers[ROUTE_GRADIENT_GATES_IN].data,
                  .counts = buffers[ROUTE_GRADIENT_COUNTS].data, .gates_gradient = buffers[ROUTE_GRADIENT_GATES].data,
                  .logits_gradient = buffers[ROUTE_GRADIENT_LOGITS].data, .shape = route_shape_of(op),
                  .type = buffers[ROUTE_GRADIENT_LOGITS].format);
}

void device_balance(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(balance, .loads = buffers[BALANCE_LOADS].data, .bias = buffers[BALANCE_BIAS].data,
                  .scale = buffers[BALANCE_SCALE].data, .layers = op->shape.rows.rows,
                  .experts = op->shape.rows.columns, .rate = op->shape.rows.scale);
}

// The step itself copies the counts to the host and synchronizes the stream.
void device_read_token_counts(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend, (void)op, (void)buffers;
}

void device_dispatch(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    if (buffers[DISPATCH_GATES].data != NULL) {
        DEVICE_LAUNCH(combine_backward, .gradient = buffers[DISPATCH_IN].data,
                      .sources = buffers[DISPATCH_SOURCES].data, .gates = buffers[DISPATCH_GATES].data,
                      .out = buffers[DISPATCH_OUT].data, .rows = shape->rows, .slots = routing_slots(shape),
                      .columns = shape->columns, .top_k = shape->top_k,
                      .type = device_type(op, buffers, DISPATCH_IN, DISPATCH_OUT));
        return;
    }
    DEVICE_LAUNCH(gather, .index = buffers[DISPATCH_SOURCES].data, .in = buffers[DISPATCH_IN].data,
                  .out = buffers[DISPATCH_OUT].data, .rows = routing_slots(shape), .columns = shape->columns,
                  .first = 0, .count = shape->rows * shape->top_k, .divisor = shape->top_k, .multiplier = 1,
                  .type = device_type(op, buffers, DISPATCH_IN, DISPATCH_OUT));
}

void device_combine(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    DEVICE_LAUNCH(combine, .in = buffers[COMBINE_IN].data, .places = buffers[COMBINE_SLOTS].data,
                  .gates = buffers[COMBINE_GATES].data, .out = buffers[COMBINE_OUT].data, .rows = shape->rows,
                  .columns = shape->columns, .top_k = shape->top_k, .slots = routing_slots(shape),
                  .accumulates = op->accumulates, .type = device_type(op, buffers, COMBINE_IN, COMBINE_OUT));
}

void device_combine_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    DEVICE_LAUNCH(combine_backward, .gradient = buffers[COMBINE_GRADIENT_OUT].data,
                  .in = buffers[COMBINE_GRADIENT_IN_IN].data, .sources = buffers[COMBINE_GRADIENT_SOURCES].data,
                  .gates = buffers[COMBINE_GRADIENT_GATES_IN].data, .out = buffers[COMBINE_GRADIENT_IN].data,
                  .gates_gradient = buffers[COMBINE_GRADIENT_GATES].data, .rows = shape->rows,
                  .slots = routing_slots(shape), .columns = shape->columns, .top_k = shape->top_k,
                  .type = device_type(op, buffers, COMBINE_GRADIENT_OUT, COMBINE_GRADIENT_IN_IN));
}

void device_embedding_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    DEVICE_LAUNCH(gather, .index = buffers[EMBEDDING_TOKENS].data, .in = buffers[EMBEDDING_TABLE].data,
                  .out = buffers[EMBEDDING_OUT].data, .rows = shape->rows, .columns = shape->columns,
                  .first = shape->first, .count = shape->valid_columns, .divisor = 1, .multiplier = shape->multiplier,
                  .accumulates = op->accumulates, .type = device_type(op, buffers, EMBEDDING_TABLE, EMBEDDING_OUT));
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
    DEVICE_LAUNCH(scatter, .tokens = buffers[EMBEDDING_GRADIENT_TOKENS].data,
                  .gradient = buffers[EMBEDDING_GRADIENT_OUT].data, .table = buffers[EMBEDDING_GRADIENT_TABLE].data,
                  .scratch = device->scratch, .rows = shape->rows, .columns = shape->columns,
                  .table_rows = shape->valid_columns, .first = shape->first, .multiplier = shape->multiplier,
                  .accumulates = op->accumulates, .activation = buffers[EMBEDDING_GRADIENT_OUT].format,
                  .table_type = buffers[EMBEDDING_GRADIENT_TABLE].format);
}
