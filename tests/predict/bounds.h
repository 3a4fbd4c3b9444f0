// SPDX-License-Identifier: MIT
// Predicts the layouts of a sweep, and checks that the bounds by which a sweep skips layouts do not exceed predictions.
#pragma once

#include <criterion/criterion.h>

#include "predict/internal.h"
#include "success.h"

static inline struct prediction predict_layout(const struct plan_request *layout, const struct machine *machine)
{
    struct prediction prediction;
    REQUIRE(predict(&prediction, layout, machine));
    return prediction;
}

// Returns the bound that a sweep computes from plans of the layout.
static inline struct sweep_bound close_bound(const struct plan_request *layout, const struct machine *machine)
{
    struct sweep_bound bound;
    REQUIRE(sweep_find_bound(&bound, layout, machine));
    return bound;
}

static inline struct sweep_bound rough_bound(const struct plan_request *layout, const struct machine *machine)
{
    struct sweep_layer layer;
    sweep_look_at_layer(&layer, layout, machine);
    return sweep_find_rough_bound(&layer, layout);
}

static inline void expect_below(const struct sweep_bound *bound, const struct prediction *exact,
                                const struct machine *machine, int64_t layout)
{
    int64_t bytes = predict_device_bytes(exact, machine->software);
    cr_expect_leq(bound->seconds, exact->step_seconds * (1 + 1e-9), "layout %d: bound %g of %g s", (int)layout,
                  bound->seconds, exact->step_seconds);
    cr_expect_leq(bound->bytes, bytes, "layout %d: bound %lld of %lld bytes", (int)layout, (long long)bound->bytes,
                  (long long)bytes);
}

// Compares two layouts in the order of a sweep: by step time first.
static inline int by_time(const void *left, const void *right)
{
    const struct sweep_choice *a = left, *b = right;
    if (a->prediction.step_seconds != b->prediction.step_seconds) {
        return a->prediction.step_seconds < b->prediction.step_seconds ? -1 : 1;
    }
    return a->layout < b->layout ? -1 : 1;
}

// Expects that the sweep found the first SWEEP_BEST layouts in `all`, which is sorted.
static inline void expect_choices(const struct sweep *sweep, const struct sweep_choice *all)
{
    cr_assert_eq(sweep->best_count, SWEEP_BEST);
    for (int i = 0; i < SWEEP_BEST; i++) {
        cr_expect_eq(sweep->best[i].layout, all[i].layout, "place %d has layout %d, not %d", i,
                     (int)sweep->best[i].layout, (int)all[i].layout);
        cr_expect_eq(sweep->best[i].prediction.step_seconds, all[i].prediction.step_seconds);
        cr_expect_eq(sweep->best[i].prediction.largest_bytes, all[i].prediction.largest_bytes);
    }
}
