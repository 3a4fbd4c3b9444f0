// SPDX-License-Identifier: MIT
// Tests estimates of the number of ops of a plan, which are made before the plan is built.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "drawn_layout.h"
#include "gswbench/plan_build.h"
#include "layouts.h"
#include "success.h"

enum { DRAWS = 300 };

// The estimate may exceed the actual number by these factors. `loosest` is for steps of one layer and microbatch, which
// consist mostly of ops that the estimate rounds up.
static const double loosest = 5, usual = 3;

// Builds the plan of every stage. The estimate must not be smaller than the plan, and at most `maximum` times as large.
static void expect_bound(const struct plan_request *request, double maximum, const char *name)
{
    struct plan_size size  = plan_size(request);
    double           stage = 0;
    for (int64_t i = 0; i < request->mesh.size[AXIS_PP]; i++) {
        struct plan plan;
        status      built = plan_build_stage(&plan, request, i);
        cr_assert(!failed(&built), "%s: %s", name, built.text);
        cr_assert_leq(plan.op_count, size.rank_ops, "%s: stage %" PRId64 " has %d ops, not %.0f", name, i,
                      plan.op_count, size.rank_ops);
        stage += plan.op_count;
        plan_free(&plan);
    }
    cr_assert_leq(stage, size.stage_ops, "%s: %.0f ops, not %.0f", name, stage, size.stage_ops);
    cr_assert_leq(size.stage_ops, maximum * stage, "%s: %.0f ops were said to be %.0f", name, stage, size.stage_ops);
}

Test(plan_size, bounds_the_plans_of_all_that_can_be_drawn)
{
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        char                 name[LAYOUT_NAME_BYTES];
        struct training      training = drawn_layout(seed);
        struct plan_sections sections = drawn_layout_sections(&training);
        struct plan_request  request  = resolved(&sections);
        expect_bound(&request, loosest, layout_name(&training.tiny, name));
    }
}

#define LATENT "layers 40; accumulation 20; kv_heads 4; kv_rank 12; rope_dim 6; value_dim 5; compute bf16; "
#define HYBRID                                                                                                         \
    "layers 40; accumulation 20; kv_heads 4; pattern 40 x mamba; mamba_heads 32; mamba_head_dim 4; mamba_state 16; "   \
    "mamba_groups 4; compute bf16; "
#define BIASED                                                                                                         \
    "layers 40; accumulation 20; kv_heads 4; compute bf16; window 5; attention_sinks yes; attention_bias yes; "        \
    "mlp_bias yes; "

// These configurations have the most ops per layer: tp rings, FP8 with block scales, experts, latent attention, biases
// and sinks.
static const char *const rows[] = {
    "layers 40; accumulation 20",
    "layers 40; accumulation 20; recompute full",
    "layers 40; accumulation 20; compute fp8",
    "layers 40; accumulation 20; compute fp8; recompute full",
    "layers 40; accumulation 20; compute fp8; recipe block; recompute full",
    "layers 40; accumulation 20; compute fp8; recipe delayed; recompute full; fp8_weights yes; fsdp 8",
    "layers 40; accumulation 20; fsdp 8; recompute full; compute bf16",
    "layers 40; accumulation 20; tp 4; kv_heads 4; recompute full; compute bf16",
    "layers 40; accumulation 20; tp 4; kv_heads 4; tp_overlap yes; compute fp8; recompute full",
    ("layers 40; accumulation 20; tp 4; kv_heads 4; tp_overlap yes; compute fp8; recompute full; fsdp 2; experts 8; "
     "top_k 2"),
    "layers 4; accumulation 20; cp 4; context ring; sequence 64; micro_batch 3; recompute full",
    "layers 4; accumulation 20; cp 4; context gather; sequence 64; micro_batch 3; recompute full",
    "layers 40; accumulation 20; cp 4; context exchange; kv_heads 4; sequence 64; micro_batch 3; recompute full",
    "layers 4; accumulation 20; cp 32; context ring; sequence 128; micro_batch 8; recompute full",
    "layers 8; accumulation 4; experts 64; top_k 2; recompute full; compute fp8; ep 4; fsdp 4",
    "layers 8; accumulation 4; experts 64; top_k 2; recompute full; compute bf16; dp 2; ep 2",
    "layers 8; accumulation 4; experts 64; top_k 2; recompute full; compute bf16; dp 2; tp 2; ep 4; etp 1",
    "layers 8; accumulation 4; experts 64; top_k 2; recompute full; compute fp8; dp 2; tp 2; ep 2; etp 1",
    "layers 40; accumulation 16; pp 4; vp 2; compute fp8; recompute full",
    "layers 64; accumulation 64; pp 64; compute bf16",
    LATENT "q_rank 10; recompute full; fsdp 2",
    LATENT "q_rank 10; recompute full; fsdp 2; tp 2",
    LATENT "recompute full; tp 4; sequence_parallel no",
    LATENT "q_rank 10; recompute full; fsdp 2; tp 4; tp_overlap yes; compute fp8",
    LATENT "q_rank 10; recompute full; fsdp 2; ep 2; experts 2; top_k 1; shared_ffn 8; router_score sigmoid; "
           "router_bias_rate 0.01; pattern 40 x latent + experts",
    HYBRID "recompute full; fsdp 2",
    HYBRID "recompute full; tp 4; tp_overlap yes; compute fp8",
    BIASED "pattern 40 x window_attention + mlp; recompute full; fsdp 2; norm layernorm",
    BIASED "pattern 40 x window_attention + mlp; recompute full; fsdp 2; tp 2; compute fp8",
    BIASED "pattern 20 x (window_attention + mlp, attention + mlp); recompute full; tp 4; sequence_parallel no",
    BIASED "pattern 40 x window_attention + experts; experts 2; top_k 1; shared_ffn 8; router_offset yes; qk_norm yes; "
           "recompute selective; recompute_save none; fsdp 2; tp 2; ep 2; etp 1; pp 2; vp 2",
    BIASED "pattern 20 x (window_attention + experts, experts); experts 8; top_k 2; router_offset yes; recompute full; "
           "fsdp 2; tp 2; ep 2; etp 1",
    BIASED "pattern 40 x window_attention + experts; experts 4; top_k 2; router_offset yes; recompute full; tp 2; "
           "fsdp 2; ep 2; compute fp8; fp8_weights no",
    "layers 2; accumulation 40; experts 4; top_k 2; auxiliary_loss 0.02; capacity_scope sequence; recompute full; "
    "fsdp 2; tp 2; ep 2; etp 1; compute bf16; reduce bf16",
};

Test(plan_size, bounds_the_plans_with_the_most_ops)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct plan_request request = layout_request(rows[i]);
        expect_bound(&request, usual, rows[i]);
    }
}

static void expect_refused(const char *row, const char *expected)
{
    struct plan_request request = layout_request(row);
    EXPECT_ERROR_WITH(plan_check_size(&request), EXIT_CONFIG, expected);
}

Test(plan_size, refuses_more_ops_than_can_be_planned)
{
    expect_refused("layers 1; micro_batch 1; accumulation 1048576", "lower [train] accumulation");
    expect_refused("layers 4096; pp 1024; vp 4; micro_batch 1; accumulation 1048576", "lower [train] accumulation");
    expect_refused("layers 4096; pp 1024; vp 4; micro_batch 1; accumulation 1024", "one rank of each stage");
    expect_refused("layers 4096; experts 1024; top_k 2; micro_batch 1", "layers or experts");
    struct plan_request maximum = layout_request("layers 4096; micro_batch 1; accumulation 8");
    cr_assert_eq(plan_check_size(&maximum).exit_code, EXIT_VALID);
}

Test(plan_size, refuses_more_bytes_than_can_be_counted)
{
    static const char widest[] = "layers 8; hidden 131072; heads 4096; head_dim 1024; ffn 1048576; vocab 16777216; "
                                 "experts 1024; top_k 1024; sequence 4194304; micro_batch 4096";
    expect_refused(widest, "bytes per rank");
    struct plan_request usual_job = layout_request("layers 126; hidden 16384; heads 128; kv_heads 8; head_dim 128; "
                                                   "ffn 53248; vocab 128256; sequence 131072; accumulation 64");
    cr_assert_eq(plan_check_size(&usual_job).exit_code, EXIT_VALID);
}
