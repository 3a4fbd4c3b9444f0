// SPDX-License-Identifier: MIT
// Tests the error bounds between two runs of an op. Sums in random order are within the bound and close to it, and
// faults exceed it. Also tests which tensors of a step are bitwise reproducible. Also tests the estimates of memory and
// time that verification needs for full-size models. Also tests the check of AdamW on a sample of its state.
#include <criterion/criterion.h>
#include <math.h>

#include "gswbench/random.h"
#include "gswbench/validate.h"
#include "layouts.h"
#include "training.h"
#include "validate/internal.h"

enum { ELEMENTS = 1 << 14 };

// Returns the sum of an element's terms in a random order, rounded to the storage format. With `cancels`, terms cancel
// to 1/16 of their magnitude.
static float sum_of(int64_t element, int64_t terms, uint64_t order, bool cancels)
{
    float  values[256], sum = 0;
    double mean = 0;
    for (int64_t i = 0; i < terms; i++) {
        values[i] = random_normal(7, (uint64_t)(element * terms + i));
        mean += (double)values[i] / (double)terms;
    }
    for (int64_t i = 0; i < terms && cancels; i++) {
        values[i] -= (float)(mean * 15 / 16);
    }
    for (int64_t left = terms; left > 0; left--) {
        uint32_t taken = random_below(order, (uint64_t)element, (uint64_t)left, (uint32_t)left);
        sum += values[taken];
        values[taken] = values[left - 1];
    }
    return bf16_to_float(bf16_from_float(sum));
}

static double difference_of_orders(int64_t terms, bool cancels)
{
    double squares = 0, norm = 0;
    for (int64_t i = 0; i < ELEMENTS; i++) {
        double one = (double)sum_of(i, terms, 1, cancels), other = (double)sum_of(i, terms, 2, cancels);
        squares += (one - other) * (one - other);
        norm += one * one;
    }
    return sqrt(squares / norm);
}

static double bound_of(int64_t keys, int64_t elements)
{
    struct tensor tensor = {.format = FORMAT_BF16, .elements = elements};
    struct plan   plan   = {.tensors = &tensor, .tensor_count = 1};
    struct op     op     = {.kind = OP_ATTENTION_BACKWARD, .operand_count = ATTENTION_GRADIENT_QUERY + 1};
    for (int slot = 0; slot < op.operand_count; slot++) {
        op.operand[slot] = slot == ATTENTION_GRADIENT_QUERY ? 0 : -1;
    }
    op.access[ATTENTION_GRADIENT_QUERY] = ACCESS_WRITE;
    op.shape.attention.sequence         = keys;
    return spread_of_op(&plan, &op);
}

Test(spread, sums_of_drawn_orders_are_within_the_bound_and_near_it_where_terms_cancel)
{
    for (int64_t terms = 4; terms <= 256; terms *= 4) {
        double bound = bound_of(64 * terms, ELEMENTS);
        double found = difference_of_orders(terms, false), cancelled = difference_of_orders(terms, true);
        cr_expect_lt(found, bound, "%d terms: %g, %g", (int)terms, found, bound);
        cr_expect_lt(cancelled, bound, "%d terms: %g, %g", (int)terms, cancelled, bound);
        cr_expect(terms < 256 || cancelled > bound / 20, "%d terms: %g, %g", (int)terms, cancelled, bound);
    }
}

// For 8,192 keys the bound is 1/1000 of the norm, and for a million 1/128. So an error of 1 % always exceeds it.
Test(spread, bounds_follow_from_the_number_of_summands)
{
    cr_expect_float_eq(bound_of(8192, INT64_C(1) << 26), 9.766e-4, 1e-6);
    cr_expect_float_eq(bound_of(32768, INT64_C(1) << 26), 1.953e-3, 1e-6);
    cr_expect_float_eq(bound_of(1 << 20, INT64_C(1) << 26), 7.8125e-3, 1e-7);
    cr_expect_float_eq(bound_of(64, 2048), 6.96e-4, 1e-6);
}

// Plans Llama 3.1 8B on one device with weights, gradients and optimizer state in BF16. Returns the bytes of these.
static double plan_8b(struct tiny *tiny)
{
    *tiny = tiny_of("layers 32; hidden 4096; ffn 14336; heads 32; kv_heads 8; head_dim 128; vocab 128256; sequence "
                    "8192; micro_batch 1; global_batch 1; compute bf16; master 0");
    tiny->precision.gradients = FORMAT_BF16;
    tiny->precision.reduce    = FORMAT_BF16;
    tiny->precision.moments   = FORMAT_BF16;
    tiny_plan(tiny);
    const int64_t *bytes = tiny->plan.storage_bytes;
    return (double)(bytes[STORAGE_WEIGHT] + bytes[STORAGE_GRADIENT] + bytes[STORAGE_OPTIMIZER]);
}

Test(cost, verifying_a_step_of_8b_moves_less_than_three_times_its_state_with_less_than_2_gib_of_the_host)
{
    struct tiny                   tiny;
    double                        state = plan_8b(&tiny);
    const struct validation_setup setup = {.plan = &tiny.plan, .sample_bytes = VALIDATION_SAMPLE_BYTES};

    struct result_verification expected = validation_expect(&setup, true, 2);

    cr_expect_float_eq(state / (1 << 30), 60, 0.5, "%g", state);
    cr_expect_lt(expected.device_bytes, 3 * state, "%g of %g", expected.device_bytes, state);
    cr_expect_gt(expected.device_bytes, 0.5 * state, "%g of %g", expected.device_bytes, state);
    cr_expect_lt(expected.host_bytes, 2.0 * 1024 * 1024 * 1024);
    cr_expect_lt(expected.expected_seconds, 60);
    cr_log_info("state %.3g, moved %.3g, host %.3g, %.3g s", state, expected.device_bytes, expected.host_bytes,
                expected.expected_seconds);
    plan_free(&tiny.plan);
}

Test(cost, light_keeps_nothing_and_full_reads_the_state_twice_more)
{
    struct tiny             tiny;
    double                  state = plan_8b(&tiny);
    struct validation_setup setup = {.plan = &tiny.plan, .sample_bytes = VALIDATION_SAMPLE_BYTES};

    struct result_verification light = validation_expect(&setup, true, 0), quick = validation_expect(&setup, true, 1);
    setup.is_full                   = true;
    struct result_verification full = validation_expect(&setup, true, 1);

    cr_expect_eq(light.device_bytes, 0);
    cr_expect_lt(light.host_bytes, 64 << 20);
    cr_expect_float_eq((full.device_bytes - quick.device_bytes) / state, 2, 0.01);
    plan_free(&tiny.plan);
}

enum { STEPS = 40, PIECE = 128 };    // pieces start at multiples of PIECE elements

// Returns an AdamW op with several whole pieces and a remainder.
static int32_t find_adamw(const struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        int64_t elements = plan->ops[i].shape.elements.elements;
        if (plan->ops[i].kind == OP_ADAMW && elements > PIECE && elements % PIECE != 0) {
            return i;
        }
    }
    cr_assert_fail("no such op");
    return -1;
}

// AdamW always computes a wrong last element. Each step samples an eighth of the state, so a few steps must find it.
Test(optimizer, samples_the_last_element_that_is_no_multiple_of_a_piece)
{
    struct tiny       tiny;
    struct backend    backend = {.ops = &backend_host};
    struct local_hub *hub     = local_hub_open(1);
    struct comm       comm;
    struct step      *step;
    struct sample     sample = {.data = NULL};
    int32_t           wrong  = -1;
    tiny_init(&tiny);
    tiny_plan(&tiny);
    const struct plan *plan = &tiny.plan;
    comm_open_local(&comm, hub, 0);
    training_require(backend.ops->open(&backend, &(struct backend_setup){.threads = 1, .cache = ""}));
    training_require(step_open(&step, plan, &backend, &comm));
    data_initialise(step, plan, 7);
    const struct validation_setup setup    = {.plan = plan, .step = step, .sample_bytes = sample_state_bytes(plan) / 8};
    int32_t                       adamw    = find_adamw(plan);
    int64_t                       elements = plan->ops[adamw].shape.elements.elements;
    const struct step_fault fault = {.kind = FAULT_FLIP, .op = adamw, .tensor = -1, .element = elements - 1, .bit = 20};
    step_set_fault(step, &fault);
    for (int i = 0; i < STEPS && wrong < 0; i++) {
        data_fill(step, plan, DATA_UNIFORM, 7, i);
        sample_take(&sample, &setup);
        step_run(step);
        wrong = sample_compare(&sample, &setup);
    }
    cr_expect_eq(wrong, adamw);
    sample_close(&sample, &setup);
    step_close(step);
    comm_close(&comm);
    local_hub_close(hub);
    backend_close(&backend);
    plan_free(&tiny.plan);
}
