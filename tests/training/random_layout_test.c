// SPDX-License-Identifier: MIT
// Draws random layouts from all supported features. Each is verified, and must train as one rank does. The seeds are 0
// .. DRAWS - 1. GSWBENCH_LAYOUTS=FIRST:COUNT in the environment selects other seeds; FIRST alone repeats one.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drawn_layout.h"
#include "layouts.h"
#include "line.h"
#include "same_training.h"

enum { DRAWS = 60, STEPS = 3, LOW_PRECISION_DRAWS = 24, LOW_PRECISION_STEPS = 4, PAIR_DRAWS = 1500 };

static void choose_draws(uint64_t usual, uint64_t *first, uint64_t *count)
{
    const char *range = getenv("GSWBENCH_LAYOUTS");
    *first            = 0;
    *count            = usual;
    if (range != NULL && sscanf(range, "%" SCNu64 ":%" SCNu64, first, count) < 2) {
        *count = 1;
    }
}

enum { DRAW_NAME_BYTES = 32 + LAYOUT_NAME_BYTES };

// Writes a name for messages, and logs it, so that a crash can be assigned to its draw.
static void name_draw(char name[DRAW_NAME_BYTES], const struct training *drawn, uint64_t seed)
{
    layout_name(&drawn->tiny, name + snprintf(name, 32, "draw %" PRIu64 ": ", seed));
    cr_log_info("%s", name);
}

Test(random_layout, trains_as_one_rank_does, .timeout = 3600)
{
    uint64_t first, count;
    choose_draws(DRAWS, &first, &count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        char            name[DRAW_NAME_BYTES];
        struct training many = drawn_layout(seed);
        many.steps           = STEPS;
        name_draw(name, &many, seed);
        expect_proof(&many, name);
        expect_as_one_rank(&many, layout_alone, name);
    }
}

// The comparison with one rank finds errors of a layout. It does not find a wrong scale that every layout has; the
// comparison with BF16 does. Only the last step is compared with BF16: with delayed scaling, the scales of the first
// steps come from amaxes of too few steps.
Test(random_layout, trains_in_low_precision_as_one_rank_does_and_as_in_bf16, .timeout = 3600)
{
    uint64_t first, count;
    choose_draws(LOW_PRECISION_DRAWS, &first, &count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        char            name[DRAW_NAME_BYTES];
        struct training many            = drawn_low_precision(seed);
        many.steps                      = LOW_PRECISION_STEPS;
        struct training one             = on_one_rank(&many, layout_alone_in_turn);
        struct training wide            = one;
        wide.tiny.precision.compute     = COMPUTE_BF16;
        wide.tiny.precision.recipe      = RECIPE_AUTO;
        wide.tiny.precision.fp8_weights = 0;
        name_draw(name, &many, seed);
        expect_proof(&many, name);
        training_run(&one);
        training_run(&wide);
        expect_losses(&many, &one, 1e-2, name);
        expect_near(one.loss[many.steps - 1], wide.loss[many.steps - 1], 0.02, name);
        expect_near(one.norm[many.steps - 1], wide.norm[many.steps - 1], 0.2, name);
    }
}

// The name of a drawn layout is a row of layout_test.c, so that a failing draw can be added there.
Test(random_layout, is_made_again_by_the_row_that_names_it)
{
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        char            name[LAYOUT_NAME_BYTES], again[LAYOUT_NAME_BYTES];
        struct training drawn = drawn_layout(seed);
        struct tiny     tiny  = tiny_of("");
        cr_expect_eq(layout_apply(&tiny, layout_name(&drawn.tiny, name)), drawn.ranks, "%s", name);
        cr_expect_str_eq(layout_name(&tiny, again), name);
        cr_expect_arr_eq(&tiny.parallel, &drawn.tiny.parallel, sizeof(tiny.parallel), "%s", name);
        cr_expect_arr_eq(&tiny.train, &drawn.tiny.train, sizeof(tiny.train), "%s", name);
    }
}

// Features of drawn layouts, and pairs of features that exclude each other.
// clang-format off
static const char *const features[] = {
    "; dp ", "; fsdp ", "; tp ", "; cp ", "; pp ", "; vp ", "; ep ", "; etp 1", "; zero 1", "; sequence_parallel no",
    "; tp_overlap yes", "; context ring", "; context exchange", "; accumulation ", "; overlap_microbatches yes", "; schedule zero-bubble",
    "; recompute full", "; recompute attention", "; recompute selective", "; recompute modules",
    "; gradient_reduce microbatch", "; positions learned", "; positions alibi", "; positions none", "; window ",
    "; attention_sinks yes", "; kv_rank ", "; kv_heads 1;", "; predicted_tokens ", "; experts ", "; shared_ffn ",
    "; expert_hidden ", "; repeat_prediction yes",
    "; router_score sigmoid", "; router_bias_rate ", "; qk_norm yes", "; attention_bias yes", "; mlp_bias yes", "; tied yes",
    "; rank ", "; mamba_heads ", "; last_chunk_layers ", "/", "; optimizer muon",
};
static const char *const apart[][2] = {
    {"; vp ", "; schedule zero-bubble"}, {"; overlap_microbatches yes", "; schedule zero-bubble"},
    {"; sequence_parallel no", "; tp_overlap yes"}, {"; etp 1", "; sequence_parallel no"},
    {"; context ring", "; window "}, {"; context exchange", "; attention_sinks yes"}, {"; context exchange", "; kv_rank "},
    {"; context exchange", "; kv_heads 1;"}, {"; context ring", "; context exchange"},
    {"; recompute full", "; recompute attention"}, {"; recompute full", "; recompute selective"},
    {"; recompute full", "; recompute modules"}, {"; recompute attention", "; recompute selective"},
    {"; recompute attention", "; recompute modules"}, {"; recompute selective", "; recompute modules"},
    {"; positions learned", "; positions alibi"}, {"; positions learned", "; positions none"},
    {"; positions alibi", "; positions none"}, {"; positions learned", "; kv_rank "}, {"; positions alibi", "; kv_rank "},
    {"; positions none", "; kv_rank "}, {"; positions learned", "; predicted_tokens "}, {"; positions learned", "; repeat_prediction yes"},
    {"; positions learned", "; attention_bias yes"}, {"; positions alibi", "; attention_bias yes"},
    {"; positions none", "; attention_bias yes"}, {"; window ", "; kv_rank "}, {"; attention_sinks yes", "; kv_rank "},
    {"; kv_rank ", "; kv_heads 1;"}, {"; kv_rank ", "; qk_norm yes"}, {"; kv_rank ", "; attention_bias yes"},
    {"; cp ", "; mamba_heads "}, {"; context ring", "; mamba_heads "}, {"; context exchange", "; mamba_heads "},
    {"; rank ", "; mamba_heads "}, {"; cp ", "/"}, {"; context ring", "/"}, {"; context exchange", "/"},
    {"; positions learned", "/"}, {"; window ", "/"}, {"; rank ", "/"}, {"; rank ", "; optimizer muon"},
    {"; fsdp ", "; optimizer muon"},
};
// clang-format on
enum { FEATURES = sizeof(features) / sizeof(features[0]), APART = sizeof(apart) / sizeof(apart[0]) };

static bool go_together(int first, int second)
{
    bool are_apart = false;
    for (int i = 0; i < APART; i++) {
        are_apart |= strcmp(apart[i][0], features[first]) == 0 && strcmp(apart[i][1], features[second]) == 0;
    }
    return !are_apart;
}

// A bug in the combination of two features shows only if some draw has both.
Test(random_layout, draws_every_pair_of_features)
{
    static int seen[FEATURES][FEATURES];
    for (uint64_t seed = 0; seed < PAIR_DRAWS; seed++) {
        char            name[LAYOUT_NAME_BYTES];
        struct training drawn = drawn_layout(seed);
        const char     *row   = line_of("; %s;", layout_name(&drawn.tiny, name));
        for (int i = 0; i < FEATURES; i++) {
            for (int j = i + 1; j < FEATURES && strstr(row, features[i]) != NULL; j++) {
                seen[i][j] += strstr(row, features[j]) != NULL;
            }
        }
    }
    for (int i = 0; i < FEATURES; i++) {
        for (int j = i + 1; j < FEATURES; j++) {
            cr_expect_eq(seen[i][j] > 0, go_together(i, j), "%s%s: %d draws", features[i], features[j], seen[i][j]);
        }
    }
}
