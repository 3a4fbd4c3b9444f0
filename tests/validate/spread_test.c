// SPDX-License-Identifier: MIT
// Tests the error bounds between two runs of an op. Sums in random order are within the bound and close to it, and
// faults exceed it. Also tests which tensors of a step are bitwise reproducible.
#include <criterion/criterion.h>
#include <math.h>

#include "gswbench/arena.h"
#include "gswbench/random.h"
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
