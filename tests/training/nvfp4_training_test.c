// SPDX-License-Identifier: MIT
// Tests the ops of an NVFP4 step, and NVFP4 training in all layouts.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/verify.h"
#include "layouts.h"
#include "line.h"
#include "same_training.h"
#include "success.h"

enum { STEPS = 30, SEQUENCES = 8 };

static const char widths[] = "hidden 64; head_dim 16; ffn 96; vocab 128; sequence 32; ";

// Returns the row of a model that trains in NVFP4 with these options.
static const char *nvfp4(const char *options)
{
    return line_of("%scompute fp4%s%s", widths, options[0] != '\0' ? "; " : "", options);
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

static struct counts count(const char *options)
{
    struct counts      counts = {0};
    const struct plan *plan   = tiny_plan_of(nvfp4(options), 0);
    EXPECT_SUCCESS(plan_verify(plan, NULL));
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind == OP_GEMM) {
            bool is_fp4 = tensor_of(plan, op, GEMM_A)->format == FORMAT_E2M1;
            cr_expect_eq(is_fp4, tensor_of(plan, op, GEMM_B)->format == FORMAT_E2M1, "%s", op->tag.role);
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
        cr_expect_eq(shape->is_stochastic, op->operand[QUANTIZE_HYPER] == plan->hyper, "%s", op->tag.role);
    }
    return counts;
}

// Each of two layers has four linears, so eight weights, inputs and output gradients are quantized. The three GEMMs of
// the head stay in BF16.
Test(nvfp4_training, quantizes_weights_in_squares_and_rounds_gradients_at_random)
{
    struct counts counts = count("");
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
    cr_expect_eq(count("fp4_square_weights no").squares, 0);
    cr_expect_eq(count("fp4_stochastic_rounding no").stochastic, 0);
    cr_expect_eq(count("fp4_transform no").transformed, 0);
    struct counts counts = count("fp8_weight_gradients no");
    cr_expect_eq(counts.gemms, 16);
    cr_expect_eq(counts.wide, 3 + 8);
}

Test(nvfp4_training, keeps_the_last_layers_in_bf16)
{
    struct counts counts = count("layers 5; bf16_last_layers 2");
    cr_expect_eq(counts.gemms, 3 * 12);
    cr_expect_eq(counts.wide, 2 * 12 + 3);
    // The first stage has no BF16 layers.
    cr_expect_eq(count("layers 4; bf16_last_layers 1; pp 2; accumulation 4").wide, 0);
}

// An NVFP4 tensor has half a byte per element, a scale of one byte per block of 16 in tiles of 128 x 64, and a 4-byte
// scale of the whole tensor.
Test(nvfp4_training, packs_two_codes_in_a_byte)
{
    const struct plan *plan  = tiny_plan_of(nvfp4(""), 0);
    int                found = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind == OP_QUANTIZE && strcmp(op->tag.role, "fc1 weight") == 0) {
            found++;
            cr_expect_eq(tensor_of(plan, op, QUANTIZE_OUT)->bytes, 192 * 64 / 2);
            cr_expect_eq(tensor_of(plan, op, QUANTIZE_TRANSPOSED)->bytes, 192 * 64 / 2);
            cr_expect_eq(tensor_of(plan, op, QUANTIZE_INVERSE_SCALE)->bytes, 2 * 512);
            cr_expect_eq(tensor_of(plan, op, QUANTIZE_TRANSPOSED_INVERSE_SCALE)->bytes, 3 * 512);
            cr_expect_eq(tensor_of(plan, op, QUANTIZE_TENSOR_SCALE)->bytes, 4);
            cr_expect_eq(tensor_of(plan, op, QUANTIZE_TRANSPOSED_TENSOR_SCALE)->bytes, 4);
        }
    }
    cr_expect_eq(found, 2);
}

static struct training llama(const char *layout)
{
    struct training training = {.steps = STEPS, .threads = 1, .seed = 11, .data = DATA_MARKOV};
    training.tiny            = tiny_of(nvfp4("init_deviation 0.05; learning_rate 3e-3; heads 4; kv_heads 2"));
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
    struct plan_request request = layout_request(nvfp4("sequence 36; micro_batch 1"));
    struct plan         plan;
    EXPECT_ERROR(
        plan_build(&plan, &request), EXIT_CONFIG,
        "[precision] compute = fp4: \"attention norm\" has 36 x 64 numbers per rank, which must be multiples of "
        "16: change train.sequence, the model or its layout, or use precision.compute = bf16");
    plan_free(&plan);
}
