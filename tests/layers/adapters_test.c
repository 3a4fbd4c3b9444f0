// SPDX-License-Identifier: MIT
// Tests LoRA adapters of frozen matrices: which weights have gradients and optimizer state, and which ops a step has.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/text.h"
#include "layouts.h"
#include "plan_ops.h"

static int count_roles(const struct plan *plan, const char *part)
{
    int count = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        count += strstr(plan->ops[i].tag.role, part) != NULL;
    }
    return count;
}

// Returns the number of elements in all reductions of gradients.
static int64_t count_reduced(const struct plan *plan)
{
    int64_t elements = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        elements += op->stream == STREAM_GRADIENT_REDUCE && op->tag.layer >= 0 ? op->shape.communication.elements : 0;
    }
    return elements;
}

Test(adapters, alone_have_gradients_and_optimizer_state)
{
    // In each layer, qkv is a matrix of 32 x 16 and the projection one of 16 x 16. The adapter of a matrix has rank 2,
    // so its A and B have 2 x (inputs + outputs) elements together.
    const struct plan *plan    = tiny_plan_of("rank 2; targets qkv, projection; compute bf16; dp 2", 0);
    int64_t            trained = 2 * (2 * (16 + 32) + 2 * (16 + 16));

    cr_expect_eq(layers_trained_parameters(&plan->model), trained);
    // Each layer has 160 elements of 4 bytes, padded to a multiple of 256.
    cr_expect_eq(plan->storage_bytes[STORAGE_GRADIENT], 2 * 768);
    cr_expect_eq(plan->storage_bytes[STORAGE_OPTIMIZER], 3 * 2 * 768);
    cr_expect_eq(count_reduced(plan), trained);
    cr_expect_eq(count_ops(plan, OP_ADAMW, ANY), 2);
}

Test(adapters, leave_out_weight_gradients_of_frozen_matrices_and_what_is_before_the_first)
{
    const struct plan *plan  = tiny_plan_of("rank 2; targets qkv, projection; tp 2", 0);
    const char        *roles = list_roles(plan, PHASE_BACKWARD, 0);
    cr_expect_null(strstr(roles, "fc1 weight gradient"));
    cr_expect_null(strstr(roles, "fc1 input again"));
    cr_expect_null(strstr(roles, "qkv data gradient"));
    cr_expect_null(strstr(roles, "attention norm gradient"));
    cr_expect_not_null(strstr(roles, "qkv adapter A weight gradient"));
    cr_expect_not_null(strstr(roles, "projection adapter B weight gradient"));
    roles = list_roles(plan, PHASE_BACKWARD, 1);
    cr_expect_not_null(strstr(roles, "qkv data gradient"));
    cr_expect_not_null(strstr(roles, "qkv adapter A data gradient"));
    cr_expect_eq(count_roles(plan, "head weight gradient"), 0);
    cr_expect_eq(count_roles(plan, "embedding gradient"), 0);
}

Test(adapters, end_the_backward_pass_at_the_first_adapted_matrix)
{
    const struct plan *plan = tiny_plan_of("rank 2; targets fc2", 0);

    cr_expect_str_eq(list_roles(plan, PHASE_BACKWARD, 0),
                     "fc2 adapter B data gradient,fc2 adapter B weight gradient,fc2 adapter A weight gradient");

    // A pipeline stage without adapters needs no backward pass, so it must not receive gradients.
    plan = tiny_plan_of("rank 2; targets fc2; pp 2; layers 2; pattern attention, attention + mlp", 0);
    cr_expect_eq(count_ops(plan, OP_RECEIVE, ANY), 0);
    cr_expect_eq(count_ops(plan, OP_GEMM, PHASE_BACKWARD), 0);
}

Test(adapters, sum_the_gradients_of_replicated_matrices_over_tp)
{
    // A of qkv and B of the projection, 2 x 16 elements each, are replicated over tp, with and without sequence
    // parallelism. One all-reduce sums their gradients.
    static const char *const rows[] = {"rank 2; targets qkv, projection; tp 2",
                                       "rank 2; targets qkv, projection; tp 2; sequence_parallel no"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan *plan = tiny_plan_of(rows[i], 0);
        int32_t            op   = find_op(plan, "replicated gradient reduce", 1, 0);
        cr_expect_eq(plan->ops[op].shape.communication.elements, 2 * 2 * 16, "%s", rows[i]);
    }
}

Test(adapters, keep_no_input_of_frozen_linears_for_the_backward_pass)
{
    int64_t frozen = tiny_plan_of("rank 1; targets qkv; layers 4; accumulation 1", 0)->activation_live_bytes;
    int64_t whole  = tiny_plan_of("layers 4; accumulation 1", 0)->activation_live_bytes;

    // In each layer, the input of fc1 has 16 x 16 elements and the input of fc2 16 x 24, in fp32. At least three
    // layers' inputs must not be kept.
    cr_expect_geq(whole - frozen, 3 * (16 * 16 + 16 * 24) * 4);
}

// Only the MTP module has a dense MLP.
Test(adapters, are_possible_in_mtp_modules_alone)
{
    struct tiny tiny = tiny_of("rank 2; targets fc1; experts 2; top_k 1; predicted_tokens 1");
    snprintf(tiny.model.family, sizeof(tiny.model.family), "gswbench");
    snprintf(tiny.model.pattern, sizeof(tiny.model.pattern), "*E/*-");
    status result = layers_check(&tiny.model);
    cr_expect_str_eq(result.text, "");
}

Test(adapters, are_refused_without_a_matrix_to_adapt)
{
    static const struct {
        const char *row, *error;
    } cases[] = {
        {"rank 2; targets none", "[adapters] targets = none with rank = 2 trains nothing: name some, or set rank = 0"},
        {"rank 2; targets qkv, fc1; experts 2; top_k 1", "[adapters] targets has fc1, but no layer of [model] pattern "
                                                         "= experts has a dense MLP or shared experts: remove "
                                                         "fc1 from targets"},
        {"rank 2; targets qkv; kv_heads 4; kv_rank 7; rope_dim 2",
         "[adapters] targets has qkv, but no layer of [model] pattern = dense has attention other than latent "
         "attention: "
         "remove qkv from targets"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tiny tiny = tiny_of(cases[i].row);
        text_copy(tiny.model.family, sizeof(tiny.model.family), "gswbench");
        cr_expect_str_eq(layers_check(&tiny.model).text, cases[i].error);
    }
}
