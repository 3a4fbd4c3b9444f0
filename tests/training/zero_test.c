// SPDX-License-Identifier: MIT
// Overlap of a sharded optimizer's collectives and of the pipeline drain changes the timing, not the results.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "gswbench/job.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "training.h"

enum { STEPS = 5 };

// One sequence per microbatch.
static struct training training_of(const char *layout)
{
    struct training training = {.steps = STEPS, .threads = 1, .seed = 5};
    tiny_init(&training.tiny);
    layout_apply(&training.tiny, "layers 5; kv_heads 4; micro_batch 1; zero 1");
    training.ranks = layout_apply(&training.tiny, layout);
    return training;
}

static void expect_sound(const struct training *training, const char *layout)
{
    const struct tiny  *tiny    = &training->tiny;
    struct plan_request request = tiny_request(tiny, training->ranks, 0);
    struct job_proof    proof;
    status              result = job_verify(&request, &proof);
    cr_expect(!failed(&result), "%s: %s", layout, result.text);
}

static void expect_equal_bits(struct training *a, struct training *b, const char *what, const char *layout)
{
    char weights[2][64], command[256];
    make_folder();
    snprintf(weights[0], sizeof(weights[0]), "%s/a", folder);
    snprintf(weights[1], sizeof(weights[1]), "%s/b", folder);
    a->weights = weights[0];
    b->weights = weights[1];
    training_run(a);
    training_run(b);
    expect_sound(b, layout);
    cr_expect_arr_eq(a->loss, b->loss, STEPS * sizeof(float), "%s, %s: losses", what, layout);
    cr_expect_arr_eq(a->norm, b->norm, STEPS * sizeof(float), "%s, %s: gradient norms", what, layout);
    cr_expect_neq(a->loss[0], a->loss[STEPS - 1], "%s, %s: trains nothing", what, layout);
    snprintf(command, sizeof(command), "cmp %s/model.safetensors %s/model.safetensors", weights[0], weights[1]);
    cr_expect_eq(system(command), 0, "%s, %s: weights", what, layout);
    remove_folder();
}

Test(zero, trains_bit_for_bit_alike_wherever_weights_are_gathered, .timeout = 120)
{
    // clang-format off
    static const char *const rows[] = {
        "dp 4",
        "dp 4; accumulation 2; prefetch 0; compute bf16; reduce bf16",
        "dp 2; cp 2; accumulation 2; prefetch 3; compute bf16; reduce bf16; master no",
        "dp 2; tp 2; pp 2; vp 2; accumulation 4",
        "dp 2; pp 2; vp 2; accumulation 2; prefetch 9; compute bf16; reduce bf16; master no",
        "cp 2; pp 4; accumulation 4",
        "tp 2; pp 2; accumulation 2",    // no ranks share the optimizer
    };
    // clang-format on
    for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++) {
        struct training after = training_of(rows[i]), ahead = training_of(rows[i]);
        ahead.tiny.parallel.zero_gather = ZERO_GATHER_FORWARD;
        after.tiny.model.tied = ahead.tiny.model.tied = i % 2;
        expect_equal_bits(&after, &ahead, "gathers", rows[i]);
    }
}

// Gathers of the embedding, five blocks and the head, in this order. The first two start at once, each further one
// after the forward pass of the unit two before it.
Test(zero, gathers_updated_weights_one_unit_ahead_of_the_first_forward_pass)
{
    struct training training           = training_of("dp 4; accumulation 3");
    training.tiny.parallel.zero_gather = ZERO_GATHER_FORWARD;
    tiny_plan_rank(&training.tiny, 4, 1);
    const struct plan *plan = &training.tiny.plan;

    int32_t unit = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind != OP_ALL_GATHER) {
            continue;
        }
        cr_assert_lt(unit, plan->unit_count);
        cr_expect_eq(op->tag.phase, PHASE_FORWARD);
        cr_expect_eq(op->tag.microbatch, 0);
        cr_expect_eq(op->operand[COMMUNICATION_OUT], plan->units[unit].weight);
        cr_expect_eq(op->shape.communication.elements, plan->units[unit].elements);
        if (unit < 2) {
            cr_expect_eq(op->wait_count, 0);
        } else {
            cr_assert_eq(op->wait_count, 1);
            // Last forward op of the unit two before. The embedding has no layer; the first block is layer 0.
            cr_expect_eq(plan->ops[op->wait[0]].tag.layer, unit - 3, "unit %d", unit);
            cr_expect_eq(plan->ops[op->wait[0] + 1].stream, STREAM_WEIGHT_GATHER);
        }
        unit++;
    }
    cr_expect_eq(unit, 7);
    plan_free(&training.tiny.plan);
}

// Counts the ops of a role from index first.
static int64_t count_role(const struct plan *plan, const char *role, int32_t first)
{
    int64_t count = 0;
    for (int32_t i = first; i < plan->op_count; i++) {
        count += strcmp(plan->ops[i].tag.role, role) == 0;
    }
    return count;
}

static int32_t last_of_role(const struct plan *plan, const char *role)
{
    int32_t last = -1;
    for (int32_t i = 0; i < plan->op_count; i++) {
        last = strcmp(plan->ops[i].tag.role, role) == 0 ? i : last;
    }
    return last;
}

Test(zero, leaves_weight_gradients_of_the_head_until_the_backward_passes_are_done)
{
    for (int64_t deferred = 0; deferred <= 6; deferred += 2) {
        int64_t         expected                       = deferred < 4 ? deferred : 4;
        struct training training                       = training_of("tp 2; pp 2; vp 2; accumulation 4");
        training.tiny.parallel.deferred_head_gradients = deferred;
        tiny_plan_rank(&training.tiny, 4, 3);
        const struct plan *plan     = &training.tiny.plan;
        int32_t            backward = last_of_role(plan, "qkv weight gradient");
        cr_assert_geq(backward, 0);
        cr_expect_eq(count_role(plan, "head weight gradient", 0), 4);
        cr_expect_eq(count_role(plan, "head weight gradient", backward), expected);
        // Their inputs are gathered over tp again.
        cr_expect_eq(count_role(plan, "head input", backward), expected);
        plan_free(&training.tiny.plan);
    }
}

Test(zero, trains_bit_for_bit_alike_with_all_gradients_of_the_head_deferred, .timeout = 120)
{
    // clang-format off
    static const char *const rows[] = {
        "pp 2; accumulation 4",
        "dp 2; tp 2; pp 2; vp 2; accumulation 4; compute bf16; reduce bf16",
        "cp 2; pp 4; accumulation 3; compute bf16; reduce bf16; master no",
        "tp 2; pp 2; vp 2; accumulation 3",
    };
    // clang-format on
    for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++) {
        struct training at_once = training_of(rows[i]), deferred = training_of(rows[i]);
        deferred.tiny.parallel.deferred_head_gradients = 100;
        at_once.tiny.model.tied = deferred.tiny.model.tied = i % 2;
        expect_equal_bits(&at_once, &deferred, "deferred", rows[i]);
    }
}

// The gradients of the last two microbatches come first, so only the summation order differs.
Test(zero, trains_alike_with_some_gradients_of_the_head_deferred, .timeout = 60)
{
    static const char row[]   = "dp 2; tp 2; pp 2; vp 2; accumulation 4";
    struct training   at_once = training_of(row), deferred = training_of(row);
    deferred.tiny.parallel.deferred_head_gradients = 2;
    training_run(&at_once);
    training_run(&deferred);
    for (int step = 0; step < STEPS; step++) {
        cr_expect_float_eq(deferred.loss[step], at_once.loss[step], 1e-5 * (double)at_once.loss[step]);
        cr_expect_float_eq(deferred.norm[step], at_once.norm[step], 1e-5 * (double)at_once.norm[step]);
    }
}
