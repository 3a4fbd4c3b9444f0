// SPDX-License-Identifier: MIT
// Tests the ops of an FP8 step, and FP8 training in all layouts.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/verify.h"
#include "drawn_layout.h"
#include "layouts.h"
#include "same_training.h"
#include "success.h"

enum { STEPS = 30, SEQUENCES = 8, DRAWS = 200 };

#define FP8 "compute fp8; recipe current"

static const struct tensor *tensor_of(const struct plan *plan, const struct op *op, int slot)
{
    return &plan->tensors[op->operand[slot]];
}

Test(fp8_training, reads_inputs_and_weights_in_e4m3_and_gradients_in_e5m2)
{
    const struct plan *plan      = tiny_plan_of(FP8, 0);
    int                gradients = 0, forward = 0, plain = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind != OP_GEMM) {
            continue;
        }
        enum format a = tensor_of(plan, op, GEMM_A)->format, b = tensor_of(plan, op, GEMM_B)->format;
        if (strstr(op->tag.role, "logit") != NULL || op->tag.layer < 0) {
            plain += a == FORMAT_BF16 && b == FORMAT_BF16 && op->operand_count == GEMM_C + 1;
            continue;
        }
        bool is_gradient = strstr(op->tag.role, "gradient") != NULL;
        cr_expect_eq(a, is_gradient ? FORMAT_E5M2 : FORMAT_E4M3, "%s", op->tag.role);
        cr_expect_eq(b, FORMAT_E4M3, "%s", op->tag.role);
        cr_expect(!op->shape.gemm.transpose_a && op->shape.gemm.transpose_b, "%s", op->tag.role);
        cr_expect_eq(tensor_of(plan, op, GEMM_INVERSE_SCALE_A)->elements, 1);
        cr_expect_eq(tensor_of(plan, op, GEMM_INVERSE_SCALE_B)->elements, 1);
        gradients += is_gradient;
        forward += !is_gradient;
    }
    cr_expect_eq(forward, 2 * 4);
    cr_expect_eq(gradients, 2 * 4 * 2);
    cr_expect_eq(plain, 3);    // the GEMMs of the head
}

// Numbers of FP8 GEMMs of linears by result.
struct gemms {
    int outputs, data_gradients, weight_gradients;
};
struct counted {
    struct gemms low_precision, fast;
};

static struct counted count_gemms(const char *row)
{
    struct counted     counted = {0};
    const struct plan *plan    = tiny_plan_of(row, 0);
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind == OP_GEMM && format_is_low_precision(tensor_of(plan, op, GEMM_A)->format)) {
            bool is_weight = strstr(op->tag.role, "weight gradient") != NULL;
            bool is_data   = strstr(op->tag.role, "data gradient") != NULL;
            counted.low_precision.weight_gradients += is_weight;
            counted.low_precision.data_gradients += is_data;
            counted.low_precision.outputs += !is_weight && !is_data;
            counted.fast.weight_gradients += is_weight && op->sums_fast;
            counted.fast.data_gradients += is_data && op->sums_fast;
            counted.fast.outputs += !is_weight && !is_data && op->sums_fast;
        }
    }
    return counted;
}

static void expect_gemms(const char *what, struct gemms found, int outputs, int data, int weights)
{
    cr_expect(found.outputs == outputs && found.data_gradients == data && found.weight_gradients == weights,
              "%s: %d outputs, %d data gradients and %d weight gradients, not %d, %d and %d", what, found.outputs,
              found.data_gradients, found.weight_gradients, outputs, data, weights);
}

// The model has two layers with four linears each.
Test(fp8_training, leaves_only_weight_gradients_in_bf16_when_told)
{
    expect_gemms("yes", count_gemms(FP8).low_precision, 8, 8, 8);
    expect_gemms("no", count_gemms(FP8 "; fp8_weight_gradients no").low_precision, 8, 8, 0);
}

Test(fp8_training, sums_fast_in_the_gemms_that_are_named)
{
    expect_gemms("none", count_gemms(FP8 "; fp8_fast_accumulation none").fast, 0, 0, 0);
    expect_gemms("forward", count_gemms(FP8 "; fp8_fast_accumulation forward").fast, 8, 0, 0);
    expect_gemms("all", count_gemms(FP8 "; fp8_fast_accumulation all").fast, 8, 8, 8);
}

static int64_t count_quantized(const char *row, const char *role)
{
    int64_t            found = 0;
    const struct plan *plan  = tiny_plan_of(row, 0);
    EXPECT_SUCCESS(plan_verify(plan, NULL));
    for (int32_t i = 0; i < plan->op_count; i++) {
        found += plan->ops[i].kind == OP_QUANTIZE && strcmp(plan->ops[i].tag.role, role) == 0;
    }
    return found;
}

Test(fp8_training, quantizes_a_weight_once_a_step_and_once_where_it_is_gathered)
{
    cr_expect_eq(count_quantized(FP8 "; accumulation 3", "fc1 weight"), 2);
    // In the forward and backward pass of each microbatch
    cr_expect_eq(count_quantized(FP8 "; accumulation 3; fsdp 2", "fc1 weight"), 2 * 3 * 2);
}

Test(fp8_training, quantizes_an_input_again_only_where_it_is_recomputed)
{
    cr_expect_eq(count_quantized(FP8 "; fp8_fused no", "activation"), 2);
    cr_expect_eq(count_quantized(FP8 "; fp8_fused no", "fc1 gradient"), 2);    // once for both GEMMs that read it
    cr_expect_eq(count_quantized(FP8 "; fp8_fused no; recompute full", "activation"), 2 * 2);
}

// In the small models of other tests a scale of 1 suffices, so only this test detects a scale that is never updated.
Test(fp8_training, brings_every_delayed_scale_up_to_date_once_a_step)
{
    const struct plan *plan = tiny_plan_of("compute fp8; recipe delayed", 0);
    enum { LINEARS = 2 * 4 };
    float target[LINEAR_ROLES * LINEARS] = {0};
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        for (int64_t slot = 0; op->kind == OP_RESCALE && slot < op->shape.rescale.slots; slot++) {
            int64_t first = tensor_of(plan, op, RESCALE_SCALE)->part_offset / (int64_t)sizeof(float);
            target[first + slot] += op->shape.rescale.target;
        }
    }
    for (int slot = 0; slot < LINEAR_ROLES * LINEARS; slot++) {
        cr_expect_eq(target[slot], slot / LINEARS == ROLE_GRADIENT ? 57344.0f : 448.0f, "slot %d", slot);
    }
}

static int64_t slot_of(const struct plan *plan, int32_t scale)
{
    return plan->tensors[scale].part_offset;
}

// Returns the index of the delayed scale with which an FP8 operand was quantized; -1 if this rank has no op that
// quantizes it.
static int64_t quantized_slot(const struct plan *plan, int32_t operand)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (plan->ops[i].kind != OP_QUANTIZE && !op_is_fused(&plan->ops[i])) {
            continue;
        }
        struct op quantize = op_quantize_of(&plan->ops[i]);
        if (quantize.operand[QUANTIZE_OUT] == operand || quantize.operand[QUANTIZE_TRANSPOSED] == operand) {
            return slot_of(plan, quantize.operand[QUANTIZE_SCALE]);
        }
    }
    return -1;
}

// Checks that each GEMM undoes the scales with which its operands were quantized. Returns the number of checked
// operands. Operands that a collective gathered in FP8 are skipped, since no quantize op of this rank wrote them.
static int expect_undone_scales(const struct plan *plan, const char *name)
{
    int checked = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        for (int slot = GEMM_A; slot <= GEMM_B && op->kind == OP_GEMM && op->operand[GEMM_INVERSE_SCALE_A] >= 0;
             slot++) {
            int64_t quantized = quantized_slot(plan, op->operand[slot]);
            int64_t undone    = slot_of(plan, op->operand[GEMM_INVERSE_SCALE_A + slot]);
            cr_expect(quantized < 0 || undone == quantized, "%s: %s, operand %d", name, op->tag.role, slot);
            checked += quantized >= 0;
        }
    }
    return checked;
}

// Without q_rank, queries and compressed keys and values have the same input, which is quantized once.
Test(fp8_training, undoes_the_delayed_scale_that_was_applied_to_an_input_of_two_linears)
{
#define LATENT "kv_heads 4; kv_rank 16; rope_dim 8; value_dim 8; compute fp8; recipe delayed"
    static const char *const rows[] = {LATENT, LATENT "; recompute full", LATENT "; accumulation 2"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        // 2 layers of 6 linears, 3 GEMMs each
        cr_expect_geq(expect_undone_scales(tiny_plan_of(rows[i], 0), rows[i]), 2 * 2 * 3 * 6);
    }
}

Test(fp8_training, undoes_the_delayed_scales_that_were_applied_in_drawn_layouts, .timeout = 120)
{
    int checked = 0;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        char            name[LAYOUT_NAME_BYTES];
        struct training drawn = drawn_low_precision(seed);
        struct tiny    *tiny  = &drawn.tiny;
        if (tiny->precision.recipe == RECIPE_DELAYED) {
            tiny_plan_rank(tiny, drawn.ranks, drawn.ranks - 1);
            checked += expect_undone_scales(&tiny->plan, layout_name(tiny, name));
            plan_free(&tiny->plan);
        }
    }
    cr_expect_geq(checked, 10 * DRAWS);
}

// A model that is large enough to learn. Every layout has the same global batch.
static struct training llama(const char *layout)
{
    struct training training = {.steps = STEPS, .threads = 1, .seed = 11, .data = DATA_MARKOV};
    training.tiny            = tiny_of("hidden 64; head_dim 16; ffn 96; vocab 128; init_deviation 0.05; sequence 32; "
                                                  "learning_rate 3e-3; " FP8);
    training.ranks           = layout_apply(&training.tiny, layout);
    layout_assignment(&training.tiny, SEQUENCES);
    return training;
}

Test(fp8_training, has_the_loss_of_one_rank_in_every_layout, .timeout = 240)
{
    static const char *const layouts[] = {
        "dp 2",
        "dp 2; accumulation 2",
        "dp 2; zero 1; zero_gather forward",
        "fsdp 2",
        "tp 2",
        "cp 2",
        "pp 2; accumulation 4",
        "dp 2; recompute full",
    };
    struct training one = llama("");
    training_run(&one);
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct training many = llama(layouts[i]);
        expect_losses(&many, &one, 0.01, layouts[i]);
    }
}
