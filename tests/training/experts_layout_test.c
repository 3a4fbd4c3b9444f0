// SPDX-License-Identifier: MIT
// Tests models with experts: each layout trains as one rank does. Compares losses, gradient norms, and weights after
// five steps. A commit draws half of the layouts, and half in FP8; GSWBENCH_ROWS=all trains all.
#include <criterion/criterion.h>

#include "draw.h"
#include "layouts.h"
#include "line.h"
#include "same_training.h"

enum { BATCH = 8, STEPS = 5 };

static const char model[] = "layers 3; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; experts 4; top_k 2; "
                            "auxiliary_loss 0.05; capacity_scope sequence; sequence 16; learning_rate 5e-4; "
                            "recompute_every 2; recompute_save qkv, dispatch";

// Layouts are dropless, have a capacity factor per sequence or per rank, or route tokens evenly.
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
    "fsdp 2; ep 2; cp 2; shard_over_cp yes; accumulation 2; capacity_factor 1; recompute full",
    "dp 2; ep 2; cp 2; shard_over_cp yes; reshard except-last; context ring",
    "fsdp 2; tp 2; cp 2; ep 4; etp 1; shard_over_cp yes; accumulation 2; layers 2",
    "fsdp 2; tp 2; cp 2; ep 8; etp 1; experts 8; shard_over_cp yes; accumulation 2; capacity_factor 1; tp_overlap yes",
    "dp 2; fsdp 4; ep 2; layers 2; capacity_factor 1; capacity_scope rank; routing balanced",
    "dp 2; fsdp 2; ep 2; tp 2; accumulation 2; layers 2; experts 8; capacity_factor 1; capacity_scope rank; "
    "routing balanced; context ring; tp_overlap yes",
    "dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 5; capacity_factor 1",
    "dp 2; ep 2; pp 2; vp 2; zero 1; accumulation 4; layers 4; capacity_factor 1; capacity_scope rank; recompute full",
    "fsdp 2; ep 2; pp 2; accumulation 4; layers 4",
    "dp 4; ep 4; tp 2; pp 2; zero 1; accumulation 2; layers 4; experts 8; capacity_factor 1; context ring; "
    "tp_overlap yes",
    // recompute of parts of layers
    "dp 2; ep 2; accumulation 2; recompute modules; recompute_modules moe",
    "fsdp 2; ep 2; tp 2; shared_ffn 8; recompute modules; recompute_modules shared_experts, moe_act, layernorm",
    "dp 2; pp 2; ep 2; accumulation 2; layers 4; pattern 2 x (dense, experts); shared_ffn 8; recompute modules; "
    "recompute_modules mlp, core_attn, moe; recompute_layers 1",
    // each tp rank has whole experts; with a larger ep also each cp rank
    "tp 2; ep 2; etp 1",
    "tp 4; ep 4; etp 1; accumulation 2; layers 2; capacity_factor 1; recompute full; context ring; tp_overlap yes",
    "dp 2; tp 2; ep 4; etp 1; zero 1; accumulation 2",
    "dp 4; tp 2; ep 8; etp 1; experts 8; zero 1; zero_gather forward; capacity_factor 1; recompute selective",
    "dp 4; tp 2; ep 4; etp 1; experts 8; capacity_factor 1; tp_overlap yes; recompute attention",
    "fsdp 4; tp 2; ep 4; etp 1; accumulation 2; reshard never",
    "fsdp 4; tp 2; ep 8; etp 1; experts 8; top_k 3; prefetch 2; reshard except-last; recompute full",
    "dp 2; fsdp 2; tp 2; ep 2; etp 1; layers 2; capacity_factor 1; recompute block_every",
    "dp 2; tp 2; cp 2; ep 2; etp 1; accumulation 2; capacity_factor 1; context ring",
    "tp 2; cp 2; ep 4; etp 1; accumulation 4; layers 2; recompute full",
    "dp 2; tp 2; cp 2; ep 8; etp 1; experts 8; zero 1; accumulation 2; layers 2; capacity_factor 1; tp_overlap yes",
    "dp 2; tp 2; ep 4; etp 1; pp 2; vp 2; zero 1; accumulation 4; layers 5; recompute full",
    "fsdp 2; tp 2; ep 2; etp 1; pp 2; accumulation 4; layers 4; capacity_factor 1",
    "dp 2; tp 4; ep 8; etp 1; experts 8; top_k 1; accumulation 2; layers 2; tp_overlap yes",
    // replicas reduce gradients, also of experts, after every microbatch
    "dp 4; ep 2; accumulation 2; gradient_reduce microbatch; capacity_factor 1",
    "dp 2; ep 2; zero 1; accumulation 4; experts 8; gradient_reduce microbatch; recompute full",
    // experts are sharded over cp as well
    "cp 2; ep 2; ep_over_cp yes",
    "dp 2; cp 2; ep 4; ep_over_cp yes; zero 1; accumulation 2; context ring",
    "dp 2; tp 2; cp 2; ep 2; ep_over_cp yes; layers 2; capacity_factor 1; recompute full; context ring; tp_overlap yes",
    "fsdp 2; tp 2; cp 2; ep 4; ep_over_cp yes; experts 8; shard_over_cp yes; accumulation 2",
    "tp 2; cp 2; pp 2; ep 2; ep_over_cp yes; zero 1; zero_gather forward; accumulation 4; layers 4; sequence_parallel no",
    // BF16 compute with BF16 gradient reduction
    "dp 2; tp 2; ep 4; etp 1; zero 1; accumulation 2; capacity_factor 1; capacity_scope rank; routing balanced; "
    "recompute full; compute bf16; reduce bf16",
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

// The run on one rank keeps the microbatch size, since the same tokens must compete for the capacity of experts.
Test(experts_layout, trains_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS; i++) {
        struct training many = describe(layouts[i]);
        if (is_drawn(i, 2)) {
            expect_as_one_rank(&many, layout_alone_in_turn, layouts[i]);
        }
    }
}

static void choose_fp8(struct training *training, enum scaling_recipe recipe)
{
    training->tiny.precision.compute                 = recipe == RECIPE_NVFP4 ? COMPUTE_FP4 : COMPUTE_FP8;
    training->tiny.precision.recipe                  = recipe;
    training->tiny.precision.fp4_stochastic_rounding = 0;
}

// Layouts rotate through the FP8 recipes. Ranks sum in another order, so single FP8 roundings differ.
Test(experts_layout, trains_in_fp8_as_one_rank_does, .timeout = 300)
{
    for (int i = 0; i < LAYOUTS; i++) {
        if (!is_drawn(i, 2)) {
            continue;
        }
        struct training many = describe(layouts[i]);
        choose_fp8(&many, (enum scaling_recipe)(i % (RECIPE_MXFP8 + 1)));
        struct training one = on_one_rank(&many, layout_alone_in_turn);
        training_run(&one);
        expect_losses(&many, &one, 1e-2, layouts[i]);
    }
}

static int64_t multiple_of(const char *precision)
{
    const struct plan *plan = tiny_plan_of(line_of("layers 1; experts 4; top_k 2; expert_ffn 32; %s", precision), 0);
    int64_t            multiple = -1;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        multiple            = op->kind == OP_ROUTE_FORWARD ? op->shape.routing.multiple : multiple;
    }
    return multiple;
}

Test(experts_layout, rounds_counted_rows_up_to_what_products_need)
{
    cr_expect_eq(multiple_of("compute bf16"), 1);
    cr_expect_eq(multiple_of("compute fp8; recipe current"), 16);
    cr_expect_eq(multiple_of("compute fp8; recipe block"), 16);
    cr_expect_eq(multiple_of("compute fp8; recipe mxfp8"), 32);
    cr_expect_eq(multiple_of("compute fp4; recipe nvfp4"), 32);
}

// Empty slots of experts are quantized as zeros, so a larger capacity changes no scale and no result.
Test(experts_layout, has_the_same_scales_in_fp8_whatever_is_padded, .timeout = 60)
{
    for (int recipe = RECIPE_DELAYED; recipe <= RECIPE_MXFP8; recipe++) {
        struct training enough = describe("layers 2; capacity_factor 1.9; capacity_scope rank");
        struct training padded = describe("layers 2; capacity_factor 4; capacity_scope rank");
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

// Returns the same training with a capacity factor that drops no token. It computes the same as dropless routing, but
// with buffers for the worst case instead of counted rows.
static struct training padded(const struct training *counted)
{
    struct training same            = *counted;
    same.tiny.model.capacity_factor = 1000;
    return same;
}

// The last rows have so few tokens that most experts get none, or one expert gets all.
// clang-format off
static const char *const counted_layouts[] = {
    "",
    "accumulation 2; recompute full",
    "dp 2; ep 2",
    "dp 4; ep 2; experts 8; recompute full",
    "dp 4; ep 4; zero 1; accumulation 2; recompute selective",
    "fsdp 4; ep 2; accumulation 2; experts 8; recompute attention",
    "fsdp 4; ep 4; recompute block_every; capacity_scope rank",
    "dp 2; ep 2; cp 2; zero 1; accumulation 2; context ring",
    "dp 2; ep 2; pp 2; vp 2; accumulation 4; layers 4; recompute full",
    "fsdp 2; ep 2; pp 2; accumulation 4; layers 4",
    "dp 4; ep 4; experts 8; top_k 1; sequence 2; accumulation 2",
    "dp 2; ep 2; experts 8; top_k 3; sequence 2; accumulation 2; recompute full",
    "tp 2; ep 2; etp 1; accumulation 2; recompute full",
    "dp 2; tp 2; ep 4; etp 1; experts 8; zero 1; tp_overlap yes",
    "fsdp 2; tp 2; cp 2; ep 8; etp 1; experts 8; accumulation 2; recompute selective",
    "dp 4; tp 2; ep 8; etp 1; experts 8; top_k 1; sequence 2",
    "dp 2; cp 2; ep 4; ep_over_cp yes; experts 8; accumulation 2; context ring",
};
// clang-format on
enum { COUNTED_LAYOUTS = sizeof(counted_layouts) / sizeof(counted_layouts[0]) };

Test(experts_layout, trains_alike_with_rows_that_are_counted_and_with_padded_ones, .timeout = 300)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5};
    for (int i = 0; i < COUNTED_LAYOUTS; i++) {
        struct training counted = describe(counted_layouts[i]), others = padded(&counted);
        expect_same_training(&counted, &others, &exact, counted_layouts[i]);
        cr_expect_lt(counted.planned_bytes[STORAGE_ACTIVATION], others.planned_bytes[STORAGE_ACTIVATION], "%s",
                     counted_layouts[i]);
    }
}

// Compares BF16 and every FP8 recipe. Weight gradients add other partial sums, so results are only close.
Test(experts_layout, trains_alike_with_counted_rows_in_few_digits, .timeout = 300)
{
    for (int i = 0; i < COUNTED_LAYOUTS; i++) {
        struct training counted        = describe(counted_layouts[i]);
        int             recipe         = i % (RECIPE_MXFP8 + 2);
        counted.tiny.precision.compute = COMPUTE_BF16;
        if (recipe <= RECIPE_MXFP8) {
            choose_fp8(&counted, (enum scaling_recipe)recipe);
        }
        struct training others = padded(&counted);
        training_run(&others);
        expect_losses(&counted, &others, 1e-3, counted_layouts[i]);
        cr_expect_eq(counted.loss[0], others.loss[0], "%s: %.8f, not %.8f", counted_layouts[i], (double)counted.loss[0],
                     (double)others.loss[0]);
    }
}

// Router weights are zero, so all logits are equal and every token on every rank chooses the first experts.
Test(experts_layout, has_places_for_all_tokens_at_one_expert, .timeout = 60)
{
    static const char *const rows[] = {"top_k 1", "dp 4; ep 4; top_k 1", "dp 2; ep 2; top_k 2; compute fp8",
                                       "dp 2; tp 2; ep 4; etp 1; top_k 1"};
    for (int i = 0; i < 4; i++) {
        struct training all           = describe(rows[i]);
        int64_t         per_step      = BATCH * 16 * all.tiny.model.layers;
        all.tiny.model.init_deviation = 0;
        training_run(&all);
        for (int expert = 0; expert < 4; expert++) {
            float load = 0;
            for (int64_t layer = 0; layer < all.tiny.model.layers; layer++) {
                load += all.routing[layer * (4 + 2) + expert];
            }
            cr_expect_eq(load, expert < all.tiny.model.top_k ? (float)per_step : 0.0f, "%s: expert %d has %g", rows[i],
                         expert, (double)load);
        }
        cr_expect_float_eq(all.loss[0], 3.6109f, 1e-3, "%s: %g", rows[i], (double)all.loss[0]);    // log 37
    }
}

Test(experts_layout, repeats_bit_for_bit, .timeout = 120)
{
    static const char layout[] = "dp 2; ep 2; tp 2; cp 2; zero 1; accumulation 2; layers 2; capacity_factor 1; "
                                 "recompute full; context ring; tp_overlap yes; compute bf16; reduce bf16";
    struct training   first = describe(layout), second = first;
    expect_same_training(&first, &second, &(struct closeness){0}, layout);
}
