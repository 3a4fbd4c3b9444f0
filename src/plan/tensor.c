// SPDX-License-Identifier: MIT
// Tensor parallelism: the transfers around the matrix products that the ranks of tp share.
#include "internal.h"

static int32_t transfer(struct builder *builder, enum op_kind kind, const char *role, int32_t in, int64_t rows)
{
    const struct tensor *from = &builder->plan->tensors[in];
    int32_t              out =
        builder_tensor(builder, role, STORAGE_ACTIVATION, from->dtype, DIMS(rows, from->elements / from->dim[0]));
    builder_transfer(
        builder,
        &(struct transfer){
            .kind = kind, .role = role, .axes = 1u << AXIS_TP, .lane = LANE_TENSOR, .in = in, .out = out, .hold = -1});
    return out;
}

static bool is_parallel(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_TP] > 1;
}

int32_t tensor_gather(struct builder *builder, const char *role, int32_t rows)
{
    return is_parallel(builder) ? transfer(builder, OP_ALL_GATHER, role, rows, builder->tokens) : rows;
}

int32_t tensor_reduce(struct builder *builder, const char *role, int32_t partial)
{
    return is_parallel(builder) ? transfer(builder, OP_REDUCE_SCATTER, role, partial, builder->shard_tokens) : partial;
}

int32_t tensor_gather_linear(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t *whole)
{
    if (is_parallel(builder) && builder->overlaps) {
        return tensor_ring_gather(builder, linear, x, whole);
    }
    *whole      = tensor_gather(builder, role, x);
    int32_t out = linear_out(builder, linear, builder->tokens);
    linear_append(builder, linear, *whole, out, false);
    return out;
}

int32_t tensor_linear_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x)
{
    if (is_parallel(builder) && builder->overlaps) {
        return tensor_ring_reduce(builder, linear, x);
    }
    int32_t out = linear_out(builder, linear, builder->tokens);
    linear_append(builder, linear, x, out, false);
    return tensor_reduce(builder, role, out);
}

void tensor_reduce_replicated(struct builder *builder, int32_t unit)
{
    const struct plan_unit *reduced = &builder->plan->units[unit];
    if (!is_parallel(builder) || reduced->replicated == 0) {
        return;
    }
    int32_t whole = builder->states[unit].whole_gradient;
    int32_t part  = builder_part(builder, "replicated gradients", whole >= 0 ? whole : reduced->gradient, 0,
                                 DIMS(reduced->replicated));
    builder_transfer(builder, &(struct transfer){.kind = OP_ALL_REDUCE,
                                                 .role = "replicated gradient reduce",
                                                 .axes = 1u << AXIS_TP,
                                                 .lane = LANE_TENSOR,
                                                 .in   = -1,
                                                 .out  = part,
                                                 .hold = -1});
}
