// SPDX-License-Identifier: MIT
// Overlapped tensor parallelism: a product is cut by rows into one block a rank, and the blocks go round the ranks of
// tp while others are worked on. Gathering: a rank begins with its own rows and passes on what it has used. Reducing: a
// sum begins at the rank behind its owner in the ring, and every rank adds its product to it on the way.
#include "internal.h"

static int64_t ranks_of(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_TP];
}

// The rank that is distance places before the own one in the ring.
static int64_t rank_before(const struct builder *builder, int64_t distance)
{
    int64_t own = mesh_group_index(&builder->plan->mesh, builder->plan->rank, 1u << AXIS_TP);
    return (own - distance + ranks_of(builder)) % ranks_of(builder);
}

// An equal share of a tensor's rows.
static int32_t rows_of_rank(struct builder *builder, const char *name, int32_t whole, int64_t rank)
{
    int64_t rows = builder->plan->tensors[whole].dim[0] / ranks_of(builder);
    return context_rows(builder, name, whole, rank * rows, rows);
}

static void rotate(struct builder *builder, const char *role, int32_t in, int32_t out)
{
    builder_transfer(builder, &(struct transfer){.kind = OP_ROTATE,
                                                 .role = role,
                                                 .axes = 1u << AXIS_TP,
                                                 .lane = LANE_TENSOR,
                                                 .in   = in,
                                                 .out  = out,
                                                 .hold = -1});
}

int32_t tensor_ring_gather(struct builder *builder, const struct linear *linear, int32_t rows, int32_t *whole)
{
    const struct tensor *own   = &builder->plan->tensors[rows];
    int64_t              count = own->dim[0] * ranks_of(builder), columns = own->elements / own->dim[0];
    int32_t              all   = builder_activation(builder, "gathered rows", DIMS(count, columns));
    int32_t              out   = linear_out(builder, linear, count);
    int32_t              block = rows_of_rank(builder, "row block", all, rank_before(builder, 0));
    builder_cast(builder, "own rows", rows, block, false);
    for (int64_t distance = 0; distance < ranks_of(builder); distance++) {
        int32_t next = -1;
        if (distance + 1 < ranks_of(builder)) {
            next = rows_of_rank(builder, "row block", all, rank_before(builder, distance + 1));
            rotate(builder, "row ring", block, next);
        }
        linear_append(builder, linear, block, rows_of_rank(builder, "out block", out, rank_before(builder, distance)),
                      false);
        block = next;
    }
    *whole = all;
    return out;
}

int32_t tensor_ring_reduce(struct builder *builder, const struct linear *linear, int32_t x, int32_t out)
{
    int64_t rows = builder->plan->tensors[x].dim[0] / ranks_of(builder);
    int32_t sum  = -1;
    x            = linear_factor(builder, linear, x);
    for (int64_t distance = 1; distance <= ranks_of(builder); distance++) {
        bool    begins = distance == 1;
        int32_t block  = rows_of_rank(builder, "row block", x, rank_before(builder, distance));
        if (begins) {
            sum = linear_out(builder, linear, rows);
        } else {
            bool    is_end = distance == ranks_of(builder) && out >= 0;
            int32_t passed = is_end ? out : linear_out(builder, linear, rows);
            rotate(builder, "sum ring", sum, passed);
            sum = passed;
        }
        linear_append(builder, linear, block, sum, !begins);
    }
    return sum;
}
