// SPDX-License-Identifier: MIT
// Frozen weights in FP8 and FP4: a step with stored weights has the bits of a step that casts BF16 weights, and their
// bytes are those of the format.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "drawn_layout.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "plan_ops.h"
#include "training.h"

enum { STEPS = 4, SEQUENCES = 8 };

static const char model[] = "hidden 64; head_dim 16; heads 4; kv_heads 2; ffn 96; vocab 128; sequence 32; "
                            "init_deviation 0.05; learning_rate 3e-3; rank 4; targets qkv, projection; ";

static struct training frozen(const char *recipe, const char *layout, bool is_stored)
{
    char            row[512];
    struct training training = {.steps = STEPS, .threads = 1, .seed = 5, .data = DATA_MARKOV};
    snprintf(row, sizeof(row), "%scompute %s; fp4_stochastic_rounding no; recipe %s; fp8_weights %s", model,
             strcmp(recipe, "nvfp4") == 0 ? "fp4" : "fp8", recipe, is_stored ? "yes" : "no");
    training.tiny  = tiny_of(row);
    training.ranks = layout_apply(&training.tiny, layout);
    layout_assignment(&training.tiny, SEQUENCES);
    return training;
}

// Runs a training with weights that each step casts, and with stored ones. These have more units, so that the norm is a
// sum in another order. Nothing is clipped.
static void expect_same_bits(struct training training, const char *name)
{
    training.tiny.train.clip = 0;
    struct training cast = training, stored = training;
    cast.tiny.precision.fp8_weights   = false;
    stored.tiny.precision.fp8_weights = true;
    training_run(&cast);
    training_run(&stored);
    cr_expect_neq(cast.loss[0], cast.loss[training.steps - 1], "%s", name);
    cr_expect_arr_eq(stored.loss, cast.loss, (size_t)training.steps * sizeof(*cast.loss), "%s", name);
    for (int step = 0; step < training.steps; step++) {
        cr_expect_float_eq(stored.norm[step], cast.norm[step], 1e-6F * cast.norm[step], "%s", name);
    }
    cr_expect_arr_eq(stored.storage_bytes, stored.planned_bytes, sizeof(stored.planned_bytes), "%s", name);
}

// Delayed scaling casts BF16 weights with the scale of an earlier step, so it is not one of them.
Test(frozen_weights, give_the_bits_of_weights_that_each_step_casts, .timeout = 240)
{
    static const struct {
        const char *recipe, *layout;
    } rows[] = {
        {"current", "tp 2"},
        {"current", "cp 2"},
        {"current", "pp 2; accumulation 4"},
        {"current", "fsdp 2; accumulation 2"},
        {"current", "dp 2; ep 2; experts 4; top_k 2; expert_ffn 64"},
        {"block", ""},
        {"block", "dp 2; accumulation 2; zero 1"},
        {"mxfp8", "tp 2"},
        {"mxfp8", "recompute full"},
        {"mxfp8", "dp 2; ep 2; experts 4; top_k 2; expert_ffn 64"},
        {"nvfp4", "tp 2"},
        {"nvfp4", "pp 2; accumulation 4"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_same_bits(frozen(rows[i].recipe, rows[i].layout, true), rows[i].layout);
    }
}

// The drawn layouts that have adapters, with FP8 in place of fp32.
Test(frozen_weights, give_these_bits_in_drawn_layouts, .timeout = 240)
{
    enum { LAYOUTS = 5 };
    int count = 0;
    for (uint64_t seed = 0; count < LAYOUTS; seed++) {
        char            name[LAYOUT_NAME_BYTES];
        struct training drawn            = drawn_layout(seed);
        drawn.steps                      = STEPS;
        drawn.tiny.precision.compute     = COMPUTE_FP8;
        drawn.tiny.precision.recipe      = RECIPE_CURRENT;
        drawn.tiny.precision.fp8_weights = true;
        if (drawn.tiny.model.adapters.rank > 0 && drawn_layout_is_planned(&drawn)) {
            count++;
            expect_same_bits(drawn, layout_name(&drawn.tiny, name));
        }
    }
}

static int64_t weight_bytes(const char *recipe, bool is_stored)
{
    struct training training = frozen(recipe, "", is_stored);
    tiny_plan_rank(&training.tiny, 1, 0);
    status result = plan_verify(&training.tiny.plan, NULL);
    cr_expect_str_empty(result.text);
    int64_t bytes = training.tiny.plan.storage_bytes[STORAGE_WEIGHT];
    plan_free(&training.tiny.plan);
    return bytes;
}

// A layer has 128 x 64, 64 x 64, 192 x 64 and 64 x 96 numbers. Scales begin at multiples of 256 bytes.
Test(frozen_weights, take_the_bytes_of_their_format)
{
    const int64_t linears = 2 * (8192 + 4096 + 12288 + 6144);
    cr_expect_eq(weight_bytes("current", false) - weight_bytes("current", true), linears - 2 * 4 * 256);
    cr_expect_eq(weight_bytes("delayed", false) - weight_bytes("delayed", true), linears - 2 * 4 * 256);
}

static bool is_stored_weight(const struct plan *plan, int32_t tensor)
{
    return plan->tensors[tensor].storage == STORAGE_WEIGHT;
}

// No recipe casts a frozen weight in the step, and delayed scaling does not change its scale.
Test(frozen_weights, are_not_cast_in_the_step)
{
    static const char *const recipes[] = {"delayed", "current", "block", "mxfp8", "nvfp4"};
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        struct training training = frozen(recipes[i], "accumulation 2", true);
        tiny_plan_rank(&training.tiny, 1, 0);
        const struct plan *plan  = &training.tiny.plan;
        int                gemms = 0, transposes = 0;
        for (int32_t j = 0; j < plan->op_count; j++) {
            const struct op *op = &plan->ops[j];
            transposes += op->kind == OP_TRANSPOSE;
            cr_expect(op->kind != OP_QUANTIZE || op->tag.makes != MAKES_WEIGHT, "%s: %s", recipes[i], op->tag.role);
            if (op->kind == OP_GEMM && op->operand[GEMM_INVERSE_SCALE_B] >= 0) {
                gemms++;
                cr_expect(is_stored_weight(plan, op->operand[GEMM_INVERSE_SCALE_B]), "%s: %s", recipes[i],
                          op->tag.role);
            }
        }
        // Forward 2 layers of 4 matrices; backward all but the first qkv; two microbatches.
        cr_expect_eq(gemms, 2 * (8 + 7), "%s", recipes[i]);
        cr_expect_eq(transposes, i < 2 ? 2 * 7 : 0, "%s", recipes[i]);
        plan_free(&training.tiny.plan);
    }
}

Test(frozen_weights, are_sharded_with_one_scale_per_matrix_only)
{
    struct training     training = frozen("mxfp8", "fsdp 2", true);
    struct plan_request request  = tiny_request(&training.tiny, 2, 0);
    status              result   = plan_build(&training.tiny.plan, &request);
    cr_expect_str_eq(result.text, "this version shards frozen weights with one scale per matrix only ([precision] "
                                  "fp8_weights = yes and [adapters] rank = 4 with fsdp): set recipe = delayed or "
                                  "current, or fp8_weights = no");
    plan_free(&training.tiny.plan);
}
