// SPDX-License-Identifier: MIT
// The [train] options, and the relation between the batch sizes.
#include "gswbench/train.h"

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

const struct option train_options[] = {
    INTEGER_OPTION(train_config, sequence, "2048", 1, 4194304, "tokens of a sequence"),
    AUTO_OPTION   (train_config, micro_batch, "1", 1, 4096, "sequences of a microbatch, on each replica; auto: what global_batch and accumulation imply, else 1"),
    AUTO_OPTION   (train_config, global_batch, "auto", 1, BATCH_MAX, "sequences of a step, over all replicas; auto: micro_batch x dp x fsdp x accumulation"),
    AUTO_OPTION   (train_config, accumulation, "auto", 1, BATCH_MAX, "microbatches of a step; auto: what global_batch implies, else 1"),
    BOOLEAN_OPTION(train_config, overlap_microbatches, "no", "with experts on several ranks, a microbatch goes forward beside another that goes backward: while tokens of one travel, the other computes"),
    BOOLEAN_OPTION(train_config, delay_weight_gradients, "no", "weight gradients of experts come when the gradients of all inputs are on their way back, beside which they are computed"),
    CHOICE_OPTION (train_config, recompute, "none", train_recompute_names, "activations that the backward pass computes again instead of keeping them"),
    INTEGER_OPTION(train_config, recompute_every, "1", 1, 4096, "recompute = block_every: every block of this many is recomputed from its input"),
    SET_OPTION    (train_config, recompute_save, "qkv, projection", output_names, "recompute = selective: outputs of a block that are kept"),
    REAL_OPTION   (train_config, prediction_weight, "0.1", 0, 10, "with predicted_tokens, weight of the mean of their losses, which is added to the loss of the next token"),
    SET_OPTION    (train_config, recompute_modules, "core_attn", module_names, "recompute = modules: parts of a layer that alone are computed again, by Megatron's names: attention over keys, the projections up of latent attention, the MLP of all tokens, all of experts, their activation, the shared experts, norms"),
    INTEGER_OPTION(train_config, recompute_layers, "0", 0, 4096, "with recompute, of each stage's chunk of layers only the first so many are recomputed; 0: all"),
    CHOICE_OPTION (train_config, routing, "top-k", routing_names, "with experts, which experts get a token: those that its router prefers, or all of them alternating, so that their load is equal, or so many tokens the first top_k experts that these have routing_skew times the mean load"),
    REAL_OPTION   (train_config, routing_skew, "2", 1, 1024, "routing = skewed: load of the first top_k experts, as a multiple of the mean"),
    CHOICE_OPTION (train_config, capacity_scope, "rank", capacity_scope_names, "with experts, which tokens compete for an expert's capacity: those of a microbatch on a rank, or those of a sequence, which does not depend on the layout, except where rounding decides between equally probable experts"),
    REAL_OPTION   (train_config, learning_rate, "3e-4", 0, 1, "learning rate of AdamW, constant"),
    REAL_OPTION   (train_config, beta1, "0.9", 0, 0.999999, "decay of AdamW's first moment"),
    REAL_OPTION   (train_config, beta2, "0.95", 0, 0.999999, "decay of AdamW's second moment"),
    REAL_OPTION   (train_config, epsilon, "1e-8", 1e-20, 1, "added to the root of AdamW's second moment"),
    REAL_OPTION   (train_config, weight_decay, "0.1", 0, 1, "decoupled weight decay of AdamW"),
    REAL_OPTION   (train_config, clip, "1", 0, 1e9, "largest norm of the global gradient; 0: not clipped"),
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
    return fail("[train] global_batch = %" PRId64 " is no multiple of micro_batch x replicas = %" PRId64 " x %" PRId64
                " = %" PRId64 " (try %s)",
                train->global_batch, train->micro_batch, replicas, together, nearest);
}

// Derives micro_batch = auto.
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
                        " is more than %d sequences a step",
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
