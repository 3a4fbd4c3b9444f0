// SPDX-License-Identifier: MIT
// Overlapping the gathers of a sharded optimizer with the forward pass, or head gradients with the drain of the
// pipeline, changes only the time of a step and not its results.
#include <criterion/criterion.h>
#include <string.h>

#include "layouts.h"
#include "line.h"
#include "same_training.h"

enum { SEQUENCES = 8, STEPS = 5 };
#define MODEL "layers 5; kv_heads 4; zero 1; "

static struct training describe(const char *layout)
{
    return training_of(MODEL, layout, SEQUENCES, STEPS);
}

static void expect_same_bits(struct training *a, struct training *b, const char *layout)
{
    expect_proof(b, layout);
    expect_same_training(b, a, &(struct closeness){0}, layout);
    cr_expect_neq(a->loss[0], a->loss[STEPS - 1], "%s", layout);
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
        "tp 2; pp 2; accumulation 2",    // no ranks share the optimizer state
    };
    // clang-format on
    for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++) {
        struct training after = describe(rows[i]), ahead = describe(rows[i]);
        ahead.tiny.parallel.zero_gather = ZERO_GATHER_FORWARD;
        after.tiny.model.tied = ahead.tiny.model.tied = i % 2;
        expect_same_bits(&after, &ahead, rows[i]);
    }
}

// The step gathers the weights of the embedding, five blocks and the head in this order. The first two gathers start at
// once. Each other gather waits for the forward pass of the parameter group two before it.
Test(zero, gathers_updated_weights_one_unit_ahead_of_the_first_forward_pass)
{
    const struct plan *plan = tiny_plan_of(MODEL "dp 4; accumulation 3; zero_gather forward", 1);
    int32_t            unit = 0;
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
            // The gather waits for the last forward op of the group two before it. The embedding has no layer, and the
            // first block is layer 0.
            cr_expect_eq(plan->ops[op->wait[0]].tag.layer, unit - 3, "unit %d", unit);
            cr_expect_eq(plan->ops[op->wait[0] + 1].stream, STREAM_WEIGHT_GATHER);
        }
        unit++;
    }
    cr_expect_eq(unit, 7);
}

// Counts the ops with a role, from op `first` on.
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
        int64_t            expected = deferred < 4 ? deferred : 4;
        const struct plan *plan     = tiny_plan_of(
                line_of(MODEL "tp 2; pp 2; vp 2; accumulation 4; deferred_head_gradients %d", (int)deferred), 3);
        int32_t backward = last_of_role(plan, "qkv weight gradient");
        cr_assert_geq(backward, 0);
        cr_expect_eq(count_role(plan, "head weight gradient", 0), 4);
        cr_expect_eq(count_role(plan, "head weight gradient", backward), expected);
        // Deferred weight gradients of the head gather their inputs over tp once more.
        cr_expect_eq(count_role(plan, "head input", backward), expected);
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
        struct training at_once = describe(rows[i]), deferred = describe(rows[i]);
        deferred.tiny.parallel.deferred_head_gradients = 100;
        at_once.tiny.model.tied = deferred.tiny.model.tied = i % 2;
        expect_same_bits(&at_once, &deferred, rows[i]);
    }
}

// Gradients of the last two microbatches are summed first, so only the order of the sum differs.
Test(zero, trains_alike_with_some_gradients_of_the_head_deferred, .timeout = 60)
{
    static const char row[]   = "dp 2; tp 2; pp 2; vp 2; accumulation 4";
    struct training   at_once = describe(row), deferred = describe(row);
    deferred.tiny.parallel.deferred_head_gradients = 2;
    expect_same_training(&deferred, &at_once, &(struct closeness){1e-5, 1e-5, 1e-5}, row);
}
