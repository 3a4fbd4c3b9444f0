// SPDX-License-Identifier: MIT
// Tests NCCL symmetric windows. A group can use a window if the hash of the memory layout is equal on its ranks. The
// test compares this rule with a comparison of the tensors.
#include <criterion/criterion.h>

#include "gswbench/connection.h"
#include "layouts.h"
#include "success.h"

enum { RANKS = 16 };

// The plans of a job, one per rank.
static struct plan plans[RANKS];
static int         ranks;

static void plan_job(const char *layout)
{
    struct plan_request request = layout_request(layout);
    ranks                       = (int)request.mesh.world;
    cr_assert_leq(ranks, RANKS);
    for (request.rank = 0; request.rank < ranks; request.rank++) {
        plan_free(&plans[request.rank]);
        REQUIRE(plan_build(&plans[request.rank], &request));
    }
}

// Returns the next communication op of the group with these axes on this stream, in the order of the plan.
static const struct op *next_op(const struct plan *plan, int32_t *at, int stream, uint32_t axes)
{
    for (; *at < plan->op_count; ++*at) {
        const struct op *op = &plan->ops[*at];
        if (op_is_communication((enum op_kind)op->kind) && op->stream == stream &&
            plan->groups[op->shape.communication.group].axes == axes) {
            return &plan->ops[(*at)++];
        }
    }
    return NULL;
}

static int32_t find_group(const struct plan *plan, uint32_t axes)
{
    int32_t group = 0;
    while (group < plan->group_count && plan->groups[group].axes != axes) {
        group++;
    }
    return group;
}

// Returns whether two ranks have all memory that their peers access at the same offsets. Compares the tensors instead
// of the hash.
static bool have_alike(const struct plan *a, const struct plan *b, int stream, uint32_t axes, enum storage storage)
{
    int32_t          at_a = 0, at_b = 0;
    const struct op *op;
    if (a->storage_bytes[storage] != b->storage_bytes[storage]) {
        return false;
    }
    while ((op = next_op(a, &at_a, stream, axes)) != NULL) {
        const struct op *other = next_op(b, &at_b, stream, axes);
        for (int slot = 0; slot < op->operand_count; slot++) {
            if (op->operand[slot] < 0 || (op->kind == OP_ALL_GATHER && slot == COMMUNICATION_IN) ||
                op->kind == OP_ROTATE || (op->kind == OP_REDUCE_SCATTER && slot == COMMUNICATION_OUT)) {
                continue;
            }
            const struct tensor *here = &a->tensors[op->operand[slot]], *there = &b->tensors[other->operand[slot]];
            if ((here->storage == storage || there->storage == storage) &&
                (here->storage != there->storage || here->offset != there->offset || here->is_packed)) {
                return false;
            }
        }
    }
    return true;
}

// There is a window for each rank, group, stream and storage. alike: number of windows whose memory layouts are equal
// on all ranks of the group; otherwise: number of other windows.
struct windows {
    int alike, otherwise;
};

static void count_storage(int rank, const struct plan_group *group, int stream, struct windows *found)
{
    const struct plan *own = &plans[rank];
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        uint64_t layout = plan_communication_layout(own, stream, find_group(own, group->axes), (enum storage)storage);
        bool     says = layout != 0, is = true;
        for (int64_t i = 0; i < group->size && layout != 0; i++) {
            const struct plan *other = &plans[group->ranks[i]];
            says &= plan_communication_layout(other, stream, find_group(other, group->axes), (enum storage)storage) ==
                    layout;
            is &= have_alike(own, other, stream, group->axes, (enum storage)storage);
        }
        if (layout != 0) {
            cr_expect_eq(says, is, "rank %d, axes %x, stream %d, storage %d", rank, group->axes, stream, storage);
            found->alike += says;
            found->otherwise += !says;
        }
    }
}

static struct windows count(const char *layout)
{
    struct windows found = {0, 0};
    plan_job(layout);
    for (int rank = 0; rank < ranks; rank++) {
        const struct plan *plan = &plans[rank];
        for (int32_t group = 0; group < plan->group_count; group++) {
            for (int stream = 0; stream < STREAM_COUNT; stream++) {
                if (!op_stream_is_pipeline(stream)) {
                    count_storage(rank, &plan->groups[group], stream, &found);
                }
            }
        }
    }
    return found;
}

// Pipeline stages have equal layouts only in the storage of job-wide reductions. With two KV heads and tp = 4, two
// ranks share each head, and a group of these two reduces its gradients.
Test(windows, are_all_memory_that_a_group_uses)
{
    static const struct {
        const char *layout;
        int         alike, otherwise;
    } cases[] = {
        {"dp 4", 8, 0},
        {"dp 4; zero 1", 12, 0},
        {"fsdp 4", 20, 0},
        {"dp 2; fsdp 2; tp 2", 56, 0},
        {"tp 4; sequence_parallel no", 12, 0},
        {"tp 2; cp 2; fsdp 2", 64, 0},
        {"tp 4; tp_overlap yes", 16, 0},
        {"cp 4; context ring", 12, 0},
        {"pp 4; layers 6", 4, 0},
        {"pp 2; dp 2; layers 3; tied yes", 8, 0},
        {"ep 2; fsdp 4; experts 4; top_k 2; expert_ffn 16; pattern 2 x experts; capacity_factor 1", 40, 0},
        // With dropless experts, the offset of an expert's rows depends on token counts and differs between ranks.
        {"ep 2; fsdp 4; experts 4; top_k 2; expert_ffn 16; pattern 2 x experts", 36, 4},
        {"fsdp 2; tp 2; pp 2; compute fp8; fp8_weights yes", 56, 0},
        {"dp 3; zero 1; compute fp8", 12, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct windows found = count(cases[i].layout);
        cr_expect_eq(found.alike, cases[i].alike, "%s: %d", cases[i].layout, found.alike);
        cr_expect_eq(found.otherwise, cases[i].otherwise, "%s: %d", cases[i].layout, found.otherwise);
    }
}

static const struct op *next_step(const struct plan *plan, int32_t *at)
{
    while (*at < plan->op_count && plan->ops[*at].kind != OP_ROTATE) {
        ++*at;
    }
    return *at < plan->op_count ? &plan->ops[(*at)++] : NULL;
}

// Counts ring steps, and among them the steps in which the receiver has the data at another offset than the sender.
struct ring_steps {
    int all, displaced;
};

static void count_steps(int rank, struct ring_steps *steps)
{
    const struct plan *own = &plans[rank];
    const struct op   *op;
    int32_t            at = 0, at_next[RANKS] = {0};
    while ((op = next_step(own, &at)) != NULL) {
        const struct plan_group *group = &own->groups[op->shape.communication.group];
        int64_t next = group->ranks[(group->index + op->shape.communication.peer + group->size) % group->size];
        const struct plan *other = &plans[next];
        // The next rank of the ring has the same number of earlier steps in this ring, so its step with the same index
        // receives this data.
        const struct op *met = next_step(other, &at_next[next]);
        for (int64_t peer = 0; peer < group->size; peer++) {
            at_next[group->ranks[peer]] = at_next[next];
        }
        cr_assert_not_null(met);
        const struct tensor *here  = &own->tensors[op->operand[COMMUNICATION_OUT]],
                            *there = &other->tensors[met->operand[COMMUNICATION_OUT]];
        cr_expect_eq(there->storage, here->storage);
        cr_expect_eq(there->offset, here->offset + op->shape.communication.ahead * format_bytes(here->format, 1));
        steps->all++;
        steps->displaced += there->offset != here->offset;
    }
}

static struct ring_steps count_ring_steps(const char *layout)
{
    struct ring_steps steps = {0, 0};
    plan_job(layout);
    for (int rank = 0; rank < ranks; rank++) {
        count_steps(rank, &steps);
    }
    return steps;
}

// In a ring all-gather, each rank has the rows in its own order, so offsets differ. Partial sums, keys and values have
// a tensor for each step, so offsets are equal.
Test(windows, know_where_the_next_rank_of_a_ring_has_what_is_sent_to_it)
{
    static const struct {
        const char *layout;
        int         all, displaced;
    } cases[] = {
        {"tp 4; tp_overlap yes", 144, 96},
        {"tp 2; fsdp 2; tp_overlap yes; compute fp8", 48, 32},
        {"cp 4; context ring", 80, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ring_steps steps = count_ring_steps(cases[i].layout);
        cr_expect_eq(steps.all, cases[i].all, "%s: %d", cases[i].layout, steps.all);
        cr_expect_eq(steps.displaced, cases[i].displaced, "%s: %d", cases[i].layout, steps.displaced);
    }
}

static uint64_t layout_of(const struct plan *plan, enum storage storage)
{
    return plan_communication_layout(plan, STREAM_GRADIENT_REDUCE, 0, storage);
}

// Tests a member with a larger storage, and a member that has a tensor at another offset.
Test(windows, are_not_there_where_one_member_has_its_memory_otherwise)
{
    plan_job("fsdp 4");
    struct plan     *other  = &plans[2];
    int32_t          at     = 0;
    const struct op *reduce = next_op(other, &at, STREAM_GRADIENT_REDUCE, other->groups[0].axes);
    struct tensor   *in     = &other->tensors[reduce->operand[COMMUNICATION_IN]],
                  *out      = &other->tensors[reduce->operand[COMMUNICATION_OUT]];
    cr_assert_eq(reduce->kind, OP_REDUCE_SCATTER);
    uint64_t whole = layout_of(other, in->storage), own = layout_of(other, out->storage);
    other->storage_bytes[in->storage] += 256;
    uint64_t grown = layout_of(other, in->storage);
    cr_expect_neq(whole, 0);
    cr_expect_neq(grown, whole);
    in->offset += 256;
    cr_expect_neq(layout_of(other, in->storage), grown);
    // Other ranks never access the output of a rank's reduce-scatter, so moving it must not change the hash.
    out->offset += 256;
    cr_assert_neq(in->storage, out->storage);
    cr_expect_eq(layout_of(other, out->storage), own);
    cr_expect_eq(plan_communication_layout(other, STREAM_EXPERT, 0, in->storage), 0);
}
