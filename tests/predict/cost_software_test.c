// SPDX-License-Identifier: MIT
// Tests costs of ops in other frameworks than gswbench: fused ops, kernels per expert, casts that happen earlier, and
// kernels that are slower than gswbench's. Compares them with published times and calculations by hand.
#include <criterion/criterion.h>

#include "round_machine.h"

TestSuite(cost_software, .init = init_round);
TestSuite(cost_kernels, .init = init_round);

Test(cost_software, computes_the_cost_of_ops_as_the_program_executes_them)
{
    struct op op                      = {.kind          = OP_ACTIVATION_FORWARD,
                                         .operand_count = 2,
                                         .access        = {ACCESS_READ, ACCESS_WRITE},
                                         .shape.rows    = {.rows = 1000, .columns = 500, .variant = ACTIVATION_SWIGLU}};
    given.software.memory_bytes.value = 0.5;
    expect_cost(&op, 0.5 * 3.0 * 1000 * 500 * 2 / 1e12);

    // The optimizer and the loss have their own factors for bytes.
    op.tag.phase = PHASE_OPTIMIZER;
    expect_cost(&op, 3.0 * 1000 * 500 * 2 / 1e12);
    given.software.optimizer_bytes.value = 3.0;
    expect_cost(&op, 3.0 * 3.0 * 1000 * 500 * 2 / 1e12);
    op.tag.phase                    = PHASE_FORWARD;
    op.kind                         = OP_CROSS_ENTROPY;
    double loss                     = seconds_of(&op);
    given.software.loss_bytes.value = 7.0;
    expect_cost(&op, 7.0 * loss);

    // gemm_share: the framework's GEMMs reach half of the rate.
    op                              = (struct op){.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    double gemm                     = seconds_of(&op);
    given.software.gemm_share.value = 0.5;
    expect_cost(&op, 2.0 * gemm);

    // The sequence length allows 447 TFLOP/s. The kernel reaches half of the rate of Ampere's instructions, 0.62 of
    // 1e15 FLOP/s.
    given.software.attention_forward.value = 0.5;
    op                                     = ATTENTION(100, 1024, 2, 2, 128, .earlier = 512, .causal = true);
    expect_cost(&op, 4 * 200 * 128 * (1024.0 * 1025 / 2 + 1024 * 512) / 310e12);

    // 8 experts on 2 ranks are 4 local experts. In low precision, launching an expert takes twice as long. If experts
    // are launched together in low precision, each still has its own casts.
    given.software.expert_gap.value = 1e-3;
    op = (struct op){.kind = OP_ROUTE_FORWARD, .shape.routing = {.experts = 8, .owners = 2}};
    expect_cost(&op, 2.5e-3);
    given.plan.precision.low_precision_linears = 0xf;
    expect_cost(&op, 4.5e-3);
    given.software.expert_groups = true;
    expect_cost(&op, 2.5e-3);
    given.plan.precision.low_precision_linears = 0;
    expect_cost(&op, 1e-3);
}

// gemm_share_fp4 applies only to GEMMs with FP4 operands.
Test(cost_software, computes_the_cost_of_fp4_gemms_of_another_program)
{
    struct op op                             = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    given.hardware.peak[RATE_FP4].value      = 4e15;
    given.hardware.gemm_efficiency_fp4.value = 1.0;
    double in_bf16                           = seconds_of(&op);
    given.tensors[0].format                  = FORMAT_E2M1;
    double in_fp4                            = seconds_of(&op);
    given.software.gemm_share.value          = 0.5;
    given.software.gemm_share_fp4.value      = 0.8;
    expect_cost(&op, in_fp4 / 0.4);
    given.tensors[0].format = FORMAT_BF16;
    expect_cost(&op, in_bf16 / 0.5);
}

// 4 of 8 experts are on this rank. Their activations share one kernel. Each GEMM has its own wave: 75 tiles on 100 SMs
// take the time of 100 tiles. In FP8, grouped GEMMs follow each other without the gap of separate GEMMs.
Test(cost_software, computes_the_cost_of_experts_that_are_launched_together)
{
    struct op op = {.kind = OP_GEMM, .tag.part = PART_EXPERT_FC2, .shape.gemm = {.m = 640, .n = 1920, .k = 8192}};
    given.plan.model.experts                 = 8;
    given.plan.mesh.size[AXIS_EP]            = 2;
    given.plan.mesh.owner_axes               = 1u << AXIS_EP;
    given.hardware.kernel_gap.value          = 4e-6;
    given.hardware.gemm_gap_fp8.value        = 9e-6;
    given.hardware.gemm_efficiency_fp8.value = 1.0;
    given.hardware.peak[RATE_FP8].value      = 1e15;
    double alone                             = 2.0 * 128 * 128 * (8192 + 256) / 1e13;
    expect_cost(&op, alone + 4e-6);
    given.software.expert_groups = true;
    expect_cost(&op, alone + 4e-6);

    struct tensor *before = given.plan.tensors, fp8 = {.format = FORMAT_E4M3};
    given.plan.tensors           = &fp8;
    op.sums_fast                 = true;
    double together              = seconds_of(&op);
    given.software.expert_groups = false;
    expect_seconds(seconds_of(&op) - together, 5e-6);
    given.plan.tensors = before;

    given.software.expert_groups = true;
    op                           = (struct op){.kind       = OP_ACTIVATION_FORWARD,
                                               .tag.part   = PART_EXPERT_ACTIVATION,
                                               .shape.rows = {.rows = 1000, .columns = 500, .variant = ACTIVATION_SWIGLU}};
    expect_cost(&op, 1e-6);
}

// FP8 quantization of BF16 tensors. With current scaling it reads the input twice and takes four kernels.
Test(cost_software, takes_a_gap_for_each_kernel_of_a_copy_that_finds_its_scale)
{
    struct tensor tensors[]         = {{.format = FORMAT_BF16}, {.format = FORMAT_E4M3}, {.format = FORMAT_F32}};
    struct op     op                = {.kind           = OP_QUANTIZE,
                                       .operand_count  = 7,
                                       .operand        = {0, 1, -1, 2, -1, -1, -1},
                                       .shape.quantize = {.rows = 1000, .columns = 1000, .scaling = SCALING_WHOLE}};
    given.plan.tensors              = tensors;
    given.hardware.kernel_gap.value = 1e-6;
    double one                      = seconds_of(&op);
    given.software.scale_kernels    = 4;
    expect_cost(&op, one + 3e-6);
    op.operand[QUANTIZE_SCALE]   = 2;    // the scale is known
    double known                 = seconds_of(&op);
    given.software.scale_kernels = 1;
    expect_cost(&op, known);
}

// Measured times are times of gswbench's kernels. Another framework still adds its own kernels, or skips a cast that it
// does not need.
Test(cost_software, leaves_measured_ops_what_the_program_does_otherwise)
{
    struct tensor       tensors[] = {{.format = FORMAT_BF16, .first_op = -1},
                                     {.format = FORMAT_E4M3, .first_op = 1},
                                     {.format = FORMAT_F32, .first_op = -1},
                                     {.format = FORMAT_BF16, .first_op = 0, .last_op = 1}};
    struct op           ops[]    = {{.kind = OP_ROTATE, .stream = STREAM_TENSOR, .operand_count = 2, .operand = {0, 3}},
                                    {.kind           = OP_QUANTIZE,
                                     .operand_count  = 7,
                                     .operand        = {3, 1, -1, 2, -1, -1, -1},
                                     .shape.quantize = {.rows = 1000, .columns = 500, .scaling = SCALING_WHOLE}}};
    struct measured_op  op       = {.seconds = {.value = 7e-6}};
    struct measured_ops measured = {.ops = &op, .count = 1};
    given.plan.tensors           = tensors;
    given.plan.ops               = ops;
    given.machine.measured       = &measured;
    given.hardware.kernel_gap.value = 1e-6;
    op_key_init(&op.key, &given.plan, &ops[1]);
    expect_cost(&ops[1], 7e-6);
    given.software.scale_kernels = 4;
    expect_cost(&ops[1], 10e-6);
    given.plan.mesh.size[AXIS_TP] = 4;
    given.software.fp8_gathers    = true;    // each of four ranks casts a quarter
    expect_cost(&ops[1], 7e-6 / 4 + 3e-6);
}

// A matrix of 512 x 1,024 has adapters of rank 8; there are 100 tokens. A copy reads and writes BF16 elements, 4 bytes
// each.
Test(cost_software, adds_kernels_of_adapters_to_their_gemms)
{
    static const struct {
        int64_t phase, n, k;
        uint8_t makes;
        double  dropout, sums;    // elements that other kernels copy
    } gemms[] = {
        {PHASE_FORWARD, 8, 1024, MAKES_OUTPUT, 100 * 1024, 0},                      // x A^T
        {PHASE_FORWARD, 512, 8, MAKES_OUTPUT, 0, 2 * 100 * 512},                    // t B^T
        {PHASE_BACKWARD, 8, 512, MAKES_INPUT_GRADIENT, 0, 100 * 512},               // dy B
        {PHASE_BACKWARD, 1024, 8, MAKES_INPUT_GRADIENT, 100 * 1024, 100 * 1024},    // dt A
        {PHASE_BACKWARD, 8, 512, MAKES_WEIGHT_GRADIENT, 0, 0},                      // dB^T
        {PHASE_FORWARD, 512, 1024, MAKES_OUTPUT, 0, 0},                             // x W^T
    };
    given.plan.model.adapters.rank = 8;
    given.plan.mesh.size[AXIS_TP]  = 2;
    for (size_t i = 0; i < sizeof(gemms) / sizeof(gemms[0]); i++) {
        struct op op = {.kind = OP_GEMM, .shape.gemm = {.m = 100, .n = gemms[i].n, .k = gemms[i].k}};
        op.tag.phase = (int16_t)gemms[i].phase;
        op.tag.makes = gemms[i].makes;
        op.tag.part  = PART_QKV;

        given.software.adapter_kernels = 0;
        double alone                   = seconds_of(&op);
        given.software.adapter_kernels = 1 << ADAPTER_KERNEL_DROPOUT;
        expect_cost(&op, alone + 4.0 * gemms[i].dropout / 1e12);
        given.software.adapter_kernels = 1 << ADAPTER_KERNEL_DROPOUT | 1 << ADAPTER_KERNEL_SUMS;
        expect_cost(&op, alone + 4.0 * (gemms[i].dropout + gemms[i].sums) / 1e12);

        // If the adapted matrix is row parallel, tp ranks shard the rows of its B, and thus B's output and its
        // gradient.
        double share = i == 1 || i == 2 ? 0.5 : 1.0;
        op.tag.part  = PART_PROJECTION;
        expect_cost(&op, alone + 4.0 * (gemms[i].dropout + share * gemms[i].sums) / 1e12);
    }
}

// A GEMM of 1,024 x 512 and 512 x 2,048 elements. The kernels read and write a byte per block of 32 (MXFP8) or 16
// (NVFP4). Eight experts that are launched together share the two launches.
Test(cost_software, arranges_block_scales_by_separate_kernels)
{
    struct op op = {.kind = OP_GEMM, .shape.gemm = {.m = 1024, .n = 2048, .k = 512, .scaling_a = SCALING_MX}};
    given.hardware.gemm_mxfp8.value = 1.0;
    double gemm = seconds_of(&op), elements = 1024.0 * 512 + 512.0 * 2048;
    given.software.swizzle_kernels          = true;
    given.hardware.general_efficiency.value = 0.5;
    expect_cost(&op, gemm + 2.0 * elements / 32 / 0.5e12);
    op.shape.gemm.scaling_a = SCALING_NV;
    expect_cost(&op, gemm + 2.0 * elements / 16 / 0.5e12);
    op.shape.gemm.scaling_a = SCALING_WHOLE;
    expect_cost(&op, gemm);

    given.software.expert_groups    = true;
    given.plan.model.experts        = 8;
    op.tag.part                     = PART_EXPERT_FC1;
    given.hardware.kernel_gap.value = 8e-6;
    double grouped                  = seconds_of(&op);
    op.shape.gemm.scaling_a         = SCALING_MX;
    expect_cost(&op, grouped + 2.0 * elements / 32 / 0.5e12 + 2e-6);
}

// 1,000 tokens have 500 activations, and twice as many inputs.
Test(cost_software, casts_the_inputs_of_activations_that_it_keeps_in_fp8)
{
    struct op op                         = {.kind          = OP_ACTIVATION_FORWARD,
                                            .operand_count = 2,
                                            .access        = {ACCESS_READ, ACCESS_WRITE},
                                            .shape.rows    = {.rows = 1000, .columns = 500, .variant = ACTIVATION_SWIGLU}};
    double    alone                      = seconds_of(&op);
    given.software.fp8_activation_inputs = true;
    expect_cost(&op, alone);    // no cast, since the step is in BF16
    given.plan.precision.low_precision_linears = 0xf;
    expect_cost(&op, alone + 3.0 * 1000 * 1000 / 1e12);
}

// 1,024 tokens choose 2 of 8 experts. 4 experts are local and sharded over 4 ranks.
Test(cost_software, copies_the_rows_of_experts_that_run_one_by_one)
{
    struct op op = {
        .kind          = OP_ROUTE_FORWARD,
        .shape.routing = {
            .rows = 1024, .columns = 512, .total = 1024, .experts = 8, .top_k = 2, .owners = 2, .capacity = 256}};
    given.plan.mesh.etp                = 4;
    double own                         = seconds_of(&op);
    given.software.expert_copies.value = 3;
    expect_cost(&op, own + 3 * 2 * 2.0 * 2048 * 4 * 512 / 1e12);
    op.shape.routing.multiple          = 16;    // dropless: the rows in use instead of the worst case
    op.shape.routing.capacity          = 1024;
    given.plan.mesh.etp                = 1;
    given.software.expert_copies.value = 0;
    own                                = seconds_of(&op);
    given.software.expert_copies.value = 3;
    expect_cost(&op, own + 3 * 2 * 2.0 * 2048 * 512 / 1e12);
    op.shape.routing.owners            = 8;    // a single local expert needs no copies
    double alone                       = seconds_of(&op);
    given.software.expert_copies.value = 0;
    expect_cost(&op, alone);
}

// Transposed weights are kept after the first microbatch, so later ones cost nothing. If tp gathers a tensor in FP8,
// each of four ranks casts only its part.
Test(cost_software, takes_nothing_for_copies_that_the_program_has)
{
    struct tensor tensors[] = {{.format = FORMAT_E4M3, .storage = STORAGE_WEIGHT, .first_op = -1},
                               {.format = FORMAT_E4M3, .storage = STORAGE_ACTIVATION, .first_op = 1},
                               {.format = FORMAT_BF16, .storage = STORAGE_ACTIVATION, .first_op = 0, .last_op = 2},
                               {.format = FORMAT_F32, .storage = STORAGE_ACTIVATION, .first_op = -1}};
    struct op     ops[]     = {
                {.kind = OP_ROTATE, .stream = STREAM_TENSOR, .operand_count = 2, .operand = {3, 2}},
                {.kind = OP_TRANSPOSE, .operand_count = 2, .operand = {0, 1}, .shape.rows = {.rows = 1000, .columns = 500}},
                {.kind           = OP_QUANTIZE,
                 .operand_count  = 7,
                 .operand        = {2, 1, -1, 3, -1, -1, -1},
                 .shape.quantize = {.rows = 1000, .columns = 500, .scaling = SCALING_WHOLE}}};
    given.plan.tensors    = tensors;
    given.plan.ops        = ops;
    ops[1].tag.microbatch = 1;
    cr_expect_gt(seconds_of(&ops[1]), 0.0);
    given.plan.mesh.size[AXIS_TP]      = 4;
    const double whole                 = seconds_of(&ops[2]);
    given.software.fp8_transposes_once = given.software.fp8_gathers = true;
    cr_expect_eq(seconds_of(&ops[1]), 0.0);
    expect_cost(&ops[2], whole / 4);
    ops[0].kind = OP_ALL_GATHER;    // an all-gather instead of ring steps
    expect_cost(&ops[2], whole / 4);
    ops[2].operand[QUANTIZE_TRANSPOSED] = 1;    // the gathered FP8 tensor is read and transposed
    expect_cost(&ops[2], (whole + 1e-12 * 5e5) / 4 + 1e-12 * 1e6);
    given.hardware.peak[RATE_FP4].value = 1e15;    // Blackwell needs no transposed copy
    expect_cost(&ops[2], (whole + 1e-12 * 5e5) / 4);
    given.software.fp8_transposes = false;
    expect_cost(&ops[2], whole / 4);
    given.software.fp8_transposes       = true;
    ops[2].operand[QUANTIZE_TRANSPOSED] = -1;
    tensors[3].first_op                 = 0;    // a part of the rows received by experts
    expect_cost(&ops[2], whole);
    tensors[3].first_op   = -1;
    ops[1].tag.microbatch = 0;
    ops[0].stream         = STREAM_CONTEXT;
    cr_expect_gt(seconds_of(&ops[1]), 0.0);
    expect_cost(&ops[2], whole);
    given.plan.model.adapters.rank = 8;    // weights are frozen
    ops[1].tag.microbatch          = 1;
    cr_expect_gt(seconds_of(&ops[1]), 0.0);
    given.software.frozen_transposes = false;
    cr_expect_eq(seconds_of(&ops[1]), 0.0);
    given.plan.model.adapters.rank = 0;
    tensors[0].storage             = STORAGE_ACTIVATION;
    cr_expect_gt(seconds_of(&ops[1]), 0.0);
    // The norm before Q, K and V casts to MXFP8 itself, the one before a router does not.
    ops[0].kind                   = OP_NORM_FORWARD;
    ops[2].shape.quantize.scaling = SCALING_MX;
    ops[2].tag.part               = PART_ROUTER;
    given.software.mxfp8_norms    = true;
    cr_expect_gt(seconds_of(&ops[2]), 0.0);
    ops[2].tag.part = PART_QKV;
    cr_expect_eq(seconds_of(&ops[2]), 0.0);
}

static double gemm_seconds(const int64_t size[3])
{
    struct op op = {.kind = OP_GEMM, .shape.gemm = {.m = size[0], .n = size[1], .k = size[2]}};
    return seconds_of(&op);
}

// A rank has 8 heads and 2 KV heads of 128: 1,536 features of 1,024 tokens, computed from 512 inputs.
Test(cost_software, splits_gemms_of_separate_linears_and_adds_their_input_gradients)
{
    static const struct {
        uint8_t part, makes;
        int64_t whole[3], first[3], next[3];    // m, n, k
        double  count, sums;                    // GEMMs like the next one; tensors that an addition reads and writes
    } cases[] = {
        {PART_QKV, MAKES_OUTPUT, {1024, 1536, 512}, {1024, 1024, 512}, {1024, 256, 512}, 2, 0},
        {PART_QKV, MAKES_INPUT_GRADIENT, {1024, 512, 1536}, {1024, 512, 1024}, {1024, 512, 256}, 2, 4},
        {PART_QKV, MAKES_WEIGHT_GRADIENT, {1536, 512, 1024}, {1024, 512, 1024}, {256, 512, 1024}, 2, 0},
        {PART_FC1, MAKES_INPUT_GRADIENT, {1024, 512, 1536}, {1024, 512, 768}, {1024, 512, 768}, 1, 3},
        {PART_FC2, MAKES_INPUT_GRADIENT, {1024, 512, 1536}, {1024, 512, 1536}, {1024, 512, 1536}, 0, 0},
    };
    given.plan.model.heads      = 8;
    given.plan.model.kv_heads   = 2;
    given.plan.model.activation = ACTIVATION_SWIGLU;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        given.software.separate_linears = false;
        double    gemms                 = gemm_seconds(cases[i].first) + cases[i].count * gemm_seconds(cases[i].next);
        struct op op                    = {.kind       = OP_GEMM,
                                           .tag        = {.part = cases[i].part, .makes = cases[i].makes},
                                           .shape.gemm = {.m = cases[i].whole[0], .n = cases[i].whole[1], .k = cases[i].whole[2]}};
        given.software.separate_linears = true;
        expect_cost(&op, gemms + cases[i].sums * 2.0 * 1024 * 512 / 1e12);
    }
}

// 8,192 tokens are sharded over cp = 2 and tp = 8, so the plan splits GEMMs into parts of 512 rows. The framework has
// fewer, larger GEMMs.
Test(cost_software, joins_the_blocks_of_a_split_gemm)
{
    static const struct {
        uint8_t part, makes;
        int64_t rows;    // rows of the framework's GEMM
        bool    adds;
    } cases[] = {{PART_QKV, MAKES_OUTPUT, 1024, true},   {PART_FC2, MAKES_INPUT_GRADIENT, 1024, true},
                 {PART_FC2, MAKES_OUTPUT, 2048, false},  {PART_PROJECTION, MAKES_OUTPUT, 2048, false},
                 {PART_ROUTER, MAKES_OUTPUT, 512, true}, {PART_FC2, MAKES_WEIGHT_GRADIENT, 512, true}};
    given.hardware.gemm_prologue.value = 100;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct op op = {
            .kind = OP_GEMM, .accumulates = cases[i].adds, .shape.gemm = {.m = cases[i].rows, .n = 2304, .k = 1024}};
        given.plan.mesh.size[AXIS_TP] = 1;
        double whole                  = seconds_of(&op);
        op.shape.gemm.m               = 512;
        op.accumulates                = true;
        op.tag                        = (struct op_tag){.part = cases[i].part, .makes = cases[i].makes};
        double plain                  = seconds_of(&op);
        given.plan.mesh.size[AXIS_TP] = 8;
        given.plan.mesh.size[AXIS_CP] = 2;
        given.plan.train              = (struct train_config){.sequence = 8192, .micro_batch = 1};
        expect_cost(&op, plain);
        given.software.gather_blocks = 2;
        given.software.reduce_parts  = 2;
        expect_cost(&op, whole * 512 / (double)cases[i].rows);
        cr_expect(cases[i].rows == 512 || seconds_of(&op) < 0.99 * plain);
        given.software.gather_blocks = 1;
        given.software.reduce_parts  = 0;
    }
}

// 1,024 tokens choose 2 of 8 experts, so 2,048 rows of 512 elements get a bias.
Test(cost_software, adds_biases_of_experts_in_single_precision)
{
    struct op op = {
        .kind          = OP_ROUTE_FORWARD,
        .shape.routing = {
            .rows = 1024, .columns = 512, .total = 1024, .experts = 8, .top_k = 2, .owners = 2, .multiple = 1}};
    given.plan.model.mlp_bias               = true;
    given.plan.model.experts                = 8;
    given.hardware.general_efficiency.value = 0.5;
    double forward                          = seconds_of(&op);
    given.software.expert_biases            = EXPERT_BIASES_FUSED;
    expect_cost(&op, forward);
    given.software.expert_biases = EXPERT_BIASES_SEPARATE;
    expect_cost(&op, forward + 28.0 * 2048 * 512 / 5e11);
    op.kind                   = OP_ROUTE_BACKWARD;
    double backward           = seconds_of(&op);
    given.plan.model.mlp_bias = false;
    expect_cost(&op, backward - 40.0 * 2048 * 512 / 5e11);
}

// The activation has 2,048 rows of two halves of 512 elements. RoPE has 1,024 tokens in 8 + 2 heads of 64.
Test(cost_software, clamps_and_rotates_by_general_kernels)
{
    const double                 numbers = 2048.0 * 2 * 512, rotated = 1024.0 * (8 + 2) * 64;
    const struct attention_shape heads = {.batch = 1, .sequence = 1024, .heads = 8, .kv_heads = 2, .head_dim = 64};
    const struct rows_shape      rows  = {.rows = 2048, .columns = 512, .variant = ACTIVATION_SWIGLU};
    const struct {
        struct op op;
        double    separate, fused;
    } cases[] = {{{.kind = OP_ACTIVATION_FORWARD, .shape.rows = rows}, 8.0 * numbers, 0.0},
                 {{.kind = OP_ACTIVATION_BACKWARD, .shape.rows = rows}, 10.0 * numbers, 0.0},
                 {{.kind = OP_ROPE_FORWARD, .shape.attention = heads}, 20.0 * rotated, 20.0 * rotated},
                 {{.kind = OP_ROPE_BACKWARD, .shape.attention = heads}, 30.0 * rotated, 30.0 * rotated},
                 {{.kind = OP_DISPATCH, .shape.routing = {.experts = 8, .owners = 2, .multiple = 1}}, 0.0, 0.0}};
    given.hardware.general_efficiency.value = 0.5;
    given.plan.model.mlp_bias               = true;
    given.plan.model.experts                = 8;
    for (int i = 0; i < 5; i++) {
        given.software.expert_biases = EXPERT_BIASES_PLAN;
        double plain                 = cost_of(&cases[i].op).seconds;
        given.software.expert_biases = EXPERT_BIASES_FUSED;
        expect_seconds(cost_of(&cases[i].op).seconds, plain + cases[i].fused / 5e11);
        given.software.expert_biases = EXPERT_BIASES_SEPARATE;
        expect_seconds(cost_of(&cases[i].op).seconds, plain + cases[i].separate / 5e11);
        given.plan.model.mlp_bias = false;
        expect_seconds(cost_of(&cases[i].op).seconds, plain);
        given.plan.model.mlp_bias = true;
    }
}

// SimuMax measured the fused cross entropy of Transformer Engine on B200 at 0.2795 of 8,000 GiB/s, counting 8 bytes per
// logit in both passes together (configs/system/b200_bf16_ceperm.json, ce_fusion). That is 1.75 ms for 4,096 tokens and
// a vocabulary of 128,256.
Test(cost_kernels, loses_no_less_time_to_logits_than_its_kernels_compute)
{
    struct tensor tensors[]               = {{.format = FORMAT_BF16}, {.format = FORMAT_I32}, {.format = FORMAT_F32}};
    struct op     op                      = {.kind          = OP_CROSS_ENTROPY,
                                             .operand_count = 3,
                                             .operand       = {0, 1, 2},
                                             .access        = {ACCESS_UPDATE, ACCESS_READ, ACCESS_WRITE},
                                             .shape.rows    = {.rows = 4096, .columns = 128256, .parts = 1}};
    given.plan.tensors                    = tensors;
    given.hardware.memory_bandwidth.value = 7.7e12;
    double memory                         = seconds_of(&op);
    cr_expect_lt(memory, 0.3e-3);
    given.software.loss_rate.value = 300e9;
    cr_expect_float_eq(seconds_of(&op), 1.751e-3, 1e-6);
    given.software.loss_bytes.value = 10.0;    // bound by memory
    expect_cost(&op, 10.0 * memory);
    op.kind                         = OP_LOGIT_STATISTICS;    // loss_rate does not apply to it
    given.software.loss_bytes.value = 1.0;
    cr_expect_lt(seconds_of(&op), 1.75e-3);
}

// QK norm of 1,024 tokens in 8 + 2 heads of 64 as separate kernels. The forward pass moves 4 + 4 bytes per element; the
// backward pass 14 instead of 6.
Test(cost_kernels, normalises_heads_by_kernels_of_their_own)
{
    struct op op             = {.kind            = OP_ROPE_FORWARD,
                                .shape.attention = {.batch = 1, .sequence = 1024, .heads = 8, .kv_heads = 2, .head_dim = 64}};
    given.plan.model.qk_norm = true;
    for (int pass = 0; pass < 2; pass++, op.kind = OP_ROPE_BACKWARD) {
        given.software.head_norms = false;
        double fused              = seconds_of(&op);
        given.software.head_norms = true;
        expect_cost(&op, fused + 5242880e-12);
        given.plan.model.qk_norm = false;
        expect_cost(&op, fused);
        given.plan.model.qk_norm = true;
    }
    op.kind                   = OP_ATTENTION_FORWARD;
    double attention          = seconds_of(&op);
    given.software.head_norms = false;
    expect_cost(&op, attention);
}

// DeepSeek-V3's router and dispatch preprocessing had 72 kernels, 31 after fusions, and 17 with DeepEP (Megatron-LM,
// docs/discussions/deepseek-v3-gb200-optimization). Each kernel adds a gap.
Test(cost_kernels, takes_a_gap_for_each_kernel_of_a_router)
{
    struct op op                    = {.kind = OP_ROUTE_FORWARD, .shape.routing = {.experts = 8, .owners = 2}};
    given.hardware.kernel_gap.value = 4e-6;
    double one                      = seconds_of(&op);
    given.software.router_kernels   = 31;
    expect_cost(&op, one + 120e-6);
    op.kind = OP_ROUTE_BACKWARD;
    cr_expect_lt(seconds_of(&op), 120e-6);
}
