// SPDX-License-Identifier: MIT
// Declarations of weights: shape, sharding and initial values of each part.
#pragma once

#include "gswbench/builder.h"

// A tensor in the exported model: its name, with %d for the layer and a second %d for the expert, and its random stream
// within the layer or expert. A layer has 64 streams, an expert 4.
struct exported {
    const char *name;
    int         stream;
};

// A part of a weight: a whole matrix or vector, and this rank's rows and columns of it.
struct declared_part {
    const struct exported *as;
    int64_t                rows, columns;
    int64_t                first_row, local_rows;
    int64_t                first_column, local_columns;
    uint32_t               alike;    // 1 << axis, MESH_HEAD_COPIES: axes along which ranks have the same rows and
                                     // columns
};

// A weight: up to three parts, concatenated by rows.
struct declaration {
    const char          *name;
    int32_t             *index;            // receives the index in plan->weights; NULL: not needed
    int64_t              expert;           // -1: not an expert's
    int64_t              rows, columns;    // on this rank, with padding
    struct declared_part part[3];
    int                  parts;
    int32_t              bias_of;          // declaration of the matrix that this is the bias of; -1: not a bias
    bool                 is_vector;        // one-dimensional, unlike a matrix of one row
    bool                 is_replicated;    // on all ranks of tp
    bool                 is_of_heads;      // replicated, but each rank's gradient covers only its own heads
    int64_t              linear;           // index among the sublayer's linears that can run in FP8; -1: none
    enum linear_kind     gemm;
    float                deviation, constant;
    bool                 is_summed;    // row-parallel: the outputs are partial sums over tp
    int32_t              place;        // index in plan->weights
};

// How tp shards a matrix: by rows (outputs) or by columns (inputs), in equal parts. Experts with etp = 1 are not
// sharded.
struct share {
    int64_t  size, index;
    uint32_t alike;    // axes along which ranks have the same part
};

struct declarations {
    const struct builder *builder;
    const struct block   *block;
    struct share          share;
    int64_t               first_linear;    // model-wide index of the current sublayer's first linear
    struct declaration   *list;
    int32_t               count;
};

// Adds a weight without parts. The result is valid until the next declaration.
struct declaration *declare_matrix(struct declarations *declarations, int32_t *index, const char *name);
struct declaration *declare_linear(struct declarations *declarations, int32_t *index, const char *name,
                                   enum linear_kind gemm, int64_t linear);
// A replicated vector of a norm.
void declare_vector(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as,
                    int64_t columns, float constant);
// A replicated matrix.
void declare_whole(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as,
                   int64_t rows, int64_t columns);
// Replicated vectors of head_dim elements that all heads share, one per part.
void declare_head_scales(struct declarations *declarations, int32_t *index, const char *name,
                         const struct exported *const *as, int parts);

// One number per head, sharded over tp like the heads.
void declare_heads(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as);
// The bias of the matrix that was declared last, with the same parts.
void declare_bias(struct declarations *declarations, const char *name, const struct exported *const *as);

// Adds a part of rows x columns that is sharded by rows (column-parallel), or replicated if the weight is.
void declare_rows(const struct declarations *declarations, struct declaration *declaration, const struct exported *as,
                  int64_t rows, int64_t columns);
// The same for keys or values: heads are sharded over tp, and several ranks can have the same head.
void declare_key_value_rows(const struct declarations *declarations, struct declaration *declaration,
                            const struct exported *as);
// Adds a part that is sharded by columns (row-parallel). Its output is added to the residual stream, so its initial
// deviation is divided by sqrt(2 layers), which keeps the variance independent of depth.
void declare_columns(const struct declarations *declarations, struct declaration *declaration,
                     const struct exported *as, int64_t rows, int64_t columns);
// Adds a vocabulary table, with padding after the last row.
void declare_table(const struct declarations *declarations, struct declaration *declaration, const struct exported *as);
