// SPDX-License-Identifier: MIT
// Tests the ops of an NVFP4 step, and NVFP4 training in all layouts.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/verify.h"
#include "layouts.h"
#include "line.h"
#include "same_training.h"

enum { STEPS = 30, SEQUENCES = 8 };

static const char widths[] = "hidden 64; head_dim 16; ffn 96; vocab 128; sequence 32; ";

static struct tiny nvfp4(const char *options)
{
    const char *row = line_of("%s%s%scompute fp4", widths, options, options[0] != '\0' ? "; " : "");
    return tiny_of(row);
}

static const struct tensor *tensor_of(const struct plan *plan, const struct op *op, int slot)
{
    return op->operand[slot] >= 0 ? &plan->tensors[op->operand[slot]] : NULL;
}

// Counts of ops in a plan: GEMMs in FP4 (gemms) and in BF16 (wide), and quantizations of weights, of 16x16 blocks
// (squares), of output gradients, with stochastic rounding, with a Hadamard transform, and fused into other ops.
struct counts {
    int gemms, wide, weights, squares, gradients, stochastic, transformed, fused;
};

static struct counts count(struct tiny *tiny, int64_t ranks)
{
    struct counts counts = {0};
    tiny_plan_rank(tiny, ranks, 0);
    status result = plan_verify(&tiny->plan, NULL);
    cr_expect_str_empty(result.text);
    for (int32_t i = 0; i < tiny->plan.op_count; i++) {
        const struct op *op = &tiny->plan.ops[i];
        if (op->kind == OP_GEMM) {
            bool is_fp4 = tensor_of(&tiny->plan, op, GEMM_A)->format == FORMAT_E2M1;
            cr_expect_eq(is_fp4, tensor_of(&tiny->plan, op, GEMM_B)->format == FORMAT_E2M1, "%s", op->tag.role);
            cr_expect(!is_fp4 || !op->sums_fast, "%s", op->tag.role);
            counts.gemms += is_fp4;
            counts.wide += !is_fp4;
        }
        if (op->kind != OP_QUANTIZE) {
            counts.fused += op_is_fused(op);
            continue;
        }
        const struct quantize_shape *shape = &op->shape.quantize;
        counts.weights += op->tag.makes == MAKES_WEIGHT;
        counts.squares += shape->scaling == SCALING_NV_SQUARE;
        counts.gradients += op->tag.makes == MAKES_OUTPUT_GRADIENT;
        counts.stochastic += shape->is_stochastic;
        counts.transformed += shape->transforms;
        cr_expect_eq(shape->is_stochastic, op->operand[QUANTIZE_HYPER] == tiny->plan.hyper, "%s", op->tag.role);
    }
    plan_free(&tiny->plan);
    return counts;
}

// Each of two layers has four linears, so eight weights, inputs and output gradients are quantized. The three GEMMs of
// the head stay in BF16.
Test(nvfp4_training, quantizes_weights_in_squares_and_rounds_gradients_at_random)
{
    struct tiny   tiny   = nvfp4("");
    struct counts counts = count(&tiny, 1);
    cr_expect_eq(counts.gemms, 24);
    cr_expect_eq(counts.wide, 3);
    cr_expect_eq(counts.weights, 8);
    cr_expect_eq(counts.squares, 8);
    cr_expect_eq(counts.gradients, 8);
    cr_expect_eq(counts.stochastic, 8);
    cr_expect_eq(counts.transformed, 16);
    cr_expect_eq(counts.fused, 0);
}

Test(nvfp4_training, leaves_out_each_method_that_is_switched_off)
{
    struct tiny tiny = nvfp4("fp4_square_weights no");
    cr_expect_eq(count(&tiny, 1).squares, 0);
    tiny = nvfp4("fp4_stochastic_rounding no");
    cr_expect_eq(count(&tiny, 1).stochastic, 0);
    tiny = nvfp4("fp4_transform no");
    cr_expect_eq(count(&tiny, 1).transformed, 0);
    tiny                 = nvfp4("fp8_weight_gradients no");
    struct counts counts = count(&tiny, 1);
    cr_expect_eq(counts.gemms, 16);
    cr_expect_eq(counts.wide, 3 + 8);
}

Test(nvfp4_training, keeps_the_last_layers_in_bf16)
{
    struct tiny   tiny   = nvfp4("layers 5; bf16_last_layers 2");
    struct counts counts = count(&tiny, 1);
    cr_expect_eq(counts.gemms, 3 * 12);
    cr_expect_eq(counts.wide, 2 * 12 + 3);
    tiny = nvfp4("layers 4; bf16_last_layers 1; pp 2; accumulation 4");
    cr_expect_eq(count(&tiny, 2).wide, 0);    // the first stage has no BF16 layers
}

// An NVFP4 tensor has half a byte per element, a scale of one byte per block of 16 in tiles of 128 x 64, and a 4-byte
// scale of the whole tensor.
Test(nvfp4_training, packs_two_codes_in_a_byte)
{
    struct tiny tiny = nvfp4("");
    tiny_plan(&tiny);
    int found = 0;
    for (int32_t i = 0; i < tiny.plan.op_count; i++) {
        const struct op *op = &tiny.plan.ops[i];
        if (op->kind == OP_QUANTIZE && strcmp(op->tag.role, "fc1 weight") == 0) {
            found++;
            cr_expect_eq(tensor_of(&tiny.plan, op, QUANTIZE_OUT)->bytes, 192 * 64 / 2);
            cr_expect_eq(tensor_of(&tiny.plan, op, QUANTIZE_TRANSPOSED)->bytes, 192 * 64 / 2);
            cr_expect_eq(tensor_of(&tiny.plan, op, QUANTIZE_INVERSE_SCALE)->bytes, 2 * 512);
            cr_expect_eq(tensor_of(&tiny.plan, op, QUANTIZE_TRANSPOSED_INVERSE_SCALE)->bytes, 3 * 512);
            cr_expect_eq(tensor_of(&tiny.plan, op, QUANTIZE_TENSOR_SCALE)->bytes, 4);
            cr_expect_eq(tensor_of(&tiny.plan, op, QUANTIZE_TRANSPOSED_TENSOR_SCALE)->bytes, 4);
        }
    }
    cr_expect_eq(found, 2);
    plan_free(&tiny.plan);
}

static struct training llama(const char *layout)
{
    struct training training = {.steps = STEPS, .threads = 1, .seed = 11, .data = DATA_MARKOV};
    training.tiny            = nvfp4("init_deviation 0.05; learning_rate 3e-3; heads 4; kv_heads 2");
    training.ranks           = layout_apply(&training.tiny, layout);
    layout_assignment(&training.tiny, SEQUENCES);
    return training;
}

// Expects that training in each layout has nearly the losses of one rank. Stochastic rounding draws other numbers in
// other layouts, and tp ranks scale only their part of a matrix, so losses are not equal.
static void expect_losses_in(const char *const layouts[], const char *options, double tolerance)
{
    struct training one = llama(options);
    training_run(&one);
    for (size_t i = 0; layouts[i] != NULL; i++) {
        const char     *row  = line_of("%s; %s", layouts[i], options);
        struct training many = llama(row);
        expect_losses(&many, &one, tolerance, row);
    }
}

Test(nvfp4_training, has_the_loss_of_one_rank_in_every_layout, .timeout = 240)
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
        NULL,
    };
    expect_losses_in(layouts, "fp4_stochastic_rounding no", 0.02);
    expect_losses_in(layouts, "fp4_stochastic_rounding yes", 0.03);
}

// With dropless experts, rows of an expert are padded to multiples of 32.
Test(nvfp4_training, has_the_loss_of_one_rank_with_experts, .timeout = 240)
{
    static const char *const layouts[] = {"dp 2; ep 2", "fsdp 2; ep 2; accumulation 2", "tp 2", NULL};
    expect_losses_in(layouts, "experts 4; top_k 2; expert_ffn 64; fp4_stochastic_rounding no", 0.03);
}

Test(nvfp4_training, refuses_sizes_that_have_no_whole_blocks)
{
    struct tiny         tiny    = nvfp4("sequence 36; micro_batch 1");
    struct plan_request request = tiny_request(&tiny, 1, 0);
    status              result  = plan_build(&tiny.plan, &request);
    cr_expect_str_eq(result.text,
                     "[precision] compute = fp4: \"attention norm\" has 36 x 64 numbers per rank, which must be "
                     "multiples of 16: change train.sequence, the model or its layout, or use "
                     "precision.compute = bf16");
    plan_free(&tiny.plan);
}
