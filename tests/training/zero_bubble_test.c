// SPDX-License-Identifier: MIT
// Tests that zero-bubble schedules train bit for bit as 1F1B does, and as one rank does. GSWBENCH_ROWS=all trains all
// rows.
#include <criterion/criterion.h>

#include "draw.h"
#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 3, DRAWN = 4 };

static const char model[] =
    "layers 4; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; learning_rate 5e-4; "
    "recompute_every 2; recompute_save qkv; schedule zero-bubble";

#define EXPERTS  "experts 4; top_k 2; expert_ffn 12; auxiliary_loss 0.05; capacity_scope sequence"
#define ADAPTERS "rank 3; alpha 6"
// clang-format off
static const char *const layouts[] = {
    "pp 2; accumulation 4",
    "pp 4; accumulation 8; tied yes",
    "pp 4; accumulation 2; layers 5; recompute full",
    "pp 2; tp 2; dp 2; zero 1; accumulation 4; recompute selective",
    "pp 2; tp 2; accumulation 4; tp_overlap yes; recompute attention",
    "pp 2; cp 2; accumulation 4; context ring",
    "pp 2; cp 2; tp 2; accumulation 4; context exchange; sequence_parallel no; attention_bias yes; mlp_bias yes",
    "pp 4; fsdp 2; accumulation 4; tied yes",
    "pp 2; fsdp 2; tp 2; accumulation 4; reshard never; recompute full; qk_norm yes; head_dim 16",
    "pp 2; dp 2; fsdp 2; accumulation 2; gradient_reduce microbatch; attention_bias yes",
    "pp 4; dp 2; zero 1; accumulation 4; gradient_reduce microbatch; tied yes",
    "pp 4; dp 2; zero 1; zero_gather forward; accumulation 4; compute bf16; reduce bf16",
    "pp 4; dp 2; accumulation 4; positions learned; max_positions 19; tied yes",
    "pp 2; dp 2; ep 2; accumulation 4; shared_ffn 12; recompute block_every; " EXPERTS,
    "pp 2; dp 2; tp 2; ep 4; etp 1; accumulation 4; pattern dense, 3 x experts; router_bias_rate 0.02; " EXPERTS,
    "pp 4; fsdp 2; ep 2; accumulation 4; expert_hidden 6; recompute full; " EXPERTS,
    "pp 2; dp 2; accumulation 4; kv_rank 12; q_rank 10; rope_dim 6; value_dim 5; recompute_save latent",
    "pp 2; tp 2; accumulation 4; predicted_tokens 2",
    "pp 2; fsdp 2; accumulation 4; predicted_tokens 1; tied yes; recompute full",
    "pp 4; tp 2; accumulation 4; " ADAPTERS,
    "pp 2; fsdp 2; accumulation 4; recompute full; targets qkv, fc2; " ADAPTERS,
    "pp 2; dp 2; zero 1; accumulation 4; optimizer muon; learning_rate 2e-3",
    "pp 2; tp 2; accumulation 4; pattern M*M-; activation relu2; positions none; mamba_heads 8; mamba_head_dim 4; "
    "mamba_state 6; mamba_groups 4; mamba_chunk 5; recompute_save fc1",
    "pp 2; accumulation 4; pattern 2 x (window_attention + mlp, dense); window 5; attention_sinks yes",
    NULL,
};
static const char *const low_precision[] = {
    "pp 4; accumulation 4; compute fp8; recipe delayed; fp8_history 3; tied yes",
    "pp 2; tp 2; accumulation 4; compute fp8; recipe current; recompute full",
    "pp 2; fsdp 2; accumulation 4; compute fp8; recipe delayed; fp8_history 3; fp8_weights yes",
    "pp 2; dp 2; zero 1; accumulation 4; compute fp8; recipe block",
    "pp 2; tp 2; accumulation 4; compute fp8; recipe mxfp8; sequence 32; hidden 32; ffn 64; recompute selective",
    NULL,
};
// clang-format on

static void expect_as_one_forward_one_backward(const char *const *list)
{
    for (int row = 0; list[row] != NULL; row++) {
        struct training split = training_of(model, list[row], BATCH, STEPS), whole = split;
        whole.tiny.parallel.schedule = PIPELINE_1F1B;
        expect_proof(&split, list[row]);
        if (is_drawn(row, DRAWN)) {
            expect_same_training(&split, &whole, &(struct closeness){0}, list[row]);
        }
    }
}

Test(zero_bubble, trains_as_one_forward_one_backward, .timeout = 600)
{
    expect_as_one_forward_one_backward(layouts);
}

Test(zero_bubble, trains_as_one_rank, .timeout = 600)
{
    for (int row = 0; layouts[row] != NULL; row++) {
        struct training many = training_of(model, layouts[row], BATCH, STEPS);
        if (is_drawn(row + 1, DRAWN)) {
            expect_as_one_rank(&many, layout_alone_in_turn, layouts[row]);
        }
    }
}

Test(zero_bubble, trains_in_fp8_as_one_forward_one_backward, .timeout = 600)
{
    expect_as_one_forward_one_backward(low_precision);
}

Test(zero_bubble, says_what_it_cannot_do)
{
    static const char *const rows[][2] = {
        {"pp 2; vp 2; accumulation 4", "set vp = 1"},
        {"dp 2; ep 2; pp 2; accumulation 4; overlap_microbatches yes; " EXPERTS, "overlap_microbatches = yes"},
        {"dp 2; ep 2; pp 2; accumulation 4; delay_weight_gradients yes; " EXPERTS,
         "set [train] delay_weight_gradients"},
        {"pp 2; accumulation 4; deferred_head_gradients 2", "set deferred_head_gradients = 0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_refusal(model, rows[i][0], BATCH, rows[i][1]);
    }
}
