// SPDX-License-Identifier: MIT
// Tests models with special layers. Each layout trains as one rank does, in FP32 or BF16 and in FP8, and passes
// gswbench's check of the job. Compares losses, gradient norms, and final weights.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8 };

// Layouts to test with one model. low_precision is the tolerance for weights in BF16: rounding can determine the
// smallest bias gradients, which AdamW turns into full steps. FP8 runs rotate through `recipes` recipes from
// first_recipe on.
struct model_layouts {
    const char        *model;
    const char *const *layouts;          // ends with NULL
    void (*alone)(struct tiny *tiny);    // makes it one rank; may keep the microbatch size
    int                 steps, fp8_steps, fp8_stride;
    enum scaling_recipe first_recipe;
    int                 recipes;
    bool                has_fp8_weights;    // for every second layout, if the recipe allows it
    double              weights, low_precision;
    bool                is_sampled;    // trains only every third layout, unless GSWBENCH_ROWS=all
};

// clang-format off
// Several tp ranks hold the same KV head, or cp ranks exchange heads (Ulysses). The model has four heads. Biases start
// at zero, and the learning rate is high enough to change them.
static const char heads_model[] =
    "layers 2; ffn 20; vocab 37; vocab_multiple 2; sequence 16; learning_rate 2e-3; "
    "recompute_every 2; recompute_save qkv";
static const char *const heads_layouts[] = {
    "tp 4; kv_heads 2",
    "tp 4; kv_heads 1; accumulation 2; tied yes; recompute full; tp_overlap yes",
    "tp 2; kv_heads 1; cp 2; accumulation 4; context ring",
    "fsdp 2; tp 4; kv_heads 2; qk_norm yes; head_dim 16; sequence_parallel no; accumulation 2",
    "dp 2; tp 4; kv_heads 2; zero 1; accumulation 2; attention_bias yes; qk_norm yes; head_dim 16",
    "fsdp 2; cp 2; tp 4; kv_heads 2; shard_over_cp yes; attention_bias yes; tied yes; recompute selective",
    "tp 4; kv_heads 2; pp 2; zero 1; accumulation 4; attention_bias yes; attention_sinks yes",
    "dp 2; tp 4; kv_heads 2; accumulation 2; compute bf16; reduce bf16",
    "cp 2; context exchange",
    "cp 4; kv_heads 4; context exchange; accumulation 4; tied yes; recompute full",
    "cp 2; tp 2; kv_heads 4; context exchange; accumulation 2; recompute attention; tp_overlap yes",
    "dp 2; cp 2; context exchange; qk_norm yes; head_dim 16; attention_bias yes; zero 1; accumulation 2",
    "fsdp 2; cp 2; context exchange; shard_over_cp yes; recompute selective; sequence_parallel no",
    "cp 2; pp 2; vp 2; layers 4; context exchange; accumulation 4; recompute block_every",
    "cp 4; kv_heads 4; context exchange; pattern window_attention + mlp, dense; window 5; recompute modules",
    "dp 2; ep 2; cp 2; context exchange; pattern dense, experts; experts 4; top_k 2; capacity_scope sequence",
    "dp 2; cp 2; context exchange; accumulation 2; compute bf16; reduce bf16",
    NULL,
};

// Models with latent attention.
static const char latent_model[] =
    "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; learning_rate 5e-4; "
    "recompute_every 2; recompute_save latent; kv_rank 12; q_rank 10; rope_dim 6; value_dim 5";
static const char *const latent_layouts[] = {
    "tp 2",
    "tp 4; accumulation 2; recompute full",
    "tp 2; tp_overlap yes; recompute selective",
    "tp 2; q_rank 0; recompute selective; recompute_save qkv",
    "tp 4; q_rank 0; sequence_parallel no; accumulation 2",
    "dp 2; tp 2; zero 1; sequence_parallel no; recompute attention",
    "fsdp 4; accumulation 2; prefetch 2; recompute block_every",
    "dp 2; fsdp 2; tp 2; accumulation 2; reshard except-last; recompute selective; recompute_save norm, latent, projection",
    "cp 2; accumulation 4",
    "cp 4; accumulation 2; context ring; recompute full",
    "tp 2; cp 2; value_dim 0; accumulation 2",
    "fsdp 2; tp 2; cp 2; context ring; value_dim 9; recompute selective",
    "pp 2; vp 2; accumulation 4; layers 4; recompute full",
    "tp 2; pp 2; accumulation 4; layers 4; zero 1; dp 2",
    NULL,
};

// Models with latent attention and experts.
static const char latent_experts_model[] =
    "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; learning_rate 5e-4; "
    "recompute_every 2; recompute_save latent; kv_rank 12; q_rank 10; rope_dim 6; value_dim 5; "
    "pattern dense, 2 x experts; experts 8; top_k 3; expert_ffn 12; shared_ffn 14; router_score sigmoid; "
    "router_groups 4; router_top_groups 2; router_scale 2.5; router_bias_rate 0.01; auxiliary_loss 0.02; "
    "capacity_scope sequence";
static const char *const latent_experts_layouts[] = {
    "dp 2; ep 2",
    "dp 4; ep 4; zero 1; accumulation 2; recompute full",
    "fsdp 4; ep 2; accumulation 2; recompute selective; recompute_save latent, dispatch",
    "dp 2; ep 2; tp 2; accumulation 2; recompute selective; recompute_save norm, latent",
    "dp 2; ep 2; pp 2; vp 2; zero 1; accumulation 4; layers 4; pattern dense, 3 x experts",
    "tp 2; ep 2; etp 1; accumulation 2",
    "dp 2; tp 2; ep 4; etp 1; pp 2; accumulation 4; layers 4; pattern 3 x latent + mlp, latent + experts",
    NULL,
};

// Models with different kinds of layers. With FP8 weights, the linears of a block are a separate parameter group.
static const char mixed_model[] =
    "layers 3; ffn 20; expert_ffn 12; kv_heads 4; experts 4; top_k 2; auxiliary_loss 0.05; capacity_scope sequence; "
    "sequence 16; learning_rate 5e-4; recompute_every 2; recompute_save qkv, dispatch";
static const char *const mixed_layouts[] = {
    "dp 2; ep 2; pattern dense, 2 x experts",
    "dp 4; ep 2; zero 1; accumulation 2; pattern experts, dense; recompute full",
    "fsdp 4; ep 2; accumulation 2; pattern experts, dense, experts",
    "dp 2; ep 2; tp 2; accumulation 2; pattern dense, experts, dense; recompute selective; tp_overlap yes",
    "dp 2; ep 2; tp 2; accumulation 2; pattern experts, dense; tp_overlap yes; tp_overlap_experts no",
    "dp 2; ep 2; cp 2; zero 1; accumulation 2; pattern 2 x dense, experts; recompute attention",
    "dp 2; ep 2; pp 2; accumulation 4; layers 4; pattern 3 x dense, experts",
    "dp 2; ep 2; pp 2; vp 2; zero 1; accumulation 4; layers 5; pattern dense, experts, dense, 2 x experts; recompute block_every",
    "fsdp 2; ep 2; tp 2; pp 2; accumulation 4; layers 4; pattern experts, 3 x attention + mlp; tp_overlap yes",
    NULL,
};

// Models with experts, where a forward pass is interleaved with the backward pass of another microbatch.
static const char overlap_model[] =
    "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; experts 4; top_k 2; "
    "auxiliary_loss 0.05; capacity_scope sequence; sequence 16; learning_rate 5e-4; "
    "recompute_every 2; recompute_save qkv, dispatch, fc1; overlap_microbatches yes";
static const char *const overlap_layouts[] = {
    // dropless, or balanced by a capacity factor
    "dp 2; ep 2; accumulation 2",
    "dp 2; ep 2; accumulation 4; layers 2; shared_ffn 12; recompute full; delay_weight_gradients yes",
    "dp 4; ep 4; accumulation 2; capacity_factor 1; zero 1; recompute selective",
    "dp 2; ep 2; accumulation 4; experts 8; zero 1; zero_gather forward; recompute attention",
    // layers without experts, for which the order of the backward pass differs
    "dp 2; ep 2; accumulation 2; layers 4; pattern dense, experts; recompute block_every",
    "dp 2; ep 2; accumulation 4; layers 4; pattern 2 x experts, 2 x dense; shared_ffn 12; tied yes",
    // FSDP: passes of both microbatches gather and release the same weights
    "fsdp 2; ep 2; accumulation 4; recompute full",
    "fsdp 4; ep 2; accumulation 2; prefetch 2; reshard except-last; shared_ffn 12",
    "fsdp 4; ep 4; accumulation 2; prefetch 0; reshard never; capacity_factor 1",
    // tp and cp
    "dp 2; ep 2; tp 2; accumulation 2; capacity_factor 1; tp_overlap yes; delay_weight_gradients yes",
    "dp 2; tp 2; ep 4; etp 1; accumulation 2; shared_ffn 12; recompute selective",
    "dp 2; ep 2; cp 2; accumulation 2; context ring; shared_ffn 12",
    // pipelines with and without chunks, with fewer microbatches in the last group, and with fewer microbatches than
    // stages
    "dp 2; ep 2; pp 2; accumulation 4; layers 4",
    "dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4; shared_ffn 12; zero 1",
    "dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 5; pattern dense, 4 x experts; capacity_factor 1; recompute full",
    "dp 2; ep 2; pp 4; accumulation 4; layers 4; deferred_head_gradients 2",
    "dp 4; ep 2; accumulation 2; layers 2; gradient_reduce microbatch; delay_weight_gradients yes",
    "fsdp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4; tied yes",
    "dp 2; ep 2; tp 2; pp 2; vp 2; accumulation 4; layers 4; etp 1; zero 1; experts 8; router_score sigmoid; router_bias_rate 0.02",
    NULL,
};

// Learned positions as in GPT-3, and ALiBi as in MPT for a number of heads that is no power of two. Without RoPE, a key
// bias adds a constant to all scores of a query, so its gradient is only rounding error. Hence attention has no bias
// here.
static const char positions_model[] =
    "layers 4; norm layernorm; activation gelu; mlp_bias yes; tied yes; heads 12; kv_heads 12; "
    "head_dim 4; vocab 37; vocab_multiple 2; sequence 16; learning_rate 2e-3; recompute_every 2; "
    "recompute_save qkv";
static const char *const positions_layouts[] = {
    "positions learned; max_positions 19; accumulation 2; recompute full",
    "positions learned; max_positions 19; dp 4; zero 1; accumulation 2",
    "positions learned; max_positions 16; tp 2",
    "positions learned; max_positions 19; tp 4; sequence_parallel no; accumulation 2",
    "positions learned; max_positions 19; tp 4; tp_overlap yes; recompute full; accumulation 2",
    "positions learned; max_positions 19; dp 2; tp 2; zero 1; tied no",
    "positions learned; max_positions 19; fsdp 4; accumulation 2; recompute full",
    "positions learned; max_positions 19; fsdp 2; tp 2; accumulation 2; reshard never",
    "positions learned; max_positions 19; cp 2; context ring; accumulation 2",
    "positions learned; max_positions 19; cp 2; tp 2; context gather; zero 1",
    "positions learned; max_positions 19; cp 4; tp 2; context ring; sequence_parallel no",
    "positions learned; max_positions 19; pp 2; accumulation 4",
    "positions learned; max_positions 19; pp 2; tp 2; accumulation 4; zero 1; dp 2",
    "positions learned; max_positions 19; pp 4; tp 2; sequence_parallel no; accumulation 4; deferred_head_gradients 2",
    "positions learned; max_positions 19; pp 2; vp 2; dp 2; accumulation 4; tied no",
    "positions learned; max_positions 19; pp 2; fsdp 2; accumulation 4; recompute full",
    "positions learned; max_positions 19; pp 2; cp 2; accumulation 4",
    "positions alibi; accumulation 2; recompute full",
    "positions alibi; dp 4; zero 1; recompute attention",
    "positions alibi; tp 2",
    "positions alibi; tp 4; sequence_parallel no; recompute selective",
    "positions alibi; fsdp 2; tp 2; accumulation 2; recompute full",
    "positions alibi; cp 2; context ring; accumulation 2",
    "positions alibi; cp 4; context ring; recompute full",
    "positions alibi; cp 4; tp 2; context gather; accumulation 2",
    "positions alibi; cp 2; context exchange; accumulation 2",
    "positions alibi; cp 3; tp 2; context exchange; sequence 24; recompute attention",
    "positions alibi; dp 2; cp 4; context exchange; zero 1; recompute full",
    "positions alibi; cp 2; context gather; pattern 2 x (window_attention + mlp, dense); window 5",
    "positions alibi; pp 2; accumulation 4",
    "positions alibi; dp 2; pp 2; cp 2; context ring; accumulation 4; kv_heads 4",
    "positions none; tp 2; cp 2; accumulation 2",
    NULL,
};

// Models with MTP modules.
static const char prediction_model[] =
    "layers 3; ffn 20; vocab 37; vocab_multiple 2; sequence 16; learning_rate 5e-4; recompute_every 2; "
    "predicted_tokens 1; prediction_weight 0.6";
static const char *const prediction_layouts[] = {
    "dp 4; accumulation 2; zero 1; zero_gather forward",
    "dp 2; predicted_tokens 3; tied yes",
    "fsdp 4; accumulation 2; prefetch 2; recompute full",
    "dp 2; fsdp 2; tp 2; accumulation 2; reshard except-last; recompute selective; recompute_save norm, qkv",
    "fsdp 2; tied yes; predicted_tokens 2; accumulation 2",
    "tp 2; recompute block_every",
    "tp 2; predicted_tokens 2; window 5; pattern 2 x dense, window_attention + mlp",
    "tp 4; kv_heads 4; accumulation 2; sequence_parallel no; recompute full",
    "tp 2; tp_overlap yes; predicted_tokens 2; recompute selective; recompute_save projection",
    "cp 2; accumulation 4; micro_batch 2",
    "tp 2; cp 2; context ring; predicted_tokens 2; recompute attention",
    "pp 2; accumulation 4",
    "pp 2; accumulation 4; layers 4; predicted_tokens 2; last_chunk_layers 1; deferred_head_gradients 2",
    "pp 2; vp 2; accumulation 4; layers 6; last_chunk_layers 2; recompute full",
    "pp 4; accumulation 8; layers 2; layers_per_chunk_embedding yes; tied yes",
    "dp 2; pp 2; vp 2; zero 1; zero_gather forward; accumulation 4; layers 5; last_chunk_layers 1",
    "fsdp 2; tp 2; pp 2; accumulation 4; predicted_tokens 2; layers 2; layers_per_chunk_embedding no; recompute full",
    "tp 2; cp 2; pp 2; zero 1; accumulation 4; context ring",
    "dp 2; pp 2; accumulation 4; gradient_reduce microbatch",
    "tp 2; pp 2; accumulation 4; tied yes; predicted_tokens 2; embedding_scale 3; logit_scale 1.5",
    NULL,
};

// Models with MTP modules, latent attention and experts.
static const char prediction_experts_model[] =
    "layers 3; ffn 20; vocab 37; vocab_multiple 2; sequence 16; learning_rate 5e-4; recompute_every 2; "
    "predicted_tokens 1; prediction_weight 0.6; "
    "kv_heads 4; kv_rank 12; q_rank 10; rope_dim 6; value_dim 5; pattern dense, 2 x experts; experts 8; top_k 3; "
    "expert_ffn 12; shared_ffn 14; router_score sigmoid; router_groups 4; router_top_groups 2; router_scale 2.5; "
    "router_bias_rate 0.01; auxiliary_loss 0.02; capacity_scope sequence";
static const char *const prediction_experts_layouts[] = {
    "dp 2; ep 2",
    "dp 4; ep 4; zero 1; accumulation 2; recompute full",
    "fsdp 4; ep 2; accumulation 2; predicted_tokens 2; recompute selective; recompute_save latent, dispatch",
    "dp 2; ep 2; pp 2; vp 2; zero 1; accumulation 4; layers 5; pattern dense, 4 x experts; last_chunk_layers 1; "
    "recompute selective; recompute_save norm, latent, attention, projection, fc1, activation, fc2, dispatch",
    "tp 2; ep 2; etp 1; accumulation 2",
    "dp 2; tp 2; ep 4; etp 1; pp 2; accumulation 4; layers 4; pattern 3 x latent + mlp, latent + experts",
    NULL,
};

// Models with shared experts and every kind of router.
static const char routed_model[] =
    "layers 2; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; experts 4; top_k 2; "
    "auxiliary_loss 0.05; capacity_scope sequence; sequence 16; learning_rate 5e-4; "
    "recompute_every 2; recompute_save qkv, dispatch, fc1";
static const char *const routed_layouts[] = {
    // shared experts
    "shared_ffn 12; accumulation 2; recompute full",
    "shared_ffn 12; dp 2; ep 2; recompute selective",
    "shared_ffn 24; dp 4; ep 4; zero 1; accumulation 2; capacity_factor 1",
    "shared_ffn 12; fsdp 4; ep 2; accumulation 2; prefetch 2; reshard except-last; recompute full",
    "shared_ffn 12; tp 2; recompute attention",
    "shared_ffn 12; tp 2; sequence_parallel no; accumulation 2; recompute selective",
    "shared_ffn 12; tp 4; accumulation 2; context ring; tp_overlap yes; recompute full",
    "shared_ffn 12; dp 2; ep 2; tp 2; capacity_factor 1; recompute selective",
    "shared_ffn 12; tp 2; ep 2; etp 1; accumulation 2; recompute full",
    "shared_ffn 16; dp 2; tp 2; ep 4; etp 1; zero 1; tp_overlap yes",
    "shared_ffn 12; dp 2; tp 2; cp 2; ep 8; etp 1; experts 8; accumulation 2; recompute block_every",
    "shared_ffn 12; dp 2; ep 2; cp 2; accumulation 2; context ring; recompute selective",
    "shared_ffn 12; dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4; pattern dense, experts; recompute full",
    "shared_ffn 12; fsdp 2; ep 2; pp 2; accumulation 4; layers 4; pattern dense, experts",
    "shared_ffn 12; dp 2; ep 2; tp 2; zero 1; zero_gather forward; activation gelu; accumulation 2",
    "shared_ffn 12; dp 4; ep 4; tp 2; pp 2; zero 1; accumulation 2; experts 8; context ring; tp_overlap yes; "
    "capacity_scope rank; routing balanced; compute bf16; reduce bf16",
    // sigmoid scores, normalised over the chosen experts or not
    "router_score sigmoid; accumulation 2; recompute full",
    "router_score sigmoid; router_scale 2.5; dp 2; ep 2; accumulation 2",
    "router_score sigmoid; router_normalise no; tp 2; recompute selective",
    "router_score softmax; router_normalise no; dp 2; ep 2; cp 2",
    "router_score sigmoid; capacity_factor 1; dp 4; ep 4; zero 1",
    "router_score sigmoid; router_scale 2; fsdp 4; ep 2; accumulation 2; recompute full",
    "router_score sigmoid; tp 2; ep 2; etp 1; accumulation 2",
    "router_score softmax; router_normalise no; router_scale 3; dp 2; tp 2; ep 4; etp 1",
    // routers that choose groups of experts first
    "experts 8; router_groups 4; router_top_groups 2; accumulation 2",
    "experts 8; router_groups 2; router_top_groups 1; router_score sigmoid; dp 2; ep 2",
    "experts 8; router_groups 4; router_top_groups 3; top_k 3; router_score sigmoid; dp 4; ep 4; zero 1",
    "experts 8; router_groups 4; router_top_groups 2; router_score sigmoid; tp 2; ep 4; etp 1; dp 2; recompute full",
    "experts 8; router_groups 8; router_top_groups 4; fsdp 4; ep 4; accumulation 2; capacity_factor 1",
    "experts 8; router_groups 4; router_top_groups 2; router_score sigmoid; tp 2; cp 2; ep 2; etp 1; context ring",
    // router biases, which are updated by the loads on every rank
    "router_bias_rate 0.02; accumulation 2",
    "router_bias_rate 0.02; router_score sigmoid; dp 2; ep 2; recompute full",
    "router_bias_rate 0.05; router_score sigmoid; fsdp 4; ep 2; accumulation 2",
    "router_bias_rate 0.02; router_score sigmoid; tp 2; accumulation 2; recompute selective",
    "router_bias_rate 0.02; router_score sigmoid; tp 2; sequence_parallel no",
    "router_bias_rate 0.02; router_score sigmoid; dp 2; ep 2; cp 2; zero 1; accumulation 2",
    "router_bias_rate 0.02; router_score sigmoid; dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4",
    "router_bias_rate 0.02; router_score sigmoid; pp 2; accumulation 4; layers 4; pattern dense, experts",
    "router_bias_rate 0.05; router_score sigmoid; dp 2; tp 2; ep 4; etp 1; zero 1; capacity_factor 1",
    // DeepSeek-V3: the features above combined
    "experts 8; expert_ffn 8; shared_ffn 8; router_groups 4; router_top_groups 2; router_score sigmoid; router_scale 2.5; "
    "router_bias_rate 0.02; dp 4; ep 4; pp 2; zero 1; accumulation 2; layers 4; pattern dense, experts; recompute full",
    "experts 8; expert_ffn 8; shared_ffn 8; router_groups 4; router_top_groups 2; router_score sigmoid; router_scale 2.5; "
    "router_bias_rate 0.02; dp 2; tp 2; ep 4; etp 1; pp 2; accumulation 2; layers 4; pattern dense, experts",
    "experts 8; expert_ffn 8; shared_ffn 8; router_groups 4; router_top_groups 2; router_score sigmoid; router_scale 2.5; "
    "router_bias_rate 0.02; fsdp 2; tp 2; cp 2; ep 8; etp 1; accumulation 2; layers 3; pattern dense, experts",
    "experts 8; expert_ffn 8; shared_ffn 8; router_groups 4; router_top_groups 2; router_score sigmoid; router_scale 2.5; "
    "router_bias_rate 0.02; dp 2; fsdp 4; ep 4; layers 3; pattern dense, experts; recompute selective; top_k 4",
    // routing that is skewed towards the first experts
    "routing skewed; routing_skew 1.5; dp 2; ep 2; capacity_scope rank",
    "routing skewed; routing_skew 1.5; fsdp 4; ep 4; accumulation 2; capacity_scope rank; recompute full",
    "routing skewed; routing_skew 2; dp 4; ep 2; zero 1; capacity_scope rank; capacity_factor 1; shared_ffn 12",
    NULL,
};

// Models with sliding windows, attention sinks and biases. Biases start at zero, and the learning rate is high enough
// to change them.
static const char windows_model[] =
    "layers 4; pattern 2 x (window_attention + experts, dense); window 5; attention_sinks yes; attention_bias yes; "
    "mlp_bias yes; router_offset yes; ffn 20; expert_ffn 12; kv_heads 4; vocab 37; vocab_multiple 2; experts 4; "
    "top_k 2; shared_ffn 8; auxiliary_loss 0.05; capacity_scope sequence; sequence 16; learning_rate 2e-3; "
    "recompute_every 2; recompute_save qkv, dispatch; context gather";
static const char *const windows_layouts[] = {
    "accumulation 2; recompute full",
    "dp 2; ep 2; accumulation 2",
    "dp 4; ep 2; zero 1; recompute attention",
    "tp 2",
    "tp 4; recompute full; tp_overlap yes",
    "tp 2; sequence_parallel no; accumulation 2",
    "dp 2; ep 2; tp 2; sequence_parallel no; zero 1; recompute selective",
    "dp 2; ep 2; tp 2; tp_overlap yes; accumulation 2",
    "dp 2; ep 2; tp 2; tp_overlap yes; tp_overlap_experts no; recompute block_every",
    "dp 2; tp 2; ep 4; etp 1; zero 1; accumulation 2",
    "fsdp 4; tp 2; ep 4; etp 1; reshard never; recompute full",
    "fsdp 4; accumulation 2; prefetch 0",
    "fsdp 4; ep 2; reshard except-last; recompute attention",
    "fsdp 2; tp 2; accumulation 2; recompute selective",
    "dp 2; fsdp 2; ep 2; recompute full",
    "cp 2; accumulation 2",
    "dp 2; ep 2; cp 2; tp 2; zero 1; recompute full",
    "cp 4; sequence 32; window 11; tp 2; sequence_parallel no",
    "pp 2; accumulation 4",
    "dp 2; ep 2; pp 2; vp 2; zero 1; accumulation 4; recompute full",
    "fsdp 2; tp 2; pp 2; accumulation 4; tp_overlap yes",
    "dp 2; cp 2; context ring; pattern dense, experts, dense, experts; window 0; accumulation 2; recompute attention",
    "dp 2; tp 2; ep 2; activation gelu; norm layernorm; capacity_factor 1",
    // BF16 compute with BF16 gradient reduction
    "dp 2; tp 2; ep 4; etp 1; zero 1; accumulation 2; capacity_factor 1; capacity_scope rank; routing balanced; "
    "recompute full; compute bf16; reduce bf16",
    "fsdp 4; ep 2; accumulation 2; capacity_factor 1; capacity_scope rank; routing balanced; recompute full; "
    "compute bf16; reduce bf16",
    NULL,
};
// Hybrid models with Mamba-2 layers.
static const char mamba_model[] =
    "layers 4; pattern M*M-; activation relu2; positions none; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; "
    "sequence 16; learning_rate 5e-4; recompute_every 2; recompute_save fc1; mamba_heads 8; mamba_head_dim 4; "
    "mamba_state 6; mamba_groups 4; mamba_chunk 5";
static const char *const mamba_layouts[] = {
    "tp 2",
    "tp 4; accumulation 2; recompute full",
    "tp 2; sequence_parallel no; accumulation 2; recompute attention",
    "tp 2; tp_overlap yes; recompute selective",
    "dp 4; zero 1; accumulation 2; recompute block_every",
    "fsdp 4; accumulation 2; prefetch 2; recompute full",
    "dp 2; fsdp 2; tp 2; accumulation 2; reshard except-last; recompute selective; recompute_save norm, activation, fc2",
    "pp 2; accumulation 4; recompute full",
    "pp 2; vp 2; tp 2; accumulation 4; zero 1; dp 2",
    "pp 2; tp 4; sequence_parallel no; accumulation 4; tied yes; mamba_conv 2; mamba_heads 4",
    "pattern MEM*; experts 4; top_k 2; expert_ffn 12; shared_ffn 8; capacity_scope sequence; dp 2; ep 2; accumulation 2",
    "pattern MEM*; experts 4; top_k 2; expert_ffn 12; shared_ffn 8; capacity_scope sequence; tp 2; ep 2; etp 1",
    "pattern MEM*; experts 4; top_k 2; expert_ffn 12; expert_hidden 6; shared_ffn 8; capacity_scope sequence; tp 2; ep 2; "
    "etp 1; accumulation 2",
    "pattern ME*-/*E/*E; predicted_tokens 2; repeat_prediction yes; experts 4; top_k 2; expert_ffn 12; expert_hidden 6; "
    "capacity_scope sequence; fsdp 2; pp 2; accumulation 4; recompute full",
    "pattern mamba + mlp, dense; dp 2; pp 2; accumulation 4; recompute modules; recompute_modules core_attn, layernorm",
    "pattern MM*-/*-; predicted_tokens 1; tp 2; pp 2; accumulation 4",
    NULL,
};
// clang-format on

static void expect_same(const struct model_layouts *set, const char *layout)
{
    struct training many = training_of(set->model, layout, BATCH, set->steps), one = on_one_rank(&many, set->alone);
    const struct closeness exact = {1e-5, 1e-5, set->weights}, low_precision = {1e-2, 3e-2, set->low_precision};
    bool                   is_low_precision = many.tiny.precision.compute == COMPUTE_BF16;
    expect_same_training(&many, &one, is_low_precision ? &low_precision : &exact, layout);
    cr_expect(many.tiny.model.predicted_tokens == 0 || many.prediction_loss[0] > 3.0F, "%s", layout);
}

// Ranks sum in another order and scale their part of a matrix by its own amax, so single FP8 roundings differ.
static void expect_same_in_fp8(const struct model_layouts *set, int row)
{
    const char     *layout          = set->layouts[row];
    struct training many            = training_of(set->model, layout, BATCH, set->fp8_steps);
    many.tiny.precision.compute     = COMPUTE_FP8;
    many.tiny.precision.recipe      = (int)set->first_recipe + row / set->fp8_stride % set->recipes;
    many.tiny.precision.fp8_weights = set->has_fp8_weights && row % 2 && many.tiny.precision.recipe < RECIPE_BLOCK;
    struct training one             = on_one_rank(&many, set->alone);
    training_run(&one);
    expect_losses(&many, &one, 1e-2, layout);
}

static void expect_layouts(const struct model_layouts *set)
{
    const char *rows   = getenv("GSWBENCH_ROWS");
    int         stride = set->is_sampled && (rows == NULL || strcmp(rows, "all") != 0) ? 3 : 1;
    for (int row = 0; set->layouts[row] != NULL; row++) {
        if (row % stride == 0) {
            expect_same(set, set->layouts[row]);
        }
        if (row % set->fp8_stride == 0 && row % stride == (stride > 1)) {
            expect_same_in_fp8(set, row);
        }
        struct training training = training_of(set->model, set->layouts[row], BATCH, 1);
        expect_proof(&training, set->layouts[row]);
    }
}

TestSuite(model_layouts, .timeout = 900);

// A test of NAME_model in NAME_layouts. The other columns are fields of struct model_layouts.
#define TEST_LAYOUTS(NAME, ...)                                                                                        \
    Test(model_layouts, NAME)                                                                                          \
    {                                                                                                                  \
        expect_layouts(&(struct model_layouts){NAME##_model, NAME##_layouts, __VA_ARGS__});                            \
    }
// clang-format off
TEST_LAYOUTS(heads,              layout_alone,         5, 3, 1, RECIPE_DELAYED, RECIPE_BLOCK - RECIPE_DELAYED + 1, true,  1e-5, 0.5,  false)
TEST_LAYOUTS(latent,             layout_alone_in_turn, 5, 3, 1, RECIPE_CURRENT, 1,                                 true,  1e-5, 0,    false)
TEST_LAYOUTS(latent_experts,     layout_alone_in_turn, 5, 3, 1, RECIPE_CURRENT, 1,                                 true,  1e-5, 0,    false)
TEST_LAYOUTS(mamba,              layout_alone_in_turn, 5, 3, 1, RECIPE_CURRENT, 1,                                 true,  1e-5, 0,    false)
TEST_LAYOUTS(mixed,              layout_alone_in_turn, 5, 5, 1, RECIPE_CURRENT, 1,                                 true,  1e-5, 0,    false)
TEST_LAYOUTS(overlap,            layout_alone_in_turn, 3, 3, 3, RECIPE_CURRENT, RECIPE_MXFP8 + 1,                  false, 1e-5, 0,    false)
TEST_LAYOUTS(positions,          layout_alone_in_turn, 5, 5, 3, RECIPE_CURRENT, 1,                                 true,  1e-5, 0,    false)
TEST_LAYOUTS(prediction,         layout_alone_in_turn, 4, 3, 1, RECIPE_CURRENT, 1,                                 true,  2e-5, 0,    false)
TEST_LAYOUTS(prediction_experts, layout_alone_in_turn, 4, 3, 1, RECIPE_CURRENT, 1,                                 true,  2e-5, 0,    false)
TEST_LAYOUTS(routed,             layout_alone_in_turn, 3, 3, 1, RECIPE_CURRENT, RECIPE_MXFP8 + 1,                  false, 1e-5, 3e-2, true)
TEST_LAYOUTS(windows,            layout_alone_in_turn, 5, 5, 2, RECIPE_CURRENT, RECIPE_BLOCK + 1,                  false, 1e-5, 0.5,  false)
// clang-format on
