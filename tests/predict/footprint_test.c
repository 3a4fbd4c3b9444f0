// SPDX-License-Identifier: MIT
// Compares the predicted memory of other frameworks with bytes calculated by hand. The model has 16 tokens, hidden size
// 16, 4 query and 2 KV heads of 4, ffn 24, and two layers in BF16. The vocabulary is so large that memory has its
// maximum in the loss.
#include <criterion/criterion.h>

#include "gswbench/predict.h"
#include "layouts.h"
#include "line.h"
#include "success.h"

enum { TOKENS = 16, HIDDEN = 16, KV = 8, FFN = 24, VOCAB = 4096, LAYERS = 2 };

// Elements of the weights of a block.
enum {
    QKV        = HIDDEN * (HIDDEN + 2 * KV),
    PROJECTION = HIDDEN * HIDDEN,
    FC1        = HIDDEN * 2 * FFN,
    FC2        = HIDDEN * FFN,
    BLOCK      = QKV + PROJECTION + FC1 + FC2 + 2 * HIDDEN
};

static struct software_config software;
static struct footprint       footprint;
static const struct plan     *plan;    // plan of the latest footprint

static void init(void)
{
    option_set_defaults(software_options, &software);
    software.caching_allocator = 1;
}

TestSuite(footprint, .init = init);

// Returns the memory of a rank of a job by category. The job is a row of layouts.h.
static const int64_t *find_rank(const char *row, int64_t rank)
{
    plan = tiny_plan_of(line_of("vocab %d; compute bf16%s%s", VOCAB, row[0] != '\0' ? "; " : "", row), rank);
    footprint_find(&footprint, plan, &software, &(struct hardware_config){.cores = 0}, 8);
    return footprint.bytes;
}

static const int64_t *find(const char *row)
{
    return find_rank(row, 0);
}

// Expects the number of bytes plus less than `padding`, since FSDP pads parameter groups.
static void expect_padded(int64_t bytes, int64_t expected, int64_t padding)
{
    cr_expect(bytes >= expected && bytes - expected < padding, "%lld, not %lld", (long long)bytes, (long long)expected);
}

Test(footprint, of_this_program_is_its_plan)
{
    software.caching_allocator = 0;
    find("");
    cr_expect_eq(footprint.allocated, plan_total_bytes(plan));
    cr_expect_eq(footprint.reserved, footprint.allocated);
    cr_expect_eq(footprint.device, footprint.allocated + (INT64_C(650) << 20), "one rank has no connection");
}

Test(footprint, has_a_placeholder_of_each_shape_of_a_block_and_of_the_head)
{
    software.gradient_placeholders = 1;
    cr_expect_eq(find("")[FOOTPRINT_PLACEHOLDERS], 2 * (QKV + PROJECTION + FC1 + FC2 + VOCAB * HIDDEN));
}

Test(footprint, has_placeholders_of_one_shape_once)
{
    software.gradient_placeholders = 1;
    // With four KV heads, qkv has as many elements as gate and up: 48 x 16.
    cr_expect_eq(find("kv_heads 4")[FOOTPRINT_PLACEHOLDERS], 2 * (FC1 + PROJECTION + FC2 + VOCAB * HIDDEN));
}

Test(footprint, has_the_losss_copies_of_the_logits_in_fp32)
{
    software.logit_copies = 3;
    cr_expect_eq(find("")[FOOTPRINT_LOGITS], INT64_C(3) * TOKENS * VOCAB * 4);
    software.parallel_logit_copies = 4;
    cr_expect_eq(find("tp 2")[FOOTPRINT_LOGITS], INT64_C(4) * TOKENS * VOCAB / 2 * 4);
}

Test(footprint, keeps_every_second_product_of_a_block)
{
    static const char row[] = "recompute selective; recompute_save attention";
    software.second_gemms   = 1;
    software.logit_copies   = 3;
    cr_expect_eq(find("")[FOOTPRINT_GEMMS], 0, "recompute is not selective");
    int64_t q = TOKENS * HIDDEN * 2, v = TOKENS * KV * 2, gate = TOKENS * FFN * 2, down = TOKENS * HIDDEN * 2;
    cr_expect_eq(find(row)[FOOTPRINT_GEMMS], LAYERS * (q + v + gate));
    // Each layer keeps the block's input, the attention output, and softmax statistics of 4 heads in fp32. During the
    // loss, the head keeps logits, residual, its norm, norm statistics, and the loss of each token. Inputs and results
    // are allocated, too.
    int64_t block = TOKENS * HIDDEN * 2 + TOKENS * HIDDEN * 2 + TOKENS * 4 * 4;
    int64_t head  = TOKENS * VOCAB * 2 + 2 * TOKENS * HIDDEN * 2 + TOKENS * 2 * 4 + TOKENS * 4;
    int64_t other = plan->storage_bytes[STORAGE_INPUT] + plan->storage_bytes[STORAGE_RESULT];
    cr_expect_eq(footprint.bytes[FOOTPRINT_ACTIVATIONS], LAYERS * block + head + other);
    software.keeps_unread = 1;
    cr_expect_eq(find(row)[FOOTPRINT_GEMMS], LAYERS * (q + v + gate + down));
}

Test(footprint, of_fp32_shards_has_gathers_in_memory_of_their_own)
{
    software.fp32_shards = software.gather_pool = 1;
    const int64_t *bytes                        = find("dp 1; fsdp 2");
    int64_t        root                         = 2 * VOCAB * HIDDEN + HIDDEN;
    expect_padded(bytes[FOOTPRINT_GATHER_POOL], 2 * (root + 2 * BLOCK), 2 * 4 * 2 * PLAN_ALIGNMENT);
    cr_expect_eq(bytes[FOOTPRINT_WEIGHTS], 0);
    cr_expect_eq(footprint.reserved - footprint.allocated, bytes[FOOTPRINT_GATHER_POOL]);
    cr_expect_eq(bytes[FOOTPRINT_OPTIMIZER], plan->storage_bytes[STORAGE_OPTIMIZER]);
    cr_expect_eq(bytes[FOOTPRINT_ROOT_WEIGHTS], INT64_C(2) * VOCAB * HIDDEN, "the embedding's");
}

Test(footprint, has_gradients_whole_where_microbatches_accumulate)
{
    software.whole_gradients = 1;
    cr_expect_eq(find("dp 1; fsdp 2")[FOOTPRINT_WHOLE_GRADIENTS], 0, "one microbatch");
    expect_padded(find("dp 1; fsdp 2; accumulation 2")[FOOTPRINT_WHOLE_GRADIENTS],
                  4 * (2 * VOCAB * HIDDEN + HIDDEN + LAYERS * BLOCK), 4 * 4 * 2 * PLAN_ALIGNMENT);
}

// FSDP2 casts weights again for each GEMM, so it keeps no FP8 copies. Replicas without FSDP keep weights and transposed
// weights at the loss.
Test(footprint, has_weights_in_fp8_as_they_were_gathered)
{
    static const char replicas[] = "dp 2; ffn 32; compute fp8; accumulation 2";
    int64_t           linears = QKV + PROJECTION + 3 * HIDDEN * 32, kept = find(replicas)[FOOTPRINT_ACTIVATIONS];
    software.whole_gradients = 1;
    cr_expect_eq(kept - find(replicas)[FOOTPRINT_ACTIVATIONS], 2 * LAYERS * linears);
    expect_padded(find("dp 1; fsdp 2; ffn 32; compute fp8; accumulation 2")[FOOTPRINT_WHOLE_WEIGHTS],
                  2 * LAYERS * (linears + 2 * HIDDEN), 4 * 4 * 2 * PLAN_ALIGNMENT);
}

// The head of the last stage has one placeholder gradient in each backward pass, even if its weight gradients are
// deferred.
Test(footprint, has_one_placeholder_of_a_deferred_head)
{
    software.gradient_placeholders = 1;
    software.logit_copies          = 1;
    find_rank("pp 2; deferred_head_gradients 3; accumulation 4", 1);
    cr_expect_leq(footprint.bytes[FOOTPRINT_PLACEHOLDERS], 2 * (QKV + PROJECTION + FC1 + FC2 + VOCAB * HIDDEN));
    cr_expect_leq(footprint.bytes[FOOTPRINT_LOGITS], (int64_t)TOKENS * VOCAB * 4);
    cr_expect_geq(footprint.bytes[FOOTPRINT_ACTIVATIONS], INT64_C(3) * TOKENS * VOCAB * 2, "their inputs stay");
}

// 2 sequences of 8 tokens with 4 heads have this number of attention probabilities in BF16. With dropout, their mask
// and the masked probabilities are kept, too. A layer has two residual additions.
Test(footprint, of_unfused_attention_has_a_probability_for_each_pair)
{
    int64_t pairs              = INT64_C(2) * 4 * 8 * 8;
    software.unfused_attention = 1;
    software.logit_copies      = 3;
    cr_expect_eq(find("")[FOOTPRINT_ATTENTION], LAYERS * pairs * 2);
    software.dropout = 1;
    cr_expect_eq(find("")[FOOTPRINT_ATTENTION], LAYERS * pairs * (2 + 2 + 1));
    cr_expect_eq(footprint.bytes[FOOTPRINT_DROPOUT], 2 * LAYERS * TOKENS * HIDDEN, "%lld",
                 (long long)footprint.bytes[FOOTPRINT_DROPOUT]);
    software.unfused_attention = 0;
    software.attention_copies  = 1;
    cr_expect_eq(find("")[FOOTPRINT_ATTENTION], LAYERS * TOKENS * HIDDEN * 2);
}

// Each token chooses two of four experts, which are all on one rank: 32 rows of ffn 24 after the activation, and of
// hidden size 16 after the experts.
Test(footprint, keeps_what_the_gates_multiply)
{
    static const char row[]       = "experts 4; top_k 2; auxiliary_loss 0.05; routing balanced";
    software.logit_copies         = 3;
    software.expert_workspace_mib = 5;
    int64_t outputs               = find(row)[FOOTPRINT_ACTIVATIONS];
    cr_expect_eq(footprint.bytes[FOOTPRINT_WORKSPACES], 5 << 20);
    software.expert_gates = EXPERT_GATES_SEPARATE;
    cr_expect_eq(find(row)[FOOTPRINT_ACTIVATIONS], outputs - (int64_t)LAYERS * 2 * TOKENS * HIDDEN * 2);
    cr_expect_eq(footprint.bytes[FOOTPRINT_GEMMS], (int64_t)LAYERS * 2 * TOKENS * FFN * 2);
}

// Only the activations of the head and of one layer stay on the device.
Test(footprint, has_no_activations_of_offloaded_layers_between_their_passes)
{
    software.logit_copies     = 3;
    int64_t all               = find("")[FOOTPRINT_ACTIVATIONS];
    int64_t logits            = (int64_t)TOKENS * VOCAB * 2;
    software.offloaded_layers = LAYERS;
    int64_t left              = find("")[FOOTPRINT_ACTIVATIONS];
    cr_expect(left >= logits && left < logits + (all - logits) / 4, "%lld of %lld", (long long)left, (long long)all);
}

// This is stage 0 of 2 in 1F1B when the first microbatch starts its backward pass. Its output gradient is counted in
// the plan. The other three microbatches have empty receive buffers, and the output that was sent for the second one is
// kept.
Test(footprint, has_a_buffer_for_each_microbatch_that_a_stage_receives)
{
    software.pipeline_buffers = 1;
    int64_t passed            = TOKENS * HIDDEN * 2;
    cr_expect_eq(find("pp 2; accumulation 4")[FOOTPRINT_PIPELINE], (3 + 1) * passed);
}

// A block needs the most memory at its activation: input, residual after attention, fc1, activation output. With
// recompute, its input, that residual and the fc2 output stay allocated, and the allocator caches the freed memory.
Test(footprint, keeps_segments_of_a_block_that_are_too_small_for_the_logits)
{
    software.logit_copies = 3;
    cr_expect_eq(find("recompute full")[FOOTPRINT_CACHED],
                 TOKENS * 2 * FFN * 2 + TOKENS * FFN * 2 - TOKENS * HIDDEN * 2);
}

Test(footprint, adds_fragments_to_what_is_reserved)
{
    software.workspace_mib = 64;
    find("");
    int64_t allocated = footprint.allocated;
    cr_expect_eq(footprint.bytes[FOOTPRINT_WORKSPACES], 64 << 20);
    software.fragmentation = 0.03;
    find("");
    cr_expect_eq(footprint.allocated, allocated);
    cr_expect_float_eq((double)(footprint.reserved - allocated), 0.03 * (double)allocated, 16.0);
}

// At the loss, the fc1 output of 16 tokens in both layers is kept in FP8 instead of BF16.
Test(footprint, keeps_the_inputs_of_activations_in_fp8_where_the_program_does)
{
    int64_t wide                   = find("")[FOOTPRINT_ACTIVATIONS];
    software.fp8_activation_inputs = 1;
    cr_expect_eq(wide - find("")[FOOTPRINT_ACTIVATIONS], LAYERS * TOKENS * 2 * FFN);
}

// Of four stages only the third has experts.
Test(footprint, of_a_job_is_that_of_its_largest_stage)
{
    const char *row =
        "layers 16; pp 4; accumulation 4; compute bf16; pattern *-*-*-*-*E*E*-*-; experts 8; top_k 2; expert_ffn 512";
    struct hardware_config hardware = {.gpus_per_node = 8};
    struct plan_request    request  = layout_request(row);
    struct footprint       third;
    footprint_find(&third, tiny_plan_of(row, 2), &software, &hardware, 8);
    REQUIRE(predict_footprint(&footprint, &request, &(struct machine){.hardware = &hardware, .software = &software}));
    cr_expect_eq(footprint.reserved, third.reserved);
}

Test(footprint, has_a_cuda_context_only_on_a_gpu)
{
    find("");
    cr_expect_eq(footprint.bytes[FOOTPRINT_CONTEXT], 650 << 20);
    footprint_find(&footprint, plan, &software, &(struct hardware_config){.cores = 8}, 8);
    cr_expect_eq(footprint.bytes[FOOTPRINT_CONTEXT], 0);
}
