// SPDX-License-Identifier: MIT
// Tests rings of tensor parallelism: every rank must contribute to each block of a reduction, and a GEMM must overlap
// with each hop.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/plan.h"
#include "line.h"
#include "plan_ops.h"
#include "layouts.h"

enum { RANKS_MAX = 8 };

// Plans one layer with tp overlap. Its 24 tokens, heads, MLP width and vocabulary can be divided by every number of
// ranks here.
#define RING "layers 1; heads 24; kv_heads 24; vocab 48; sequence 12; tp %d; tp_overlap yes"

// A partial sum that a tensor holds: which block of rows it is for, and a bit for each rank that has contributed.
struct sum {
    int64_t  block;
    uint32_t added;
};

// Updates the partial sums of a rank by one op. `before` has the sums of every rank before this op, since a ring step
// reads from another rank.
static void follow(const struct plan *plan, int32_t index, struct sum *sums, const struct sum *const *before)
{
    const struct op     *op   = &plan->ops[index];
    const struct tensor *from = &plan->tensors[op->operand[0]];
    if (op->kind == OP_GEMM && strcmp(op->tag.role, "projection") == 0) {
        struct sum *sum   = &sums[op->operand[GEMM_C]];
        int64_t     block = from->part_offset / from->bytes;
        cr_assert(!op->accumulates || sum->block == block);
        *sum = (struct sum){block, (op->accumulates ? sum->added : 0) | 1u << plan->rank};
    } else if (op->kind == OP_ROTATE && strcmp(op->tag.role, "sum ring") == 0) {
        int64_t ranks = plan->mesh.world, source = (plan->rank - op->shape.communication.peer + ranks) % ranks;
        sums[op->operand[COMMUNICATION_OUT]] = before[source][op->operand[COMMUNICATION_IN]];
    } else if (op->kind == OP_CAST && strcmp(op->tag.role, "sum of both ways") == 0) {
        struct sum *sum = &sums[op->operand[CAST_OUT]], *added = &sums[op->operand[CAST_IN]];
        cr_assert(sum->block == added->block && (sum->added & added->added) == 0);
        sum->added |= added->added;
    }
}

Test(tensor_ring, brings_every_rank_the_gemms_of_all_for_its_own_rows)
{
    static const int64_t counts[] = {2, 3, 4, 6, 8};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        int64_t     ranks = counts[c];
        struct tiny tiny[RANKS_MAX];
        struct sum *sums[RANKS_MAX], *before[RANKS_MAX];
        for (int64_t r = 0; r < ranks; r++) {
            tiny[r] = tiny_of(line_of(RING, (int)ranks));
            tiny_plan_rank(&tiny[r], ranks, r);
            size_t bytes = (size_t)tiny[r].plan.tensor_count * sizeof(struct sum);
            sums[r]      = memory_allocate(bytes);
            before[r]    = memory_allocate(bytes);
        }
        int32_t end = find_op(&tiny[0].plan, "mlp norm", ANY, ANY);
        for (int32_t i = 0; i < end; i++) {
            for (int64_t r = 0; r < ranks; r++) {
                memcpy(before[r], sums[r], (size_t)tiny[r].plan.tensor_count * sizeof(struct sum));
            }
            for (int64_t r = 0; r < ranks; r++) {
                follow(&tiny[r].plan, i, sums[r], (const struct sum *const *)before);
            }
        }
        for (int64_t r = 0; r < ranks; r++) {
            struct sum sum = sums[r][tiny[r].plan.ops[end].operand[NORM_BRANCH]];
            cr_expect_eq(sum.block, r, "rank %d of %d has rows of %d", (int)r, (int)ranks, (int)sum.block);
            cr_expect_eq(sum.added, (1u << ranks) - 1, "rank %d of %d", (int)r, (int)ranks);
            free(sums[r]);
            free(before[r]);
            plan_free(&tiny[r].plan);
        }
    }
}

static bool is_before(const int32_t *clocks, const int32_t *position, const struct plan *plan, int32_t a, int32_t b)
{
    return position[a] < clocks[b * STREAM_COUNT + plan->ops[a].stream];
}

// Counts the GEMMs that can run at the same time as this op, because neither depends on the other.
static int32_t count_beside(const struct plan *plan, const int32_t *clocks, const int32_t *position, int32_t op)
{
    int32_t count = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        count += plan->ops[i].kind == OP_GEMM && !is_before(clocks, position, plan, i, op) &&
                 !is_before(clocks, position, plan, op, i);
    }
    return count;
}

Test(tensor_ring, hides_every_hop_behind_a_gemm)
{
    static const int64_t counts[] = {2, 3, 4, 8};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        const struct plan *plan     = tiny_plan_of(line_of(RING, (int)counts[c]), 1);
        int32_t           *position = memory_allocate((size_t)plan->op_count * sizeof(*position));
        int32_t           *clocks = order_clocks(plan, position), hops = 0;
        for (int32_t i = 0; i < plan->op_count; i++) {
            if (plan->ops[i].kind == OP_ROTATE) {
                hops++;
                cr_expect_gt(count_beside(plan, clocks, position, i), 0, "tp %d, op %d, \"%s\"", (int)counts[c], i,
                             plan->ops[i].tag.role);
            }
        }
        // There are six rings: all-gathers before qkv and fc1, in the backward pass before projection and fc2, and
        // reductions after projection and fc2. Each has tp - 1 hops.
        cr_expect_eq(hops, 6 * (counts[c] - 1));
        free(clocks);
        free(position);
    }
}
