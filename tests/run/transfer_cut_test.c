// SPDX-License-Identifier: MIT
// Ranks whose transfers are listed when a list of every rank would take gigabytes.
#include "run/trace.h"

#include <criterion/criterion.h>
#include <string.h>

enum { TRANSFERS = 3000, OTHERS = 1000 };

static struct op           ops[TRANSFERS + OTHERS];
static struct trace_config trace = {.steps = 2, .transfers = "auto"};

static struct plan plan_of(int64_t dp, int64_t pp)
{
    struct plan plan = {.ops = ops, .op_count = TRANSFERS + OTHERS};
#define ONE(NAME, key, ...) .key    = 1,
    struct parallel_config parallel = {AXES(ONE).vp = 1};
    parallel.dp                     = dp;
    parallel.pp                     = pp;
    mesh_init(&plan.mesh, &parallel, dp * pp);
    for (int i = 0; i < TRANSFERS + OTHERS; i++) {
        ops[i].kind = i < TRANSFERS ? OP_ALL_REDUCE : OP_GEMM;
    }
    return plan;
}

Test(transfer_cut, lists_all_ranks_of_a_job_whose_files_are_small)
{
    struct plan           plan  = plan_of(128, 8);
    struct transfer_files files = transfer_files_of(&trace, &plan);

    cr_expect(!files.is_cut);
    cr_expect_eq(files.bytes, 1024 * TRANSFERS * 256);
    cr_expect(transfer_files_have(&files, 1023));
}

Test(transfer_cut, lists_the_first_rank_of_each_stage_where_all_are_more_than_a_gib)
{
    struct plan           plan  = plan_of(256, 8);
    struct transfer_files files = transfer_files_of(&trace, &plan);
    int                   count = 0;
    for (int64_t rank = 0; rank < 2048; rank++) {
        count += transfer_files_have(&files, rank);
    }

    cr_expect(files.is_cut);
    cr_expect_eq(files.bytes_of_all, INT64_C(2048) * TRANSFERS * 256);
    cr_expect_eq(files.bytes, 8 * TRANSFERS * 256);
    cr_expect_eq(count, 8);
    for (int64_t stage = 0; stage < 8; stage++) {
        int64_t place[AXIS_COUNT] = {[AXIS_PP] = stage};
        cr_expect(transfer_files_have(&files, mesh_rank(&plan.mesh, place)), "stage %d", (int)stage);
    }
}

Test(transfer_cut, lists_what_is_asked_for_however_large)
{
    struct plan           plan  = plan_of(256, 8);
    struct trace_config   asked = {.steps = 2, .transfers = "all"};
    struct transfer_files files = transfer_files_of(&asked, &plan);

    cr_expect(!files.is_cut);
    cr_expect_eq(files.bytes, INT64_C(2048) * TRANSFERS * 256);
    strcpy(asked.transfers, "2047");
    cr_expect_eq(transfer_files_of(&asked, &plan).bytes, TRANSFERS * 256);
}
