// SPDX-License-Identifier: MIT
// The sizes of an op, by kind.
#ifndef GSWBENCH_OP_SHAPE_H
#define GSWBENCH_OP_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/scaling.h"

// Variants of an op.
enum activation { ACTIVATION_SWIGLU, ACTIVATION_GEGLU, ACTIVATION_GELU, ACTIVATION_RELU2, ACTIVATION_COUNT };
enum norm { NORM_RMS, NORM_LAYER, NORM_LAYER_1P, NORM_COUNT };

struct gemm_shape {
    int64_t m, n, k;
    bool    transpose_a, transpose_b;    // A is stored [k, m], B is stored [n, k]
    int32_t scaling_a, scaling_b;        // enum scaling of A [m, k] and B [n, k]
};
struct rows_shape {
    int64_t rows, columns;
    int64_t valid_columns;     // cross entropy: columns beyond are padding; embedding: rows of the table; split and
                               // join: columns of the first part
    int64_t first, total;      // both: the vocabulary's entries first .. first + valid_columns - 1 of total are here
    int64_t parts;             // cross entropy: over which the vocabulary is shared out; regroup: of a row
    float   epsilon, scale;    // norm; cross entropy and loss sum
    float   multiplier;        // embedding: of rows of the table; cross entropy and its statistics: of logits
    int32_t variant;           // enum norm, enum activation, enum regroup
};
// Rows and their parts change places. Ranks of cp have chunks from both ends of a sequence: of odd parts the rows come
// in reverse, or of odd rows the parts.
enum regroup { REGROUP_STRAIGHT, REGROUP_FOLDED_PARTS, REGROUP_FOLDED_ROWS };
static inline int64_t regroup_place(const struct rows_shape *shape, int64_t row, int64_t part)
{
    int64_t to_row  = shape->variant == REGROUP_FOLDED_PARTS && part % 2 == 1 ? shape->rows - 1 - row : row;
    int64_t to_part = shape->variant == REGROUP_FOLDED_ROWS && row % 2 == 1 ? shape->parts - 1 - part : part;
    return to_part * shape->rows + to_row;
}
struct attention_shape {
    int64_t batch, sequence, heads, kv_heads, head_dim;
    int64_t rotary;    // rope: leading elements of each head that rotate, even
    float   scale;
    bool    causal;
    bool    adds_query;      // backward: d q is added to, not overwritten
    int64_t earlier;         // keys beyond the queries' own number: all seen, and before them when causal
    float   epsilon;         // rope: of the norm of heads, where there is one
    int64_t window;          // causal: positions that a query sees, with its own; 0: all
    int64_t value_dim;       // elements of a head of values, and of what is made of them; 0: head_dim
    int64_t sloped_heads;    // heads of the model, where a score falls by its head's slope with the distance of the
                             // key; 0: it does not
    int64_t first_head;      // ... the place of the first of these heads among them
    int64_t distance;        // ... positions from the first key to the first query
};
static inline int64_t attention_value_dim(const struct attention_shape *shape)
{
    return shape->value_dim > 0 ? shape->value_dim : shape->head_dim;
}
// What the router makes of an expert's logit: its share of the exponentials of all of them, or a number from 0 to 1 of
// its own, which is divided by the sum of all of them where probabilities are meant.
enum router_score { ROUTER_SOFTMAX, ROUTER_SIGMOID };

// Rows of all parts of the microbatch compete for an expert sequence by sequence: row r of all is of sequence
// r / sequence_rows % sequences.
struct routing_shape {
    int64_t rows, columns;               // of this rank's part of the residual stream
    int64_t first, total;                // the own rows are first .. first + rows - 1 of so many
    int64_t sequences, sequence_rows;    // 1 and total: all rows compete
    int64_t experts, top_k;
    int64_t owners;       // ranks that share the experts out: expert e is number e % (experts / owners) of owner
                          // e / (experts / owners), and its slots follow number * owners + owner runs of capacity
    int64_t capacity;     // slots of an expert, or where they are packed, the most that one may take
    int64_t quantum;      // 0: not packed; else slots of experts follow each other in the same order without gaps, and
                          // each has as many as it takes of this rank's rows, rounded up to a multiple of this
    int64_t taken;        // choices that an expert takes of a sequence at most: the most probable, then the first
    bool    balanced;     // experts are dealt out by arithmetic_deal, whatever the logits say
    double  hot;          // ... share of the rows that all get the first experts
    float   auxiliary;    // weight of a sequence's auxiliary loss: experts * sum over experts of (share of the choices
                          // * mean probability); an own row brings its part of it
    int32_t score;        // enum router_score
    bool    is_absolute;    // gates are the scores of the chosen experts; else the shares that these have of their sum
    float   scale;          // what gates are multiplied by
    int64_t groups, top_groups;    // only experts of so many of these groups, the best ones, are chosen; 0: no groups
};
// All slots. Where they are packed, as many as there may be, in equal shares for the experts of an owner.
static inline int64_t routing_slots(const struct routing_shape *shape)
{
    if (shape->quantum == 0) {
        return shape->experts * shape->capacity;
    }
    int64_t experts = shape->experts / shape->owners;
    int64_t needed  = shape->rows * shape->top_k + shape->experts * (shape->quantum - 1);
    int64_t each    = (needed + experts - 1) / experts;
    return experts * ((each + shape->quantum - 1) / shape->quantum * shape->quantum);
}

struct quantize_shape {
    int64_t rows, columns;
    int32_t scaling;    // enum scaling of both copies
};
struct rescale_shape {
    int64_t slots, history;
    float   target;    // what the largest magnitude becomes
};
struct elements_shape {
    int64_t elements;
    float   limit;    // clip: largest norm; 0: measured, never clipped
};
// How many rows go to and come from each member of an all-to-all of unequal parts, which lie one behind the other.
struct transfer_parts {
    const int64_t *in, *out;    // [size]
    int64_t        row;         // elements
};
struct transfer_shape {
    int64_t elements;    // of the whole buffer: size * n above
    int32_t group;       // index in the plan's groups
    int32_t peer;        // send, receive, broadcast: index in the group; rotate: places that it goes on, or back if < 0
    int32_t channel;     // send and receive pair in order within (group, lane pair, channel)
    int64_t ahead;       // rotate: elements from where this rank has OUT to where the rank that it sends to has its own
    const struct transfer_parts *parts;    // of an all-to-all; NULL: equal ones. A plan has none: the step knows them
};

#endif
