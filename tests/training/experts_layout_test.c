// SPDX-License-Identifier: MIT
// A mixture of experts trains as on one rank in every layout: losses, gradient norms and the weights after five steps.
#include <criterion/criterion.h>
#include <stdio.h>

#include "layouts.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 5 };

static const char model[] = "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; experts 4; top_k 2; "
                            "auxiliary_loss 0.05; capacity_scope sequence; sequence 16; learning_rate 5e-4; "
                            "recompute_every 2; recompute_save qkv, dispatch";

// Experts take all choices; with a factor, as many as are theirs on average, of each sequence or of each rank; or equal
// numbers.
// clang-format off
static const char *const layouts[] = {
    "accumulation 2",
    "dp 2; ep 2",
    "dp 4; ep 4; accumulation 2; capacity_factor 1",
    "dp 4; ep 2; experts 8; capacity_factor 1; recompute full",
    "tp 2",
    "tp 4; accumulation 2; layers 2; capacity_factor 1; recompute full; context ring; tp_overlap yes",
    "dp 2; ep 2; tp 2; accumulation 2; capacity_factor 1",
    "dp 2; ep 2; tp 2; capacity_factor 1; recompute selective; context ring; tp_overlap yes",
    "dp 2; ep 2; tp 2; zero 1; experts 8; capacity_factor 1; recompute attention; sequence_parallel no",
    "tp 2; cp 2; accumulation 2; layers 2; sequence_parallel no",
    "dp 2; ep 2; cp 2; accumulation 2; capacity_factor 1; recompute attention",
    "dp 2; ep 2; cp 2; zero 1; accumulation 4; experts 8; context ring; tp_overlap yes",
    "dp 2; ep 2; tp 2; cp 2; zero 1; accumulation 4; layers 2; capacity_factor 1; recompute full; context ring; "
    "tp_overlap yes",
    "dp 4; ep 2; zero 1; accumulation 2; experts 8",
    "dp 4; ep 4; zero 1; accumulation 2; capacity_factor 1; capacity_scope rank; recompute block_every",
    "fsdp 4; ep 2; accumulation 2; capacity_factor 1",
    "fsdp 4; prefetch 2; reshard except-last; capacity_factor 1; capacity_scope rank; recompute full",
    "fsdp 4; ep 4; accumulation 2; prefetch 0; reshard never; recompute selective",
    "dp 2; fsdp 4; ep 2; layers 2; capacity_factor 1; capacity_scope rank; routing balanced",
    "dp 2; fsdp 2; ep 2; tp 2; accumulation 2; layers 2; experts 8; capacity_factor 1; capacity_scope rank; "
    "routing balanced; context ring; tp_overlap yes",
    "dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 5; capacity_factor 1",
    "dp 2; ep 2; pp 2; vp 2; zero 1; accumulation 4; layers 4; capacity_factor 1; capacity_scope rank; recompute full",
    "fsdp 2; ep 2; pp 2; accumulation 4; layers 4",
    "dp 4; ep 4; tp 2; pp 2; zero 1; accumulation 2; layers 4; experts 8; capacity_factor 1; context ring; "
    "tp_overlap yes",
    // bf16, gradients reduced in bf16
    "dp 4; ep 4; tp 2; pp 2; zero 1; accumulation 2; layers 4; experts 8; capacity_factor 1; capacity_scope rank; "
    "routing balanced; context ring; tp_overlap yes; compute bf16; reduce bf16",
    "fsdp 4; ep 2; accumulation 2; capacity_factor 1; capacity_scope rank; routing balanced; recompute full; "
    "compute bf16; reduce bf16",
};
// clang-format on
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static struct training describe(const char *layout)
{
    return training_of(model, layout, BATCH, STEPS);
}

// Microbatches are as large: where ranks compete, the same tokens do.
static struct training alone(const struct training *many)
{
    struct training one = *many;
    one.ranks           = 1;
    layout_alone_in_turn(&one.tiny);
    return one;
}

Test(experts_layout, trains_as_one_rank_does, .timeout = 300)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5}, narrow = {1e-2, 3e-2, 3e-2};
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many = describe(layouts[i]), one = alone(&many);
        bool            is_narrow = many.tiny.precision.compute == COMPUTE_BF16;
        expect_same_training(&many, &one, is_narrow ? &narrow : &exact, layouts[i]);
    }
}

static void choose_fp8(struct training *training, enum scaling_recipe recipe)
{
    training->tiny.precision.compute    = COMPUTE_FP8;
    training->tiny.precision.fp8_recipe = recipe;
}

// Recipes in turn. Ranks sum in another order, and so round to other FP8 numbers here and there.
Test(experts_layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many = describe(layouts[i]), one = alone(&many);
        char            name[256];
        choose_fp8(&many, (enum scaling_recipe)(i % (RECIPE_BLOCK + 1)));
        choose_fp8(&one, (enum scaling_recipe)(i % (RECIPE_BLOCK + 1)));
        training_run(&many);
        training_run(&one);
        for (int step = 0; step < STEPS; step++) {
            snprintf(name, sizeof(name), "%s, step %d: loss", layouts[i], step);
            expect_near(many.loss[step], one.loss[step], 1e-2, name);
        }
        cr_expect_arr_eq(many.storage_bytes, many.planned_bytes, sizeof(many.planned_bytes), "%s", layouts[i]);
    }
}

// Slots that stay empty are zeros in what is quantized. With enough slots for all choices, more change nothing.
Test(experts_layout, has_the_same_scales_in_fp8_whatever_is_padded, .timeout = 60)
{
    for (int recipe = RECIPE_DELAYED; recipe <= RECIPE_BLOCK; recipe++) {
        struct training enough = describe("layers 2; capacity_factor 1.9; capacity_scope rank");
        struct training padded = describe("layers 2; capacity_scope rank");
        choose_fp8(&enough, (enum scaling_recipe)recipe);
        choose_fp8(&padded, (enum scaling_recipe)recipe);
        training_run(&enough);
        training_run(&padded);
        cr_expect_gt(padded.planned_bytes[STORAGE_ACTIVATION], enough.planned_bytes[STORAGE_ACTIVATION]);
        cr_expect_eq(padded.loss[0], enough.loss[0], "recipe %d: %.8f, not %.8f", recipe, (double)padded.loss[0],
                     (double)enough.loss[0]);
        for (int step = 1; step < STEPS; step++) {
            expect_near(padded.loss[step], enough.loss[step], 1e-4, "padded");
            expect_near(padded.norm[step], enough.norm[step], 1e-3, "padded");
        }
    }
}

Test(experts_layout, repeats_bit_for_bit, .timeout = 60)
{
    static const char layout[] = "dp 2; ep 2; tp 2; cp 2; zero 1; accumulation 2; layers 2; capacity_factor 1; "
                                 "recompute full; context ring; tp_overlap yes; compute bf16; reduce bf16";
    struct training   first = describe(layout), second = describe(layout);
    training_run(&first);
    training_run(&second);
    cr_expect_arr_eq(first.loss, second.loss, STEPS * sizeof(float));
    cr_expect_arr_eq(first.norm, second.norm, STEPS * sizeof(float));
}
