// SPDX-License-Identifier: MIT
// Jobs of real plans: sound ones pass with few distinct ranks; each fault planted on one rank is found and named.
#include "gswbench/verify.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tiny.h"

// Plans of the tiny model; the plan of one rank is then damaged.
struct faulty {
    struct tiny tiny;
    int64_t     world, rank;    // rank -1: none is damaged
    void (*plant)(struct plan *plan);
};

static status faulty_build(const void *state, int64_t rank, struct plan *plan)
{
    const struct faulty *faulty  = state;
    struct plan_request  request = {.model     = &faulty->tiny.model,
                                    .parallel  = &faulty->tiny.parallel,
                                    .train     = &faulty->tiny.train,
                                    .precision = &faulty->tiny.precision,
                                    .world     = faulty->world,
                                    .rank      = rank};
    status               result  = plan_build(plan, &request);
    if (!failed(&result) && rank == faulty->rank) {
        faulty->plant(plan);
    }
    return result;
}

static void faulty_init(struct faulty *faulty, int64_t fsdp, int64_t dp)
{
    tiny_init(&faulty->tiny);
    faulty->tiny.parallel.fsdp = fsdp;
    faulty->tiny.parallel.dp   = dp;
    faulty->world              = fsdp * dp;
    faulty->rank               = -1;
    faulty->plant              = NULL;
}

static status faulty_verify(const struct faulty *faulty, struct job_proof *proof)
{
    return job_verify_plans(&(struct job_plans){.build = faulty_build, .state = faulty}, proof);
}

// The first op with that role in that layer.
static int32_t find_op(const struct plan *plan, const char *role, int layer)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (strcmp(plan->ops[i].tag.role, role) == 0 && plan->ops[i].tag.layer == layer) {
            return i;
        }
    }
    FATAL(EXIT_INTERNAL, "no op %s in layer %d", role, layer);
}

// Moves an op to a later place in the list; waits follow.
static void move_op(struct plan *plan, int32_t from, int32_t to)
{
    struct op moved = plan->ops[from];
    memmove(&plan->ops[from], &plan->ops[from + 1], (size_t)(to - from) * sizeof(moved));
    plan->ops[to] = moved;
    for (int32_t i = 0; i < plan->op_count; i++) {
        for (int w = 0; w < plan->ops[i].wait_count; w++) {
            int32_t *wait = &plan->ops[i].wait[w];
            *wait         = *wait == from ? to : *wait > from && *wait <= to ? *wait - 1 : *wait;
        }
    }
}

static void expect_named(const status *result, const struct job_proof *proof, const char *words)
{
    cr_expect_geq(proof->findings, 1);
    cr_expect_not_null(strstr(result->text, words), "\"%s\" lacks \"%s\"", result->text, words);
}

static void expect_fault(struct faulty *faulty, int64_t rank, void (*plant)(struct plan *plan), const char *words)
{
    struct job_proof proof;
    faulty->rank  = rank;
    faulty->plant = plant;
    status result = faulty_verify(faulty, &proof);
    expect_named(&result, &proof, words);
}

static void expect_sound(status result, const struct job_proof *proof, int64_t built, int64_t distinct)
{
    cr_expect(!failed(&result), "%s", result.text);
    cr_expect_eq(proof->findings, 0);
    cr_expect_eq(proof->built, built, "%d built", (int)proof->built);
    cr_expect_eq(proof->distinct, distinct, "%d distinct", (int)proof->distinct);
}

Test(verify_job, finds_nothing_in_any_sound_job)
{
    for (int variant = 0; variant < 48; variant++) {
        struct faulty    faulty;
        struct job_proof proof;
        faulty_init(&faulty, variant % 3 == 0 ? 1 : variant % 3 * 2, 1 + variant / 3 % 3);
        struct tiny *tiny = &faulty.tiny;
        tiny->parallel.tp = variant % 7 < 3 ? 2 : 1;
        faulty.world *= tiny->parallel.tp;
        tiny->parallel.zero      = variant % 3 == 0 && variant % 2 == 1;
        tiny->parallel.prefetch  = variant % 5;
        tiny->parallel.reshard   = variant / 6 % 3;
        tiny->train.accumulation = 1 + variant % 2;
        tiny->train.recompute    = variant % 5;
        tiny->model.tied         = variant / 4 % 2;
        tiny->precision.compute  = variant % 4 < 2 ? COMPUTE_BF16 : COMPUTE_FP32;
        tiny->precision.reduce   = variant % 4 == 1 ? DTYPE_BF16 : DTYPE_F32;
        status result            = faulty_verify(&faulty, &proof);
        // Ranks of tp add up different parts of their gradients, in more or fewer ops.
        expect_sound(result, &proof, faulty.world > 8 ? proof.built : faulty.world,
                     tiny->parallel.tp > 1 ? proof.distinct : 1);
        cr_expect_eq(proof.world, faulty.world);
    }
}

Test(verify_job, lets_few_ranks_of_a_large_job_stand_for_all)
{
    struct faulty    faulty;
    struct job_proof proof;
    faulty_init(&faulty, 128, 16);
    // Rank 0; the second and last along fsdp, and along dp; the last of all.
    expect_sound(faulty_verify(&faulty, &proof), &proof, 6, 1);
}

static void swap_reductions(struct plan *plan)
{
    move_op(plan, find_op(plan, "gradient reduce", -1), find_op(plan, "gradient reduce", 1));
}

Test(verify_job, finds_collectives_in_another_order)
{
    struct faulty faulty;
    faulty_init(&faulty, 1, 4);
    expect_fault(
        &faulty, 2, swap_reductions,
        "rank 0: op 26 all_reduce \"gradient reduce\", reduce, microbatch 0: 672 elements of f32 meet those "
        "of rank 2: op 39 all_reduce \"gradient reduce\", reduce, layer 1, microbatch 0: 1952 elements of f32");
}

static void skip_gather(struct plan *plan)
{
    // Something else writes the weights, so that the rank's own plan is sound.
    struct op *op          = &plan->ops[find_op(plan, "parameter gather", 1)];
    int32_t    out         = op->operand[TRANSFER_OUT];
    op->kind               = OP_CLEAR;
    op->operand_count      = 1;
    op->operand[CLEAR_OUT] = out;
    op->access[CLEAR_OUT]  = ACCESS_WRITE;
    op->shape.elements     = (struct elements_shape){.elements = plan->tensors[out].elements};
}

Test(verify_job, finds_a_gather_that_one_rank_does_not_do)
{
    struct faulty faulty;
    faulty_init(&faulty, 4, 1);
    faulty.tiny.model.layers = 3;
    expect_fault(
        &faulty, 3, skip_gather,
        "rank 0: op 13 all_gather \"parameter gather\", forward, layer 2, microbatch 0: 1952 elements of f32 meet "
        "those of rank 3: op 23 all_gather \"parameter gather\", forward, microbatch 0: 672 elements of f32");
}

static void reduce_twice(struct plan *plan)
{
    int32_t   reduce = find_op(plan, "gradient reduce", 0);
    struct op again  = plan->ops[reduce];
    plan->ops        = memory_resize(plan->ops, (size_t)(plan->op_count + 1) * sizeof(again));

    plan->ops[plan->op_count++] = again;
    // Backwards through the list to the place before the first, where it is awaited with it.
    for (int32_t i = plan->op_count - 2; i >= reduce; i--) {
        move_op(plan, i, i + 1);
    }
}

Test(verify_job, finds_an_all_reduce_too_many)
{
    struct faulty faulty;
    faulty_init(&faulty, 2, 2);
    expect_fault(&faulty, 1, reduce_twice, "rank 1: op");
    expect_fault(&faulty, 1, reduce_twice, "all_reduce \"gradient reduce\", reduce, layer 0, microbatch 0");
}

static void shrink_operand_and_transfer(struct plan *plan)
{
    struct op    *op   = &plan->ops[find_op(plan, "gradient reduce", 1)];
    struct tensor part = plan->tensors[op->operand[TRANSFER_OUT]];
    part.elements -= 8;
    part.bytes -= 8 * dtype_bytes(part.dtype);
    plan->tensors                     = memory_resize(plan->tensors, (size_t)(plan->tensor_count + 1) * sizeof(part));
    plan->tensors[plan->tensor_count] = part;
    op->operand[TRANSFER_OUT]         = plan->tensor_count++;
    op->shape.transfer.elements       = part.elements;
}

Test(verify_job, finds_a_collective_of_another_size)
{
    struct faulty faulty;
    faulty_init(&faulty, 1, 3);
    expect_fault(
        &faulty, 1, shrink_operand_and_transfer,
        "all_reduce \"gradient reduce\", reduce, layer 1, microbatch 0: 1968 elements of f32 meet those of rank "
        "1: op ");
}

static void shrink_transfer(struct plan *plan)
{
    plan->ops[find_op(plan, "gradient reduce", 1)].shape.transfer.elements -= 8;
}

Test(verify_job, finds_a_transfer_that_its_operands_do_not_fit)
{
    struct faulty faulty;
    faulty_init(&faulty, 1, 3);
    expect_fault(&faulty, 1, shrink_transfer, "1960 elements over 3 ranks do not fit its operand of 1968");
}

static void narrow_operand(struct plan *plan)
{
    const struct op *op                            = &plan->ops[find_op(plan, "gradient reduce", 0)];
    plan->tensors[op->operand[TRANSFER_OUT]].dtype = DTYPE_BF16;
}

Test(verify_job, finds_a_collective_of_another_type)
{
    struct faulty faulty;
    faulty_init(&faulty, 1, 2);
    expect_fault(
        &faulty, 1, narrow_operand,
        "all_reduce \"gradient reduce\", reduce, layer 0, microbatch 0: 1952 elements of f32 meet those of rank "
        "1: op ");
}

static void gather_into_another_type(struct plan *plan)
{
    const struct op *op                            = &plan->ops[find_op(plan, "parameter gather", 0)];
    plan->tensors[op->operand[TRANSFER_OUT]].dtype = DTYPE_BF16;
}

Test(verify_job, finds_a_collective_between_two_types)
{
    struct faulty faulty;
    faulty_init(&faulty, 2, 1);
    expect_fault(&faulty, 0, gather_into_another_type, "its operands are f32 and bf16");
}

static void use_another_group(struct plan *plan)
{
    struct op *op  = &plan->ops[find_op(plan, "gradient reduce", 1)];
    int32_t    own = op->shape.transfer.group;
    for (int32_t g = 0; g < plan->group_count; g++) {
        if (plan->groups[g].axes == 1u << AXIS_FSDP && g != own) {
            op->shape.transfer.group = g;
        }
    }
}

Test(verify_job, finds_a_collective_in_another_group)
{
    struct faulty faulty;
    faulty_init(&faulty, 2, 2);
    expect_fault(
        &faulty, 2, use_another_group,
        "all_reduce \"gradient reduce\", reduce, layer 1, microbatch 0: 976 elements of f32 meet those of rank 3: op ");
}

static void reduce_by_broadcast(struct plan *plan)
{
    struct op *op           = &plan->ops[find_op(plan, "gradient reduce", 0)];
    op->kind                = OP_BROADCAST;
    op->shape.transfer.peer = 0;
}

Test(verify_job, finds_a_collective_of_another_kind)
{
    struct faulty faulty;
    faulty_init(&faulty, 1, 4);
    expect_fault(&faulty, 3, reduce_by_broadcast,
                 "meet those of rank 3: op 54 broadcast \"gradient reduce\", reduce, layer 0");
}

static void use_another_lane(struct plan *plan)
{
    plan->ops[find_op(plan, "gradient reduce", 1)].lane = LANE_TENSOR;
}

Test(verify_job, finds_a_collective_on_another_lane)
{
    struct faulty faulty;
    faulty_init(&faulty, 1, 4);
    expect_fault(&faulty, 0, use_another_lane, "rank 0: op");
}

static void list_a_stranger(struct plan *plan)
{
    struct plan_group *group = &plan->groups[plan->ops[find_op(plan, "parameter gather", 0)].shape.transfer.group];
    group->ranks[1]          = 3;
}

Test(verify_job, finds_groups_with_different_members)
{
    struct faulty faulty;
    faulty_init(&faulty, 2, 2);
    expect_fault(
        &faulty, 0, list_a_stranger,
        "all_gather \"parameter gather\", forward, microbatch 0: its group of 2 ranks from 0 to 3 is no group of "
        "rank 3");
}

static void leave_the_group(struct plan *plan)
{
    struct plan_group *group = &plan->groups[plan->ops[find_op(plan, "parameter gather", 0)].shape.transfer.group];
    group->ranks[0]          = 1;
    group->ranks[1]          = 2;
}

Test(verify_job, finds_a_group_without_its_own_rank)
{
    struct faulty faulty;
    faulty_init(&faulty, 2, 2);
    expect_fault(&faulty, 0, leave_the_group, "its group does not list this rank once");
}

static void drop_wait(struct plan *plan)
{
    plan->ops[find_op(plan, "gradient reduce", 1)].wait_count = 0;
}

Test(verify_job, finds_a_dropped_wait_on_any_rank)
{
    struct faulty faulty;
    faulty_init(&faulty, 1, 4);
    expect_fault(&faulty, 3, drop_wait, "plan of rank 3: op");
}

Test(verify_job, finds_a_fault_on_the_last_of_many_ranks)
{
    struct faulty faulty;
    faulty_init(&faulty, 16, 8);
    expect_fault(&faulty, 127, use_another_group, "rank 127: op 50 all_reduce");
}
