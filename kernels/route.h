// SPDX-License-Identifier: MIT
// Declares MoE routing, and gather, scatter and combine of rows by index. A choice is one of the top_k experts of a row
// (token). A slot is a row of the buffer that experts read. Owners: number of ranks in the expert-parallel group.
#pragma once

#include "gswbench/op_shape.h"

#include "launch.h"

// The MoE router computes for each token the top-k experts, their gates and the choices that exceed capacity. Backward
// computes the gradient of the logits. Bound by latency, not by memory: a token has only a few numbers, and the thread
// block of an expert loops over all choices of a sequence.

// Maximum number of experts and of expert groups. Each lane of a warp has a 32-bit mask of its experts and the score of
// one group.
enum { ROUTE_EXPERTS_MAX = LAUNCH_WARP * 32, ROUTE_GROUPS_MAX = LAUNCH_WARP };

struct route_forward_args {
    const float         *logits;          // [total, experts]
    int32_t             *choices;         // [rows, top_k]
    int32_t             *slots;           // [rows, top_k]
    float               *gates;           // [rows, top_k]
    int32_t             *sources;         // [slots]
    float               *counts;          // [sequences, experts]
    float               *statistics;      // [experts + 2] or NULL
    int32_t             *token_counts;    // [experts]; NULL with fixed capacity
    const float         *bias;            // [experts] or NULL
    void                *scratch;         // size: route_scratch_bytes
    struct routing_shape shape;
    int64_t              slot_count;         // result of routing_slots
    float                auxiliary_scale;    // result of route_auxiliary_scale
    bool                 accumulates;
};
KERNEL_FUNCTION int kernel_route_forward(const struct route_forward_args *args, const struct kernel_target *target);

// Selects the top-k experts of every row. kernel_route_forward calls it first.
KERNEL_FUNCTION int kernel_route_choose(const struct route_forward_args *args, const struct kernel_target *target);

struct route_backward_args {
    const float         *logits;             // [total, experts]
    const int32_t       *choices;            // [rows, top_k]
    const float         *gates;              // [rows, top_k]
    const float         *counts;             // [sequences, experts]
    const float         *gates_gradient;     // [rows, top_k]
    void                *logits_gradient;    // [rows, experts]
    struct routing_shape shape;
    float                auxiliary_scale;    // result of route_auxiliary_scale
    enum format          type;               // of logits_gradient
};
KERNEL_FUNCTION int kernel_route_backward(const struct route_backward_args *args, const struct kernel_target *target);

// Returns the factor of the auxiliary loss. The loss of a row is factor * sum over experts of probability * count,
// where count is the number of rows in the row's sequence with the expert among their top_k scores. Over N rows this
// adds up to auxiliary * experts * sum over experts of f P, with f = count / (top_k N) and P the expert's mean
// probability.
GSWBENCH_INLINE double route_auxiliary_scale(const struct routing_shape *shape)
{
    double rows = (double)(shape->total / shape->sequences);
    return (double)shape->auxiliary * (double)shape->experts / ((double)shape->top_k * rows * rows);
}

// A choice that competes for an expert's capacity. It stores the bits of the probability, because bits of non-negative
// floats sort like the floats.
struct route_candidate {
    uint32_t probability_bits;
    int32_t  choice;
};

// Intermediate results of the forward kernels in scratch.
struct route_scratch {
    struct route_candidate *candidates;       // [sequences, experts, total / sequences]
    int32_t                *experts;          // [total, top_k]: choices of every row
    float                  *probabilities;    // [total, top_k]: negative for dropped choices
    int32_t                *scored;           // [total, top_k]: top-k by score; unused unless route_is_chosen_apart
    float                  *auxiliary;        // [rows]: auxiliary loss of each local row
    int32_t                *dropped;          // [experts]: dropped local choices
};

GSWBENCH_INLINE struct route_scratch route_scratch_at(void *scratch, const struct routing_shape *shape)
{
    struct route_scratch parts;
    parts.candidates    = (struct route_candidate *)scratch;
    parts.experts       = (int32_t *)(parts.candidates + shape->total * shape->experts);
    parts.probabilities = (float *)(parts.experts + shape->total * shape->top_k);
    parts.scored        = (int32_t *)(parts.probabilities + shape->total * shape->top_k);
    parts.auxiliary     = (float *)(parts.scored + shape->total * shape->top_k);
    parts.dropped       = (int32_t *)(parts.auxiliary + shape->rows);
    return parts;
}

GSWBENCH_INLINE int64_t route_scratch_bytes(const struct routing_shape *shape)
{
    int64_t words = 3 * shape->total * shape->top_k + shape->rows + shape->experts;
    return shape->total * shape->experts * (int64_t)sizeof(struct route_candidate) + words * (int64_t)sizeof(int32_t);
}

// Returns whether the selected experts may differ from the top-k by score, because of expert groups or a bias. The
// auxiliary loss then needs a second selection by score.
GSWBENCH_INLINE bool route_is_chosen_apart(const struct routing_shape *shape, const float *bias)
{
    return !shape->balanced && (shape->groups > 0 || bias != NULL);
}

// Returns the position of an expert in the order of the slots: by local expert, then by owner. With 2 owners of 2
// experts each, the order of experts is 0 2 1 3. route_expert_at is the inverse.
GSWBENCH_INLINE int64_t route_place(int64_t experts, int64_t owners, int64_t expert)
{
    int64_t experts_per_owner = experts / owners;
    return expert % experts_per_owner * owners + expert / experts_per_owner;
}

GSWBENCH_INLINE int64_t route_expert_at(int64_t experts, int64_t owners, int64_t place)
{
    return place % owners * (experts / owners) + place / owners;
}

// Returns the sequence of the microbatch to which a row of the `total` rows belongs.
GSWBENCH_INLINE int64_t route_sequence(const struct routing_shape *shape, int64_t row)
{
    return row / shape->sequence_rows % shape->sequences;
}

// Returns the index of the n-th choice of a sequence in [total, top_k]. Each rank contributes sequence_rows consecutive
// rows of every sequence, so the rows of a sequence are not contiguous.
GSWBENCH_INLINE int64_t route_choice(const struct routing_shape *shape, int64_t sequence, int64_t n)
{
    int64_t run = shape->sequence_rows * shape->top_k;
    return (n / run * shape->sequences + sequence) * run + n % run;
}

// Gathers rows by index: embedding lookup and MoE dispatch. Memory-bound: each row is read and written once.
// out[i] = multiplier * in[(index[i] - first) / divisor], or zeros if index[i] - first is outside 0 .. count - 1. With
// accumulates it is added to out.
struct gather_args {
    const int32_t *index;    // [rows]
    const void    *in;       // [count / divisor, columns]
    void          *out;      // [rows, columns]
    int64_t        rows, columns;
    int64_t        first, count, divisor;
    float          multiplier;
    bool           accumulates;
    enum format    type;
};
KERNEL_FUNCTION int kernel_gather(const struct gather_args *args, const struct kernel_target *target);

// Gradient of the embedding table: each table row sums the gradients of its tokens in order. Memory-bound: token rows
// are read once and the table is written once (with accumulates, used rows are read and written). A first kernel
// searches for the next equal token of each token, 128 tokens at a time. This is negligible up to a hundred thousand
// tokens.
struct scatter_args {
    const int32_t *tokens;      // [rows]
    const void    *gradient;    // [rows, columns]
    void          *table;       // [table_rows, columns]: tokens first .. first + table_rows - 1
    int32_t       *scratch;     // size: scatter_scratch_bytes
    int64_t        rows, columns, table_rows, first;
    float          multiplier;    // factor of each sum
    bool           accumulates;
    enum format    activation, table_type;
};
KERNEL_FUNCTION int kernel_scatter(const struct scatter_args *args, const struct kernel_target *target);

// Returns the scratch bytes of kernel_scatter. For each row, scratch holds the next and the previous row with the same
// token, or -1.
GSWBENCH_INLINE int64_t scatter_scratch_bytes(int64_t rows)
{
    return 2 * rows * (int64_t)sizeof(int32_t);
}

// MoE combine: weighted sum of a token's expert outputs, and its gradient. Memory-bound: in bf16, 2 (top_k + 1) bytes
// per element forward, 6 bytes per slot element backward.
struct combine_args {
    const void    *in;        // [slots, columns]
    const int32_t *places;    // [rows, top_k]: slot of each choice, or -1
    const float   *gates;     // [rows, top_k]; NULL: all 1
    void          *out;       // [rows, columns]
    int64_t        rows, columns, top_k, slots;
    bool           accumulates;
    enum format    type;
};
KERNEL_FUNCTION int kernel_combine(const struct combine_args *args, const struct kernel_target *target);

struct combine_backward_args {
    const void    *gradient;          // [rows, columns]
    const void    *in;                // [slots, columns]; NULL without gates_gradient
    const int32_t *sources;           // [slots]: choice in each slot, or -1
    const float   *gates;             // [rows, top_k]
    void          *out;               // [slots, columns]: d in, zero for empty slots; may be NULL
    float         *gates_gradient;    // [rows, top_k]: zero for dropped choices; may be NULL
    int64_t        rows, slots, columns, top_k;
    enum format    type;
};
KERNEL_FUNCTION int kernel_combine_backward(const struct combine_backward_args *args,
                                            const struct kernel_target         *target);

// Updates the router biases that balance expert load, once per step.
struct balance_args {
    const float *loads;    // [layers, experts + 2]: choices per expert, then two statistics that are not read here
    float       *bias;     // [layers, experts]
    const float *scale;    // gradient clipping factor; NaN: no update
    int64_t      layers, experts;
    float        rate;
};
KERNEL_FUNCTION int kernel_balance(const struct balance_args *args, const struct kernel_target *target);
