// SPDX-License-Identifier: MIT
// Frozen weights in FP8 and FP4: a step with stored weights has the bits of a step that casts BF16 weights, and their
// bytes are those of the format.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

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

// Delayed scaling casts BF16 weights with the scale of an earlier step, so it is not one of them.
Test(frozen_weights, give_the_bits_of_weights_that_each_step_casts, .timeout = 240)
{
    static const char *const recipes[] = {"current", "block", "mxfp8", "nvfp4"};
    static const char *const layouts[] = {"",
                                          "dp 2; accumulation 2; zero 1",
                                          "tp 2",
                                          "cp 2",
                                          "pp 2; accumulation 4",
                                          "recompute full",
                                          "dp 2; ep 2; experts 4; top_k 2; expert_ffn 64"};
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        for (size_t j = 0; j < sizeof(layouts) / sizeof(layouts[0]); j++) {
            struct training cast = frozen(recipes[i], layouts[j], false), stored = frozen(recipes[i], layouts[j], true);
            training_run(&cast);
            training_run(&stored);
            cr_expect_neq(cast.loss[0], cast.loss[STEPS - 1]);
            cr_expect_arr_eq(stored.loss, cast.loss, STEPS * sizeof(*cast.loss), "%s, %s", recipes[i], layouts[j]);
            cr_expect_arr_eq(stored.norm, cast.norm, STEPS * sizeof(*cast.norm), "%s, %s", recipes[i], layouts[j]);
            cr_expect_arr_eq(stored.storage_bytes, stored.planned_bytes, sizeof(stored.planned_bytes), "%s, %s",
                             recipes[i], layouts[j]);
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

Test(frozen_weights, are_refused_where_fsdp_shards_them)
{
    struct training     training = frozen("current", "fsdp 2", true);
    struct plan_request request  = tiny_request(&training.tiny, 2, 0);
    status              result   = plan_build(&training.tiny.plan, &request);
    cr_expect_str_eq(result.text,
                     "this version does not shard frozen weights that are stored in FP8 or FP4 ([precision] "
                     "fp8_weights = yes and [adapters] rank = 4 with fsdp): set fp8_weights = no, or use dp "
                     "in place of fsdp");
    plan_free(&training.tiny.plan);
}
