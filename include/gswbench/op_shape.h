// SPDX-License-Identifier: MIT
// Declares the shapes of ops: the numbers that determine the sizes of an op's operands and its variant. Several kinds
// of ops share a struct.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/fp8.h"

// Variants of activations and norms.
enum activation { ACTIVATION_SWIGLU, ACTIVATION_GEGLU, ACTIVATION_GELU, ACTIVATION_RELU2, ACTIVATION_COUNT };
enum norm { NORM_RMS, NORM_LAYER, NORM_LAYER_1P, NORM_COUNT };

struct gemm_shape {
    int64_t m, n, k;
    bool    transpose_a, transpose_b;    // transpose_a: A is stored [k, m]; transpose_b: B is stored [n, k]
    int32_t scaling_a, scaling_b;        // enum scaling of A [m, k] and B [n, k]
    float   scale;                       // factor of the product; 0 means 1
    float   addend;                      // factor of the operand GEMM_ADDEND
};
static inline float gemm_scale(const struct gemm_shape *shape)
{
    return shape->scale != 0.0F ? shape->scale : 1.0F;
}
struct rows_shape {
    int64_t rows, columns;
    // Cross entropy: columns without padding. Embedding: table rows. Split and join: columns of the first part.
    int64_t valid_columns;
    int64_t first, total;      // vocabulary shard: first .. first + valid_columns - 1 of total
    int64_t parts;             // cross entropy: vocabulary shards; regroup: parts of a row
    float   epsilon, scale;    // epsilon: of a norm; scale: factor of cross entropy and loss sum
    float   multiplier;        // factor for table rows (embedding), or for logits (cross entropy and its statistics)
    int32_t variant;           // enum norm, enum activation, enum regroup
};
// Variants of OP_REGROUP, which transposes [rows, parts] to [parts, rows]. REGROUP_STRAIGHT does nothing else. Ulysses
// (src/layers/context.c) uses the folded variants to convert chunks of a sequence from rank order to sequence order and
// back. With cp, rank i has the chunks i and 2 cp - 1 - i, so the second chunks of ranks 0, 1, ... are in descending
// order in the sequence. REGROUP_FOLDED_PARTS has ranks as rows and the chunks of a rank as parts; it reverses the
// order of ranks in odd parts, which are the second chunks. REGROUP_FOLDED_ROWS is the inverse: it has chunks as rows
// and ranks as parts, and reverses the order of ranks in odd rows.
enum regroup { REGROUP_STRAIGHT, REGROUP_FOLDED_PARTS, REGROUP_FOLDED_ROWS };
GSWBENCH_INLINE int64_t regroup_place(const struct rows_shape *shape, int64_t row, int64_t part)
{
    int64_t to_row  = shape->variant == REGROUP_FOLDED_PARTS && part % 2 == 1 ? shape->rows - 1 - row : row;
    int64_t to_part = shape->variant == REGROUP_FOLDED_ROWS && row % 2 == 1 ? shape->parts - 1 - part : part;
    return to_part * shape->rows + to_row;
}
struct attention_shape {
    int64_t batch, sequence, heads, kv_heads, head_dim;
    int64_t rotary;    // RoPE: number of leading elements of each head that rotate; even
    float   scale;
    bool    causal;
    bool    adds_query;    // backward: adds to the gradient of q instead of overwriting it
    // Keys in addition to one per query. Every query attends to them; with a causal mask they precede the queries.
    int64_t earlier;
    float   epsilon;         // RoPE with qk_norm: epsilon of the norm of heads
    int64_t window;          // causal: number of positions that a query attends to, including its own; 0: all
    int64_t value_dim;       // elements of a head of values and outputs; 0: head_dim
    int64_t sloped_heads;    // ALiBi: heads of the whole model, which determine the slopes; 0: no ALiBi
    int64_t first_head;      // ALiBi: index of this op's first head in the model
    int64_t distance;        // ALiBi: positions from the first key to the first query
};
static inline int64_t attention_value_dim(const struct attention_shape *shape)
{
    return shape->value_dim > 0 ? shape->value_dim : shape->head_dim;
}
// Shape of the Mamba-2 ops. The input projection of a token is packed: z [inner], x [inner], B [groups, state], C
// [groups, state], dt [heads]. The convolution covers the channels of x, B and C.
struct mamba_shape {
    int64_t batch, sequence, heads, head_dim, groups, state;
    int64_t taps;       // width of the causal convolution
    int64_t chunk;      // positions of a chunk of the scan; the last chunk of a sequence can be shorter
    float   epsilon;    // epsilon of the gated norm
};
GSWBENCH_INLINE int64_t mamba_inner(const struct mamba_shape *shape)
{
    return shape->heads * shape->head_dim;
}
GSWBENCH_INLINE int64_t mamba_channels(const struct mamba_shape *shape)
{
    return mamba_inner(shape) + 2 * shape->groups * shape->state;
}
GSWBENCH_INLINE int64_t mamba_packed(const struct mamba_shape *shape)
{
    return mamba_inner(shape) + mamba_channels(shape) + shape->heads;
}

// How the router scores an expert: by a softmax over the logits, or by a sigmoid of its logit. The auxiliary loss and
// the capacity use probabilities: the softmax scores, or the sigmoids divided by their sum.
enum router_score { ROUTER_SOFTMAX, ROUTER_SIGMOID };

// Shape of the routing ops. Rows (tokens) of a sequence compete for the capacity of an expert. The ranks that share the
// sequences have sequence_rows rows of every sequence each, one sequence after another. Rows are numbered over these
// ranks, rank by rank, so row r belongs to sequence r / sequence_rows % sequences.
struct routing_shape {
    int64_t rows, columns;               // this rank's tokens; width of the experts' inputs
    int64_t first, total;                // this rank's rows are first .. first + rows - 1 of total rows
    int64_t sequences, sequence_rows;    // sequences, and rows of each per rank. If all rows compete: 1 and `rows`
    int64_t experts, top_k;
    // Size of the expert-parallel group. With n = experts / owners, expert e is local expert e % n of member e / n of
    // this group; its slots start at capacity * (e % n * owners + e / n).
    int64_t owners;
    int64_t capacity;    // slots per expert; if packed, the maximum per expert
    // 0: every expert has `capacity` slots. Otherwise slots are packed: experts follow each other in the same order
    // without gaps, each padded to a multiple of this number of rows.
    int64_t multiple;
    int64_t taken;       // maximum rows of a sequence per expert; the most probable are kept, ties by row order
    bool    balanced;    // experts are assigned by row number (arithmetic_assign), and logits are ignored
    double  hot;         // fraction of rows that all go to the first top_k experts
    // Coefficient of the auxiliary loss of a sequence, which is experts * sum over experts of (f * p). f is the
    // expert's share of the rows' top-k choices by score, and p is its mean probability. Each rank adds the loss of
    // its own rows.
    float   auxiliary;
    int32_t score;                 // enum router_score
    bool    is_absolute;           // gates are the scores of the chosen experts, not divided by their sum
    float   scale;                 // factor of the gates
    int64_t groups, top_groups;    // experts are chosen from the best top_groups of groups; 0: no groups
};
// Returns the number of slots, which are the rows of the send buffer. With a capacity, each expert has `capacity`
// slots. Without one (multiple > 0), each expert's rows are padded to a multiple. The result is then the number of rows
// with the largest padding, rounded up so that all-to-alls of different local experts have the same size.
static inline int64_t routing_slots(const struct routing_shape *shape)
{
    if (shape->multiple == 0) {
        return shape->experts * shape->capacity;
    }
    int64_t experts = shape->experts / shape->owners;
    int64_t needed  = shape->rows * shape->top_k + shape->experts * (shape->multiple - 1);
    int64_t each    = (needed + experts - 1) / experts;
    return experts * ((each + shape->multiple - 1) / shape->multiple * shape->multiple);
}

struct quantize_shape {
    int64_t rows, columns;
    int32_t scaling;    // enum scaling of both outputs: as is and transposed
    // NVFP4 only. transforms: applies a Hadamard transform. is_stochastic: rounds up or down at random. draw: number of
    // the op, so that each op draws different random numbers.
    bool    transforms, is_stochastic;
    int64_t draw;
};
struct rescale_shape {
    int64_t slots, history;
    float   target;    // largest magnitude after scaling
};
struct elements_shape {
    int64_t elements;
    float   limit;     // clip: maximum norm; 0: compute the norm without clipping
    float   factor;    // momentum: decay; Muon: factor of the update
};
// Numbers of rows that an all-to-all with unequal contiguous parts sends to each member (in) and receives from each
// (out).
struct communication_parts {
    const int64_t *in, *out;    // [size]
    int64_t        row;         // elements of a row
};
struct communication_shape {
    int64_t elements;    // elements of the whole buffer, for all members together
    int32_t group;       // index in plan->groups
    int32_t peer;        // send, receive, broadcast: index in the group; rotate: distance in the ring, backwards if < 0
    int32_t channel;     // sends match receives in order within one channel, group and pair of streams
    int64_t ahead;       // rotate: OUT's offset on the receiving rank minus its offset here, in elements
    // Parts of an all-to-all with unequal parts; NULL: equal parts. Always NULL in a plan, since only the step knows
    // the counts.
    const struct communication_parts *parts;
};
