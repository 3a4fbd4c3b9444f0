// SPDX-License-Identifier: MIT
// What one step trains on and how: batch, accumulation, recompute, optimizer.
#ifndef GSWBENCH_TRAIN_H
#define GSWBENCH_TRAIN_H

#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_ATTENTION,      // core attention
    RECOMPUTE_FULL,           // every block from its input
    RECOMPUTE_BLOCK_EVERY,    // every recompute_every-th block from its input
    RECOMPUTE_SELECTIVE,      // everything that recompute_save does not name
    RECOMPUTE_MODULES,        // what recompute_modules names, and nothing else
};

// Parts of a layer, as [train] recompute_modules names them: Megatron's.
enum recompute_module {
    MODULE_CORE_ATTENTION,
    MODULE_UP_PROJECTIONS,    // of latent attention, with what they are rotated to
    MODULE_MLP,               // of all tokens
    MODULE_EXPERTS,           // router, routed and shared experts, with what travels
    MODULE_EXPERT_ACTIVATION,
    MODULE_SHARED_EXPERTS,
    MODULE_NORMS,
    MODULE_COUNT
};

// Outputs of a block's forward pass, as [train] recompute_save names them.
enum block_output {
    OUTPUT_NORM,    // both normalised inputs
    OUTPUT_QKV,     // q, k, v after rope
    OUTPUT_ATTENTION,
    OUTPUT_PROJECTION,    // the attention output projection
    OUTPUT_FC1,           // the MLP's input projections, gate and up
    OUTPUT_ACTIVATION,
    OUTPUT_FC2,         // the MLP's output; the backward pass needs it of experts only
    OUTPUT_DISPATCH,    // what experts received, and who they received it from
    OUTPUT_LATENT,      // compressed queries, keys and values
    OUTPUT_COUNT
};

// How tokens are given to experts, and which of them compete for an expert's capacity.
enum routing { ROUTING_TOP_K, ROUTING_BALANCED, ROUTING_SKEWED };
enum capacity_scope {
    CAPACITY_RANK,        // those of a microbatch on one rank: it follows the layout
    CAPACITY_SEQUENCE,    // those of one sequence, wherever they are: it does not
};

// [train]
struct train_config {
    int64_t sequence;
    // Sequences of a microbatch and of a step, and microbatches of a step; 0: what the other two imply.
    int64_t micro_batch, global_batch, accumulation;
    int64_t overlap_microbatches;      // one goes forward beside another that goes backward
    int64_t delay_weight_gradients;    // those of experts, until the gradients of their inputs are on their way
    int64_t recompute, recompute_every, recompute_save, recompute_modules;
    int64_t recompute_layers;           // of each chunk the first so many alone; 0: all
    int64_t routing, capacity_scope;    // enum routing, enum capacity_scope
    double  prediction_weight;          // of the loss of further tokens, beside that of the next one
    double  routing_skew;               // what the first experts have of the others' mean, where routing is skewed
    double  learning_rate, beta1, beta2, epsilon, weight_decay, clip;
};
extern const struct option train_options[];
extern const char *const   train_recompute_names[];

// Batches in full: replicas = dp * fsdp. On success global_batch = micro_batch * replicas * accumulation.
status train_resolve(struct train_config *train, int64_t replicas);

#endif
