// SPDX-License-Identifier: MIT
// The weights of a block as its kinds declare them: their parts, which of these this rank has, and how they are drawn.
#ifndef GSWBENCH_LAYERS_DECLARATION_H
#define GSWBENCH_LAYERS_DECLARATION_H

#include "builder.h"

// A matrix or vector as others know it: its name, with %d for the layer and then for the expert, and its place among
// the random streams of a layer, or of an expert. A layer has 64 places, an expert 4.
struct exported {
    const char *name;
    int         stream;
};

// A part of a weight: a whole matrix or vector, and which of it is here.
struct declared_part {
    const struct exported *as;
    int64_t                rows, columns;
    int64_t                first_row, local_rows;
    int64_t                first_column, local_columns;
    uint32_t               alike;    // 1 << axis, MESH_HEAD_COPIES: ranks that have the same of it
};

// A weight: up to three parts stacked by rows.
struct declaration {
    const char          *name;
    int32_t             *index;            // receives its place in plan->weights; NULL: nobody asks
    int64_t              expert;           // -1: of all tokens
    int64_t              rows, columns;    // here, padding included
    struct declared_part part[3];
    int                  parts;
    int32_t              bias_of;          // the declaration of the matrix whose bias it is; -1: it is none
    bool                 is_vector;        // not a matrix of one row
    bool                 is_replicated;    // all ranks of tp hold it
    bool                 is_of_heads;      // ... and each has the part of its gradient that its heads make
    int64_t              linear;           // which of the sublayer's linears that FP8 may compute; -1: none
    enum linear_kind     gemm;
    float                deviation, constant;
    bool                 is_summed;    // ranks of tp make parts of its outputs, which are added up
    int32_t              place;        // in plan->weights
};

// The ranks of tp share out a matrix by rows (its outputs) or by columns (its inputs), in equal parts; but not those of
// experts that are whole.
struct share {
    int64_t  size, index;
    uint32_t alike;    // ranks of tp that have the same share
};

struct norm_names;

struct declarations {
    const struct builder *builder;
    const struct block   *block;
    struct share          share;
    int64_t               first_linear;    // in the model, of the sublayer at hand
    struct declaration   *list;
    int32_t               count;
};

// Each adds a weight without parts; what it returns stays until the next one.
struct declaration *declare_matrix(struct declarations *declarations, int32_t *index, const char *name);
struct declaration *declare_linear(struct declarations *declarations, int32_t *index, const char *name,
                                   enum linear_kind gemm, int64_t linear);
// A norm's vector of so many columns, alike on all ranks.
void declare_vector(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as,
                    int64_t columns, float constant);
// A matrix that all ranks of tp hold alike.
void declare_whole(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as,
                   int64_t rows, int64_t columns);
// What all heads share, vectors as long as a head, one a part.
void declare_head_scales(struct declarations *declarations, int32_t *index, const char *name,
                         const struct exported *const *as, int parts);

// Of each head one number, which the ranks of tp share out as they do heads.
void declare_heads(struct declarations *declarations, int32_t *index, const char *name, const struct exported *as);
// The bias of the matrix that was declared last, whose parts it has, under these names.
void declare_bias(struct declarations *declarations, const char *name, const struct exported *const *as);

// A part of rows x columns of which this rank has an equal share of the rows, or all if the weight is replicated.
void declare_rows(const struct declarations *declarations, struct declaration *declaration, const struct exported *as,
                  int64_t rows, int64_t columns);
// ... of keys or of values, whose heads the ranks of tp share out: a head may be on several.
void declare_key_value_rows(const struct declarations *declarations, struct declaration *declaration,
                            const struct exported *as);
// ... of the columns. Its GEMM adds to the residual stream: it is drawn narrower, so that the variance of that does
// not grow with depth.
void declare_columns(const struct declarations *declarations, struct declaration *declaration,
                     const struct exported *as, int64_t rows, int64_t columns);
// A table of the vocabulary: its padding lies behind the last row.
void declare_table(const struct declarations *declarations, struct declaration *declaration, const struct exported *as);

// weights.c: the vectors of a norm of the residual stream; at WEIGHT_NORM and WEIGHT_NORM_BIAS of these.
void declare_norm(struct declarations *declarations, const struct norm_names *norm, int32_t *weights);
// weights.c: the weights of the chunks on this rank, in units.
void weights_declare(struct builder *builder);

#endif
