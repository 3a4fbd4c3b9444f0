// SPDX-License-Identifier: MIT
// Appends the collectives of tensor parallelism around the sharded GEMMs of linear.c.
#include "gswbench/linear.h"

static int64_t ranks_of(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_TP];
}

// Appends a collective from in to out, or to a new tensor with this many rows if out is -1. Returns the output.
static int32_t to_rows(struct builder *builder, struct communication collective, int64_t rows)
{
    const struct tensor *from = &builder->plan->tensors[collective.in];
    if (collective.out < 0) {
        collective.out = assembly_tensor(&builder->assembly, collective.role, STORAGE_ACTIVATION, from->format,
                                         DIMS(rows, from->elements / from->dim[0]));
    }
    collect(builder, &collective);
    return collective.out;
}

int32_t tensor_rows(struct builder *builder, const char *name, int32_t whole, int64_t first, int64_t rows)
{
    const struct tensor *tensor = &builder->plan->tensors[whole];
    int64_t              width  = tensor->elements / tensor->dim[0];
    return assembly_part(&builder->assembly, name, whole, first * width, DIMS(rows, width));
}

bool tp_shares_rows(const struct builder *builder)
{
    return builder->shard_tokens < builder->tokens;
}

bool tp_shares_matrix(const struct builder *builder, int32_t weight)
{
    const struct plan *plan = builder->plan;
    return plan->mesh.etp > 1 || !plan->units[plan->weights[weight].unit].is_experts;
}

static bool is_split(const struct builder *builder, const struct linear *linear)
{
    return builder->overlaps && !linear->is_whole && tp_shares_matrix(builder, linear->weight) &&
           !adapter_exists(builder, linear->weight);
}

static int32_t gather(struct builder *builder, const char *role, enum model_value makes, int32_t rows)
{
    int64_t all = builder->plan->tensors[rows].dim[0] * ranks_of(builder);
    return tp_shares_rows(builder)
               ? to_rows(builder,
                         (struct communication){OP_ALL_GATHER, role, .makes = (uint8_t)makes, .axes = 1u << AXIS_TP,
                                                .stream = STREAM_TENSOR, .in = rows, .out = -1, .hold = -1},
                         all)
               : rows;
}

int32_t tp_gather(struct builder *builder, const char *role, int32_t rows)
{
    return gather(builder, role, MAKES_INPUT, rows);
}

int32_t tp_gather_again(struct builder *builder, const char *role, int32_t rows, int32_t weight)
{
    return linear_is_trained(builder, weight) ? tp_gather(builder, role, rows) : -1;
}

static int32_t reduce(struct builder *builder, const char *role, int32_t partial, int32_t out)
{
    if (tp_shares_rows(builder)) {
        int64_t own = builder->plan->tensors[partial].dim[0] / ranks_of(builder);
        return to_rows(builder,
                       (struct communication){OP_REDUCE_SCATTER, role, .makes = (uint8_t)MAKES_OUTPUT,
                                              .axes = 1u << AXIS_TP, .stream = STREAM_TENSOR, .in = partial, .out = out,
                                              .hold = -1},
                       own);
    }
    if (ranks_of(builder) > 1) {
        collect(builder, &(struct communication){OP_ALL_REDUCE, role, .makes = MAKES_OUTPUT, .axes = 1u << AXIS_TP,
                                                 .stream = STREAM_TENSOR, .in = -1, .out = partial, .hold = -1});
    }
    return partial;
}

int32_t tp_reduce(struct builder *builder, const char *role, int32_t partial)
{
    return reduce(builder, role, partial, -1);
}

// Tensor parallelism with overlap (tp_overlap). A GEMM is split by rows into one block per tp rank. Blocks pass around
// the ring of tp ranks while other blocks are computed.
//
// Before a column-parallel GEMM, a rank starts with its own rows and passes on the blocks that it receives.
//
// A row-parallel GEMM gives partial products, which are reduce-scattered. A block has two partial sums (with two ranks,
// one). They start at two adjacent ranks opposite the rank that keeps the block, and move to it in opposite directions.
// Each rank on the way adds its partial product. A rank alternates between the directions: it sends one sum while it
// computes a product for the other. The rank that keeps the block adds its own product and both sums.

// Returns the rows of the rank that is this number of places after this rank in the ring, or before it if negative.
static int32_t block_ahead(struct builder *builder, const char *name, int32_t whole, int64_t places)
{
    int64_t own  = mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_TP);
    int64_t rank = (own + places + ranks_of(builder)) % ranks_of(builder);
    int64_t rows = builder->plan->tensors[whole].dim[0] / ranks_of(builder);
    return tensor_rows(builder, name, whole, rank * rows, rows);
}

// In a hop of the ring, this rank receives a block of `whole`, and the next rank receives the block after it, or the
// first block after the last. Returns the distance in elements from this rank's block to the next rank's.
static int64_t next_rank_ahead(const struct builder *builder, int32_t whole, int64_t distance)
{
    const struct tensor *all   = &builder->plan->tensors[whole];
    int64_t              own   = mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_TP);
    int64_t              ranks = ranks_of(builder);
    bool                 wraps = (own - distance - 1 + ranks) % ranks == ranks - 1;
    return all->elements / ranks * (wraps ? 1 - ranks : 1);
}

static int32_t ring_gather(struct builder *builder, const struct linear *linear, int32_t rows, int32_t *whole)
{
    const struct tensor *own   = &builder->plan->tensors[rows];
    int64_t              count = own->dim[0] * ranks_of(builder), columns = own->elements / own->dim[0];
    int32_t              all   = assembly_activation(&builder->assembly, "gathered rows", DIMS(count, columns));
    int32_t              out   = linear_out(builder, linear, count);
    int32_t              block = rows;
    for (int64_t distance = 0; distance < ranks_of(builder); distance++) {
        int32_t next = -1;
        if (distance + 1 < ranks_of(builder)) {
            next = block_ahead(builder, "row block", all, -distance - 1);
            assembly_set_apart(&builder->assembly, next);
            collect(builder,
                    &(struct communication){OP_ROTATE, "row ring",
                                            .makes = linear->is_gradient ? MAKES_OUTPUT_GRADIENT : MAKES_INPUT,
                                            .axes = 1u << AXIS_TP, .stream = STREAM_TENSOR, .in = block, .out = next,
                                            .hold = -1, .peer = 1, .ahead = next_rank_ahead(builder, all, distance)});
        }
        linear_append(builder, linear, block, block_ahead(builder, "out block", out, -distance), false);
        block = next;
    }
    if (whole != NULL) {
        assembly_cast(&builder->assembly, "own rows", rows, block_ahead(builder, "row block", all, 0), false);
        *whole = all;
    }
    return out;
}

// Returns the tensor for a block's sum: `out`, or a new one if out is -1.
static int32_t sum_block(struct builder *builder, const struct linear *linear, int64_t rows, int32_t out)
{
    return out >= 0 ? out : linear_out(builder, linear, rows);
}

static int32_t ring_reduce(struct builder *builder, const struct linear *linear, int32_t x, int32_t out)
{
    int64_t ranks = ranks_of(builder), rows = builder->plan->tensors[x].dim[0] / ranks;
    int32_t sum = -1, arrived[2] = {-1, -1};    // received from the previous and from the next rank; -1: nothing
    x = linear_splittable(builder, linear, x);
    for (int64_t hop = 0; hop < ranks; hop++) {
        int64_t way    = hop % 2;
        int64_t ahead  = way == 0 ? ranks / 2 - hop / 2 : hop / 2 - (ranks - 1) / 2;
        bool    begins = arrived[way] < 0;
        sum            = begins ? sum_block(builder, linear, rows, ahead == 0 ? out : -1) : arrived[way];
        linear_append(builder, linear, block_ahead(builder, "row block", x, ahead), sum, !begins);
        if (ahead != 0) {
            // The last GEMM computes this rank's own block, and adds to the sum in `out`.
            arrived[way] = sum_block(builder, linear, rows, hop + 3 == ranks ? out : -1);
            collect(builder, &(struct communication){OP_ROTATE, "sum ring", .makes = MAKES_OUTPUT,
                                                     .axes = 1u << AXIS_TP, .stream = STREAM_TENSOR, .in = sum,
                                                     .out = arrived[way], .hold = -1, .peer = way == 0 ? 1 : -1});
        }
    }
    assembly_cast(&builder->assembly, "sum of both ways", arrived[ranks % 2], sum, true);
    return sum;
}

int32_t tp_gather_linear(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                         int32_t *whole)
{
    if (is_split(builder, linear)) {
        return ring_gather(builder, linear, x, whole);
    }
    enum model_value makes = linear->is_gradient ? MAKES_OUTPUT_GRADIENT : MAKES_INPUT;
    int32_t          all   = tp_shares_matrix(builder, linear->weight) ? gather(builder, role, makes, x) : x;
    if (whole != NULL) {
        *whole = all;
    }
    return linear_gemm(builder, linear, all);
}

int32_t tp_linear_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x, int32_t out)
{
    return is_split(builder, linear) ? ring_reduce(builder, linear, x, out)
                                     : tp_linear_then_reduce(builder, linear, role, x, out);
}

int32_t tp_linear_then_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                              int32_t out)
{
    bool    is_partial = tp_shares_matrix(builder, linear->weight);
    bool    is_apart   = out < 0 || (is_partial && tp_shares_rows(builder));
    int32_t product    = is_apart ? linear_out_of(builder, linear, x) : out;
    linear_append(builder, linear, x, product, false);
    return is_partial ? reduce(builder, role, product, out) : product;
}

// All-reduces the gradients in `slice` over these axes. Weights in the slice are replicated over the axes.
static void all_reduce_slice(struct builder *builder, int32_t unit, uint32_t axes, struct plan_slice slice)
{
    if (mesh_group_size(&builder->plan->mesh, axes) == 1 || slice.elements == 0) {
        return;
    }
    int32_t whole = builder->states[unit].whole_gradient;
    int32_t from  = whole >= 0 ? whole : builder->plan->units[unit].gradient;
    int32_t same  = assembly_part(&builder->assembly, "replicated gradients", from, slice.first, DIMS(slice.elements));
    collect(builder,
            &(struct communication){OP_ALL_REDUCE, "replicated gradient reduce", .makes = MAKES_WEIGHT_GRADIENT,
                                    .axes = axes, .stream = STREAM_TENSOR, .in = -1, .out = same, .hold = -1});
}

void tp_reduce_replicated(struct builder *builder, int32_t unit)
{
    const struct plan      *plan    = builder->plan;
    const struct plan_unit *reduced = &plan->units[unit];
    // Without sequence parallelism, gradients of replicated weights are already equal on all tp ranks, except partial
    // sums: gradients of query and key norms, as a rank has only some heads, and of replicated adapter matrices.
    int64_t elements = tp_shares_rows(builder) ? reduced->replicated : reduced->of_heads;
    all_reduce_slice(builder, unit, 1u << AXIS_TP, (struct plan_slice){0, elements});
    for (int32_t i = 0; i < reduced->weight_count; i++) {
        const struct weight *weight = &plan->weights[reduced->first_weight + i];
        struct plan_slice    slice  = {-1, 0};    // parts of keys and values, which are consecutive
        for (int32_t j = 0; j < weight->part_count; j++) {
            const struct weight_part *part = &weight->part[j];
            if (part->replica_axes == MESH_HEAD_COPIES) {
                slice.first = slice.first < 0 ? weight->first + part->offset : slice.first;
                slice.elements += part->local_rows * part->local_columns;
            }
        }
        all_reduce_slice(builder, unit, MESH_HEAD_COPIES, slice);
    }
}

uint32_t tp_job_axes(const struct plan *plan, uint32_t axes)
{
    return mesh_group_size(&plan->mesh, axes) > 1 ? MESH_ALL_AXES : 0;
}

uint32_t tp_loss_axes(const struct plan *plan)
{
    return tp_job_axes(plan, axis_sharing(AXIS_SHARES_TOKENS | AXIS_SHARES_LAYERS));
}

bool tp_counts_loss(const struct plan *plan)
{
    return mesh_group_index(&plan->mesh, plan->rank, tp_loss_axes(plan) & 1u << AXIS_TP) == 0;
}
