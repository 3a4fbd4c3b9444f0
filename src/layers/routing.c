// SPDX-License-Identifier: MIT
// Appends the ops of MoE routing: router logits, assignment of tokens to experts, token counts, dispatch and combine of
// rows, and the backward pass of the router.
#include "experts.h"

#include <math.h>

#include "gswbench/linear.h"
#include "gswbench/number.h"

// FP8 GEMMs need a multiple of LOW_PRECISION_ROWS rows; MXFP8 and NVFP4 GEMMs need a multiple of SCALING_BLOCK.
enum { LOW_PRECISION_ROWS = 16 };

// Returns the mean number of rows per expert times `factor`, rounded up.
static int64_t share_of_choices(const struct model_config *model, int64_t rows, double factor)
{
    return (int64_t)ceil((double)(rows * model->top_k) * factor / (double)model->experts);
}

uint32_t experts_row_axes(const struct builder *builder)
{
    return 1u << AXIS_CP | (tp_shares_rows(builder) ? 1u << AXIS_TP : 0);
}

struct routing_shape experts_routing(const struct builder *builder)
{
    const struct plan         *plan        = builder->plan;
    const uint32_t             axes        = experts_row_axes(builder);
    const struct model_config *model       = &plan->model;
    const struct train_config *train       = &plan->train;
    bool                       by_sequence = train->capacity_scope == CAPACITY_SEQUENCE;
    bool                       is_balanced = train->routing == ROUTING_BALANCED;
    double                     each        = (double)model->top_k / (double)model->experts;
    int64_t                    rows        = builder->shard_tokens;

    struct routing_shape shape = {.rows      = rows,
                                  .columns   = model_expert_hidden(model),
                                  .first     = by_sequence ? mesh_group_index(&plan->mesh, plan->rank, axes) * rows : 0,
                                  .total     = by_sequence ? mesh_group_size(&plan->mesh, axes) * rows : rows,
                                  .sequences = by_sequence ? train->micro_batch : 1,
                                  .sequence_rows = by_sequence ? builder->sequence : rows,
                                  .experts       = model->experts,
                                  .top_k         = model->top_k,
                                  .owners        = mesh_group_size(&plan->mesh, plan->mesh.owner_axes),
                                  .balanced      = train->routing != ROUTING_TOP_K,
                                  .score         = (int32_t)model->router_score,
                                  .is_absolute   = !model->router_normalise,
                                  .scale         = (float)model->router_scale,
                                  .groups        = model->router_groups,
                                  .top_groups    = model->router_top_groups};
    // routing_shape.hot is the fraction of rows that all choose the first top_k experts. These experts then have
    // routing_skew times the mean load.
    if (train->routing == ROUTING_SKEWED && each < 1) {
        shape.hot = (train->routing_skew - 1) * each / (1 - each);
    }
    // A row chooses an expert at most once, so an expert needs at most one slot per row. The capacity is therefore at
    // most the number of rows, and without a capacity factor no row is dropped.
    int64_t multiple = plan->precision.low_precision_linears == 0 ? 1
                       : plan->precision.recipe == RECIPE_MXFP8   ? SCALING_BLOCK
                       : plan->precision.recipe == RECIPE_NVFP4   ? SCALING_BLOCK
                                                                  : LOW_PRECISION_ROWS;
    // In a dropless layer the step counts the rows of each expert and moves and computes only these. If tp shards the
    // experts, it moves and computes the worst-case number of rows instead.
    bool is_dropless  = model->capacity_factor == 0 && !is_balanced && plan->mesh.etp == 1;
    shape.multiple    = is_dropless ? multiple : 0;
    int64_t competing = shape.total / shape.sequences;
    int64_t needed    = is_balanced ? share_of_choices(model, rows, 1) : rows;
    double  factor    = model->capacity_factor;
    shape.taken       = factor > 0 ? number_min(competing, share_of_choices(model, competing, factor)) : competing;
    shape.capacity    = number_min(needed, shape.sequences * shape.taken);
    shape.auxiliary =
        (float)(model->auxiliary_loss * (double)competing / (double)(train->global_batch * train->sequence));
    return shape;
}

static struct op experts_routing_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    struct op op     = assembly_op(&builder->assembly, kind, role);
    op.shape.routing = builder->routing;
    return op;
}

void experts_append_logits(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    const int64_t   experts = builder->routing.experts;
    struct linear   router  = {.role = "router", .weight = sublayer->weights[WEIGHT_ROUTER]};
    int32_t         own     = assembly_tensor(&builder->assembly, "logits", STORAGE_ACTIVATION, FORMAT_F32,
                                              DIMS(builder->routing.rows, experts));
    linear_append(builder, &router, sublayer->values->tensor[VALUE_N], own, false);
    sublayer->values->tensor[VALUE_LOGITS] = own;
    if (builder->routing.total > builder->routing.rows) {
        int32_t all = assembly_tensor(&builder->assembly, "all logits", STORAGE_ACTIVATION, FORMAT_F32,
                                      DIMS(builder->routing.total, experts));
        collect(builder, &(struct communication){OP_ALL_GATHER, "logits gather", .axes = experts_row_axes(builder),
                                                 .stream = STREAM_TENSOR, .in = own, .out = all, .hold = -1});
        sublayer->values->tensor[VALUE_LOGITS] = all;
    }
}

// Appends the all-to-all of token counts: each rank sends each expert's rank the number of tokens for it.
static void append_exchange(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t own = sublayer->values->tensor[VALUE_TOKEN_COUNTS], *received = &sublayer->values->tensor[VALUE_RECEIVED];
    *received = -1;

    assembly_set_part(&builder->assembly, PART_DISPATCH);
    if (builder->routing.owners > 1) {
        *received = assembly_tensor(&builder->assembly, "received token counts", STORAGE_ACTIVATION, FORMAT_I32,
                                    DIMS(builder->routing.experts));
        collect(builder, &(struct communication){OP_ALL_TO_ALL, "token count exchange", .makes = MAKES_INPUT,
                                                 .axes = builder->plan->mesh.owner_axes, .stream = STREAM_EXPERT,
                                                 .in = own, .out = *received, .hold = -1});
    }
}

// Returns the expected and maximum rows of a local expert. The plan expects uniform routing: a rank receives as many
// rows as it sends, divided equally among its experts. An expert has the maximum if every row of every rank chooses it.
static struct row_count row_count_of(const struct builder *builder, int32_t reader, int64_t expert)
{
    const struct routing_shape *shape = &builder->routing;
    int64_t                     here = shape->experts / shape->owners, rows = shape->rows * shape->top_k;
    int64_t                     share = (expert + 1) * rows / here - expert * rows / here;
    return (struct row_count){.reader   = reader,
                              .expected = number_round_up(share > 0 ? share : 1, shape->multiple),
                              .maximum  = shape->owners * number_round_up(shape->rows, shape->multiple)};
}

// Appends the op with which the host reads the token counts. Recompute has no such op: it uses the counts of the
// forward pass.
int32_t experts_append_row_counts(struct sublayer *sublayer)
{
    struct builder               *builder = sublayer->builder;
    const struct routing_shape   *shape   = &builder->routing;
    const struct sublayer_values *values  = sublayer->values;
    if (shape->multiple == 0 || builder->assembly.tag.phase == PHASE_RECOMPUTE) {
        return -1;
    }
    struct op op     = experts_routing_op(builder, OP_READ_TOKEN_COUNTS, "read token counts");
    int32_t   reader = assembly_append_with(&builder->assembly, &op,
                                            SLOTS({READ_TOKEN_COUNTS_OWN, values->tensor[VALUE_TOKEN_COUNTS]},
                                                  {READ_TOKEN_COUNTS_RECEIVED, values->tensor[VALUE_RECEIVED]}));
    int32_t   first  = builder->plan->row_count_total;
    for (int64_t expert = 0; expert < shape->experts / shape->owners; expert++) {
        struct row_count row_count = row_count_of(builder, reader, expert);
        assembly_row_count(&builder->assembly, &row_count);
        if (shape->owners > 1) {
            assembly_row_count(&builder->assembly, &row_count);
        }
    }
    return first;
}

// Appends OP_ROUTE_FORWARD. In recompute it adds no routing statistics, since the forward pass has counted the rows.
void experts_append_route(struct sublayer *sublayer)
{
    struct builder             *builder = sublayer->builder;
    const struct routing_shape *shape   = &builder->routing;
    const struct {
        int         value;
        int         slot;
        const char *name;
        enum format format;
        int64_t     rows, columns;
    } made[] = {
        {VALUE_CHOICES, ROUTE_CHOICES, "choices", FORMAT_I32, shape->rows, shape->top_k},
        {VALUE_SLOTS, ROUTE_SLOTS, "slots", FORMAT_I32, shape->rows, shape->top_k},
        {VALUE_GATES, ROUTE_GATES, "gates", FORMAT_F32, shape->rows, shape->top_k},
        {VALUE_SOURCES, ROUTE_SOURCES, "sources", FORMAT_I32, routing_slots(shape), 1},
        {VALUE_COUNTS, ROUTE_COUNTS, "counts", FORMAT_F32, shape->sequences, shape->experts},
    };
    struct op op = experts_routing_op(builder, OP_ROUTE_FORWARD, "route");
    assembly_operand(&op, ROUTE_LOGITS, sublayer->values->tensor[VALUE_LOGITS]);
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        int32_t tensor = assembly_tensor(&builder->assembly, made[i].name, STORAGE_ACTIVATION, made[i].format,
                                         DIMS(made[i].rows, made[i].columns));
        assembly_operand(&op, made[i].slot, tensor);
        sublayer->values->tensor[made[i].value] = tensor;
    }
    int64_t place = block_place(&builder->plan->model, builder->assembly.tag.layer);
    int64_t layer = builder->blocks[place].expert_layer, width = shape->experts + 2;    // width: row of plan->routing
    if (builder->assembly.tag.phase != PHASE_RECOMPUTE) {
        op.accumulates = true;
        assembly_operand(&op, ROUTE_STATISTICS,
                         assembly_part(&builder->assembly, "routing statistics", builder->plan->routing, layer * width,
                                       DIMS(width)));
    }
    if (builder->plan->router_bias >= 0) {
        assembly_operand(&op, ROUTE_BIAS,
                         assembly_part(&builder->assembly, "bias of a router", builder->plan->router_bias,
                                       layer * shape->experts, DIMS(shape->experts)));
    }
    if (shape->multiple > 0) {
        int32_t row_counts =
            assembly_tensor(&builder->assembly, "token counts", STORAGE_ACTIVATION, FORMAT_I32, DIMS(shape->experts));
        assembly_operand(&op, ROUTE_TOKEN_COUNTS, row_counts);
        sublayer->values->tensor[VALUE_TOKEN_COUNTS] = row_counts;
    }
    assembly_append(&builder->assembly, &op);
    if (shape->multiple > 0 && builder->assembly.tag.phase != PHASE_RECOMPUTE) {
        append_exchange(sublayer);
    }
}

int32_t experts_router_backward(struct sublayer *sublayer, int32_t gates, int32_t other)
{
    struct builder               *builder = sublayer->builder;
    const struct sublayer_values *values  = sublayer->values;
    assembly_set_part(&builder->assembly, PART_ROUTER);
    struct op     op     = experts_routing_op(builder, OP_ROUTE_BACKWARD, "route gradient");
    struct linear router = {
        .role = "router data gradient", .weight = sublayer->weights[WEIGHT_ROUTER], .is_gradient = true};
    int32_t logits = assembly_activation(&builder->assembly, "logit gradients",
                                         DIMS(builder->routing.rows, builder->routing.experts));
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({ROUTE_GRADIENT_LOGITS_IN, values->tensor[VALUE_LOGITS]},
                               {ROUTE_GRADIENT_CHOICES, values->tensor[VALUE_CHOICES]},
                               {ROUTE_GRADIENT_GATES_IN, values->tensor[VALUE_GATES]},
                               {ROUTE_GRADIENT_COUNTS, values->tensor[VALUE_COUNTS]}, {ROUTE_GRADIENT_GATES, gates},
                               {ROUTE_GRADIENT_LOGITS, logits}));
    linear_weight_gradient(builder, "router weight gradient", logits, values->tensor[VALUE_N], router.weight);
    int32_t d_in = other >= 0 ? other : linear_out_of(builder, &router, logits);
    linear_append(builder, &router, logits, d_in, other >= 0);
    return d_in;
}

void experts_append_balance(struct builder *builder)
{
    const struct plan *plan = builder->plan;
    if (plan->router_bias < 0) {
        return;
    }
    struct op op  = assembly_op(&builder->assembly, OP_BALANCE, "balance");
    op.shape.rows = (struct rows_shape){
        .rows = builder->expert_layers, .columns = plan->model.experts, .scale = (float)plan->model.router_bias_rate};
    assembly_append_with(
        &builder->assembly, &op,
        SLOTS({BALANCE_LOADS, plan->routing}, {BALANCE_BIAS, plan->router_bias}, {BALANCE_SCALE, plan->clip_scale}));
}

// The following functions move rows between tokens and slots: dispatch, combine, and the gradient of gates. A slot is a
// row of the send buffer, one token for one of its experts.

int32_t experts_new_slots(struct builder *builder, const char *name)
{
    const struct routing_shape *shape = &builder->routing;
    return assembly_activation(&builder->assembly, name, DIMS(routing_slots(shape), shape->columns));
}

void experts_fill_slots(struct sublayer *sublayer, const char *role, int32_t in, int32_t gates, int32_t slots)
{
    struct builder *builder = sublayer->builder;
    struct op       op      = experts_routing_op(builder, OP_DISPATCH, role);
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({DISPATCH_IN, in}, {DISPATCH_SOURCES, sublayer->values->tensor[VALUE_SOURCES]},
                               {DISPATCH_OUT, slots}, {DISPATCH_GATES, gates}));
}

void experts_sum_choices(struct sublayer *sublayer, const char *role, int32_t slots, int32_t gates, int32_t out,
                         bool adds)
{
    struct op op   = experts_routing_op(sublayer->builder, OP_COMBINE, role);
    op.accumulates = adds;
    assembly_append_with(&sublayer->builder->assembly, &op,
                         SLOTS({COMBINE_IN, slots}, {COMBINE_SLOTS, sublayer->values->tensor[VALUE_SLOTS]},
                               {COMBINE_GATES, gates}, {COMBINE_OUT, out}));
}

int32_t experts_gate_gradients(struct sublayer *sublayer, const char *role, int32_t rows, int32_t slots, int32_t scaled)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    struct op       op      = experts_routing_op(builder, OP_COMBINE_BACKWARD, role);
    int32_t         gates   = assembly_tensor(&builder->assembly, "gate gradients", STORAGE_ACTIVATION, FORMAT_F32,
                                              DIMS(builder->routing.rows, builder->routing.top_k));
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({COMBINE_GRADIENT_OUT, rows}, {COMBINE_GRADIENT_IN_IN, slots},
                               {COMBINE_GRADIENT_SLOTS, values[VALUE_SLOTS]},
                               {COMBINE_GRADIENT_SOURCES, values[VALUE_SOURCES]},
                               {COMBINE_GRADIENT_GATES_IN, values[VALUE_GATES]}, {COMBINE_GRADIENT_IN, scaled},
                               {COMBINE_GRADIENT_GATES, gates}));
    return gates;
}
