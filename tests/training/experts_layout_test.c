// SPDX-License-Identifier: MIT
// A mixture of experts trains as on one rank in every layout: losses, gradient norms and the weights after five steps.
#include <criterion/criterion.h>
#include <stdio.h>

#include "same_training.h"

enum { BATCH = 8, STEPS = 5 };

// Which choices experts take: all; of each sequence, or of each rank, as many as are theirs on average; equal numbers.
enum taking { ALL, SEQUENCE, RANK, BALANCED };

// Rows of the residual stream under tp, and what overlaps.
enum way { PLAIN, RING, WHOLE_ROWS };

struct layout {
    int64_t     dp, fsdp, ep, tp, cp, pp, vp, zero, accumulation;
    int64_t     layers, experts;
    enum taking taking;
    int64_t     recompute, reshard, prefetch, narrow;
    enum way    way;
};

// clang-format off
static const struct layout layouts[] = {
    // dp fsdp ep tp cp pp vp zero ga  layers experts      recompute              reshard         prefetch narrow
    {  1, 1, 1, 1, 1, 1, 1, 0, 2,      3, 4, ALL,          RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  2, 1, 2, 1, 1, 1, 1, 0, 1,      3, 4, ALL,          RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  4, 1, 4, 1, 1, 1, 1, 0, 2,      3, 4, SEQUENCE,     RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  4, 1, 2, 1, 1, 1, 1, 0, 1,      3, 8, SEQUENCE,     RECOMPUTE_FULL,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  1, 1, 1, 2, 1, 1, 1, 0, 1,      3, 4, ALL,          RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  1, 1, 1, 4, 1, 1, 1, 0, 2,      2, 4, SEQUENCE,     RECOMPUTE_FULL,        RESHARD_ALWAYS,      1, 0, RING },
    {  2, 1, 2, 2, 1, 1, 1, 0, 2,      3, 4, SEQUENCE,     RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  2, 1, 2, 2, 1, 1, 1, 0, 1,      3, 4, SEQUENCE,     RECOMPUTE_SELECTIVE,   RESHARD_ALWAYS,      1, 0, RING },
    {  2, 1, 2, 2, 1, 1, 1, 1, 1,      3, 8, SEQUENCE,     RECOMPUTE_ATTENTION,   RESHARD_ALWAYS,      1, 0, WHOLE_ROWS },
    {  1, 1, 1, 2, 2, 1, 1, 0, 2,      2, 4, ALL,          RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, WHOLE_ROWS },
    {  2, 1, 2, 1, 2, 1, 1, 0, 2,      3, 4, SEQUENCE,     RECOMPUTE_ATTENTION,   RESHARD_ALWAYS,      1, 0, PLAIN },
    {  2, 1, 2, 1, 2, 1, 1, 1, 4,      3, 8, ALL,          RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, RING },
    {  2, 1, 2, 2, 2, 1, 1, 1, 4,      2, 4, SEQUENCE,     RECOMPUTE_FULL,        RESHARD_ALWAYS,      1, 0, RING },
    {  4, 1, 2, 1, 1, 1, 1, 1, 2,      3, 8, ALL,          RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  4, 1, 4, 1, 1, 1, 1, 1, 2,      3, 4, RANK,         RECOMPUTE_BLOCK_EVERY, RESHARD_ALWAYS,      1, 0, PLAIN },
    {  1, 4, 2, 1, 1, 1, 1, 0, 2,      3, 4, SEQUENCE,     RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  1, 4, 1, 1, 1, 1, 1, 0, 1,      3, 4, RANK,         RECOMPUTE_FULL,        RESHARD_EXCEPT_LAST, 2, 0, PLAIN },
    {  1, 4, 4, 1, 1, 1, 1, 0, 2,      3, 4, ALL,          RECOMPUTE_SELECTIVE,   RESHARD_NEVER,       0, 0, PLAIN },
    {  2, 4, 2, 1, 1, 1, 1, 0, 1,      2, 4, BALANCED,     RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  2, 2, 2, 2, 1, 1, 1, 0, 2,      2, 8, BALANCED,     RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, RING },
    {  2, 1, 2, 1, 1, 2, 2, 0, 4,      5, 4, SEQUENCE,     RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  2, 1, 2, 1, 1, 2, 2, 1, 4,      4, 4, RANK,         RECOMPUTE_FULL,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  1, 2, 2, 1, 1, 2, 1, 0, 4,      4, 4, ALL,          RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, PLAIN },
    {  4, 1, 4, 2, 1, 2, 1, 1, 2,      4, 8, SEQUENCE,     RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 0, RING },
    // bf16, gradients reduced in bf16
    {  4, 1, 4, 2, 1, 2, 1, 1, 2,      4, 8, BALANCED,     RECOMPUTE_NONE,        RESHARD_ALWAYS,      1, 1, RING },
    {  1, 4, 2, 1, 1, 1, 1, 0, 2,      3, 4, BALANCED,     RECOMPUTE_FULL,        RESHARD_ALWAYS,      1, 1, PLAIN },
};
// clang-format on

static struct training describe(const struct layout *layout)
{
    struct training training = {.ranks   = (int)(layout->dp * layout->fsdp * layout->tp * layout->cp * layout->pp),
                                .steps   = STEPS,
                                .threads = 1,
                                .seed    = 5};
    struct tiny    *tiny     = &training.tiny;
    tiny_init(tiny);
    tiny_set_experts(tiny, layout->experts, 2);
    tiny->model.layers               = layout->layers;
    tiny->model.ffn                  = 20;
    tiny->model.kv_heads             = 4;
    tiny->model.vocab                = 37;
    tiny->model.vocab_multiple       = 2;
    tiny->model.capacity_factor      = layout->taking == ALL ? 0 : 1;
    tiny->train.capacity_scope       = layout->taking <= SEQUENCE ? CAPACITY_SEQUENCE : CAPACITY_RANK;
    tiny->train.routing              = layout->taking == BALANCED ? ROUTING_BALANCED : ROUTING_TOP_K;
    tiny->train.sequence             = 16;
    tiny->train.accumulation         = layout->accumulation;
    tiny->train.micro_batch          = BATCH / layout->dp / layout->fsdp / layout->accumulation;
    tiny->train.recompute            = layout->recompute;
    tiny->train.recompute_every      = 2;
    tiny->train.recompute_save       = 1 << OUTPUT_QKV | 1 << OUTPUT_DISPATCH;
    tiny->train.learning_rate        = 5e-4;
    tiny->parallel.dp                = layout->dp;
    tiny->parallel.fsdp              = layout->fsdp;
    tiny->parallel.ep                = layout->ep;
    tiny->parallel.tp                = layout->tp;
    tiny->parallel.cp                = layout->cp;
    tiny->parallel.pp                = layout->pp;
    tiny->parallel.vp                = layout->vp;
    tiny->parallel.zero              = layout->zero;
    tiny->parallel.prefetch          = layout->prefetch;
    tiny->parallel.reshard           = layout->reshard;
    tiny->parallel.tp_overlap        = layout->way == RING;
    tiny->parallel.context           = layout->way == RING ? CONTEXT_RING : CONTEXT_GATHER;
    tiny->parallel.sequence_parallel = layout->way != WHOLE_ROWS;
    if (layout->narrow) {
        tiny->precision.compute = COMPUTE_BF16;
        tiny->precision.reduce  = FORMAT_BF16;
    }
    return training;
}

// One rank with microbatches as large: where ranks compete, the same tokens do.
static struct layout alone(const struct layout *layout)
{
    return (struct layout){.dp           = 1,
                           .fsdp         = 1,
                           .ep           = 1,
                           .tp           = 1,
                           .cp           = 1,
                           .pp           = 1,
                           .vp           = 1,
                           .accumulation = layout->accumulation * layout->dp * layout->fsdp,
                           .layers       = layout->layers,
                           .experts      = layout->experts,
                           .taking       = layout->taking,
                           .narrow       = layout->narrow};
}

Test(experts_layout, trains_as_one_rank_does, .timeout = 300)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5}, narrow = {1e-2, 3e-2, 3e-2};
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct layout   single = alone(&layouts[i]);
        struct training many = describe(&layouts[i]), one = describe(&single);
        char            name[32];
        snprintf(name, sizeof(name), "layout %d", (int)i);
        expect_same_training(&many, &one, layouts[i].narrow ? &narrow : &exact, name);
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
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct layout   single = alone(&layouts[i]);
        struct training many = describe(&layouts[i]), one = describe(&single);
        char            name[48];
        choose_fp8(&many, (enum scaling_recipe)(i % (RECIPE_BLOCK + 1)));
        choose_fp8(&one, (enum scaling_recipe)(i % (RECIPE_BLOCK + 1)));
        training_run(&many);
        training_run(&one);
        for (int step = 0; step < STEPS; step++) {
            snprintf(name, sizeof(name), "layout %d, step %d: loss", (int)i, step);
            expect_near(many.loss[step], one.loss[step], 1e-2, name);
        }
        cr_expect_arr_eq(many.storage_bytes, many.planned_bytes, sizeof(many.planned_bytes), "layout %d", (int)i);
    }
}

// Slots that stay empty are zeros in what is quantized. With enough slots for all choices, more change nothing.
Test(experts_layout, has_the_same_scales_in_fp8_whatever_is_padded, .timeout = 60)
{
    struct layout layout = {1, 1, 1, 1, 1, 1, 1, 0, 1, 2, 4, RANK, RECOMPUTE_NONE, RESHARD_ALWAYS, 1, 0, PLAIN};
    for (int recipe = RECIPE_DELAYED; recipe <= RECIPE_BLOCK; recipe++) {
        struct training enough = describe(&layout), padded = describe(&layout);
        choose_fp8(&enough, (enum scaling_recipe)recipe);
        choose_fp8(&padded, (enum scaling_recipe)recipe);
        enough.tiny.model.capacity_factor = 1.9;
        padded.tiny.model.capacity_factor = 0;
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
    struct layout   layout = {2, 1, 2, 2, 2, 1, 1, 1, 2, 2, 4, SEQUENCE, RECOMPUTE_FULL, RESHARD_ALWAYS, 1, 1, RING};
    struct training first = describe(&layout), second = describe(&layout);
    training_run(&first);
    training_run(&second);
    cr_expect_arr_eq(first.loss, second.loss, STEPS * sizeof(float));
    cr_expect_arr_eq(first.norm, second.norm, STEPS * sizeof(float));
}
