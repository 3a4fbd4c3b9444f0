// SPDX-License-Identifier: MIT
// Framework memory against bytes computed by hand: 16 tokens, hidden 16, 4 query and 2 key-value heads of 4, ffn 24,
// two layers, bf16. The vocabulary is so large that memory peaks in the loss.
#include <criterion/criterion.h>

#include "gswbench/predict.h"
#include "layouts.h"

enum { TOKENS = 16, HIDDEN = 16, KV = 8, FFN = 24, VOCAB = 4096, LAYERS = 2 };

struct held {
    struct tiny            tiny;
    struct software_config software;
    struct footprint       footprint;
    int64_t                world;
};

static struct held held_by_torch(void)
{
    struct held held = {.world = 1};
    tiny_init(&held.tiny);
    held.tiny.model.vocab       = VOCAB;
    held.tiny.precision.compute = COMPUTE_BF16;
    option_set_defaults(software_options, &held.software);
    held.software.caching_allocator = 1;
    return held;
}

static const int64_t *find(struct held *held)
{
    tiny_plan_rank(&held->tiny, held->world, 0);
    footprint_find(&held->footprint, &held->tiny.plan, &held->software, 8);
    return held->footprint.bytes;
}

Test(footprint, of_this_program_is_its_plan)
{
    struct held held                = held_by_torch();
    held.software.caching_allocator = 0;
    find(&held);
    cr_expect_eq(held.footprint.allocated, plan_total_bytes(&held.tiny.plan));
    cr_expect_eq(held.footprint.reserved, held.footprint.allocated);
    cr_expect_eq(held.footprint.device, held.footprint.allocated + (INT64_C(650) << 20), "one rank has no connection");
    plan_free(&held.tiny.plan);
}

Test(footprint, has_a_placeholder_of_each_shape_of_a_block_and_of_the_head)
{
    struct held held                    = held_by_torch();
    held.software.gradient_placeholders = 1;
    int64_t qkv = HIDDEN * (HIDDEN + 2 * KV), projection = HIDDEN * HIDDEN, fc1 = HIDDEN * 2 * FFN, fc2 = HIDDEN * FFN;
    cr_expect_eq(find(&held)[FOOTPRINT_PLACEHOLDERS], 2 * (qkv + projection + fc1 + fc2 + VOCAB * HIDDEN));
    plan_free(&held.tiny.plan);
}

Test(footprint, has_placeholders_of_one_shape_once)
{
    struct held held                    = held_by_torch();
    held.software.gradient_placeholders = 1;
    held.tiny.model.kv_heads            = 4;
    held.tiny.model.ffn                 = FFN;    // makes qkv as large as gate and up: 48 x 16
    int64_t shared = HIDDEN * 2 * FFN, projection = HIDDEN * HIDDEN, fc2 = HIDDEN * FFN;
    cr_expect_eq(find(&held)[FOOTPRINT_PLACEHOLDERS], 2 * (shared + projection + fc2 + VOCAB * HIDDEN));
    plan_free(&held.tiny.plan);
}

Test(footprint, has_the_losss_copies_of_the_logits_in_fp32)
{
    struct held held           = held_by_torch();
    held.software.logit_copies = 3;
    cr_expect_eq(find(&held)[FOOTPRINT_LOGITS], INT64_C(3) * TOKENS * VOCAB * 4);
    plan_free(&held.tiny.plan);
    held.software.parallel_logit_copies = 4;
    held.tiny.parallel.tp               = 2;
    held.world                          = 2;
    cr_expect_eq(find(&held)[FOOTPRINT_LOGITS], INT64_C(4) * TOKENS * VOCAB / 2 * 4);
    plan_free(&held.tiny.plan);
}

Test(footprint, keeps_every_second_product_of_a_block)
{
    struct held held           = held_by_torch();
    held.software.second_gemms = 1;
    held.software.logit_copies = 3;
    cr_expect_eq(find(&held)[FOOTPRINT_GEMMS], 0, "recompute is not selective");
    plan_free(&held.tiny.plan);
    held.tiny.train.recompute      = RECOMPUTE_SELECTIVE;
    held.tiny.train.recompute_save = 1 << OUTPUT_ATTENTION;
    int64_t q = TOKENS * HIDDEN * 2, v = TOKENS * KV * 2, gate = TOKENS * FFN * 2, down = TOKENS * HIDDEN * 2;
    cr_expect_eq(find(&held)[FOOTPRINT_GEMMS], LAYERS * (q + v + gate));
    // Per layer: block input, attention output, softmax statistics of 4 heads in fp32. Head, during the loss: logits,
    // residual, its norm, norm statistics, and the loss of each token. Also inputs and results.
    int64_t block = TOKENS * HIDDEN * 2 + TOKENS * HIDDEN * 2 + TOKENS * 4 * 4;
    int64_t head  = TOKENS * VOCAB * 2 + 2 * TOKENS * HIDDEN * 2 + TOKENS * 2 * 4 + TOKENS * 4;
    int64_t other = held.tiny.plan.storage_bytes[STORAGE_INPUT] + held.tiny.plan.storage_bytes[STORAGE_RESULT];
    cr_expect_eq(held.footprint.bytes[FOOTPRINT_ACTIVATIONS], LAYERS * block + head + other);
    plan_free(&held.tiny.plan);
    held.software.keeps_unread = 1;
    cr_expect_eq(find(&held)[FOOTPRINT_GEMMS], LAYERS * (q + v + gate + down));
    plan_free(&held.tiny.plan);
}

Test(footprint, of_fp32_shards_has_gathers_in_memory_of_their_own)
{
    struct held held          = held_by_torch();
    held.world                = 2;
    held.tiny.parallel.dp     = 1;
    held.tiny.parallel.fsdp   = 2;
    held.software.fp32_shards = held.software.gather_pool = 1;
    const int64_t *bytes                                  = find(&held);
    int64_t        block = HIDDEN * (HIDDEN + 2 * KV) + HIDDEN * HIDDEN + 3 * HIDDEN * FFN + 2 * HIDDEN;
    int64_t        root = 2 * VOCAB * HIDDEN + HIDDEN, padding = bytes[FOOTPRINT_GATHER_POOL] - 2 * (root + 2 * block);
    cr_expect(padding >= 0 && padding < 2 * 4 * 2 * PLAN_ALIGNMENT, "%lld", (long long)padding);
    cr_expect_eq(bytes[FOOTPRINT_WEIGHTS], 0);
    cr_expect_eq(held.footprint.reserved - held.footprint.allocated, bytes[FOOTPRINT_GATHER_POOL]);
    cr_expect_eq(bytes[FOOTPRINT_OPTIMIZER], held.tiny.plan.storage_bytes[STORAGE_OPTIMIZER]);
    cr_expect_eq(bytes[FOOTPRINT_ROOT_WEIGHTS], INT64_C(2) * VOCAB * HIDDEN, "the embedding's");
    plan_free(&held.tiny.plan);
}

Test(footprint, has_gradients_whole_where_microbatches_accumulate)
{
    struct held held              = held_by_torch();
    held.world                    = 2;
    held.tiny.parallel.dp         = 1;
    held.tiny.parallel.fsdp       = 2;
    held.software.whole_gradients = 1;
    cr_expect_eq(find(&held)[FOOTPRINT_WHOLE_GRADIENTS], 0, "one microbatch");
    plan_free(&held.tiny.plan);
    held.tiny.train.accumulation = 2;
    int64_t block                = HIDDEN * (HIDDEN + 2 * KV) + HIDDEN * HIDDEN + 3 * HIDDEN * FFN + 2 * HIDDEN;
    int64_t all                  = 4 * (2 * VOCAB * HIDDEN + HIDDEN + LAYERS * block);
    int64_t padding              = find(&held)[FOOTPRINT_WHOLE_GRADIENTS] - all;
    cr_expect(padding >= 0 && padding < 4 * 4 * 2 * PLAN_ALIGNMENT, "%lld", (long long)padding);
    plan_free(&held.tiny.plan);
}

Test(footprint, has_weights_in_fp8_as_they_were_gathered)
{
    struct held held = held_by_torch();
    held.world       = 2;
    layout_apply(&held.tiny, "dp 1; fsdp 2; ffn 32; compute fp8; accumulation 2");
    held.software.whole_gradients = 1;
    int64_t block                 = HIDDEN * (HIDDEN + 2 * KV) + HIDDEN * HIDDEN + 3 * HIDDEN * 32 + 2 * HIDDEN;
    int64_t padding               = find(&held)[FOOTPRINT_WHOLE_WEIGHTS] - 2 * LAYERS * block;
    cr_expect(padding >= 0 && padding < 4 * 4 * 2 * PLAN_ALIGNMENT, "%lld", (long long)padding);
    plan_free(&held.tiny.plan);
}

// The head of the last stage returns one placeholder for each backward pass, also if its weight gradients are deferred.
Test(footprint, has_one_placeholder_of_a_deferred_head)
{
    struct held held = held_by_torch();
    held.world       = 2;
    layout_apply(&held.tiny, "pp 2; deferred_head_gradients 3; accumulation 4");
    held.software.gradient_placeholders = 1;
    held.software.logit_copies          = 1;
    tiny_plan_rank(&held.tiny, held.world, 1);
    footprint_find(&held.footprint, &held.tiny.plan, &held.software, 8);
    int64_t qkv = HIDDEN * (HIDDEN + 2 * KV), projection = HIDDEN * HIDDEN, fc1 = HIDDEN * 2 * FFN, fc2 = HIDDEN * FFN;
    cr_expect_leq(held.footprint.bytes[FOOTPRINT_PLACEHOLDERS], 2 * (qkv + projection + fc1 + fc2 + VOCAB * HIDDEN));
    cr_expect_leq(held.footprint.bytes[FOOTPRINT_LOGITS], (int64_t)TOKENS * VOCAB * 4);
    cr_expect_geq(held.footprint.bytes[FOOTPRINT_ACTIVATIONS], INT64_C(3) * TOKENS * VOCAB * 2, "their inputs stay");
    plan_free(&held.tiny.plan);
}

// 2 sequences of 8 tokens, 4 heads: probabilities in BF16; with dropout also their mask and the masked ones. A layer
// has two residual additions.
Test(footprint, of_unfused_attention_has_a_probability_for_each_pair)
{
    struct held held                = held_by_torch();
    int64_t     pairs               = INT64_C(2) * 4 * 8 * 8;
    held.software.unfused_attention = 1;
    held.software.logit_copies      = 3;
    cr_expect_eq(find(&held)[FOOTPRINT_ATTENTION], LAYERS * pairs * 2);
    plan_free(&held.tiny.plan);
    held.software.dropout = 1;
    cr_expect_eq(find(&held)[FOOTPRINT_ATTENTION], LAYERS * pairs * (2 + 2 + 1));
    cr_expect_eq(held.footprint.bytes[FOOTPRINT_DROPOUT], 2 * LAYERS * TOKENS * HIDDEN, "%lld",
                 (long long)held.footprint.bytes[FOOTPRINT_DROPOUT]);
    plan_free(&held.tiny.plan);
    held.software.unfused_attention = 0;
    held.software.attention_copies  = 1;
    cr_expect_eq(find(&held)[FOOTPRINT_ATTENTION], LAYERS * TOKENS * HIDDEN * 2);
    plan_free(&held.tiny.plan);
}

// Four experts, two a token, on one rank: 32 rows of ffn 24 after the activation, and of hidden 16 after the experts.
Test(footprint, keeps_what_the_gates_multiply)
{
    struct held held = held_by_torch();
    tiny_set_experts(&held.tiny, 4, 2);
    held.tiny.train.routing            = ROUTING_BALANCED;
    held.software.logit_copies         = 3;
    held.software.expert_workspace_mib = 5;
    int64_t outputs                    = find(&held)[FOOTPRINT_ACTIVATIONS];
    cr_expect_eq(held.footprint.bytes[FOOTPRINT_WORKSPACES], 5 << 20);
    plan_free(&held.tiny.plan);
    held.software.expert_gates = EXPERT_GATES_SEPARATE;
    cr_expect_eq(find(&held)[FOOTPRINT_ACTIVATIONS], outputs - (int64_t)LAYERS * 2 * TOKENS * HIDDEN * 2);
    cr_expect_eq(held.footprint.bytes[FOOTPRINT_GEMMS], (int64_t)LAYERS * 2 * TOKENS * FFN * 2);
    plan_free(&held.tiny.plan);
}

// Only the head's activations and one layer's stay on the device.
Test(footprint, has_no_activations_of_offloaded_layers_between_their_passes)
{
    struct held held           = held_by_torch();
    held.software.logit_copies = 3;
    int64_t all                = find(&held)[FOOTPRINT_ACTIVATIONS];
    int64_t logits             = (int64_t)TOKENS * VOCAB * 2;
    plan_free(&held.tiny.plan);
    held.software.offloaded_layers = LAYERS;
    int64_t left                   = find(&held)[FOOTPRINT_ACTIVATIONS];
    cr_expect(left >= logits && left < logits + (all - logits) / 4, "%lld of %lld", (long long)left, (long long)all);
    plan_free(&held.tiny.plan);
}

// Stage 0 of 1F1B with 2 stages, when the first microbatch starts its backward pass. The plan holds its gradient. The
// other three microbatches have empty receive buffers, and the output sent for the second one is kept.
Test(footprint, has_a_buffer_for_each_microbatch_that_a_stage_receives)
{
    struct held held               = held_by_torch();
    held.world                     = 2;
    held.tiny.parallel.pp          = 2;
    held.tiny.train.accumulation   = 4;
    held.software.pipeline_buffers = 1;
    int64_t passed                 = TOKENS * HIDDEN * 2;
    cr_expect_eq(find(&held)[FOOTPRINT_PIPELINE], (3 + 1) * passed);
    plan_free(&held.tiny.plan);
}

// A block peaks at its activation: input, residual after attention, fc1, activation output. With recompute it leaves
// its input, that residual and the fc2 output allocated.
Test(footprint, keeps_segments_of_a_block_that_are_too_small_for_the_logits)
{
    struct held held           = held_by_torch();
    held.tiny.train.recompute  = RECOMPUTE_FULL;
    held.software.logit_copies = 3;
    cr_expect_eq(find(&held)[FOOTPRINT_CACHED], TOKENS * 2 * FFN * 2 + TOKENS * FFN * 2 - TOKENS * HIDDEN * 2);
    plan_free(&held.tiny.plan);
}

Test(footprint, adds_fragments_to_what_is_reserved)
{
    struct held held            = held_by_torch();
    held.software.workspace_mib = 64;
    find(&held);
    int64_t allocated = held.footprint.allocated;
    cr_expect_eq(held.footprint.bytes[FOOTPRINT_WORKSPACES], 64 << 20);
    plan_free(&held.tiny.plan);
    held.software.fragmentation = 0.03;
    find(&held);
    cr_expect_eq(held.footprint.allocated, allocated);
    cr_expect_float_eq((double)(held.footprint.reserved - allocated), 0.03 * (double)allocated, 16.0);
    plan_free(&held.tiny.plan);
}

// fc1 of 16 tokens in both layers, at the loss.
Test(footprint, keeps_the_inputs_of_activations_in_fp8_where_the_program_does)
{
    struct held held                    = held_by_torch();
    int64_t     wide                    = find(&held)[FOOTPRINT_ACTIVATIONS];
    held.software.fp8_activation_inputs = 1;
    plan_free(&held.tiny.plan);
    cr_expect_eq(wide - find(&held)[FOOTPRINT_ACTIVATIONS], LAYERS * TOKENS * 2 * FFN);
    plan_free(&held.tiny.plan);
}
