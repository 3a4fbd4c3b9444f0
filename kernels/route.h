// SPDX-License-Identifier: MIT
// The router of experts: who gets a token, with what weight, and what is dropped; and the gradient of its logits.
// Bound by launches: a few numbers a token. Each expert's block reads all choices of a sequence once.
#ifndef GSWBENCH_KERNELS_ROUTE_H
#define GSWBENCH_KERNELS_ROUTE_H

#include "gswbench/format.h"
#include "launch.h"

// A lane of a warp keeps a bit for each expert that it looks at.
enum { ROUTE_EXPERTS_MAX = LAUNCH_WARP * 32 };

// As struct routing_shape, whose comments say more.
struct route_shape {
    int64_t rows, first, total, sequences, sequence_rows;
    int64_t experts, top_k, owners, capacity, taken, quantum, slots;
    bool    balanced, by_sigmoid, is_absolute;
    double  hot;
    int64_t groups, top_groups;
    float   scale;
    float   auxiliary_scale;    // route_auxiliary_scale
};

// A lane of a warp keeps the sum of a group.
enum { ROUTE_GROUPS_MAX = LAUNCH_WARP };

struct route_forward_args {
    const float       *logits;        // [total, experts]
    int32_t           *choices;       // [rows, top_k]
    int32_t           *slots;         // [rows, top_k]
    float             *gates;         // [rows, top_k]
    int32_t           *sources;       // [slots]
    float             *counts;        // [sequences, experts]
    float             *statistics;    // [experts + 2]; may be absent
    int32_t           *tallies;       // [experts]; may be absent where slots are not packed
    const float       *bias;          // [experts]; may be absent
    void              *scratch;       // route_scratch_bytes
    struct route_shape shape;
    bool               accumulates;
};
KERNEL_FUNCTION int kernel_route_forward(const struct route_forward_args *args, const struct kernel_target *target);

// The first of its kernels.
KERNEL_FUNCTION int kernel_route_choose(const struct route_forward_args *args, const struct kernel_target *target);

struct route_backward_args {
    const float       *logits;             // [total, experts]
    const int32_t     *choices;            // [rows, top_k]
    const float       *gates;              // [rows, top_k]
    const float       *counts;             // [sequences, experts]
    const float       *gates_gradient;     // [rows, top_k]
    void              *logits_gradient;    // [rows, experts]
    struct route_shape shape;
    enum format        type;    // of the logits' gradient
};
KERNEL_FUNCTION int kernel_route_backward(const struct route_backward_args *args, const struct kernel_target *target);

// What the auxiliary loss multiplies the product of a row's probabilities and its sequence's counts with: the share of
// the choices is count / (top_k N), the mean probability the sum / N.
GSWBENCH_INLINE float route_auxiliary_scale(const struct route_shape *shape, float auxiliary)
{
    double rows = (double)(shape->total / shape->sequences);
    return (float)((double)auxiliary * (double)shape->experts / ((double)shape->top_k * rows * rows));
}

// A choice that competes for an expert. Floats that are not negative have the order of their bits.
struct route_candidate {
    uint32_t probability_bits;
    int32_t  choice;
};

// What the kernels of a forward pass hand on, one behind the other in the scratch.
struct route_scratch {
    struct route_candidate *candidates;       // [sequences, experts, total / sequences]
    int32_t                *experts;          // [total, top_k]: every choice of all rows
    float                  *probabilities;    // [total, top_k]: negative where the expert does not take the row
    int32_t                *scored;           // [total, top_k]: the experts of the largest scores, where
                                              // route_is_chosen_apart
    float   *auxiliary;                       // [rows]: what each own row brings to the auxiliary loss
    int32_t *dropped;                         // [experts]: own choices
};

GSWBENCH_INLINE struct route_scratch route_scratch_at(void *scratch, const struct route_shape *shape)
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

GSWBENCH_INLINE int64_t route_scratch_bytes(const struct route_shape *shape)
{
    int64_t words = 3 * shape->total * shape->top_k + shape->rows + shape->experts;
    return shape->total * shape->experts * (int64_t)sizeof(struct route_candidate) + words * (int64_t)sizeof(int32_t);
}

// Groups and a bias may choose other experts than those of the largest scores, which the auxiliary loss counts.
GSWBENCH_INLINE bool route_is_chosen_apart(const struct route_forward_args *args)
{
    return !args->shape.balanced && (args->shape.groups > 0 || args->bias != NULL);
}

// The place of an expert in the order of the slots, and the expert at a place.
GSWBENCH_INLINE int64_t route_place(const struct route_shape *shape, int64_t expert)
{
    int64_t experts_per_owner = shape->experts / shape->owners;
    return expert % experts_per_owner * shape->owners + expert / experts_per_owner;
}

GSWBENCH_INLINE int64_t route_expert_at(const struct route_shape *shape, int64_t place)
{
    return place % shape->owners * (shape->experts / shape->owners) + place / shape->owners;
}

// The sequence of a row of all.
GSWBENCH_INLINE int64_t route_sequence(const struct route_shape *shape, int64_t row)
{
    return row / shape->sequence_rows % shape->sequences;
}

// The place of a sequence's n-th choice among all: its rows come in runs, one of each part.
GSWBENCH_INLINE int64_t route_choice(const struct route_shape *shape, int64_t sequence, int64_t n)
{
    int64_t run = shape->sequence_rows * shape->top_k;
    return (n / run * shape->sequences + sequence) * run + n % run;
}

#endif
