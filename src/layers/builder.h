// SPDX-License-Identifier: MIT
// What the files of this folder share while they append the ops of a step to a plan.
#ifndef GSWBENCH_LAYERS_BUILDER_H
#define GSWBENCH_LAYERS_BUILDER_H

#include "gswbench/assembly.h"
#include "gswbench/schedule.h"

// A layer that predicts has two more.
enum { LAYER_SUBLAYERS = 4, BLOCK_SUBLAYERS = LAYER_SUBLAYERS + 2, SUBLAYER_WEIGHTS = 12 };

// A layer of the model, or one of its ends: the embedding is the block at place 0, layer l that at place l + 1, then
// comes the head, and behind it the layers that predict further tokens.
struct block {
    int64_t                  layer;    // -1: an end of the model
    int32_t                  count;    // of its sublayers, each of a kind
    const struct layer_kind *kinds[BLOCK_SUBLAYERS];
    int32_t                  weights[BLOCK_SUBLAYERS][SUBLAYER_WEIGHTS];    // places in plan->weights; -1: it has none
    int64_t                  linears, first_linear;     // that FP8 may compute, and the first of them in the model
    int64_t                  expert_layer;              // its number among the layers with experts; -1: it has none
    int32_t                  first_unit, unit_count;    // one after another; those of experts come last
    int64_t                  own;                       // its number among the blocks of this rank's chunks
    int64_t                  in_chunk;                  // ... and of a layer, among those of its chunk
};

// How a unit stands while ops are appended.
struct unit_state {
    bool    is_whole;          // its weights can be read now
    int32_t users;             // turns that read them
    int32_t whole_gradient;    // where this microbatch's gradients go until they are reduced; -1: not open
    int32_t reduced;           // gradients as a transfer left them, still to be brought into the kept ones; -1: none
    bool    reduced_adds;      // ... added, not copied
};

// What the weight gradient of the head is computed from.
struct head_inputs {
    int32_t x, gradient;    // [S, hidden] before the head, and of the logits [T, vocabulary]
};

struct builder {
    struct assembly      assembly;
    struct plan         *plan;                      // the assembly's
    struct arena         scratch;                   // what is needed no longer than this
    struct block        *blocks;                    // [all layers + 2], by place
    int64_t              linears, expert_layers;    // of the model
    struct unit_state   *states;                    // of the plan's units
    struct block_values *values;                    // [own_blocks][in_flight]
    int64_t              own_blocks;                // of this rank's chunks
    int64_t              in_flight;                 // microbatches of a chunk between forward and backward, at most
    int32_t              first_unit, end_unit;      // of the chunk at hand
    int64_t              tokens;                    // T
    int64_t              shard_tokens;    // rows of the residual stream here: T / tp, or T without sequence parallelism
    int64_t              sequence;        // positions of a sequence that this rank holds
    bool                 overlaps;        // tp splits GEMMs so that transfers hide
    bool                 overlaps_experts;
    int64_t              heads, kv_heads;       // of this rank
    int64_t              key_dim, value_dim;    // of a head as attention reads it
    struct routing_shape routing;               // of every layer with experts
    int64_t              prefetch, reshard;     // [parallel]
    bool                 gathers_forward;       // updated weights, in the next forward pass
    bool                 reduces_each;          // microbatch's gradients over the replicas, of several
    int64_t              deferral;              // microbatches whose weight gradient of the head is deferred
    struct head_inputs  *deferred;              // those of the microbatches from 0 on
    int64_t              deferred_count;
    int32_t              reduces[2];    // the latest two reductions of whole gradients; -1: none
};

#endif
