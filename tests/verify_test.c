// SPDX-License-Identifier: MIT
// Sound plans pass; each planted mistake is found and named.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tiny.h"

static status verify(struct tiny *tiny, int32_t *findings)
{
    status result = plan_verify(&tiny->plan, findings);
    plan_free(&tiny->plan);
    return result;
}

static int32_t find_op(const struct plan *plan, const char *role, int layer)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (strcmp(plan->ops[i].tag.role, role) == 0 && plan->ops[i].tag.layer == layer) {
            return i;
        }
    }
    cr_assert_fail("no op %s", role);
    return -1;
}

static void assert_found(struct tiny *tiny, const char *words)
{
    int32_t findings;
    status  result = verify(tiny, &findings);
    cr_assert_geq(findings, 1);
    cr_assert_not_null(strstr(result.text, words), "\"%s\" lacks \"%s\"", result.text, words);
    cr_assert_not_null(strstr(result.text, "plan of rank"), "%s", result.text);
}

static void init_two_replicas(struct tiny *tiny)
{
    tiny_init(tiny);
    tiny->parallel.dp = 2;
    tiny_plan(tiny);
}

Test(verify, finds_nothing_in_any_sound_plan)
{
    for (int64_t policy = RECOMPUTE_NONE; policy <= RECOMPUTE_SELECTIVE; policy++) {
        for (int variant = 0; variant < 32; variant++) {
            struct tiny tiny;
            int32_t     findings;
            tiny_init(&tiny);
            tiny.train.recompute       = policy;
            tiny.train.recompute_every = 2;
            tiny.train.recompute_save  = variant * 5 % 128;
            tiny.train.accumulation    = 1 + variant % 3;
            tiny.parallel.dp           = 1 + variant / 4 % 2;
            tiny.model.tied            = variant / 8 % 2;
            tiny.model.norm            = variant / 16 == 1 ? NORM_LAYER : NORM_RMS;
            tiny.precision.compute     = variant % 2 == 1 ? COMPUTE_BF16 : COMPUTE_FP32;
            tiny.precision.reduce      = variant % 4 == 1 ? DTYPE_BF16 : DTYPE_F32;
            tiny.parallel.fsdp         = variant % 5 == 0 ? 4 : 1;
            tiny.parallel.zero         = variant % 5 == 1;
            tiny.parallel.prefetch     = variant % 3;
            tiny.parallel.reshard      = variant % 3;
            tiny_plan_rank(&tiny, tiny.parallel.dp * tiny.parallel.fsdp, 0);
            status result = verify(&tiny, &findings);
            cr_assert(!failed(&result), "%s", result.text);
            cr_assert_eq(findings, 0);
        }
    }
}

Test(verify, finds_a_transfer_that_does_not_wait_for_its_gradient)
{
    struct tiny tiny;
    init_two_replicas(&tiny);

    tiny.plan.ops[find_op(&tiny.plan, "gradient reduce", 1)].wait_count = 0;

    assert_found(
        &tiny,
        "all_reduce \"gradient reduce\", reduce, layer 1, microbatch 0: is not ordered after the write of \"gradients, "
        "layer 1\"");
}

Test(verify, finds_a_reader_that_does_not_wait_for_the_transfer)
{
    struct tiny tiny;
    init_two_replicas(&tiny);

    // The first reader's wait covers the later ones: all of them lose it.
    for (int32_t i = 0; i < tiny.plan.op_count; i++) {
        tiny.plan.ops[i].wait_count = tiny.plan.ops[i].lane == LANE_COMPUTE ? 0 : tiny.plan.ops[i].wait_count;
    }

    assert_found(&tiny, "is not ordered after the write of");
}

Test(verify, finds_two_live_tensors_in_one_place)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_plan(&tiny);

    const struct op *norm                          = &tiny.plan.ops[find_op(&tiny.plan, "mlp norm", 0)];
    const struct op *fc1                           = &tiny.plan.ops[find_op(&tiny.plan, "fc1", 0)];
    tiny.plan.tensors[fc1->operand[GEMM_C]].offset = tiny.plan.tensors[norm->operand[NORM_OUT]].offset;

    assert_found(&tiny, "reads what was overwritten since: \"mlp norm, layer 0, microbatch 0\"");
}

Test(verify, finds_a_tensor_that_nothing_wrote)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_plan(&tiny);

    tiny.plan.ops[find_op(&tiny.plan, "rope", 1)].access[ROPE_KEY_VALUE] = ACCESS_READ;

    assert_found(&tiny, "rope_forward \"rope\", forward, layer 1, microbatch 0: reads what");
}

Test(verify, finds_a_gradient_added_to_before_it_is_set)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_plan(&tiny);

    tiny.plan.ops[find_op(&tiny.plan, "fc1 weight gradient", 0)].access[GEMM_C] = ACCESS_UPDATE;

    assert_found(&tiny,
                 "gemm \"fc1 weight gradient\", backward, layer 0, microbatch 0: reads what nothing has written: "
                 "\"weight gradient, layer 0\"");
}

Test(verify, finds_an_op_that_waits_for_a_later_one)
{
    struct tiny tiny;
    init_two_replicas(&tiny);

    struct op *reduce = &tiny.plan.ops[find_op(&tiny.plan, "gradient reduce", 1)];
    reduce->wait[0]   = find_op(&tiny.plan, "attention norm gradient", 0);

    assert_found(&tiny, "waits for an op that does not come before it");
}

Test(verify, finds_a_buffer_reused_while_a_transfer_still_reads_it)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.parallel.dp       = 2;
    tiny.precision.compute = COMPUTE_BF16;
    tiny.precision.reduce  = DTYPE_BF16;
    tiny_plan(&tiny);

    // The narrow copy of layer 1's gradients is in flight while layer 0 runs backward.
    const struct op *reduce                         = &tiny.plan.ops[find_op(&tiny.plan, "gradient reduce", 1)];
    const struct op *gemm                           = &tiny.plan.ops[find_op(&tiny.plan, "fc2 data gradient", 0)];
    tiny.plan.tensors[gemm->operand[GEMM_C]].offset = tiny.plan.tensors[reduce->operand[TRANSFER_OUT]].offset;

    assert_found(&tiny, "is not ordered after the write of");
}

static void init_shards(struct tiny *tiny)
{
    tiny_init(tiny);
    tiny->model.layers  = 4;
    tiny->parallel.fsdp = 4;
    tiny_plan_rank(tiny, 4, 3);
}

Test(verify, finds_weights_read_before_their_gather_has_ended)
{
    struct tiny tiny;
    init_shards(&tiny);

    struct op *norm = &tiny.plan.ops[find_op(&tiny.plan, "attention norm", 1)];
    cr_assert_eq(norm->wait_count, 1);
    norm->wait_count = 0;

    assert_found(&tiny,
                 "norm_forward \"attention norm\", forward, layer 1, microbatch 0: is not ordered after the write of "
                 "\"norm1, layer 1");
}

Test(verify, finds_a_gather_into_bytes_that_are_still_in_use)
{
    struct tiny tiny;
    init_shards(&tiny);

    // Without its hold, the gather for layer 2 may run while layer 0 still computes in the same bytes.
    int32_t gather                   = find_op(&tiny.plan, "parameter gather", 3);
    tiny.plan.ops[gather].wait_count = 0;

    assert_found(&tiny, "all_gather \"parameter gather\", forward, layer 3, microbatch 0: ");
}

Test(verify, finds_an_op_whose_shape_does_not_fit_its_operands)
{
    static const char *const roles[] = {"fc1", "mlp norm", "attention", "rope gradient", "activation gradient"};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        struct tiny tiny;
        char        words[64];
        tiny_init(&tiny);
        tiny_plan(&tiny);

        struct op *op = &tiny.plan.ops[find_op(&tiny.plan, roles[i], 1)];
        switch (op->kind) {
        case OP_GEMM:
            op->shape.gemm.k++;
            break;
        case OP_ATTENTION_FORWARD:
        case OP_ROPE_BACKWARD:
            op->shape.attention.kv_heads++;
            break;
        default:
            op->shape.rows.columns++;
            break;
        }

        snprintf(words, sizeof(words), "\"%s\"", roles[i]);
        status result = plan_verify(&tiny.plan, NULL);
        cr_expect_not_null(strstr(result.text, words), "%s", result.text);
        assert_found(&tiny, "has a shape that does not fit \"");
    }
}
