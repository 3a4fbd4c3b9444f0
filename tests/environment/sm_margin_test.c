// SPDX-License-Identifier: MIT
// Choice of the SM margin: how compute and communication share the SMs.
#include "environment/internal.h"

#include <criterion/criterion.h>

Test(sm_margin, keeps_what_is_planned_unless_another_way_is_faster_by_more_than_noise)
{
    cr_expect_eq(sm_margin_best((const double[]){1.0, 0.991, 0.995, 2.0}, 4), 0);
    cr_expect_eq(sm_margin_best((const double[]){1.0, 0.991, 0.989, 2.0}, 4), 2);
    cr_expect_eq(sm_margin_best((const double[]){1.0, 0.5, 0.4, 0.41}, 4), 2);
    cr_expect_eq(sm_margin_best((const double[]){1.0, 2.0, 3.0, 4.0}, 4), 0);
}
