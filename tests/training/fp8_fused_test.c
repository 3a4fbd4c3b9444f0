// SPDX-License-Identifier: MIT
// Tests quantization that is fused into other ops: plans have fewer ops and bytes, and training has the same bits.
#include <criterion/criterion.h>

#include "gswbench/verify.h"
#include "layouts.h"
#include "same_training.h"
#include "success.h"

enum { SEQUENCES = 8 };

// Sizes of this model are not multiples of the scaling blocks.
static struct training make_training(int64_t recipe)
{
    struct training training = {.ranks = 2, .steps = 3, .threads = 2, .seed = 5, .data = DATA_MARKOV};
    training.tiny            = tiny_of("hidden 144; head_dim 16; heads 8; ffn 160; vocab 64; sequence 32; compute fp8");
    training.tiny.precision.recipe  = recipe;
    training.tiny.train.micro_batch = SEQUENCES / 2;
    return training;
}

static const char *const layouts[] = {
    "dp 2",
    "fsdp 2; recompute full; fp8_weights yes",
    "tp 2",
    "tp 2; tp_overlap yes",
    "pp 2; micro_batch 2; accumulation 4",
    "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05",
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static void expect_same_bits_in(const char *layout, int64_t recipe)
{
    struct training fused = make_training(recipe);
    fused.ranks           = layout_apply(&fused.tiny, layout);
    if (recipe >= RECIPE_BLOCK) {
        fused.tiny.precision.fp8_weights = 0;
    }
    struct training apart          = fused;
    apart.tiny.precision.fp8_fused = 0;
    expect_same_training(&fused, &apart, &(struct closeness){0}, layout);
}

static void expect_same_bits(int64_t recipe)
{
    for (int i = 0; i < LAYOUTS; i++) {
        expect_same_bits_in(layouts[i], recipe);
    }
}

Test(fp8_fused, trains_bit_by_bit_as_apart_with_delayed_scaling, .timeout = 240)
{
    expect_same_bits(RECIPE_DELAYED);
}

Test(fp8_fused, trains_bit_by_bit_as_apart_with_scaling_by_blocks, .timeout = 240)
{
    expect_same_bits(RECIPE_BLOCK);
    expect_same_bits(RECIPE_MXFP8);
    expect_same_bits(RECIPE_ROWS);
}

Test(fp8_fused, trains_bit_by_bit_as_apart_with_current_scaling, .timeout = 240)
{
    expect_same_bits(RECIPE_CURRENT);
}

// AdamW also computes the amax of the weights that it writes. Ranks update slices of different sizes, so amaxes come
// from different parts of a weight.
Test(fp8_fused, trains_bit_by_bit_as_apart_where_ranks_update_slices_of_weights, .timeout = 240)
{
    static const char *const sliced[] = {
        "fsdp 2; recompute full",
        "fsdp 2; dp 2; micro_batch 2; master no",
        "fsdp 2; tp 2; fp8_gemms fc1, projection",
        "fsdp 2; ep 2; experts 4; top_k 2",
        "fsdp 2; pp 2; micro_batch 1; accumulation 4",
        "dp 2; zero 1; accumulation 2; micro_batch 2; zero_gather forward",
        "dp 2; cp 2; ep 2; experts 4; top_k 2; zero 1",
    };
    for (size_t i = 0; i < sizeof(sliced) / sizeof(sliced[0]); i++) {
        expect_same_bits_in(sliced[i], RECIPE_CURRENT);
    }
}

static struct account account_of(struct tiny *tiny, int64_t *fused)
{
    struct account account;
    tiny_plan(tiny);
    EXPECT_SUCCESS(plan_verify(&tiny->plan, NULL));
    plan_account(&tiny->plan, &account);
    *fused = 0;
    for (int32_t i = 0; i < tiny->plan.op_count; i++) {
        *fused += op_is_fused(&tiny->plan.ops[i]);
    }
    plan_free(&tiny->plan);
    return account;
}

// In each layer two norms, the activation and its gradient write FP8 directly. Their BF16 outputs, of 2 bytes per
// element, are neither written nor read.
Test(fp8_fused, saves_what_was_written_to_be_cast)
{
    static const int64_t recipes[] = {RECIPE_DELAYED, RECIPE_BLOCK, RECIPE_CURRENT, RECIPE_MXFP8};
    const int64_t        tokens = 32 * SEQUENCES / 2, layers = 2, elements = tokens * (144 + 144 + 160 + 2 * 160);
    for (int i = 0; i < 4; i++) {
        int64_t         fused, none;
        struct training training          = make_training(recipes[i]);
        struct account  whole             = account_of(&training.tiny, &fused);
        training.tiny.precision.fp8_fused = 0;
        struct account parts              = account_of(&training.tiny, &none);
        cr_expect_eq(fused, layers * 4);
        cr_expect_eq(none, 0);
        cr_expect_eq(parts.ops[OP_QUANTIZE] - whole.ops[OP_QUANTIZE], layers * 4);
        cr_expect_eq(parts.quantized_bytes - whole.quantized_bytes, layers * elements * 2);
        cr_expect_lt(whole.total_bytes, parts.total_bytes);
    }
}

// If an op also reads the BF16 tensor, it must be written anyway, so quantization is not fused. With current scaling,
// the op that writes it can still compute its amax.
Test(fp8_fused, leaves_apart_what_is_read_in_bf16_unless_a_scale_follows_from_it)
{
    int64_t         fused;
    struct training current = make_training(RECIPE_CURRENT), delayed = make_training(RECIPE_DELAYED);
    delayed.tiny.precision.fp8_weight_gradients = 0;
    account_of(&delayed.tiny, &fused);
    cr_expect_eq(fused, 0);

    current.tiny.precision.fp8_weight_gradients = 0;
    account_of(&current.tiny, &fused);
    cr_expect_eq(fused, 2 * 4);
}
