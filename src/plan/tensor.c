// SPDX-License-Identifier: MIT
// Tensor parallelism: the transfers around the matrix products that the ranks of tp share.
#include "internal.h"

static struct transfer transfer_of(enum op_kind kind, const char *role, int32_t in, int32_t out)
{
    return (struct transfer){
        .kind = kind, .role = role, .axes = 1u << AXIS_TP, .lane = LANE_TENSOR, .in = in, .out = out, .hold = -1};
}

static int32_t to_rows(struct builder *builder, enum op_kind kind, const char *role, int32_t in, int64_t rows)
{
    const struct tensor *from = &builder->plan->tensors[in];
    int32_t              out =
        builder_tensor(builder, role, STORAGE_ACTIVATION, from->dtype, DIMS(rows, from->elements / from->dim[0]));
    struct transfer transfer = transfer_of(kind, role, in, out);
    builder_transfer(builder, &transfer);
    return out;
}

static bool is_parallel(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_TP] > 1;
}

// Whether the residual stream is shared out by rows; else every rank of tp has all of it.
static bool shares_rows(const struct builder *builder)
{
    return builder->shard_tokens < builder->tokens;
}

int32_t tensor_gather(struct builder *builder, const char *role, int32_t rows)
{
    return shares_rows(builder) ? to_rows(builder, OP_ALL_GATHER, role, rows, builder->tokens) : rows;
}

int32_t tensor_reduce(struct builder *builder, const char *role, int32_t partial)
{
    if (shares_rows(builder)) {
        return to_rows(builder, OP_REDUCE_SCATTER, role, partial, builder->shard_tokens);
    }
    if (is_parallel(builder)) {
        struct transfer transfer = transfer_of(OP_ALL_REDUCE, role, -1, partial);
        builder_transfer(builder, &transfer);
    }
    return partial;
}

int32_t tensor_gather_linear(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t *whole)
{
    if (builder->overlaps) {
        return tensor_ring_gather(builder, linear, x, whole);
    }
    *whole      = tensor_gather(builder, role, x);
    int32_t out = linear_out(builder, linear, builder->tokens);
    linear_append(builder, linear, *whole, out, false);
    return out;
}

int32_t tensor_linear_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x)
{
    if (builder->overlaps) {
        return tensor_ring_reduce(builder, linear, x);
    }
    int32_t out = linear_out(builder, linear, builder->tokens);
    linear_append(builder, linear, x, out, false);
    return tensor_reduce(builder, role, out);
}

void tensor_reduce_replicated(struct builder *builder, int32_t unit)
{
    const struct plan_unit *reduced = &builder->plan->units[unit];
    if (!shares_rows(builder) || reduced->replicated == 0) {
        return;
    }
    int32_t         whole    = builder->states[unit].whole_gradient;
    int32_t         part     = builder_part(builder, "replicated gradients", whole >= 0 ? whole : reduced->gradient, 0,
                                            DIMS(reduced->replicated));
    struct transfer transfer = transfer_of(OP_ALL_REDUCE, "replicated gradient reduce", -1, part);
    builder_transfer(builder, &transfer);
}
