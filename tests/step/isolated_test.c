// SPDX-License-Identifier: MIT
// Tests the values with which communication ops are tested: their sums must be exact in bf16 for groups of any size.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "gswbench/format.h"
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
