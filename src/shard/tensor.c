// SPDX-License-Identifier: MIT
// Tensor parallelism: collectives around the sharded GEMMs.
#include "gswbench/linear.h"

static struct transfer transfer_of(enum op_kind kind, const char *role, enum model_value makes, int32_t in, int32_t out)
{
    return (struct transfer){.kind  = kind,
                             .role  = role,
                             .makes = (uint8_t)makes,
                             .axes  = 1u << AXIS_TP,
                             .lane  = LANE_TENSOR,
                             .in    = in,
                             .out   = out,
                             .hold  = -1};
}

static int64_t ranks_of(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_TP];
}

// out -1: a new tensor with this many rows.
static int32_t to_rows(struct builder *builder, struct transfer transfer, int64_t rows)
{
    const struct tensor *from = &builder->plan->tensors[transfer.in];
    if (transfer.out < 0) {
        transfer.out = assembly_tensor(&builder->assembly, transfer.role, STORAGE_ACTIVATION, from->format,
                                       DIMS(rows, from->elements / from->dim[0]));
    }
    assembly_transfer(&builder->assembly, &transfer);
    return transfer.out;
}

int32_t tensor_rows(struct builder *builder, const char *name, int32_t whole, int64_t first, int64_t rows)
{
    const struct tensor *tensor = &builder->plan->tensors[whole];
    int64_t              width  = tensor->elements / tensor->dim[0];
    return assembly_part(&builder->assembly, name, whole, first * width, DIMS(rows, width));
}

bool tensor_shares_rows(const struct builder *builder)
{
    return builder->shard_tokens < builder->tokens;
}

bool tensor_shares_matrix(const struct builder *builder, int32_t weight)
{
    const struct plan *plan = builder->plan;
    return plan->mesh.etp > 1 || !plan->units[plan->weights[weight].unit].is_experts;
}

static bool is_split(const struct builder *builder, const struct linear *linear)
{
    return builder->overlaps && !linear->is_whole && tensor_shares_matrix(builder, linear->weight);
}

static int32_t gather(struct builder *builder, const char *role, enum model_value makes, int32_t rows)
{
    int64_t all = builder->plan->tensors[rows].dim[0] * ranks_of(builder);
    return tensor_shares_rows(builder) ? to_rows(builder, transfer_of(OP_ALL_GATHER, role, makes, rows, -1), all)
                                       : rows;
}

int32_t tensor_gather(struct builder *builder, const char *role, int32_t rows)
{
    return gather(builder, role, MAKES_INPUT, rows);
}

static int32_t reduce(struct builder *builder, const char *role, int32_t partial, int32_t out)
{
    if (tensor_shares_rows(builder)) {
        int64_t own = builder->plan->tensors[partial].dim[0] / ranks_of(builder);
        return to_rows(builder, transfer_of(OP_REDUCE_SCATTER, role, MAKES_OUTPUT, partial, out), own);
    }
    if (ranks_of(builder) > 1) {
        struct transfer transfer = transfer_of(OP_ALL_REDUCE, role, MAKES_OUTPUT, -1, partial);
        assembly_transfer(&builder->assembly, &transfer);
    }
    return partial;
}

int32_t tensor_reduce(struct builder *builder, const char *role, int32_t partial)
{
    return reduce(builder, role, partial, -1);
}

int32_t tensor_gather_linear(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t *whole)
{
    if (is_split(builder, linear)) {
        return tensor_ring_gather(builder, linear, x, whole);
    }
    enum model_value makes = linear->is_gradient ? MAKES_OUTPUT_GRADIENT : MAKES_INPUT;
    int32_t          all   = tensor_shares_matrix(builder, linear->weight) ? gather(builder, role, makes, x) : x;
    if (whole != NULL) {
        *whole = all;
    }
    return linear_gemm(builder, linear, all);
}

int32_t tensor_linear_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                             int32_t out)
{
    return is_split(builder, linear) ? tensor_ring_reduce(builder, linear, x, out)
                                     : tensor_linear_then_reduce(builder, linear, role, x, out);
}

int32_t tensor_linear_then_reduce(struct builder *builder, const struct linear *linear, const char *role, int32_t x,
                                  int32_t out)
{
    bool    is_partial = tensor_shares_matrix(builder, linear->weight);
    bool    is_apart   = out < 0 || (is_partial && tensor_shares_rows(builder));
    int32_t product    = is_apart ? linear_out_of(builder, linear, x) : out;
    linear_append(builder, linear, x, product, false);
    return is_partial ? reduce(builder, role, product, out) : product;
}

// All-reduces gradients of elements that these ranks have in common.
static void sum_alike(struct builder *builder, int32_t unit, uint32_t axes, struct plan_slice run)
{
    if (mesh_group_size(&builder->plan->mesh, axes) == 1 || run.elements == 0) {
        return;
    }
    int32_t         whole = builder->states[unit].whole_gradient;
    int32_t         from  = whole >= 0 ? whole : builder->plan->units[unit].gradient;
    struct transfer transfer =
        transfer_of(OP_ALL_REDUCE, "replicated gradient reduce", MAKES_WEIGHT_GRADIENT, -1,
                    assembly_part(&builder->assembly, "replicated gradients", from, run.first, DIMS(run.elements)));
    transfer.axes = axes;
    assembly_transfer(&builder->assembly, &transfer);
}

void tensor_reduce_replicated(struct builder *builder, int32_t unit)
{
    const struct plan      *plan    = builder->plan;
    const struct plan_unit *reduced = &plan->units[unit];
    // Without sequence parallelism, gradients of replicated weights are already equal on all ranks; only head weights
    // need the sum over heads.
    int64_t elements = tensor_shares_rows(builder) ? reduced->replicated : reduced->of_heads;
    sum_alike(builder, unit, 1u << AXIS_TP, (struct plan_slice){0, elements});
    for (int32_t i = 0; i < reduced->weight_count; i++) {
        const struct weight *weight = &plan->weights[reduced->first_weight + i];
        struct plan_slice    run    = {-1, 0};    // parts of keys and values are consecutive
        for (int32_t j = 0; j < weight->part_count; j++) {
            const struct weight_part *part = &weight->part[j];
            if (part->alike == MESH_HEAD_COPIES) {
                run.first = run.first < 0 ? weight->first + part->offset : run.first;
                run.elements += part->local_rows * part->local_columns;
            }
        }
        sum_alike(builder, unit, MESH_HEAD_COPIES, run);
    }
}

uint32_t tensor_job_axes(const struct plan *plan, uint32_t axes)
{
    return mesh_group_size(&plan->mesh, axes) > 1 ? MESH_ALL_AXES : 0;
}

uint32_t tensor_loss_axes(const struct plan *plan)
{
    return tensor_job_axes(plan, axis_sharing(AXIS_SHARES_TOKENS | AXIS_SHARES_LAYERS));
}

bool tensor_counts_loss(const struct plan *plan)
{
    return mesh_group_index(&plan->mesh, plan->rank, tensor_loss_axes(plan) & 1u << AXIS_TP) == 0;
}
