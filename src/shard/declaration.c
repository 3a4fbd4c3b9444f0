// SPDX-License-Identifier: MIT
// Declares weights: the rows and columns of each weight that this rank has, and their initial values.
// src/build/weights.c assigns the declared weights to FSDP units.
#include "gswbench/builder.h"

#include <math.h>

struct declaration *declare_matrix(struct declarations *declarations, int32_t *index, const char *name)
{
    struct declaration *added = LIST_ADD(declarations->list, declarations->count);
    *added                    = (struct declaration){.name       = name,
                                                     .index      = index,
                                                     .expert     = -1,
                                                     .bias_of    = -1,
                                                     .adapter_of = -1,
                                                     .linear     = -1,
                                                     .deviation  = (float)declarations->builder->plan->model.init_deviation};
    return added;
}

struct declaration *declare_linear(struct declarations *declarations, int32_t *index, const char *name,
                                   enum linear_kind gemm, int64_t linear)
{
    struct declaration *added = declare_matrix(declarations, index, name);
    added->gemm               = gemm;
    added->linear             = declarations->first_linear + linear;
    return added;
}

static struct declaration *declare_constant(struct declarations *declarations, int32_t *index, const char *name,
                                            float constant)
{
    struct declaration *vector = declare_matrix(declarations, index, name);
    vector->is_vector          = true;
    vector->is_replicated      = true;
    vector->deviation          = 0;
    vector->constant           = constant;
    return vector;
}

void declare_vector(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as,
                    int64_t columns, float constant)
{
    struct declaration *vector = declare_constant(declarations, index, name, constant);
    declare_rows(declarations, vector, as, 1, columns);
}

static struct share share_of(const struct declarations *declarations, const struct declaration *declaration)
{
    bool is_whole = declaration->expert >= 0 && declarations->builder->plan->mesh.etp == 1;
    return declaration->is_replicated ? (struct share){.size = 1, .replica_axes = 1u << AXIS_TP}
           : is_whole                 ? (struct share){.size = 1}
                                      : declarations->share;
}

// Adds a matrix of rows x columns to a weight. The tp ranks shard it by rows or by columns.
static void add_part(struct declaration *declaration, const struct exported *as, int64_t rows, int64_t columns,
                     struct share share, bool is_by_columns)
{
    int64_t local_rows    = is_by_columns ? rows : rows / share.size;
    int64_t local_columns = is_by_columns ? columns / share.size : columns;

    declaration->as[declaration->parts] = as;
    declaration->part[declaration->parts++] =
        (struct weight_part){.rows          = rows,
                             .columns       = columns,
                             .first_row     = is_by_columns ? 0 : share.index * local_rows,
                             .local_rows    = local_rows,
                             .first_column  = is_by_columns ? share.index * local_columns : 0,
                             .local_columns = local_columns,
                             .replica_axes  = share.replica_axes};
    declaration->rows += local_rows;
    declaration->columns = local_columns;
}

void declare_head_scales(struct declarations *declarations, int32_t *index, const char *name,
                         const struct exported *const *as, int parts)
{
    struct declaration *scales = declare_constant(declarations, index, name, 1.0f);
    scales->is_of_heads        = true;
    for (int i = 0; i < parts; i++) {
        declare_rows(declarations, scales, as[i], 1, declarations->builder->plan->model.head_dim);
    }
}

struct declaration *declare_sharded_vector(struct declarations *declarations, int32_t *index, const char *name,
                                           const struct exported *as, int64_t columns)
{
    struct declaration *vector = declare_matrix(declarations, index, name);
    vector->is_vector          = true;
    add_part(vector, as, 1, columns, declarations->share, true);
    return vector;
}

void declare_bias(struct declarations *declarations, const char *name, const struct exported *const *as)
{
    int32_t                   of       = declarations->count - 1;
    struct declaration       *bias     = declare_constant(declarations, NULL, name, 0.0f);
    const struct declaration *matrix   = &declarations->list[of];
    bool                      is_whole = matrix->expert >= 0 && declarations->builder->plan->mesh.etp == 1;
    bias->bias_of                      = of;
    bias->expert                       = matrix->expert;
    bias->is_replicated                = matrix->is_replicated || (matrix->is_summed && !is_whole);
    bias->rows                         = 1;
    bias->parts                        = matrix->parts;
    for (int i = 0; i < matrix->parts; i++) {
        const struct weight_part *part = &matrix->part[i];
        bias->as[i]                    = as[i];
        bias->part[i]                  = (struct weight_part){.rows          = 1,
                                                              .columns       = part->rows,
                                                              .local_rows    = 1,
                                                              .first_column  = part->first_row,
                                                              .local_columns = part->local_rows,
                                                              .replica_axes  = bias->is_replicated ? 1u << AXIS_TP : part->replica_axes};
        bias->columns += part->local_rows;
    }
}

// Returns the index of the matrix that was declared last, not counting adapters.
static int32_t last_matrix(const struct declarations *declarations)
{
    int32_t index = declarations->count - 1;
    while (declarations->list[index].is_vector || declarations->list[index].adapter_of >= 0) {
        index--;
    }
    return index;
}

static struct declaration *declare_adapter_matrix(struct declarations *declarations, int32_t of,
                                                  enum adapter_matrix adapter, const char *name)
{
    struct declaration *added = declare_matrix(declarations, NULL, name);
    added->adapter_of         = of;
    added->adapter            = adapter;
    // A of a column-parallel matrix and B of a row-parallel one are replicated. Each rank computes a part of their
    // gradient, and the parts are summed.
    added->is_replicated = added->is_of_heads = declarations->list[of].is_summed == (adapter == ADAPTER_B);
    return added;
}

// Declares an adapter's matrix A. It is drawn from a normal distribution with the same standard deviation as the
// uniform distribution in peft and Megatron-Bridge.
static void declare_a(struct declarations *declarations, int32_t of, const struct adapter_names *names)
{
    struct declaration *a    = declare_adapter_matrix(declarations, of, ADAPTER_A, names->name[ADAPTER_A]);
    struct weight_part  like = declarations->list[of].part[0];
    a->rows                  = declarations->builder->plan->model.adapters.rank;
    a->columns               = like.local_columns;
    a->deviation             = (float)(1.0 / sqrt(3.0 * (double)like.columns));
    a->as[a->parts]          = names->a;
    a->part[a->parts++]      = (struct weight_part){.rows          = a->rows,
                                                    .columns       = like.columns,
                                                    .local_rows    = a->rows,
                                                    .first_column  = like.first_column,
                                                    .local_columns = like.local_columns,
                                                    .replica_axes  = a->is_replicated ? 1u << AXIS_TP : 0};
}

static void declare_b(struct declarations *declarations, int32_t of, const struct adapter_names *names)
{
    struct declaration       *b      = declare_adapter_matrix(declarations, of, ADAPTER_B, names->name[ADAPTER_B]);
    const struct declaration *matrix = &declarations->list[of];
    b->columns                       = declarations->builder->plan->model.adapters.rank;
    b->deviation                     = 0;
    for (int i = 0; i < matrix->parts; i++) {
        const struct weight_part *like = &matrix->part[i];
        b->as[b->parts]                = names->b[i];
        b->part[b->parts++] =
            (struct weight_part){.rows          = like->rows,
                                 .columns       = b->columns,
                                 .first_row     = like->first_row,
                                 .local_rows    = like->local_rows,
                                 .local_columns = b->columns,
                                 .replica_axes  = b->is_replicated ? 1u << AXIS_TP : like->replica_axes};
        b->rows += like->local_rows;
    }
}

void declare_adapter(struct declarations *declarations, const struct adapter_names *names)
{
    int32_t                   of     = last_matrix(declarations);
    const struct declaration *matrix = &declarations->list[of];
    if (matrix->expert < 0 && model_adapts(&declarations->builder->plan->model, matrix->gemm)) {
        declare_a(declarations, of, names);
        declare_b(declarations, of, names);
    }
}

void declare_rows(const struct declarations *declarations, struct declaration *declaration, const struct exported *as,
                  int64_t rows, int64_t columns)
{
    add_part(declaration, as, rows, columns, share_of(declarations, declaration), false);
}

void declare_key_value_rows(const struct declarations *declarations, struct declaration *declaration,
                            const struct exported *as)
{
    const struct plan *plan   = declarations->builder->plan;
    int64_t            copies = mesh_group_size(&plan->mesh, MESH_HEAD_COPIES);
    struct share share = {declarations->share.size / copies, declarations->share.index / copies, MESH_HEAD_COPIES};
    add_part(declaration, as, model_kv_width(&plan->model), plan->model.hidden, share, false);
}

void declare_columns(const struct declarations *declarations, struct declaration *declaration,
                     const struct exported *as, int64_t rows, int64_t columns)
{
    const struct model_config *model = &declarations->builder->plan->model;
    add_part(declaration, as, rows, columns, share_of(declarations, declaration), true);
    declaration->is_summed = true;
    declaration->deviation = (float)(model->init_deviation / sqrt(2.0 * (double)model->layers));
}

void declare_table(const struct declarations *declarations, struct declaration *declaration, const struct exported *as)
{
    const struct model_config *model = &declarations->builder->plan->model;
    declare_rows(declarations, declaration, as, model_padded_vocab(model, declarations->share.size), model->hidden);
    struct weight_part *part = &declaration->part[0];
    int64_t             left = model->vocab - part->first_row;
    part->rows               = model->vocab;
    part->local_rows         = left < 0 ? 0 : left < part->local_rows ? left : part->local_rows;
}
