// SPDX-License-Identifier: MIT
// Tests frozen weights that are stored in FP8 or FP4. A step with stored weights computes the same bits as a step that
// casts BF16 weights, and the weights need the bytes of their format.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "drawn_layout.h"
#include "folder.h"
#include "gswbench/checkpoint.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "line.h"
#include "safetensors_read.h"
#include "success.h"
#include "same_training.h"

enum { STEPS = 4, SEQUENCES = 8 };

static const char model[] = "hidden 64; head_dim 16; heads 4; kv_heads 2; ffn 96; vocab 128; sequence 32; "
                            "init_deviation 0.05; learning_rate 3e-3; rank 4; targets qkv, projection; ";

// Returns the options of the model with this recipe.
static const char *frozen_row(const char *recipe, bool is_stored)
{
    return line_of("%scompute %s; fp4_stochastic_rounding no; recipe %s; fp8_weights %s; ", model,
                   strcmp(recipe, "nvfp4") == 0 ? "fp4" : "fp8", recipe, is_stored ? "yes" : "no");
}

static struct training frozen(const char *recipe, const char *layout, bool is_stored)
{
    struct training training = training_of(frozen_row(recipe, is_stored), layout, SEQUENCES, STEPS);
    training.data            = DATA_MARKOV;
    return training;
}

// Runs a training twice, with weights that each step casts and with stored weights. Stored weights have more parameter
// groups, so the gradient norm is summed in another order. Clipping is off so that this changes no weight.
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

// Delayed scaling is left out, since it casts a BF16 weight with the scale of an earlier step.
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

// Uses the drawn layouts that have adapters, with FP8 instead of fp32.
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

// Writes the weights of a model without adapters, drawn from another seed.
static void write_base(const char *base_folder)
{
    const struct plan *plan = tiny_plan_of(line_of("%srank 0", frozen_row("current", false)), 0);
    training_require(checkpoint_write_initial(plan, 77, base_folder));
}

Test(frozen_weights, are_quantized_from_a_checkpoint, .init = make_folder, .fini = remove_folder)
{
    static const char *const recipes[] = {"current", "mxfp8", "nvfp4"};
    const char              *base      = line_of("%s/model", folder);
    write_base(base);
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        const char     *layout = i == 0 ? "fsdp 2; tp 2" : "tp 2";
        struct training loaded = frozen(recipes[i], layout, true), drawn = loaded;
        loaded.load = base;
        expect_same_bits(loaded, recipes[i]);
        loaded.steps = drawn.steps = 1;
        training_run(&loaded);
        training_run(&drawn);
        cr_expect_neq(loaded.loss[0], drawn.loss[0], "%s", recipes[i]);
    }
}

// E4M3 has 3 mantissa bits, so a rounded value is off by at most 1/16, or by half of the smallest number times the
// scale.
static void expect_rounded(const char *written, const char *initial, const char *name)
{
    struct safetensors_reader readers[2];
    float                     values[2][64 * 64];
    int                       different = 0;
    for (int i = 0; i < 2; i++) {
        training_require(safetensors_open(&readers[i], line_of("%s/model.safetensors", i == 0 ? written : initial)));
        training_require(safetensors_read(&readers[i], name, values[i], sizeof(values[i])));
        safetensors_close(&readers[i]);
    }
    for (int i = 0; i < 64 * 64; i++) {
        cr_expect_float_eq(values[0][i], values[1][i], fabsf(values[1][i]) / 15 + 1e-5F, "%d", i);
        different += values[0][i] != values[1][i];
    }
    cr_expect_gt(different, 64 * 64 / 2);
}

Test(frozen_weights, are_written_as_the_values_of_their_codes, .init = make_folder, .fini = remove_folder)
{
    static const char *const recipes[] = {"delayed", "block", "mxfp8"};
    const char              *initial   = line_of("%s/initial", folder);
    write_base(initial);
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        struct training training = frozen(recipes[i], i == 0 ? "fsdp 2; tp 2" : "tp 2", true);
        const char     *written  = line_of("%s/%s", folder, recipes[i]);
        training.steps           = 1;
        training.load            = initial;
        training.weights         = written;
        training_run(&training);
        expect_rounded(written, initial, "model.layers.1.self_attn.o_proj.weight");
        expect_rounded(written, initial, "model.layers.0.self_attn.q_proj.weight");
    }
}

static int64_t weight_bytes(const char *recipe, bool is_stored)
{
    const struct plan *plan = tiny_plan_of(frozen_row(recipe, is_stored), 0);
    EXPECT_SUCCESS(plan_verify(plan, NULL));
    return plan->storage_bytes[STORAGE_WEIGHT];
}

// The linears of a layer have 128 x 64, 64 x 64, 192 x 64 and 64 x 96 elements. A stored element is one byte smaller,
// and each of 2 x 4 weights has a scale, which is aligned to 256 bytes.
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

// No recipe casts a frozen weight in a step, and delayed scaling does not change its scale.
Test(frozen_weights, are_not_cast_in_the_step)
{
    static const char *const recipes[] = {"delayed", "current", "block", "mxfp8", "nvfp4"};
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        const struct plan *plan  = tiny_plan_of(line_of("%saccumulation 2", frozen_row(recipes[i], true)), 0);
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
        // Two microbatches run 2 x 4 GEMMs forward, and backward all except the data gradient of the first qkv.
        cr_expect_eq(gemms, 2 * (8 + 7), "%s", recipes[i]);
        cr_expect_eq(transposes, i < 2 ? 2 * 7 : 0, "%s", recipes[i]);
    }
}

Test(frozen_weights, are_sharded_with_one_scale_per_matrix_only)
{
    struct plan_request request = layout_request(line_of("%sfsdp 2", frozen_row("mxfp8", true)));
    struct plan         plan;
    EXPECT_ERROR(plan_build(&plan, &request), EXIT_CONFIG,
                 "this version shards frozen weights with one scale per matrix only ([precision] fp8_weights = yes and "
                 "[adapters] rank = 4 with fsdp): set recipe = delayed or current, or fp8_weights = no");
    plan_free(&plan);
}
