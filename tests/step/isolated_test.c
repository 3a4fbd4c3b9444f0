// SPDX-License-Identifier: MIT
// Tests the values with which communication ops are tested: their sums must be exact in bf16 for groups of any size,
// and no op may read the values of another op.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "gswbench/format.h"
#include "drawn_layout.h"
#include "step/internal.h"

static int sum_of(const struct plan_group *group)
{
    const struct op op  = {.kind = OP_REDUCE_SCATTER};
    int             sum = 0;
    for (int64_t i = 0; i < group->size; i++) {
        int value = isolated_value(&op, group, i);
        cr_assert(value >= 0 && value <= 3, "member %d has %d", (int)i, value);
        sum += value;
    }
    return sum;
}

// The ranks of a data-parallel group are tp ranks apart.
Test(isolated, adds_to_integers_that_bf16_represents)
{
    static const int64_t sizes[] = {2, 64, 65, 512, 2048, 2049, 6000, 100000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int64_t tp = 1; tp <= 16; tp++) {
            struct plan_group group = {.size = sizes[i], .ranks = calloc((size_t)sizes[i], sizeof(int64_t))};
            for (int64_t member = 0; member < group.size; member++) {
                group.ranks[member] = tp - 1 + member * tp;
            }
            uint16_t stored;
            int      sum = sum_of(&group);
            element_write(FORMAT_BF16, &stored, 0, (float)sum);
            cr_expect(sum > 0 && sum <= 256, "%d ranks, tp = %d: %d", (int)group.size, (int)tp, sum);
            cr_expect_eq(element_read(FORMAT_BF16, &stored, 0), (float)sum);
            free(group.ranks);
        }
    }
}

static bool overlap(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

// Counts the pairs of communication ops that read the same memory, and requires that one of each pair ends before the
// other starts.
static int check_inputs(const struct plan *plan)
{
    int32_t *position = calloc((size_t)plan->op_count, sizeof(*position));
    int32_t *clocks   = order_clocks(plan, position);
    int      pairs    = 0;
    for (int32_t later = 0; later < plan->op_count; later++) {
        const struct op *b = &plan->ops[later];
        for (int32_t earlier = 0; op_is_communication((enum op_kind)b->kind) && earlier < later; earlier++) {
            const struct op *a  = &plan->ops[earlier];
            int32_t          in = a->operand[COMMUNICATION_IN], other = b->operand[COMMUNICATION_IN];
            if (op_is_communication((enum op_kind)a->kind) && a->stream != b->stream && in >= 0 && other >= 0 &&
                overlap(&plan->tensors[in], &plan->tensors[other])) {
                pairs++;
                cr_expect_lt(position[earlier], clocks[(int64_t)later * STREAM_COUNT + a->stream],
                             "\"%s\" and \"%s\" read the same memory at the same time", a->tag.role, b->tag.role);
            }
        }
    }
    free(clocks);
    free(position);
    return pairs;
}

// The values of an op depend on its group, so two ops that may run at the same time must not have the same input.
Test(isolated, fills_no_input_that_another_op_reads_at_the_same_time)
{
    int pairs = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct training     drawn   = drawn_layout(seed);
        struct plan_request request = tiny_request(&drawn.tiny, drawn.ranks, (int64_t)seed % drawn.ranks);
        struct plan         plan;
        status              built = plan_build(&plan, &request);
        cr_assert(!failed(&built), "seed %d: %s", (int)seed, built.text);
        pairs += check_inputs(&plan);
        plan_free(&plan);
    }
    cr_expect_gt(pairs, 1000);
}
