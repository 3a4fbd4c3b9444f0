// SPDX-License-Identifier: MIT
// Tests the tags that say which part of the model an op belongs to, and what kind of value (output, gradient) it
// computes.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/plan.h"
#include "layouts.h"
#include "line.h"

static const char experts[] = "layers 3; pattern dense, 2 x experts; experts 8; top_k 3; expert_ffn 12; shared_ffn 14; "
                              "accumulation 2; compute fp8; recipe block; fp8_fused no; ";
static const char latent[]  = "layers 3; kv_heads 4; kv_rank 12; q_rank 10; rope_dim 6; value_dim 5; accumulation 2; ";

static const char hybrid[] = "layers 4; pattern M*M-; mamba_heads 8; mamba_head_dim 4; mamba_state 6; mamba_groups 4; "
                             "positions none; kv_heads 4; accumulation 2; ";

// clang-format off
static const struct {
    const char *model, *layout;
} plans[] = {
    {"", ""},
    {"", "fsdp 2; dp 2; accumulation 2; recompute full; qk_norm yes; attention_bias yes; mlp_bias yes; attention_sinks yes"},
    {"", "tp 2; pp 2; vp 2; accumulation 4; layers 4; zero 1; dp 2; tied yes; positions learned; max_positions 64"},
    {"", "tp 4; tp_overlap yes; compute fp8; recipe delayed"},
    {"", "cp 2; context gather; micro_batch 1; compute fp8; recipe current; fp8_weights yes; dp 2; zero 1"},
    {"", "cp 4; context ring; micro_batch 1"},
    {"", "cp 2; context exchange; micro_batch 1"},
    {latent, "tp 2; recompute full"},
    {latent, "predicted_tokens 2; tp 2; pp 2; layers 4; accumulation 4"},
    {experts, "dp 2; ep 2; recompute full"},
    {experts, "dp 2; tp 2; ep 4; etp 1; delay_weight_gradients yes; capacity_factor 1; capacity_scope sequence"},
    {hybrid, "tp 2; recompute full; compute fp8; recipe current"},
    {experts, "expert_hidden 8; predicted_tokens 2; repeat_prediction yes; tp 2; ep 2; dp 2; recompute full"},
    {experts, "router_gates input; router_bias_rate 0.01; tp 2; ep 2; dp 2"},
};
// clang-format on
enum { PLANS = sizeof(plans) / sizeof(plans[0]) };

// Returns the plan of the last rank.
static const struct plan *plan_of(int i)
{
    const char *row = line_of("%s%s", plans[i].model, plans[i].layout);
    return tiny_plan_of(row, layout_request(row).mesh.world - 1);
}

Test(model_part, is_set_of_every_op)
{
    for (int i = 0; i < PLANS; i++) {
        const struct plan *plan = plan_of(i);
        for (int32_t op = 0; op < plan->op_count; op++) {
            char name[240];
            cr_expect(plan->ops[op].tag.part > PART_NONE && plan->ops[op].tag.part < MODEL_PARTS, "%s: %s",
                      plans[i].layout, plan_op_name(plan, op, name, sizeof(name)));
        }
    }
}

static bool are_of_one_pass(const struct op *one, const struct op *other)
{
    return one->kind == other->kind && one->tag.phase == other->tag.phase && one->tag.layer == other->tag.layer &&
           one->tag.microbatch == other->tag.microbatch;
}

// Compares all pairs of GEMMs and collectives of a layer and pass. Their tags must differ if, and only if, their
// printed names differ. Exceptions are rings of tp, which have one name for all linears, and collectives of weights and
// gradients, which have one tag for several FSDP units.
Test(model_part, tells_apart_what_the_text_tells_apart)
{
    for (int i = 0; i < PLANS; i++) {
        const struct plan *plan = plan_of(i);
        for (int32_t a = 0; a < plan->op_count; a++) {
            const struct op *one = &plan->ops[a];
            bool is_compared = one->kind == OP_GEMM || one->stream == STREAM_TENSOR || one->stream == STREAM_CONTEXT ||
                               one->stream == STREAM_EXPERT;
            for (int32_t b = a + 1; b < plan->op_count && is_compared && one->tag.layer >= 0; b++) {
                const struct op *other = &plan->ops[b];
                if (are_of_one_pass(one, other) && one->stream == other->stream) {
                    bool is_one_part = one->tag.part == other->tag.part && one->tag.makes == other->tag.makes;
                    bool is_one_text = strcmp(one->tag.role, other->tag.role) == 0;
                    bool is_ring     = one->kind == OP_ROTATE && one->stream == STREAM_TENSOR;
                    cr_expect(is_one_part == is_one_text || (is_ring && is_one_text), "%s: %s and %s", plans[i].layout,
                              one->tag.role, other->tag.role);
                }
            }
        }
    }
}

struct expected {
    enum op_kind     kind;
    const char      *role;
    enum model_part  part;
    enum model_value makes;
};

static void expect(int plan_index, const struct expected *expected, int count)
{
    const struct plan *plan = plan_of(plan_index);
    for (int i = 0; i < count; i++) {
        int found = 0;
        for (int32_t op = 0; op < plan->op_count; op++) {
            const struct op_tag *tag = &plan->ops[op].tag;
            if (plan->ops[op].kind == expected[i].kind && strcmp(tag->role, expected[i].role) == 0) {
                found++;
                cr_expect_eq(tag->part, expected[i].part, "%s has part %d", tag->role, tag->part);
                cr_expect_eq(tag->makes, expected[i].makes, "%s makes %d", tag->role, tag->makes);
            }
        }
        cr_expect_gt(found, 0, "%s", expected[i].role);
    }
}
#define EXPECT(plan, ...)                                                                                              \
    expect(plan, (const struct expected[]){__VA_ARGS__},                                                               \
           sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))

Test(model_part, of_dense_layers)
{
    EXPECT(3, {OP_GEMM, "qkv", PART_QKV, MAKES_OUTPUT}, {OP_GEMM, "qkv data gradient", PART_QKV, MAKES_INPUT_GRADIENT},
           {OP_GEMM, "qkv weight gradient", PART_QKV, MAKES_WEIGHT_GRADIENT},
           {OP_NORM_BACKWARD, "mlp norm gradient", PART_MLP_NORM, MAKES_INPUT_GRADIENT},
           {OP_ATTENTION_BACKWARD, "attention gradient", PART_CORE_ATTENTION, MAKES_INPUT_GRADIENT},
           {OP_GEMM, "head", PART_HEAD, MAKES_OUTPUT},
           {OP_GEMM, "head weight gradient", PART_HEAD, MAKES_WEIGHT_GRADIENT},
           {OP_CROSS_ENTROPY, "cross entropy", PART_LOSS, MAKES_OUTPUT}, {OP_ADAMW, "adamw", PART_STEP, MAKES_OUTPUT});
}

Test(model_part, of_layers_with_experts)
{
    EXPECT(9, {OP_GEMM, "router", PART_ROUTER, MAKES_OUTPUT}, {OP_ROUTE_FORWARD, "route", PART_ROUTER, MAKES_OUTPUT},
           {OP_ALL_TO_ALL, "token count exchange", PART_DISPATCH, MAKES_INPUT},
           {OP_ALL_TO_ALL, "dispatch exchange", PART_DISPATCH, MAKES_OUTPUT},
           {OP_ALL_TO_ALL, "output exchange", PART_COMBINE, MAKES_OUTPUT},
           {OP_ALL_TO_ALL, "output gradient exchange", PART_COMBINE, MAKES_INPUT_GRADIENT},
           {OP_ALL_TO_ALL, "input gradient exchange", PART_DISPATCH, MAKES_INPUT_GRADIENT},
           {OP_GEMM, "shared fc1", PART_SHARED_FC1, MAKES_OUTPUT},
           {OP_GEMM, "shared fc2 weight gradient", PART_SHARED_FC2, MAKES_WEIGHT_GRADIENT},
           {OP_QUANTIZE, "projection weight", PART_PROJECTION, MAKES_WEIGHT},
           {OP_QUANTIZE, "dispatch exchange", PART_EXPERT_FC1, MAKES_INPUT},
           {OP_QUANTIZE, "output gradient exchange", PART_EXPERT_FC2, MAKES_OUTPUT_GRADIENT});
}

// The activation functions of dense, shared and routed experts have the same printed name, but must have different
// tags.
Test(model_part, tells_activations_of_shared_routed_and_dense_layers_apart)
{
    const struct plan *plan               = plan_of(9);
    int                count[MODEL_PARTS] = {0};
    for (int32_t op = 0; op < plan->op_count; op++) {
        bool is_activation =
            plan->ops[op].kind == OP_ACTIVATION_FORWARD || plan->ops[op].kind == OP_ACTIVATION_BACKWARD;
        count[plan->ops[op].tag.part] += is_activation;
    }
    const int passes = 3 * 2;    // forward, recomputed forward and backward pass of two microbatches
    cr_expect_eq(count[PART_ACTIVATION], passes, "one dense layer: %d", count[PART_ACTIVATION]);
    cr_expect_eq(count[PART_SHARED_ACTIVATION], 2 * passes, "two layers: %d", count[PART_SHARED_ACTIVATION]);
    cr_expect_eq(count[PART_EXPERT_ACTIVATION], 2 * passes * 4, "four experts: %d", count[PART_EXPERT_ACTIVATION]);
}
