// SPDX-License-Identifier: MIT
// Tensor parallelism with overlap. A GEMM is split by rows into one block per rank, and blocks pass around the ring of
// tp while others are computed.
//
// Gather: a rank starts with its own rows and passes on the blocks it receives.
//
// Reduce: the sum of a block starts at the two ranks half a ring away from its owner, in both directions. Each rank on
// the way adds its GEMM. A rank alternates between both directions, so that one sum travels while it adds to the other.
// The owner adds the two sums.
#include "gswbench/linear.h"

static int64_t ranks_of(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_TP];
}

// The rows of the rank that is this many places after this one in the ring, or before if < 0.
static int32_t block_ahead(struct builder *builder, const char *name, int32_t whole, int64_t places)
{
    int64_t own  = mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_TP);
    int64_t rank = (own + places + ranks_of(builder)) % ranks_of(builder);
    int64_t rows = builder->plan->tensors[whole].dim[0] / ranks_of(builder);
    return tensor_rows(builder, name, whole, rank * rows, rows);
}

// ahead: elements from out to its place on the rank that it is sent to.
static void rotate(struct builder *builder, const char *role, enum model_value makes, int32_t in, int32_t out,
                   int32_t places, int64_t ahead)
{
    assembly_transfer(&builder->assembly, &(struct transfer){.kind  = OP_ROTATE,
                                                             .role  = role,
                                                             .makes = (uint8_t)makes,
                                                             .axes  = 1u << AXIS_TP,
                                                             .lane  = LANE_TENSOR,
                                                             .in    = in,
                                                             .out   = out,
                                                             .hold  = -1,
                                                             .peer  = places,
                                                             .ahead = ahead});
}

// On the next rank a block is one block further on; from the last position it wraps to the first.
static int64_t next_rank_ahead(const struct builder *builder, int32_t whole, int64_t distance)
{
    const struct tensor *all   = &builder->plan->tensors[whole];
    int64_t              own   = mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_TP);
    int64_t              ranks = ranks_of(builder);
    bool                 wraps = (own - distance - 1 + ranks) % ranks == ranks - 1;
    return all->elements / ranks * (wraps ? 1 - ranks : 1);
}

int32_t tensor_ring_gather(struct builder *builder, const struct linear *linear, int32_t rows, int32_t *whole)
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
            rotate(builder, "row ring", linear->is_gradient ? MAKES_OUTPUT_GRADIENT : MAKES_INPUT, block, next, 1,
                   next_rank_ahead(builder, all, distance));
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

// The tensor for a block's sum: out, or a new one if out is -1.
static int32_t sum_block(struct builder *builder, const struct linear *linear, int64_t rows, int32_t out)
{
    return out >= 0 ? out : linear_out(builder, linear, rows);
}

int32_t tensor_ring_reduce(struct builder *builder, const struct linear *linear, int32_t x, int32_t out)
{
    int64_t ranks = ranks_of(builder), rows = builder->plan->tensors[x].dim[0] / ranks;
    int32_t sum = -1, arrived[2] = {-1, -1};    // sums from the previous and from the next rank
    x = linear_factor(builder, linear, x);
    for (int64_t turn = 0; turn < ranks; turn++) {
        int64_t way    = turn % 2;
        int64_t ahead  = way == 0 ? ranks / 2 - turn / 2 : turn / 2 - (ranks - 1) / 2;
        bool    begins = arrived[way] < 0;
        sum            = begins ? sum_block(builder, linear, rows, ahead == 0 ? out : -1) : arrived[way];
        linear_append(builder, linear, block_ahead(builder, "row block", x, ahead), sum, !begins);
        if (ahead != 0) {
            // The sum for the last turn, which is the own block's, arrives in out.
            arrived[way] = sum_block(builder, linear, rows, turn + 3 == ranks ? out : -1);
            rotate(builder, "sum ring", MAKES_OUTPUT, sum, arrived[way], way == 0 ? 1 : -1, 0);
        }
    }
    assembly_cast(&builder->assembly, "sum of both ways", arrived[ranks % 2], sum, true);
    return sum;
}
