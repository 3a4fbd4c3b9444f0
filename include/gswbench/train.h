// SPDX-License-Identifier: MIT
// Training configuration: batch sizes, gradient accumulation, recompute, expert routing, optimizer.
#pragma once

#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_ATTENTION,      // core attention
    RECOMPUTE_FULL,           // every block, from its input
    RECOMPUTE_BLOCK_EVERY,    // every recompute_every-th block, from its input
    RECOMPUTE_SELECTIVE,      // everything except the outputs in recompute_save
    RECOMPUTE_MODULES,        // only the modules in recompute_modules
};

// Modules of a layer in [train] recompute_modules, with Megatron's names.
enum recompute_module {
    MODULE_CORE_ATTENTION,
    MODULE_UP_PROJECTIONS,    // of latent attention, including rope
    MODULE_MLP,               // dense MLPs
    MODULE_EXPERTS,           // router, routed and shared experts, with their communication
    MODULE_EXPERT_ACTIVATION,
    MODULE_SHARED_EXPERTS,
    MODULE_NORMS,
    MODULE_COUNT
};

// Outputs of a block's forward pass in [train] recompute_save.
enum block_output {
    OUTPUT_NORM,    // both normalised inputs
    OUTPUT_QKV,     // q, k, v after rope
    OUTPUT_ATTENTION,
    OUTPUT_PROJECTION,    // the attention output projection
    OUTPUT_FC1,           // the MLP's input projections, gate and up
    OUTPUT_ACTIVATION,
    OUTPUT_FC2,         // the MLP's output; only experts need it in the backward pass
    OUTPUT_DISPATCH,    // tokens that experts received, with their sources
    OUTPUT_LATENT,      // compressed queries, keys and values
    OUTPUT_COUNT
};

// How experts are assigned to tokens, and which tokens compete for an expert's capacity.
enum routing { ROUTING_TOP_K, ROUTING_BALANCED, ROUTING_SKEWED };
enum capacity_scope {
    CAPACITY_RANK,        // tokens of a microbatch on one rank: depends on the layout
    CAPACITY_SEQUENCE,    // tokens of one sequence on all ranks: independent of the layout
};

// [train]
struct train_config {
    int64_t sequence;
    // micro_batch, global_batch: sequences; accumulation: microbatches per step. 0: derived from the other two.
    int64_t micro_batch, global_batch, accumulation;
    int64_t overlap_microbatches;      // forward of one microbatch overlaps with backward of another
    int64_t delay_weight_gradients;    // weight gradients of experts follow all input gradients
    int64_t recompute, recompute_every, recompute_save, recompute_modules;
    int64_t recompute_layers;           // number of recomputed layers of each chunk, from its start; 0: all
    int64_t routing, capacity_scope;    // enum routing, enum capacity_scope
    double  prediction_weight;          // weight of the MTP loss relative to the loss of the next token
    double  routing_skew;               // skewed routing: load of the first top_k experts / mean load
    double  learning_rate, beta1, beta2, epsilon, weight_decay, clip;
};
extern const struct option train_options[];
extern const char *const   train_recompute_names[];

// Resolves the batch sizes. replicas = dp * fsdp. On success, global_batch = micro_batch * replicas * accumulation.
status train_resolve(struct train_config *train, int64_t replicas);
