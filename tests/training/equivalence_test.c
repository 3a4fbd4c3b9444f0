// SPDX-License-Identifier: MIT
// Tests that results do not depend on the layout: the same global batch trains the same on one rank and on several,
// with and without gradient accumulation.
#include <criterion/criterion.h>
#include <math.h>

#include "equivalence.h"

Test(equivalence, ranks_and_microbatches_do_not_change_loss_or_gradient, .timeout = 120)
{
    static const struct {
        int64_t ranks, accumulation;
    } cuts[] = {{1, 2}, {1, 4}, {2, 1}, {2, 4}, {4, 1}, {4, 2}};

    struct training one = equivalence_train(1, 1);
    cr_expect_float_eq(one.loss[0], logf(40.0f), 1.0f);
    cr_expect_neq(one.loss[1], one.loss[0]);

    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct training cut = equivalence_train(cuts[i].ranks, cuts[i].accumulation);
        cr_expect_eq(equivalence_count_differences(&cut, &one), 0, "%d ranks, accumulation %d", (int)cuts[i].ranks,
                     (int)cuts[i].accumulation);
    }
}

Test(equivalence, the_same_run_twice_gives_the_same_bits, .timeout = 120)
{
    struct training first = equivalence_train(4, 2), second = equivalence_train(4, 2);

    cr_expect(equivalence_same_bits(&first, &second));
}
