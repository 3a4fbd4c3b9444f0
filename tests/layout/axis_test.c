// SPDX-License-Identifier: MIT
// Tests rules for the rows of the table of mesh axes, and the tables that are derived from it.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/mesh.h"
#include "gswbench/model.h"
#include "gswbench/waterfall.h"
#include "success.h"

// Results of different versions are compared by these orders of axes. A new axis may be inserted, but it must not
// change the order of the others.
static void expect_order(const char *what, enum axis (*at)(int place), const enum axis *wanted, int count)
{
    int found = 0;
    for (int place = 0; place < AXIS_COUNT; place++) {
        found += found < count && at(place) == wanted[found];
    }
    cr_expect_eq(found, count, "%s: %s is not in its place", what, axis_rows[wanted[found < count ? found : 0]].name);
}

// Each position in layout texts, and in the order of claims, must belong to exactly one axis. axis_shown and
// axis_claims rely on that. The axis with the first claim is charged for exposed communication over several axes.
Test(axis, has_a_place_of_its_own_in_texts_and_among_claims)
{
    for (int place = 0; place < AXIS_COUNT; place++) {
        int shown = 0, claims = 0;
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            shown += axis_rows[axis].shown == place;
            claims += axis_rows[axis].claim == place;
        }
        cr_expect_eq(shown, 1, "%d axes are shown at place %d", shown, place);
        cr_expect_eq(claims, 1, "%d axes have the claim %d", claims, place);
    }
}

static enum axis ranked(int place)
{
    return (enum axis)place;
}

static enum axis listed(int place)
{
    return axis_listed[place];
}

// Returns the axis that is charged for exposed communication over all axes that have no earlier position in this order.
static enum axis claimed(int place)
{
    uint32_t left = MESH_ALL_AXES;
    for (; place > 0; place--) {
        left &= ~(1u << axis_claims(left));
    }
    return axis_claims(left);
}

Test(axis, stands_among_others_in_the_order_of_results)
{
    static const enum axis ranks[]  = {AXIS_TP, AXIS_CP, AXIS_EP, AXIS_FSDP, AXIS_DP, AXIS_PP};
    static const enum axis shown[]  = {AXIS_FSDP, AXIS_DP, AXIS_TP, AXIS_CP, AXIS_EP, AXIS_PP};
    static const enum axis lists[]  = {AXIS_DP, AXIS_FSDP, AXIS_TP, AXIS_CP, AXIS_EP, AXIS_PP};
    static const enum axis claims[] = {AXIS_FSDP, AXIS_DP, AXIS_EP, AXIS_CP, AXIS_TP, AXIS_PP};
    expect_order("ranks, the fastest first", ranked, ranks, 6);
    expect_order("the text of a layout", axis_shown, shown, 6);
    expect_order("options, JSON and waterfalls", listed, lists, 6);
    expect_order("claims of exposed time", claimed, claims, 6);
    cr_expect_eq(axis_claims(0), AXIS_COUNT);
    cr_expect_eq(waterfall_exposed(0), WATERFALL_UNEXPLAINED);
}

Test(axis, is_spelt_as_in_files_and_results)
{
    static const char *const names[] = {
        [AXIS_TP] = "tp", [AXIS_CP] = "cp", [AXIS_EP] = "ep", [AXIS_FSDP] = "fsdp", [AXIS_DP] = "dp", [AXIS_PP] = "pp"};
    for (size_t axis = 0; axis < sizeof(names) / sizeof(names[0]); axis++) {
        if (names[axis] != NULL) {
            cr_expect_str_eq(axis_rows[axis].name, names[axis]);
        }
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
    cr_expect(parallel.tp == AXIS_TP + 2 && parallel.cp == AXIS_CP + 2 && parallel.ep == AXIS_EP + 2);
    cr_expect(parallel.fsdp == AXIS_FSDP + 2 && parallel.dp == AXIS_DP + 2 && parallel.pp == AXIS_PP + 2);
    cr_expect_eq(parallel.vp, 1);
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
    REQUIRE(mesh_init(&mesh, &parallel, 48));
    mesh_resolve(&parallel, &mesh);
    cr_expect_eq(parallel.dp, 8);
    cr_expect_not(mesh_has_auto(&parallel));
    cr_expect_eq(mesh_stride(&mesh, AXIS_TP), 1);
    cr_expect_eq(mesh_stride(&mesh, AXIS_EP), 2);
    cr_expect_eq(mesh_stride(&mesh, AXIS_PP), 16);
}

Test(axis, says_what_its_ranks_share_out)
{
    static const uint32_t shares[] = {
        [AXIS_DP]   = AXIS_SHARES_SEQUENCES,
        [AXIS_FSDP] = AXIS_SHARES_SEQUENCES | AXIS_SHARES_WEIGHTS,
        [AXIS_TP]   = AXIS_SHARES_MATRICES,
        [AXIS_CP]   = AXIS_SHARES_POSITIONS,
        [AXIS_EP]   = AXIS_SHARES_SEQUENCES | AXIS_SHARES_EXPERTS,
        [AXIS_PP]   = AXIS_SHARES_LAYERS,
    };
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        bool is_known = axis < (int)(sizeof(shares) / sizeof(shares[0])) && shares[axis] != 0;
        cr_expect_neq(axis_rows[axis].shares, 0, "%s", axis_rows[axis].name);
        cr_expect_eq(axis_rows[axis].shares, is_known ? shares[axis] : axis_rows[axis].shares, "%s",
                     axis_rows[axis].name);
        for (uint32_t share = 1; share <= AXIS_SHARES_LAYERS; share <<= 1) {
            cr_expect_eq(axis_sharing(share) >> axis & 1u, (axis_rows[axis].shares & share) != 0, "%s",
                         axis_rows[axis].name);
        }
    }
    cr_expect_eq(axis_sharing(AXIS_SHARES_TOKENS),
                 axis_sharing(AXIS_SHARES_SEQUENCES) | axis_sharing(AXIS_SHARES_POSITIONS));
}

Test(axis, may_have_several_ranks_to_a_key_and_value_head)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const char *met = axis == AXIS_TP ? "model.kv_heads" : NULL;
        cr_expect(met == NULL ? axis_rows[axis].meets == NULL : strcmp(axis_rows[axis].meets, met) == 0);
    }
    char text[32];
    cr_expect_str_eq(axis_names(MESH_HEAD_COPIES, text, sizeof(text)), "copies");
    cr_expect_str_eq(axis_names(MESH_HEAD_COPIES | 1u << AXIS_DP, text, sizeof(text)), "copies x dp");
    cr_expect_eq(axis_claims(MESH_HEAD_COPIES), AXIS_TP);
}

// These are the options that must be divisible by the size of an axis.
Test(axis, divides_integers_of_the_configuration)
{
    static const char *const divided[AXIS_COUNT][AXIS_DIVIDES] = {
        [AXIS_TP] = {"model.heads", "model.ffn", "model.shared_ffn"},
        [AXIS_CP] = {"train.sequence"},
        [AXIS_EP] = {"model.experts"},
    };
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        for (int i = 0; i < AXIS_DIVIDES; i++) {
            const char *name = axis_rows[axis].divides[i];
            if (divided[axis][i] != NULL) {
                cr_assert(name != NULL && strcmp(name, divided[axis][i]) == 0, "%s: %s", axis_rows[axis].name,
                          divided[axis][i]);
            }
            if (name != NULL) {
                bool                 of_model = strncmp(name, "model.", 6) == 0;
                const struct option *option   = option_find(of_model ? model_options : train_options, name + 6);
                cr_assert(of_model || strncmp(name, "train.", 6) == 0, "%s", name);
                cr_expect(option != NULL && option->type == OPTION_INTEGER, "%s", name);
            }
        }
    }
}
