// SPDX-License-Identifier: MIT
// KV head replication: the tp ranks that share a KV head when there are more ranks than heads.
#include <criterion/criterion.h>

#include "gswbench/mesh.h"

#define ONE(NAME, key, ...) .key = 1,
static const struct parallel_config one = {AXES(ONE).vp = 1};

// 8 ranks of tp times 2 of cp.
Test(mesh_heads, has_groups_of_ranks_of_tp_with_one_head)
{
    static const struct {
        int64_t kv_heads, size, index, first;
    } rows[]                      = {{8, 1, 0, 13}, {16, 1, 0, 13}, {4, 2, 1, 12}, {2, 4, 1, 12}, {1, 8, 5, 8}};
    struct parallel_config config = one;
    struct mesh            mesh;
    config.tp     = 8;
    config.cp     = 2;
    status result = mesh_init(&mesh, &config, 16);
    cr_assert_str_empty(result.text);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ranks[16];
        mesh_share_heads(&mesh, rows[i].kv_heads);
        cr_expect_eq(mesh_group_size(&mesh, MESH_HEAD_COPIES), rows[i].size, "row %d", (int)i);
        cr_expect_eq(mesh_group_index(&mesh, 13, MESH_HEAD_COPIES), rows[i].index, "row %d", (int)i);
        mesh_group_ranks(&mesh, 13, MESH_HEAD_COPIES, ranks);
        for (int64_t member = 0; member < rows[i].size; member++) {
            cr_expect_eq(ranks[member], rows[i].first + member, "row %d", (int)i);
        }
    }
    int64_t ranks[16];
    mesh_share_heads(&mesh, 4);
    mesh_group_ranks(&mesh, 13, MESH_HEAD_COPIES | 1u << AXIS_CP, ranks);
    cr_expect_arr_eq(ranks, ((int64_t[]){4, 5, 12, 13}), 4 * sizeof(ranks[0]));
    cr_expect_eq(mesh_group_index(&mesh, 13, MESH_HEAD_COPIES | 1u << AXIS_CP), 3);
}
