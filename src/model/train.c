// SPDX-License-Identifier: MIT
// Declares the [train] options, and resolves the batch sizes.
#include "gswbench/model.h"

#include <inttypes.h>

// Maximum sequences per step over all replicas.
enum { BATCH_MAX = 1 << 20 };

// clang-format off
const char *const train_recompute_names[] = {
    [RECOMPUTE_NONE] = "none", [RECOMPUTE_ATTENTION] = "attention", [RECOMPUTE_FULL] = "full",
    [RECOMPUTE_BLOCK_EVERY] = "block_every", [RECOMPUTE_SELECTIVE] = "selective",
    [RECOMPUTE_MODULES] = "modules", NULL,
};

static const char *const module_names[] = {
    [MODULE_CORE_ATTENTION] = "core_attn", [MODULE_UP_PROJECTIONS] = "mla_up_proj", [MODULE_MLP] = "mlp",
    [MODULE_EXPERTS] = "moe", [MODULE_EXPERT_ACTIVATION] = "moe_act", [MODULE_SHARED_EXPERTS] = "shared_experts",
    [MODULE_NORMS] = "layernorm", [MODULE_COUNT] = NULL,
};

static const char *const output_names[] = {
    [OUTPUT_NORM] = "norm", [OUTPUT_QKV] = "qkv", [OUTPUT_ATTENTION] = "attention", [OUTPUT_PROJECTION] = "projection",
    [OUTPUT_FC1] = "fc1", [OUTPUT_ACTIVATION] = "activation", [OUTPUT_FC2] = "fc2",
    [OUTPUT_DISPATCH] = "dispatch", [OUTPUT_LATENT] = "latent", [OUTPUT_COUNT] = NULL,
};

static const char *const routing_names[] = {[ROUTING_TOP_K] = "top-k", [ROUTING_BALANCED] = "balanced", [ROUTING_SKEWED] = "skewed", NULL};

static const char *const capacity_scope_names[] = {[CAPACITY_RANK] = "rank", [CAPACITY_SEQUENCE] = "sequence", NULL};

static const char *const optimizer_names[] = {[OPTIMIZER_ADAMW] = "adamw", [OPTIMIZER_MUON] = "muon", NULL};

static const char *const muon_split_names[] = {[MUON_SPLIT_ALL] = "all", [MUON_SPLIT_QKV] = "qkv", NULL};

const struct option train_options[] = {
    INTEGER_OPTION(train_config, sequence, "2048", 1, 4194304, "tokens per sequence"),
    AUTO_OPTION   (train_config, micro_batch, "1", 1, 4096, "sequences per microbatch and replica; auto: derived from global_batch and accumulation, else 1"),
    AUTO_OPTION   (train_config, global_batch, "auto", 1, BATCH_MAX, "sequences per step, over all replicas; auto: micro_batch x dp x fsdp x accumulation"),
    AUTO_OPTION   (train_config, accumulation, "auto", 1, BATCH_MAX, "microbatches per step (gradient accumulation); auto: derived from global_batch, else 1"),
    BOOLEAN_OPTION(train_config, overlap_microbatches, "no", "experts on several ranks: run the forward pass of one microbatch with the backward pass of another, so that all-to-alls of one overlap with compute of the other"),
    BOOLEAN_OPTION(train_config, delay_weight_gradients, "no", "compute the weight gradients of experts after all input gradients, overlapped with the all-to-all that returns these"),
    CHOICE_OPTION (train_config, recompute, "none", train_recompute_names, "activations that the backward pass recomputes"),
    INTEGER_OPTION(train_config, recompute_every, "1", 1, 4096, "recompute = block_every: recompute every Nth block from its input"),
    SET_OPTION    (train_config, recompute_save, "qkv, projection", output_names, "recompute = selective: outputs of a block that are kept"),
    REAL_OPTION   (train_config, prediction_weight, "0.1", 0, 10, "predicted_tokens > 0: coefficient of the mean MTP loss, which is added to the loss of the next token"),
    SET_OPTION    (train_config, recompute_modules, "core_attn", module_names, "recompute = modules: parts of a layer to recompute, by Megatron's names: core_attn (attention scores), mla_up_proj (MLA up-projections), mlp (dense MLP), moe (MoE layer), moe_act (activation of experts), shared_experts, layernorm"),
    INTEGER_OPTION(train_config, recompute_layers, "0", 0, 4096, "recompute only the first N layers of each pipeline chunk; 0: all"),
    CHOICE_OPTION (train_config, routing, "top-k", routing_names, "choice of experts: top-k (by the router), balanced (by row number within each rank: equal loads, but losses depend on the layout) or skewed (the first top_k experts have routing_skew times the mean load)"),
    REAL_OPTION   (train_config, routing_skew, "2", 1, 1024, "routing = skewed: load of the first top_k experts, as a multiple of the mean"),
    CHOICE_OPTION (train_config, capacity_scope, "rank", capacity_scope_names, "tokens that compete for an expert's capacity: a microbatch on one rank, or a sequence; with sequence the result does not depend on the layout, except where rounding decides between equally probable experts"),
    CHOICE_OPTION (train_config, optimizer, "adamw", optimizer_names, "adamw, or muon: matrices of layers by Muon, and embedding, output layer and vectors by AdamW; with zero = 1 every replica updates whole matrices"),
    REAL_OPTION   (train_config, muon_momentum, "0.95", 0, 0.999999, "optimizer = muon: decay of the momentum, which is Nesterov's"),
    REAL_OPTION   (train_config, muon_scale, "0.2", 0, 100, "optimizer = muon: factor on the update, in addition to the square root of the larger side of the matrix"),
    CHOICE_OPTION (train_config, muon_split, "all", muon_split_names, "optimizer = muon: matrices to orthogonalize separately: all, or as Megatron does only queries, keys and values (qkv), and gate and up together"),
    REAL_OPTION   (train_config, learning_rate, "3e-4", 0, 1, "learning rate, constant"),
    REAL_OPTION   (train_config, beta1, "0.9", 0, 0.999999, "decay of AdamW's first moment"),
    REAL_OPTION   (train_config, beta2, "0.95", 0, 0.999999, "decay of AdamW's second moment"),
    REAL_OPTION   (train_config, epsilon, "1e-8", 1e-20, 1, "added to the square root of AdamW's second moment"),
    REAL_OPTION   (train_config, weight_decay, "0.1", 0, 1, "decoupled weight decay"),
    REAL_OPTION   (train_config, clip, "1", 0, 1e9, "maximum norm of the global gradient; 0: no clipping"),
    END_OPTIONS
};
// clang-format on

static status indivisible(const struct train_config *train, int64_t replicas)
{
    int64_t together = train->micro_batch * replicas;
    int64_t below    = train->global_batch / together * together;
    char    nearest[64];
    if (below == 0) {
        snprintf(nearest, sizeof(nearest), "%" PRId64, together);
    } else {
        snprintf(nearest, sizeof(nearest), "%" PRId64 " or %" PRId64, below, below + together);
    }
    return fail("[train] global_batch = %" PRId64 " is not a multiple of micro_batch x replicas = %" PRId64
                " x %" PRId64 " = %" PRId64 " (try %s)",
                train->global_batch, train->micro_batch, replicas, together, nearest);
}

// Derives micro_batch from global_batch and accumulation if it is auto.
static status imply_micro_batch(struct train_config *train, int64_t replicas)
{
    int64_t microbatches = replicas * train->accumulation;
    train->micro_batch   = 1;
    if (train->global_batch == 0 || train->accumulation == 0) {
        return OK;
    }
    if (train->global_batch % microbatches != 0) {
        return fail("[train] accumulation = %" PRId64 " contradicts global_batch = %" PRId64
                    ": replicas x accumulation = %" PRId64 " x %" PRId64 " = %" PRId64 " does not divide it",
                    train->accumulation, train->global_batch, replicas, train->accumulation, microbatches);
    }
    train->micro_batch = train->global_batch / microbatches;
    return OK;
}

status train_resolve(struct train_config *train, int64_t replicas)
{
    if (train->micro_batch == 0) {
        TRY(imply_micro_batch(train, replicas));
    }
    int64_t together     = train->micro_batch * replicas;
    int64_t accumulation = train->accumulation;
    if (train->global_batch == 0) {
        accumulation = accumulation == 0 ? 1 : accumulation;
        if (together > BATCH_MAX / accumulation) {
            return fail("[train] micro_batch x replicas x accumulation = %" PRId64 " x %" PRId64 " x %" PRId64
                        " is more than %d sequences per step",
                        train->micro_batch, replicas, accumulation, BATCH_MAX);
        }
        train->accumulation = accumulation;
        train->global_batch = together * accumulation;
        return OK;
    }
    if (train->global_batch % together != 0) {
        return indivisible(train, replicas);
    }
    train->accumulation = train->global_batch / together;
    if (accumulation != 0 && accumulation != train->accumulation) {
        return fail("[train] accumulation = %" PRId64 " contradicts global_batch = %" PRId64
                    ": micro_batch x replicas = %" PRId64 " x %" PRId64 " = %" PRId64 " makes it %" PRId64,
                    accumulation, train->global_batch, train->micro_batch, replicas, together, train->accumulation);
    }
    return OK;
}
