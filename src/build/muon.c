// SPDX-License-Identifier: MIT
// Appends Muon's update (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024): five
// Newton-Schulz iterations replace the momentum of a matrix by an approximation of the nearest orthogonal matrix. If tp
// shards a matrix, its ranks all-gather the momentum, and each of them computes the update of the whole matrix. With
// ZeRO-1, each matrix has an owner among the data-parallel replicas (src/shard/muon.c), and only the owner updates it.
#include <math.h>

#include "block.h"
#include "gswbench/linear.h"

// Coefficients of the iterations X <- a X + (b G + c G G) X with G = X X^T, one row per iteration. F. L. Cesista and
// others published them for five iterations: leloykun.github.io/ponder/muon-opt-coeffs.
static const struct polynomial {
    float a, b, c;
} polynomials[MUON_ITERATIONS] = {{4.0848F, -6.8946F, 2.9270F},
                                  {3.9505F, -6.3029F, 2.6377F},
                                  {3.7418F, -5.5913F, 2.3037F},
                                  {2.8769F, -3.1427F, 1.2046F},
                                  {2.8366F, -3.0525F, 1.2012F}};

// The update of one matrix. shares: number of tp ranks over which the matrix is sharded.
struct update {
    struct builder         *builder;
    const struct plan_unit *unit;
    struct muon_matrix      matrix;
    int64_t                 shares;
    bool                    is_by_columns;
};

static int32_t make(const struct update *update, const char *name, enum format format, int64_t rows, int64_t columns)
{
    return assembly_tensor(&update->builder->assembly, name, STORAGE_ACTIVATION, format, DIMS(rows, columns));
}

static int64_t local_elements(const struct update *update)
{
    return update->matrix.local_rows * update->matrix.local_columns;
}

// Returns the elements of `tensor` that belong to this rank's part of the matrix, or -1 if `tensor` is -1. The tensor
// holds elements of the matrix's FSDP unit, from element `start` on.
static int32_t part_of(const struct update *update, const char *name, int32_t tensor, int64_t start)
{
    return tensor < 0 ? -1
                      : assembly_part(&update->builder->assembly, name, tensor, update->matrix.first - start,
                                      DIMS(local_elements(update)));
}

static int32_t append_momentum(const struct update *update)
{
    struct builder            *builder = update->builder;
    const struct plan_unit    *unit    = update->unit;
    const struct muon_matrix  *matrix  = &update->matrix;
    const struct train_config *train   = &builder->plan->train;
    int32_t   out = make(update, "momentum of the next step", FORMAT_F32, matrix->local_rows, matrix->local_columns);
    struct op op  = assembly_op(&builder->assembly, OP_MOMENTUM, "momentum");
    assembly_operand(&op, MOMENTUM_SCALE, builder->plan->clip_scale);
    assembly_operand(&op, MOMENTUM_GRADIENT, part_of(update, "gradient of a matrix", unit->gradient, unit->kept.first));
    assembly_operand(&op, MOMENTUM_FIRST,
                     part_of(update, "momentum of a matrix", unit->first_moment, unit->updated.first));
    assembly_operand(&op, MOMENTUM_OUT, out);
    op.shape.elements =
        (struct elements_shape){.elements = local_elements(update), .factor = (float)train->muon_momentum};
    assembly_append(&builder->assembly, &op);
    return out;
}

// Appends an op that reorders a tensor [parts, rows, columns of a part] to [rows, parts, columns of a part].
static int32_t regroup(const struct update *update, const char *role, int32_t in, int64_t parts, int64_t rows)
{
    struct builder *builder  = update->builder;
    int64_t         elements = builder->plan->tensors[in].elements;
    int32_t         out = make(update, "regrouped matrix", builder->plan->tensors[in].format, rows, elements / rows);
    struct op       op  = assembly_op(&builder->assembly, OP_REGROUP, role);
    op.shape.rows       = (struct rows_shape){.rows = parts, .columns = elements / parts, .parts = rows};
    assembly_append_with(&builder->assembly, &op, SLOTS({REGROUP_IN, in}, {REGROUP_OUT, out}));
    return out;
}

static int32_t gather(const struct update *update, int32_t local)
{
    const struct muon_matrix *matrix = &update->matrix;
    if (update->shares == 1) {
        return local;
    }
    int32_t whole =
        make(update, "gathered momentum", FORMAT_F32, update->shares * matrix->local_rows, matrix->local_columns);
    collect(update->builder, &(struct communication){OP_ALL_GATHER, "momentum gather", .axes = 1u << AXIS_TP,
                                                     .stream = STREAM_TENSOR, .in = local, .out = whole, .hold = -1});
    return update->is_by_columns ? regroup(update, "momentum columns", whole, update->shares, matrix->local_rows)
                                 : whole;
}

static int32_t take_own(const struct update *update, int32_t whole)
{
    const struct plan        *plan   = update->builder->plan;
    const struct muon_matrix *matrix = &update->matrix;
    if (update->shares == 1) {
        return whole;
    }
    int32_t parts =
        update->is_by_columns ? regroup(update, "update columns", whole, matrix->local_rows, update->shares) : whole;
    int64_t index = mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_TP);
    return assembly_part(&update->builder->assembly, "update of a rank", parts, index * local_elements(update),
                         DIMS(local_elements(update)));
}

// Divides a matrix by its Frobenius norm, which bounds all singular values by 1. Returns the quotient.
static int32_t normalize(const struct update *update, int32_t whole)
{
    struct builder           *builder = update->builder;
    const struct muon_matrix *matrix  = &update->matrix;
    int32_t                   sum =
        assembly_tensor(&builder->assembly, "square sum of a matrix", STORAGE_ACTIVATION, FORMAT_F32, DIMS(1));
    int32_t out =
        make(update, "normalized momentum", builder->plan->precision.activation, matrix->rows, matrix->columns);
    struct op squares               = assembly_op(&builder->assembly, OP_SQUARE_SUM, "momentum norm");
    struct op divide                = assembly_op(&builder->assembly, OP_NORMALIZE, "normalized momentum");
    squares.shape.elements.elements = divide.shape.elements.elements = matrix->rows * matrix->columns;
    assembly_append_with(&builder->assembly, &squares, SLOTS({SQUARE_SUM_IN, whole}, {SQUARE_SUM_OUT, sum}));
    assembly_append_with(&builder->assembly, &divide,
                         SLOTS({NORMALIZE_IN, whole}, {NORMALIZE_SUM, sum}, {NORMALIZE_OUT, out}));
    return out;
}

// Appends the GEMM scale * a b + addend * added, where a and b may be transposed. `shape` has scale, addend and the
// transposes. added -1: no addend. Returns a new tensor.
static int32_t multiply(const struct update *update, const char *role, struct gemm_shape shape, int32_t a, int32_t b,
                        int32_t added)
{
    struct builder *builder = update->builder;
    int32_t         out     = make(update, role, builder->plan->precision.activation, shape.m, shape.n);
    struct op       op      = assembly_op(&builder->assembly, OP_GEMM, role);
    op.shape.gemm           = shape;
    assembly_append_with(&builder->assembly, &op, SLOTS({GEMM_A, a}, {GEMM_B, b}, {GEMM_C, out}, {GEMM_ADDEND, added}));
    return out;
}

// Appends one Newton-Schulz iteration on X. With more rows than columns, G = X^T X is the smaller product, and the
// result is a X + X (b G + c G G).
static int32_t iterate(const struct update *update, const struct polynomial *polynomial, int32_t x)
{
    int64_t rows = update->matrix.rows, columns = update->matrix.columns;
    bool    is_tall = rows > columns;
    int64_t m = is_tall ? columns : rows, n = is_tall ? rows : columns;
    int32_t gram = multiply(
        update, "newton-schulz gram",
        (struct gemm_shape){.m = m, .n = m, .k = n, .transpose_a = is_tall, .transpose_b = !is_tall}, x, x, -1);
    int32_t sum = multiply(update, "newton-schulz polynomial",
                           (struct gemm_shape){.m = m, .n = m, .k = m, .scale = polynomial->c, .addend = polynomial->b},
                           gram, gram, gram);
    return multiply(update, "newton-schulz product",
                    (struct gemm_shape){.m = rows, .n = columns, .k = m, .addend = polynomial->a}, is_tall ? x : sum,
                    is_tall ? sum : x, x);
}

static void append_update(const struct update *update, int32_t orthogonal)
{
    struct builder         *builder = update->builder;
    const struct plan      *plan    = builder->plan;
    const struct plan_unit *unit    = update->unit;
    double                  longer =
        (double)(update->matrix.rows > update->matrix.columns ? update->matrix.rows : update->matrix.columns);
    int32_t   master  = part_of(update, "master of a matrix", unit->master, unit->updated.first);
    int32_t   weight  = part_of(update, "weight of a matrix", unit->weight, unit->kept.first);
    struct op op      = assembly_op(&builder->assembly, OP_MUON, "muon");
    op.shape.elements = (struct elements_shape){.elements = local_elements(update),
                                                .factor   = (float)(plan->train.muon_scale * sqrt(longer))};
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({MUON_HYPER, plan->hyper}, {MUON_SCALE, plan->clip_scale}, {MUON_UPDATE, orthogonal},
                               {MUON_MASTER, master}, {MUON_WEIGHT, weight}));
}

static void append_matrix(struct builder *builder, const struct plan_unit *unit, const struct muon_matrix *matrix)
{
    struct update update = {.builder = builder,
                            .unit    = unit,
                            .matrix  = *matrix,
                            .shares  = matrix->rows / matrix->local_rows * (matrix->columns / matrix->local_columns),
                            .is_by_columns = matrix->local_columns < matrix->columns};
    int32_t       x      = normalize(&update, gather(&update, append_momentum(&update)));
    for (int i = 0; i < MUON_ITERATIONS; i++) {
        x = iterate(&update, &polynomials[i], x);
    }
    append_update(&update, take_own(&update, x));
}

// Returns the FLOPs of all Newton-Schulz iterations (iterate) of a matrix.
static double count_flops(const struct muon_matrix *matrix)
{
    double rows = (double)matrix->rows, columns = (double)matrix->columns, m = fmin(rows, columns);
    return MUON_ITERATIONS * (2.0 * m * m * m + 4.0 * m * rows * columns);
}

void muon_append(struct builder *builder, int32_t index)
{
    struct plan            *plan     = builder->plan;
    const struct plan_unit *unit     = &plan->units[index];
    bool                    owns_all = !unit_updates_slice(builder, index);
    for (int32_t weight = unit->first_weight; weight < unit->first_weight + unit->weight_count; weight++) {
        for (int32_t i = 0; i < muon_matrices(plan, weight); i++) {
            struct muon_matrix matrix = muon_matrix(builder, weight, i);
            bool is_own = owns_all || matrix.owner == mesh_group_index(&plan->mesh, plan->rank, unit->update_axes);
            if (is_own) {
                append_matrix(builder, unit, &matrix);
            }
            if (!owns_all) {
                double owners = (double)mesh_group_size(&plan->mesh, unit->update_axes);
                plan->owner_flops += count_flops(&matrix) * (1.0 / owners - (is_own ? 1.0 : 0.0));
            }
        }
    }
}
