// SPDX-License-Identifier: MIT
// The expert half of a block: a router chooses each token's experts, the tokens travel to them and back, and the same
// backward.
//
// Every rank fills a buffer of slots, an equal number for each expert, and ep shares the experts out. The slots of the
// first expert of each rank come first, then those of the second: one all-to-all a local expert brings it its tokens of
// all ranks, while the ones before it work.
#include <math.h>
#include <stdlib.h>

#include "internal.h"

int64_t moe_experts_here(const struct plan *plan)
{
    return plan->model.experts / plan->mesh.size[AXIS_EP];
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// An expert's equal share of the choices of so many rows, times the factor.
static int64_t share_of_choices(const struct model_config *model, int64_t rows, double factor)
{
    return (int64_t)ceil((double)(rows * model->top_k) * factor / (double)model->experts);
}

uint32_t moe_row_axes(const struct builder *builder)
{
    return 1u << AXIS_CP | (tensor_shares_rows(builder) ? 1u << AXIS_TP : 0);
}

struct routing_shape moe_routing(const struct builder *builder)
{
    const struct plan         *plan        = builder->plan;
    const uint32_t             axes        = moe_row_axes(builder);
    const struct model_config *model       = &plan->model;
    const struct train_config *train       = &plan->train;
    bool                       by_sequence = train->capacity_scope == CAPACITY_SEQUENCE;
    bool                       is_balanced = train->routing == ROUTING_BALANCED;
    int64_t                    rows        = builder->shard_tokens;

    struct routing_shape shape = {.rows      = rows,
                                  .columns   = model->hidden,
                                  .first     = by_sequence ? mesh_group_index(&plan->mesh, plan->rank, axes) * rows : 0,
                                  .total     = by_sequence ? mesh_group_size(&plan->mesh, axes) * rows : rows,
                                  .sequences = by_sequence ? train->micro_batch : 1,
                                  .sequence_rows = by_sequence ? builder->sequence : rows,
                                  .experts       = model->experts,
                                  .top_k         = model->top_k,
                                  .owners        = plan->mesh.size[AXIS_EP],
                                  .balanced      = is_balanced};
    // A row chooses an expert once at most: an expert that takes as many choices as there are rows drops none.
    int64_t competing = shape.total / shape.sequences;
    int64_t needed    = is_balanced ? share_of_choices(model, rows, 1) : rows;
    double  factor    = model->capacity_factor;
    shape.taken       = factor > 0 ? smaller(competing, share_of_choices(model, competing, factor)) : competing;
    shape.capacity    = smaller(needed, shape.sequences * shape.taken);
    shape.auxiliary =
        (float)(model->auxiliary_loss * (double)competing / (double)(train->global_batch * train->sequence));
    return shape;
}

static struct op routing_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    struct op op     = builder_op(builder, kind, role);
    op.shape.routing = builder->routing;
    return op;
}

static int32_t new_slots(struct builder *builder, const char *name)
{
    const struct routing_shape *shape = &builder->routing;
    return builder_activation(builder, name, DIMS(shape->experts * shape->capacity, shape->columns));
}

// The slots of a local expert and its like on the other ranks of ep.
static int32_t slots_of(struct builder *builder, int32_t slots, int64_t expert)
{
    int64_t rows = builder->routing.owners * builder->routing.capacity;
    return context_rows(builder, "expert slots", slots, expert * rows, rows);
}

static bool is_shared(const struct builder *builder)
{
    return builder->routing.owners > 1;
}

// Rows of slots to the ranks that they are for. out -1: a new tensor. Without ep they are there already.
static int32_t exchange(struct builder *builder, const char *role, int32_t in, int32_t out)
{
    if (!is_shared(builder)) {
        return in;
    }
    const int64_t *dim = builder->plan->tensors[in].dim;
    int32_t        to  = out >= 0 ? out : builder_activation(builder, role, DIMS(dim[0], dim[1]));
    builder_transfer(builder, &(struct transfer){.kind = OP_ALL_TO_ALL,
                                                 .role = role,
                                                 .axes = 1u << AXIS_EP,
                                                 .lane = LANE_EXPERT,
                                                 .in   = in,
                                                 .out  = to,
                                                 .hold = -1});
    return to;
}

// Where what an expert made is written, when it ends in these slots: there at once, or in a new tensor (-1) if it has
// to travel.
static int32_t made_in(const struct builder *builder, int32_t slots)
{
    return is_shared(builder) ? -1 : slots;
}

static int32_t fc1_of(const struct block *block, int64_t expert)
{
    return block->weights->experts + 2 * (int32_t)expert;
}

static int32_t fc2_of(const struct block *block, int64_t expert)
{
    return fc1_of(block, expert) + 1;
}

void moe_logits(struct block *block)
{
    struct builder *builder = block->builder;
    const int64_t   experts = builder->routing.experts;
    struct linear   router  = {"router", block->weights->router, false};
    int32_t         own =
        builder_tensor(builder, "logits", STORAGE_ACTIVATION, DTYPE_F32, DIMS(builder->routing.rows, experts));
    linear_append(builder, &router, block->values->tensor[VALUE_N2], own, false);
    block->values->tensor[VALUE_LOGITS] = own;
    if (builder->routing.total > builder->routing.rows) {
        int32_t all =
            builder_tensor(builder, "all logits", STORAGE_ACTIVATION, DTYPE_F32, DIMS(builder->routing.total, experts));
        builder_transfer(builder, &(struct transfer){.kind = OP_ALL_GATHER,
                                                     .role = "logits gather",
                                                     .axes = moe_row_axes(builder),
                                                     .lane = LANE_TENSOR,
                                                     .in   = own,
                                                     .out  = all,
                                                     .hold = -1});
        block->values->tensor[VALUE_LOGITS] = all;
    }
}

// What is recomputed was counted before: it has no statistics.
void moe_route(struct block *block)
{
    struct builder             *builder = block->builder;
    const struct routing_shape *shape   = &builder->routing;
    const struct {
        enum value  value;
        int         slot;
        const char *name;
        enum dtype  dtype;
        int64_t     rows, columns;
    } made[] = {
        {VALUE_CHOICES, ROUTE_CHOICES, "choices", DTYPE_I32, shape->rows, shape->top_k},
        {VALUE_SLOTS, ROUTE_SLOTS, "slots", DTYPE_I32, shape->rows, shape->top_k},
        {VALUE_GATES, ROUTE_GATES, "gates", DTYPE_F32, shape->rows, shape->top_k},
        {VALUE_SOURCES, ROUTE_SOURCES, "sources", DTYPE_I32, shape->experts, shape->capacity},
        {VALUE_COUNTS, ROUTE_COUNTS, "counts", DTYPE_F32, shape->sequences, shape->experts},
    };
    struct op op = routing_op(builder, OP_ROUTE_FORWARD, "route");
    builder_operand(&op, ROUTE_LOGITS, ACCESS_READ, block->values->tensor[VALUE_LOGITS]);
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        int32_t tensor = builder_tensor(builder, made[i].name, STORAGE_ACTIVATION, made[i].dtype,
                                        DIMS(made[i].rows, made[i].columns));
        builder_operand(&op, made[i].slot, ACCESS_WRITE, tensor);
        block->values->tensor[made[i].value] = tensor;
    }
    if (builder->tag.phase != PHASE_RECOMPUTE) {
        int64_t width  = shape->experts + 2;
        op.accumulates = true;
        builder_operand(&op, ROUTE_STATISTICS, ACCESS_UPDATE,
                        builder_part(builder, "routing statistics", builder->plan->routing, builder->tag.layer * width,
                                     DIMS(width)));
    }
    builder_append(builder, &op);
}

void moe_dispatch(struct block *block)
{
    struct builder *builder = block->builder;
    int32_t         slots   = new_slots(builder, "dispatched");
    struct op       op      = routing_op(builder, OP_DISPATCH, "dispatch");
    builder_operand(&op, DISPATCH_IN, ACCESS_READ, block->values->tensor[VALUE_N2]);
    builder_operand(&op, DISPATCH_SOURCES, ACCESS_READ, block->values->tensor[VALUE_SOURCES]);
    builder_operand(&op, DISPATCH_OUT, ACCESS_WRITE, slots);
    builder_append(builder, &op);
    for (int64_t i = 0; i < moe_experts_here(builder->plan); i++) {
        block->values->experts[i].in = exchange(builder, "dispatch exchange", slots_of(builder, slots, i), -1);
    }
}

void moe_fc1(struct block *block)
{
    for (int64_t i = 0; i < moe_experts_here(block->builder->plan); i++) {
        struct expert_values *expert = &block->values->experts[i];
        expert->fc1 = tensor_gather_linear(block->builder, &(struct linear){"fc1", fc1_of(block, i), false},
                                           "fc1 input", expert->in, NULL);
    }
}

void moe_activation(struct block *block)
{
    for (int64_t i = 0; i < moe_experts_here(block->builder->plan); i++) {
        struct expert_values *expert = &block->values->experts[i];
        expert->s                    = mlp_activate(block->builder, expert->fc1);
    }
}

void moe_fc2(struct block *block)
{
    struct builder *builder = block->builder;
    int32_t         outputs = new_slots(builder, "expert outputs");
    for (int64_t i = 0; i < moe_experts_here(builder->plan); i++) {
        int32_t slots = slots_of(builder, outputs, i);
        int32_t out   = tensor_linear_reduce(builder, &(struct linear){"fc2", fc2_of(block, i), false}, "fc2 output",
                                             block->values->experts[i].s, made_in(builder, slots));
        exchange(builder, "output exchange", out, slots);
    }
    block->values->tensor[VALUE_EXPERT_OUT] = outputs;
}

// Adds up what a row's choices have in slots, weighed by their gates or (-1) not.
static void append_combine(struct block *block, const char *role, int32_t slots, int32_t gates, int32_t out)
{
    struct op op   = routing_op(block->builder, OP_COMBINE, role);
    op.accumulates = gates < 0;
    builder_operand(&op, COMBINE_IN, ACCESS_READ, slots);
    builder_operand(&op, COMBINE_SLOTS, ACCESS_READ, block->values->tensor[VALUE_SLOTS]);
    if (gates >= 0) {
        builder_operand(&op, COMBINE_GATES, ACCESS_READ, gates);
    }
    builder_operand(&op, COMBINE_OUT, op.accumulates ? ACCESS_UPDATE : ACCESS_WRITE, out);
    builder_append(block->builder, &op);
}

void moe_combine(struct block *block)
{
    struct builder *builder = block->builder;
    int32_t out = builder_activation(builder, "combined", DIMS(builder->routing.rows, builder->routing.columns));
    append_combine(block, "combine", block->values->tensor[VALUE_EXPERT_OUT], block->values->tensor[VALUE_GATES], out);
    block->values->tensor[VALUE_FC2] = out;
}

// Returns the gradient of the expert outputs in their slots; gates receives that of the gates.
static int32_t combine_backward(struct block *block, int32_t gradient, int32_t *gates)
{
    struct builder      *builder = block->builder;
    const struct values *values  = block->values;
    struct op            op      = routing_op(builder, OP_COMBINE_BACKWARD, "combine gradient");
    int32_t              slots   = new_slots(builder, "expert output gradients");
    *gates                       = builder_tensor(builder, "gate gradients", STORAGE_ACTIVATION, DTYPE_F32,
                                                  DIMS(builder->routing.rows, builder->routing.top_k));
    builder_operand(&op, COMBINE_GRADIENT_OUT, ACCESS_READ, gradient);
    builder_operand(&op, COMBINE_GRADIENT_IN_IN, ACCESS_READ, values->tensor[VALUE_EXPERT_OUT]);
    builder_operand(&op, COMBINE_GRADIENT_SLOTS, ACCESS_READ, values->tensor[VALUE_SLOTS]);
    builder_operand(&op, COMBINE_GRADIENT_SOURCES, ACCESS_READ, values->tensor[VALUE_SOURCES]);
    builder_operand(&op, COMBINE_GRADIENT_GATES_IN, ACCESS_READ, values->tensor[VALUE_GATES]);
    builder_operand(&op, COMBINE_GRADIENT_IN, ACCESS_WRITE, slots);
    builder_operand(&op, COMBINE_GRADIENT_GATES, ACCESS_WRITE, *gates);
    builder_append(builder, &op);
    return slots;
}

// Returns the part of the input's gradient that comes through the router.
static int32_t router_backward(struct block *block, int32_t gates)
{
    struct builder      *builder = block->builder;
    const struct values *values  = block->values;
    struct op            op      = routing_op(builder, OP_ROUTE_BACKWARD, "route gradient");
    struct linear        router  = {"router data gradient", block->weights->router, true};
    int32_t              logits =
        builder_activation(builder, "logit gradients", DIMS(builder->routing.rows, builder->routing.experts));
    builder_operand(&op, ROUTE_GRADIENT_LOGITS_IN, ACCESS_READ, values->tensor[VALUE_LOGITS]);
    builder_operand(&op, ROUTE_GRADIENT_CHOICES, ACCESS_READ, values->tensor[VALUE_CHOICES]);
    builder_operand(&op, ROUTE_GRADIENT_GATES_IN, ACCESS_READ, values->tensor[VALUE_GATES]);
    builder_operand(&op, ROUTE_GRADIENT_COUNTS, ACCESS_READ, values->tensor[VALUE_COUNTS]);
    builder_operand(&op, ROUTE_GRADIENT_GATES, ACCESS_READ, gates);
    builder_operand(&op, ROUTE_GRADIENT_LOGITS, ACCESS_WRITE, logits);
    builder_append(builder, &op);
    linear_weight_gradient(builder, "router weight gradient", logits, values->tensor[VALUE_N2], router.weight);
    return linear_data_gradient(builder, router.role, logits, router.weight);
}

// From the gradient of an expert's outputs to that of its inputs, which slots receive.
static void expert_backward(struct block *block, int64_t index, int32_t gradient, int32_t slots)
{
    struct builder             *builder = block->builder;
    const struct expert_values *expert  = &block->values->experts[index];
    int32_t                     fc1 = fc1_of(block, index), fc2 = fc2_of(block, index), whole;

    int32_t ds = tensor_gather_linear(builder, &(struct linear){"fc2 data gradient", fc2, true}, "fc2 output gradient",
                                      gradient, &whole);
    linear_weight_gradient(builder, "fc2 weight gradient", whole, expert->s, fc2);
    int32_t dfc1 = mlp_activation_backward(builder, ds, expert->fc1);
    // The input is gathered beside the data gradient, whose sum travels beside the weight gradient.
    int32_t in   = tensor_gather(builder, "fc1 input again", expert->in);
    int32_t d_in = tensor_linear_then_reduce(builder, &(struct linear){"fc1 data gradient", fc1, true},
                                             "fc1 input gradient", dfc1, made_in(builder, slots));
    exchange(builder, "input gradient exchange", d_in, slots);
    linear_weight_gradient(builder, "fc1 weight gradient", dfc1, in, fc1);
}

int32_t moe_backward(struct block *block, int32_t gradient)
{
    struct builder *builder = block->builder;
    int64_t         count   = moe_experts_here(builder->plan);
    int32_t         gates, slots = combine_backward(block, gradient, &gates);
    int32_t         d_slots   = new_slots(builder, "dispatched gradients");
    int32_t        *travelled = memory_allocate((size_t)count * sizeof(*travelled));
    for (int64_t i = 0; i < count; i++) {
        travelled[i] = exchange(builder, "output gradient exchange", slots_of(builder, slots, i), -1);
    }
    int32_t d_in = router_backward(block, gates);    // beside the first exchange
    for (int64_t i = 0; i < count; i++) {
        expert_backward(block, i, travelled[i], slots_of(builder, d_slots, i));
    }
    append_combine(block, "dispatch gradient", d_slots, -1, d_in);
    free(travelled);
    return d_in;
}
