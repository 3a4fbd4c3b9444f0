// SPDX-License-Identifier: MIT
// Tests the device mesh: coordinates of ranks, and process groups.
#include "gswbench/mesh.h"

#include <criterion/criterion.h>

#include "layouts.h"
#include "line.h"
#include "meshes.h"
#include "success.h"

// Returns the mesh for this layout and number of ranks. `config` receives the options of the layout, unless it is NULL.
static struct mesh mesh_for(const char *row, int64_t world, struct parallel_config *config)
{
    struct parallel_config parallel = tiny_of(row).parallel;
    struct mesh            mesh;
    REQUIRE(mesh_init(&mesh, &parallel, world));
    if (config != NULL) {
        *config = parallel;
    }
    return mesh;
}

static void expect_sizes(const int64_t sizes[AXIS_COUNT], struct mesh wanted)
{
    cr_expect_arr_eq(sizes, wanted.size, sizeof(wanted.size));
}

// The example has 32 ranks: tp 4, cp 2, dp 2, pp 2.
static struct mesh example(void)
{
    return mesh_for("dp auto; tp 4; cp 2; pp 2; vp 5", 32, NULL);
}

Test(mesh, gives_auto_what_the_other_axes_leave)
{
    struct mesh mesh = example();
    cr_expect_eq(mesh.world, 32);
    cr_expect_eq(mesh.asked[AXIS_DP], 2);
    cr_expect_eq(mesh.size[AXIS_TP], 4);
    cr_expect_eq(mesh.size[AXIS_EP], 1);
    cr_expect_eq(mesh.vp, 5);
}

Test(mesh, takes_the_smallest_world_when_none_is_given)
{
    struct mesh mesh = mesh_for("dp auto; fsdp 8; tp 4", 0, NULL);
    cr_expect_eq(mesh.world, 32);
    cr_expect_eq(mesh.size[AXIS_DP], 1);
}

Test(mesh, orders_ranks_by_tp_cp_fsdp_dp_pp_fastest_first)
{
    struct mesh mesh = example();
    int64_t     at[AXIS_COUNT];
    // rank = tp + 4 * (cp + 2 * (fsdp + 1 * (dp + 2 * pp))), so 27 = 3 + 4 * (0 + 2 * (0 + 1 * (1 + 2 * 1))).
    mesh_coordinates(&mesh, 27, at);
    cr_expect_eq(at[AXIS_TP], 3);
    cr_expect_eq(at[AXIS_CP], 0);
    cr_expect_eq(at[AXIS_FSDP], 0);
    cr_expect_eq(at[AXIS_DP], 1);
    cr_expect_eq(at[AXIS_PP], 1);
    for (int64_t rank = 0; rank < 32; rank++) {
        mesh_coordinates(&mesh, rank, at);
        cr_expect_eq(mesh_rank(&mesh, at), rank);
    }
}

Test(mesh, groups_the_ranks_that_differ_only_on_the_axes_of_the_mask)
{
    struct mesh mesh = example();
    int64_t     ranks[8];

    cr_expect_eq(mesh_group_size(&mesh, 1u << AXIS_TP), 4);
    mesh_group_ranks(&mesh, 27, 1u << AXIS_TP, ranks);
    cr_expect_arr_eq(ranks, ((int64_t[]){24, 25, 26, 27}), sizeof(int64_t[4]));
    cr_expect_eq(mesh_group_index(&mesh, 27, 1u << AXIS_TP), 3);

    cr_expect_eq(mesh_group_size(&mesh, 1u << AXIS_CP | 1u << AXIS_DP), 4);
    mesh_group_ranks(&mesh, 27, 1u << AXIS_CP | 1u << AXIS_DP, ranks);
    cr_expect_arr_eq(ranks, ((int64_t[]){19, 23, 27, 31}), sizeof(int64_t[4]));
    cr_expect_eq(mesh_group_index(&mesh, 27, 1u << AXIS_CP | 1u << AXIS_DP), 2);

    cr_expect_eq(mesh_group_size(&mesh, 0), 1);
    mesh_group_ranks(&mesh, 27, 0, ranks);
    cr_expect_eq(ranks[0], 27);
}

static uint32_t mask(enum axis a, enum axis b)
{
    return 1u << a | 1u << b;
}

Test(mesh, takes_the_ranks_of_experts_out_of_replicas)
{
    struct mesh mesh = mesh_for("dp auto; tp 2; cp 2; ep 2", 24, NULL);
    int64_t     ranks[2];
    expect_sizes(mesh.size, MESH(.tp = 2, .cp = 2, .ep = 2, .dp = 3));
    expect_sizes(mesh.asked, MESH(.tp = 2, .cp = 2, .ep = 2, .dp = 6));
    mesh_group_ranks(&mesh, 1, 1u << AXIS_EP, ranks);
    cr_expect_arr_eq(ranks, ((int64_t[]){1, 5}), sizeof(ranks));
    cr_expect_eq(mesh_group_size(&mesh, axis_sharing(AXIS_SHARES_SEQUENCES)), 6);
    cr_expect_not(mesh_is_sharded(&mesh));
    cr_expect_eq(mesh_shard_axes(&mesh, false), 1u << AXIS_FSDP);
    cr_expect_eq(mesh_replica_axes(&mesh, false), mask(AXIS_CP, AXIS_DP) | 1u << AXIS_EP);
    cr_expect_eq(mesh_replica_axes(&mesh, true), mask(AXIS_CP, AXIS_DP));
}

Test(mesh, takes_the_ranks_of_experts_out_of_shards_where_there_are_any)
{
    struct mesh mesh = mesh_for("dp 3; fsdp 8; ep 4", 24, NULL);
    expect_sizes(mesh.size, MESH(.ep = 4, .fsdp = 2, .dp = 3));
    cr_expect(mesh_is_sharded(&mesh));
    cr_expect_eq(mesh_shard_axes(&mesh, false), mask(AXIS_EP, AXIS_FSDP));
    cr_expect_eq(mesh_shard_axes(&mesh, true), 1u << AXIS_FSDP);
    cr_expect_eq(mesh_replica_axes(&mesh, false), mask(AXIS_CP, AXIS_DP));
    cr_expect_eq(mesh_replica_axes(&mesh, true), mask(AXIS_CP, AXIS_DP));
}

Test(mesh, has_shards_where_experts_take_all_of_their_ranks)
{
    struct mesh mesh = mesh_for("fsdp 4; ep 4", 4, NULL);
    expect_sizes(mesh.size, MESH(.ep = 4));
    cr_expect(mesh_is_sharded(&mesh));
}

// With etp 1, whole experts are distributed over the tp ranks first, then over cp, then over fsdp or dp. Ranks that
// differ only on other axes hold replicas of the experts.
Test(mesh, gives_whole_experts_to_the_ranks_of_tp_cp_and_shards_in_their_order)
{
    static const struct {
        const char *row;
        int64_t     ep, own_ranks;    // own_ranks: ep ranks beyond tp and cp
        // owners: axes of the expert group other than ep; replicas: axes over which experts are replicated.
        uint32_t owners, replicas;
    } rows[] = {
        {"tp 4; ep 4", 4, 1, 1u << AXIS_TP, 1u << AXIS_CP | 1u << AXIS_DP},
        {"tp 2; ep 4", 4, 2, 1u << AXIS_TP, 1u << AXIS_CP | 1u << AXIS_DP},
        {"tp 2; cp 2; ep 2", 2, 1, 1u << AXIS_TP, 1u << AXIS_CP | 1u << AXIS_DP},
        {"tp 2; cp 2; ep 4", 4, 1, 1u << AXIS_TP | 1u << AXIS_CP, 1u << AXIS_DP},
        {"tp 2; cp 2; ep 8", 8, 2, 1u << AXIS_TP | 1u << AXIS_CP, 1u << AXIS_DP},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct parallel_config config;
        int64_t                ranks[8];
        struct mesh            mesh = mesh_for(line_of("%s; etp 1; fsdp 2; dp auto", rows[i].row), 16, &config);
        cr_expect_eq(mesh.size[AXIS_EP], rows[i].own_ranks, "row %d", (int)i);
        cr_expect_eq(mesh.size[AXIS_FSDP], 2 / mesh.size[AXIS_EP], "row %d", (int)i);
        cr_expect_eq(mesh.asked[AXIS_EP], rows[i].ep);
        cr_expect_eq(mesh.asked[AXIS_FSDP], 2);
        cr_expect_eq(mesh.owner_axes, rows[i].owners | 1u << AXIS_EP, "row %d", (int)i);
        cr_expect_eq(mesh_group_size(&mesh, mesh.owner_axes), rows[i].ep);
        cr_expect_eq(mesh_shard_axes(&mesh, true), 1u << AXIS_FSDP);
        cr_expect_eq(mesh_shard_axes(&mesh, false), 1u << AXIS_FSDP | 1u << AXIS_EP);
        cr_expect_eq(mesh_replica_axes(&mesh, true), rows[i].replicas, "row %d", (int)i);
        cr_expect_eq(mesh_replica_axes(&mesh, false), 1u << AXIS_CP | 1u << AXIS_DP);
        mesh_group_ranks(&mesh, 0, mesh.owner_axes, ranks);
        for (int64_t owner = 0; owner < rows[i].ep; owner++) {    // ranks must be in ascending order
            cr_expect_eq(ranks[owner], owner, "row %d: %d", (int)i, (int)ranks[owner]);
        }
        cr_expect(mesh_has_whole_experts(&mesh));
        mesh_resolve(&config, &mesh);
        cr_expect_eq(config.etp, 1);
        cr_expect_eq(config.ep, rows[i].ep);
    }
}

Test(mesh, shares_out_the_matrices_of_experts_over_tp_unless_it_is_asked_not_to)
{
    static const char *const rows[] = {"tp 2; ep 2; dp 2", "tp 2; ep 2; dp 2; etp 2"};
    for (int i = 0; i < 2; i++) {
        struct parallel_config config;
        struct mesh            mesh = mesh_for(rows[i], 4, &config);
        cr_expect_eq(mesh.etp, 2);
        cr_expect_eq(mesh.owner_axes, 1u << AXIS_EP);
        cr_expect_not(mesh_has_whole_experts(&mesh));
        mesh_resolve(&config, &mesh);
        cr_expect_eq(config.etp, 0);
    }
}

// With 32 ranks, tp is 2 and cp is 2 or 4. With ep_over_cp, experts are distributed over the cp ranks first.
Test(mesh, puts_experts_on_the_ranks_of_cp_first_where_it_is_told_to)
{
    static const struct {
        const char *row;
        int64_t     cp, ep, own_ranks, owners[4];
    } rows[] = {{"tp 2; cp 2; ep 2; dp auto; ep_over_cp yes", 2, 2, 1, {0, 2}},
                {"tp 2; cp 4; ep 4; dp auto; ep_over_cp yes", 4, 4, 1, {0, 2, 4, 6}},
                {"tp 2; cp 2; ep 4; dp auto; ep_over_cp yes", 2, 4, 2, {0, 2, 4, 6}}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mesh mesh = mesh_for(rows[i].row, 32, NULL);
        int64_t     ranks[8];
        cr_expect_eq(mesh.size[AXIS_EP], rows[i].own_ranks);
        cr_expect_eq(mesh.size[AXIS_DP], 16 / rows[i].cp / rows[i].own_ranks);
        cr_expect_eq(mesh.owner_axes, 1u << AXIS_CP | 1u << AXIS_EP);
        cr_expect_eq(mesh_replica_axes(&mesh, true), 1u << AXIS_DP);
        cr_expect_eq(mesh_replica_axes(&mesh, false), 1u << AXIS_CP | 1u << AXIS_EP | 1u << AXIS_DP);
        cr_expect_eq(mesh_group_size(&mesh, mesh.owner_axes), rows[i].ep);
        mesh_group_ranks(&mesh, 0, mesh.owner_axes, ranks);
        cr_expect_arr_eq(ranks, rows[i].owners, (size_t)rows[i].ep * sizeof(ranks[0]), "row %d", (int)i);
        cr_expect_not(mesh_has_whole_experts(&mesh));
    }
}

// With more tp ranks than KV heads, several tp ranks share a head. The mesh has 8 ranks on tp and 2 on cp.
Test(mesh, has_groups_of_ranks_of_tp_with_one_head)
{
    static const struct {
        int64_t kv_heads, size, index, first;
    } rows[]         = {{8, 1, 0, 13}, {16, 1, 0, 13}, {4, 2, 1, 12}, {2, 4, 1, 12}, {1, 8, 5, 8}};
    struct mesh mesh = mesh_for("tp 8; cp 2", 16, NULL);
    int64_t     ranks[16];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mesh_share_heads(&mesh, rows[i].kv_heads);
        cr_expect_eq(mesh_group_size(&mesh, MESH_HEAD_COPIES), rows[i].size, "row %d", (int)i);
        cr_expect_eq(mesh_group_index(&mesh, 13, MESH_HEAD_COPIES), rows[i].index, "row %d", (int)i);
        mesh_group_ranks(&mesh, 13, MESH_HEAD_COPIES, ranks);
        for (int64_t member = 0; member < rows[i].size; member++) {
            cr_expect_eq(ranks[member], rows[i].first + member, "row %d", (int)i);
        }
    }
    mesh_share_heads(&mesh, 4);
    mesh_group_ranks(&mesh, 13, MESH_HEAD_COPIES | 1u << AXIS_CP, ranks);
    cr_expect_arr_eq(ranks, ((int64_t[]){4, 5, 12, 13}), 4 * sizeof(ranks[0]));
    cr_expect_eq(mesh_group_index(&mesh, 13, MESH_HEAD_COPIES | 1u << AXIS_CP), 3);
}

// clang-format off
static const struct {
    const char *options;
    int64_t     world;
    const char *text;
} rejected[] = {
    {"fsdp 48", 64, "[parallel] fsdp = 48 does not divide 64 ranks (allowed: 1, 2, 4, 8, 16, 32, 64)"},
    {"tp 4; pp 4; dp auto", 24, "[parallel] pp = 4 does not divide the remaining 6 of 24 ranks (allowed: 1, 2, 3, 6)"},
    {"tp 4", 64, "[parallel] the axes use 4 of 64 ranks (dp = 16, or auto, uses all)"},
    {"fsdp auto; dp auto", 64, "[parallel] fsdp = auto and dp = auto: only one axis can be auto"},
    {"dp 4; vp 2; ep 3", 4, "[parallel] ep = 3 does not divide dp = 4\n[parallel] vp = 2 needs pp > 1"},
    {"tp_overlap yes; sequence_parallel no", 1, ""},
    {"tp_overlap yes; sequence_parallel no; tp 2", 2,
     "[parallel] tp_overlap = yes needs sequence_parallel = yes: it overlaps the collectives of sequence parallelism"},
    {"tp 2; ep 2; etp 1; sequence_parallel no", 2,
     "[parallel] etp = 1 with tp = 2 needs sequence_parallel = yes: each tp rank sends its own tokens to experts"},
    // With ep_over_cp, ep must be cp times a divisor of the data-parallel size, and etp must not be 1.
    {"tp 2; ep 2; cp 4; ep_over_cp yes; dp auto", 32,
     "[parallel] ep = 2 with ep_over_cp = yes: allowed are cp = 4 and its multiples, since ep counts the cp ranks first, "
     "then fsdp or dp"},
    {"tp 2; ep 12; cp 4; ep_over_cp yes; dp auto", 32,
     "[parallel] ep = 12 over the 4 ranks of cp leaves 3, which does not divide dp = 4"},
    {"tp 2; ep 12; cp 4; ep_over_cp yes; dp auto; etp 1", 32,
     "[parallel] ep_over_cp = yes has no effect with etp = 1, where ep counts the tp ranks and then the cp ranks: set "
     "ep_over_cp = no"},
    // With etp 1, ep must be tp, or tp x cp, or tp x cp times a divisor of the data-parallel size. An etp between 1 and
    // tp is not possible.
    {"tp 4; dp auto; etp 2", 32,
     "[parallel] etp = 2 with tp = 4: allowed are 1 (each expert on one rank) and 4 (auto: its matrices sharded over tp)"},
    {"tp 4; dp auto; etp 1; ep 6", 32,
     "[parallel] ep = 6 with etp = 1: allowed are tp = 4 and its multiples, since ep counts the tp ranks first, then cp, "
     "then fsdp or dp"},
    {"tp 4; dp auto; etp 1; ep 12; cp 2", 32,
     "[parallel] ep = 12 with etp = 1: allowed are tp = 4 and multiples of tp x cp = 8, since ep counts the tp ranks "
     "first, then cp, then fsdp or dp"},
    {"tp 4; dp auto; etp 1; ep 24; cp 2", 32,
     "[parallel] ep = 24 over the 8 ranks of tp x cp leaves 3, which does not divide dp = 4"},
    {"tp 4; dp auto; etp 1; ep 24", 32,
     "[parallel] ep = 24 over the 4 ranks of tp leaves 6, which does not divide dp = 8"},
};
// clang-format on

Test(mesh, rejects_sizes_that_do_not_fit_together)
{
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        struct parallel_config config = tiny_of(rejected[i].options).parallel;
        struct mesh            mesh;
        status                 result = mesh_init(&mesh, &config, rejected[i].world);
        cr_expect_str_eq(result.text, rejected[i].text, "%s: %s", rejected[i].options, result.text);
        cr_expect_eq(result.exit_code, rejected[i].text[0] != '\0' ? EXIT_CONFIG : 0);
    }
}
