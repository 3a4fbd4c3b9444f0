// SPDX-License-Identifier: MIT
// What the rows of the axes must be, and what is made of them.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/mesh.h"
#include "gswbench/model.h"
#include "gswbench/train.h"
#include "gswbench/waterfall.h"

Test(axis, names_them_in_rank_order_the_fastest_first)
{
    static const char *const names[] = {"tp", "cp", "ep", "fsdp", "dp", "pp"};
    cr_assert_eq(AXIS_COUNT, 6);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        cr_expect_str_eq(axis_rows[axis].name, names[axis]);
    }
}

Test(axis, has_an_option_a_field_and_a_part_of_the_waterfall_each)
{
    struct parallel_config parallel;
    option_set_defaults(parallel_options, &parallel);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const struct option *option = option_find(parallel_options, axis_rows[axis].name);
        cr_assert_not_null(option, "%s", axis_rows[axis].name);
        cr_expect_eq(option->offset, axis_rows[axis].field);
        cr_expect_eq(mesh_asked(&parallel, (enum axis)axis), 1);
        mesh_ask(&parallel, (enum axis)axis, axis + 2);
        const char *part = waterfall_part_names[waterfall_exposed(1u << axis)];
        cr_expect(strncmp(part, "exposed-", 8) == 0 && strcmp(part + 8, axis_rows[axis].name) == 0, "%s", part);
    }
    cr_expect(parallel.tp == 2 && parallel.cp == 3 && parallel.ep == 4 && parallel.fsdp == 5);
    cr_expect(parallel.dp == 6 && parallel.pp == 7 && parallel.vp == 1);
}

Test(axis, has_its_own_place_in_texts_and_among_claims)
{
    static const enum axis shown[]  = {AXIS_FSDP, AXIS_DP, AXIS_TP, AXIS_CP, AXIS_EP, AXIS_PP};
    static const enum axis claims[] = {AXIS_FSDP, AXIS_DP, AXIS_EP, AXIS_CP, AXIS_TP, AXIS_PP};
    static const enum axis listed[] = {AXIS_DP, AXIS_FSDP, AXIS_TP, AXIS_CP, AXIS_EP, AXIS_PP};
    uint32_t               left     = MESH_ALL_AXES;
    for (int place = 0; place < AXIS_COUNT; place++) {
        cr_expect_eq(axis_shown(place), shown[place], "place %d", place);
        cr_expect_eq(axis_listed[place], listed[place], "place %d", place);
        cr_expect_eq(axis_claims(left), claims[place], "place %d", place);
        left &= ~(1u << axis_claims(left));
    }
    cr_expect_eq(axis_claims(0), AXIS_COUNT);
    cr_expect_eq(waterfall_exposed(0), WATERFALL_UNEXPLAINED);
}

Test(axis, multiplies_to_the_ranks_but_for_those_within_another)
{
    struct parallel_config parallel;
    option_set_defaults(parallel_options, &parallel);
    parallel.tp = 2;
    parallel.ep = 4;
    parallel.dp = 0;
    parallel.pp = 3;
    cr_expect_eq(mesh_asked_ranks(&parallel, MESH_ALL_AXES), 6);
    cr_expect_eq(mesh_asked_ranks(&parallel, 1u << AXIS_TP | 1u << AXIS_EP | 1u << AXIS_DP), 2);
    cr_expect(mesh_has_auto(&parallel));
    struct mesh mesh;
    status      result = mesh_init(&mesh, &parallel, 48);
    cr_assert(!failed(&result), "%s", result.text);
    mesh_resolve(&parallel, &mesh);
    cr_expect_eq(parallel.dp, 8);
    cr_expect_not(mesh_has_auto(&parallel));
    cr_expect_eq(mesh_stride(&mesh, AXIS_TP), 1);
    cr_expect_eq(mesh_stride(&mesh, AXIS_EP), 2);
    cr_expect_eq(mesh_stride(&mesh, AXIS_PP), 16);
}

Test(axis, says_what_its_ranks_share_out)
{
    static const uint32_t axes[][2] = {
        {AXIS_SHARES_SEQUENCES, 1u << AXIS_DP | 1u << AXIS_FSDP | 1u << AXIS_EP},
        {AXIS_SHARES_POSITIONS, 1u << AXIS_CP},
        {AXIS_SHARES_TOKENS, 1u << AXIS_DP | 1u << AXIS_FSDP | 1u << AXIS_EP | 1u << AXIS_CP},
        {AXIS_SHARES_WEIGHTS, 1u << AXIS_FSDP},
        {AXIS_SHARES_MATRICES, 1u << AXIS_TP},
        {AXIS_SHARES_EXPERTS, 1u << AXIS_EP},
        {AXIS_SHARES_LAYERS, 1u << AXIS_PP},
        {AXIS_SHARES_MATRICES | AXIS_SHARES_LAYERS, 1u << AXIS_TP | 1u << AXIS_PP},
    };
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        cr_expect_eq(axis_sharing(axes[i][0]), axes[i][1], "case %zu", i);
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        cr_expect_neq(axis_rows[axis].shares, 0, "%s", axis_rows[axis].name);
    }
}

// What a check of a job looks up by its name.
Test(axis, divides_integers_of_the_configuration)
{
    static const char *const divided[AXIS_COUNT][AXIS_DIVIDES] = {
        [AXIS_TP] = {"model.heads", "model.kv_heads", "model.ffn", "model.expert_ffn"},
        [AXIS_CP] = {"train.sequence"},
        [AXIS_EP] = {"model.experts"},
    };
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        for (int i = 0; i < AXIS_DIVIDES; i++) {
            const char *name = axis_rows[axis].divides[i];
            cr_assert_eq(name == NULL, divided[axis][i] == NULL, "%s", axis_rows[axis].name);
            if (name != NULL) {
                cr_expect_str_eq(name, divided[axis][i]);
                bool                 of_model = strncmp(name, "model.", 6) == 0;
                const struct option *option   = option_find(of_model ? model_options : train_options, name + 6);
                cr_assert(of_model || strncmp(name, "train.", 6) == 0, "%s", name);
                cr_expect(option != NULL && option->type == OPTION_INTEGER, "%s", name);
            }
        }
    }
}

// design.md has a line on axes, which names and explains each.
Test(axis, stands_in_the_glossary)
{
    char  text[2048] = "", wanted[32];
    FILE *file       = fopen(GSWBENCH_SOURCE_DIR "/docs/design.md", "r");
    cr_assert_not_null(file);
    while (strncmp(text, "| axis |", 8) != 0) {
        cr_assert_not_null(fgets(text, sizeof(text), file), "no line on axes");
    }
    fclose(file);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        snprintf(wanted, sizeof(wanted), "`%s`", axis_rows[axis].name);
        cr_expect_not_null(strstr(text, wanted), "%s", wanted);
    }
}
