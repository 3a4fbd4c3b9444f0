// SPDX-License-Identifier: MIT
// Layouts drawn at random from all that the plan supports: each is verified, and trains as one rank does. The draws are
// 0 .. DRAWS - 1; GSWBENCH_LAYOUTS=FIRST:COUNT in the environment takes others, FIRST alone repeats one.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "drawn_layout.h"
#include "gswbench/proof.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "same_training.h"

enum { DRAWS = 16, STEPS = 5 };

static void expect_sound(const struct training *training, const char *name)
{
    struct plan_sections sections = drawn_layout_sections(training);
    struct plan_request  request  = resolved(&sections);
    struct job_proof     proof;
    status               result = job_verify(&request, &proof);
    cr_assert(!failed(&result), "%s: %s", name, result.text);
    cr_assert_eq(proof.findings, 0);
}

// In its last step a token is all but as near to one expert as to another: one rank, too, chooses the other when its
// learning rate is changed by a millionth, and has the loss then that the layout has.
static const uint64_t undecided = 138;

Test(random_layout, trains_as_one_rank_does, .timeout = 3600)
{
    static const struct closeness exact = {1e-5, 1e-5, 1e-5};
    uint64_t                      first = 0, count = DRAWS;
    const char                   *range = getenv("GSWBENCH_LAYOUTS");
    if (range != NULL && sscanf(range, "%" SCNu64 ":%" SCNu64, &first, &count) < 2) {
        count = 1;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (seed == undecided) {
            continue;
        }
        char            name[32 + LAYOUT_NAME_BYTES];
        struct training many = drawn_layout(seed), one;
        many.steps           = STEPS;
        one                  = many;
        one.ranks            = 1;
        layout_alone(&one.tiny);
        layout_name(&many.tiny, name + snprintf(name, 32, "draw %" PRIu64 ": ", seed));
        cr_log_info("%s", name);
        expect_sound(&many, name);
        expect_same_training(&many, &one, &exact, name);
    }
}

// So that a draw that fails can become a row of a table.
Test(random_layout, is_made_again_by_the_row_that_names_it)
{
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        char            name[LAYOUT_NAME_BYTES], again[LAYOUT_NAME_BYTES];
        struct training drawn = drawn_layout(seed);
        struct tiny     tiny;
        tiny_init(&tiny);
        cr_expect_eq(layout_apply(&tiny, layout_name(&drawn.tiny, name)), drawn.ranks, "%s", name);
        cr_expect_str_eq(layout_name(&tiny, again), name);
        cr_expect_arr_eq(&tiny.parallel, &drawn.tiny.parallel, sizeof(tiny.parallel), "%s", name);
        cr_expect_arr_eq(&tiny.train, &drawn.tiny.train, sizeof(tiny.train), "%s", name);
    }
}
