// SPDX-License-Identifier: MIT
// Lists the matrices that Muon updates. With ZeRO-1, assigns each matrix to an owner among the data-parallel replicas,
// which updates and broadcasts it. An owner has consecutive matrices in model order (separately for experts), so its
// part of an FSDP unit is contiguous. src/build/muon.c has the ops of the update.

#include "gswbench/linear.h"

bool muon_is_used(const struct plan *plan)
{
    return plan->train.optimizer == OPTIMIZER_MUON;
}

// Returns whether Muon updates all parts of a weight, such as gate and up, as one matrix. With muon_split = qkv, only
// weights of queries, keys and values are split into their parts.
static bool is_joint(const struct plan *plan, const struct weight *weight)
{
    enum { QKV_PARTS = 3 };
    return plan->train.muon_split == MUON_SPLIT_QKV && weight->part_count != QKV_PARTS;
}

int32_t muon_matrices(const struct plan *plan, int32_t weight)
{
    return is_joint(plan, &plan->weights[weight]) ? 1 : plan->weights[weight].part_count;
}

struct muon_matrix muon_matrix(const struct builder *builder, int32_t weight, int32_t index)
{
    const struct weight      *of     = &builder->plan->weights[weight];
    const struct weight_part *part   = &of->part[index];
    struct muon_matrix        matrix = {.part          = part,
                                        .first         = of->first + part->offset,
                                        .columns       = part->columns,
                                        .local_columns = part->local_columns,
                                        .owner         = builder->owners[weight * WEIGHT_PARTS + index]};
    for (int32_t i = index; i < (is_joint(builder->plan, of) ? of->part_count : index + 1); i++) {
        matrix.rows += of->part[i].rows;
        matrix.local_rows += of->part[i].local_rows;
    }
    return matrix;
}

// Returns the FLOPs of the Newton-Schulz iterations. With sides m <= n, an iteration multiplies m x n by n x m, m x m
// by m x m, and m x m by m x n.
static double flops_of(const struct muon_matrix *matrix)
{
    double m = (double)(matrix->rows < matrix->columns ? matrix->rows : matrix->columns);
    double n = (double)(matrix->rows < matrix->columns ? matrix->columns : matrix->rows);
    return MUON_ITERATIONS * (4 * m * m * n + 2 * m * m * m);
}

// An iterator over the matrices of experts, or over all other matrices: the two kinds are replicated over different
// axes.
struct matrices {
    struct builder *builder;
    bool            is_experts;
    int32_t         weight, index;    // indices of the current matrix: its weight, and its number in the weight
};

static bool next_matrix(struct matrices *matrices, struct muon_matrix *matrix)
{
    const struct plan *plan = matrices->builder->plan;
    for (matrices->index++; matrices->weight < plan->weight_count; matrices->weight++, matrices->index = 0) {
        const struct plan_unit *unit = &plan->units[plan->weights[matrices->weight].unit];
        if (unit->is_muon && unit->is_experts == matrices->is_experts &&
            matrices->index < muon_matrices(plan, matrices->weight)) {
            *matrix = muon_matrix(matrices->builder, matrices->weight, matrices->index);
            return true;
        }
    }
    return false;
}

// Assigns each matrix to an owner replica, with about equal FLOPs per replica. Then rotates the owners' numbers so that
// replica 0 has the most FLOPs, because predictions use the plan of replica 0 for all replicas.
static void assign(struct builder *builder, bool is_experts)
{
    const struct plan *plan     = builder->plan;
    int64_t            replicas = mesh_group_size(&plan->mesh, mesh_replica_axes(&plan->mesh, is_experts)), busiest = 0;
    double *shares = arena_allocate(&builder->scratch, (size_t)replicas * sizeof(*shares));    // FLOPs per replica
    double  total = 0, before = 0;    // FLOPs of all matrices, and of those before the current one
    struct muon_matrix matrix;
    for (struct matrices all = {builder, is_experts, .index = -1}; next_matrix(&all, &matrix);) {
        total += flops_of(&matrix);
    }
    for (struct matrices all = {builder, is_experts, .index = -1}; next_matrix(&all, &matrix);) {
        double  flops = flops_of(&matrix);
        int64_t owner = plan->is_zero ? (int64_t)((before + flops / 2) / total * (double)replicas) : 0;
        builder->owners[all.weight * WEIGHT_PARTS + all.index] = (int32_t)owner;
        before += flops;
        shares[owner] += flops;
        busiest = shares[owner] > shares[busiest] ? owner : busiest;
    }
    for (struct matrices all = {builder, is_experts, .index = -1}; next_matrix(&all, &matrix);) {
        builder->owners[all.weight * WEIGHT_PARTS + all.index] =
            (int32_t)((matrix.owner - busiest + replicas) % replicas);
    }
}

// Returns the elements of an FSDP unit from the first to the last matrix of an owner.
static struct plan_slice owned_slice(const struct builder *builder, const struct plan_unit *unit, int64_t owner)
{
    const struct plan *plan  = builder->plan;
    struct plan_slice  slice = {0, 0};
    for (int32_t weight = unit->first_weight; weight < unit->first_weight + unit->weight_count; weight++) {
        for (int32_t i = 0; i < muon_matrices(plan, weight); i++) {
            struct muon_matrix matrix = muon_matrix(builder, weight, i);
            if (matrix.owner == owner) {
                slice.first    = slice.elements == 0 ? matrix.first : slice.first;
                slice.elements = matrix.first + matrix.local_rows * matrix.local_columns - slice.first;
            }
        }
    }
    return slice;
}

static void add_state(struct builder *builder, struct plan_unit *unit)
{
    const struct precision *precision = &builder->plan->precision;
    const int64_t          *updated   = DIMS(unit->updated.elements);
    if (precision->has_master) {
        unit->master = assembly_tensor(&builder->assembly, "master weights", STORAGE_OPTIMIZER, FORMAT_F32, updated);
    }
    unit->first_moment = assembly_tensor(&builder->assembly, "momentum", STORAGE_OPTIMIZER, precision->moment, updated);
}

void muon_assign_owners(struct builder *builder)
{
    struct plan *plan = builder->plan;
    builder->owners =
        arena_allocate(&builder->scratch, (size_t)(plan->weight_count * WEIGHT_PARTS) * sizeof(*builder->owners));
    assign(builder, false);
    assign(builder, true);
    for (int32_t i = 0; i < plan->unit_count; i++) {
        struct plan_unit *unit = &plan->units[i];
        if (!unit->is_muon) {
            continue;
        }
        if (unit_updates_slice(builder, i)) {
            unit->updated = owned_slice(builder, unit, mesh_group_index(&plan->mesh, plan->rank, unit->update_axes));
        }
        if (unit->updated.elements > 0) {
            builder->assembly.tag.layer = plan->tensors[unit->weight].layer;
            add_state(builder, unit);
        }
    }
    builder->assembly.tag.layer = -1;
}

void muon_broadcast(struct builder *builder, int32_t unit, int32_t hold)
{
    const struct plan_unit *sent     = &builder->plan->units[unit];
    int64_t                 replicas = mesh_group_size(&builder->plan->mesh, sent->update_axes);
    for (int64_t owner = 0; owner < replicas; owner++) {
        struct plan_slice slice = owned_slice(builder, sent, owner);
        if (slice.elements == 0) {
            continue;
        }
        int32_t part =
            assembly_part(&builder->assembly, "updated weights", sent->weight, slice.first, DIMS(slice.elements));
        collect(builder, &(struct communication){OP_BROADCAST, "weight broadcast", .axes = sent->update_axes,
                                                 .stream = STREAM_WEIGHT_GATHER, .in = -1, .out = part, .hold = hold,
                                                 .peer = (int32_t)owner});
    }
}
