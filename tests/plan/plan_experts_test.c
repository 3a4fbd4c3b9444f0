// SPDX-License-Identifier: MIT
// Tests MoE plans: their ops, the order of ops, and the capacity of each expert.
#include "gswbench/plan.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "layouts.h"
#include "line.h"
#include "plan_ops.h"

// Cuts the text before the first occurrence of a word, and returns the text.
static const char *until(char *text, const char *word)
{
    char *end = strstr(text, word);
    cr_assert_not_null(end);
    *end = '\0';
    return text;
}

Test(plan_experts, sends_each_expert_its_tokens_while_the_one_before_works)
{
    const struct plan *plan = tiny_plan_of("experts 4; top_k 2; auxiliary_loss 0.05; dp 2; ep 2", 0);

    cr_assert_str_eq(list_roles(plan, PHASE_FORWARD, 1),
                     "attention norm,qkv,rope,attention,projection,mlp norm,router,route,"
                     "token count exchange,dispatch,read token counts,dispatch exchange,dispatch "
                     "exchange,fc1,fc1,activation,activation,"
                     "fc2,output exchange,fc2,output exchange,combine");
    cr_assert_str_eq(list_roles(plan, PHASE_BACKWARD, 1),
                     "combine gradient,output gradient exchange,output gradient exchange,route gradient,"
                     "router weight gradient,router data gradient,"
                     "fc2 data gradient,fc2 weight gradient,activation gradient,fc1 data gradient,"
                     "input gradient exchange,fc1 weight gradient,"
                     "fc2 data gradient,fc2 weight gradient,activation gradient,fc1 data gradient,"
                     "input gradient exchange,fc1 weight gradient,"
                     "dispatch gradient,mlp norm gradient,projection data gradient,"
                     "projection weight gradient,attention gradient,rope gradient,qkv data gradient,"
                     "qkv weight gradient,attention norm gradient");
    int first = find_op(plan, "dispatch exchange", 1, 0), gemm = find_op(plan, "fc1", 1, 0);
    cr_assert_eq(plan->ops[first].stream, STREAM_EXPERT);
    cr_assert_eq(plan->ops[gemm].wait_count, 1);
    cr_assert_eq(plan->ops[gemm].wait[0], first);
    cr_assert_eq(plan->ops[gemm + 1].wait[0], first + 1);
}

// A shared expert is computed while the all-to-alls of dispatch and combine, or of their backward passes, run.
Test(plan_experts, computes_shared_experts_beside_the_exchanges)
{
    const struct plan *plan = tiny_plan_of("experts 2; top_k 1; auxiliary_loss 0.05; shared_ffn 12; dp 2; ep 2", 0);

    const char *from = strstr(list_roles(plan, PHASE_FORWARD, 1), "dispatch,");
    cr_assert_not_null(from);
    cr_assert_str_eq(from, "dispatch,read token counts,dispatch exchange,shared fc1,activation,fc1,activation,fc2,"
                           "output exchange,shared fc2,combine");
    cr_assert_str_eq(until(list_roles(plan, PHASE_BACKWARD, 1), ",mlp norm gradient"),
                     "combine gradient,output gradient exchange,shared fc2 data gradient,"
                     "shared fc2 weight gradient,activation gradient,shared fc1 data gradient,"
                     "shared fc1 weight gradient,route gradient,router weight gradient,router data gradient,"
                     "fc2 data gradient,fc2 weight gradient,activation gradient,fc1 data gradient,"
                     "input gradient exchange,fc1 weight gradient,dispatch gradient");
    const struct op *fc1 = &plan->ops[find_op(plan, "shared fc1", 1, 0)];
    cr_expect_eq(fc1->wait_count, 0);
    cr_expect_eq(fc1->shape.gemm.n, 2 * 12);
    cr_expect(plan->ops[find_op(plan, "combine", 1, 0)].accumulates);
}

// In skewed routing half of the tokens choose the first two of 16 experts. These get 1/2 + 1/2 x 2/16 of the tokens,
// 4.5 times the balanced share of 2/16.
Test(plan_experts, deals_experts_out_with_the_skew_that_is_asked_for)
{
    const struct plan *plan =
        tiny_plan_of("experts 16; top_k 2; auxiliary_loss 0.05; routing skewed; routing_skew 4.5", 0);

    const struct op *route = &plan->ops[find_op(plan, "route", 0, 0)];
    cr_expect(route->shape.routing.balanced);
    cr_expect_float_eq(route->shape.routing.hot, 0.5, 1e-12);
    cr_expect_gt(plan->row_count_total, 0);
}

// With etp 1 each tp rank holds whole experts. Dispatch sends rows directly to them, so no op gathers or reduces rows
// over tp.
Test(plan_experts, moves_rows_of_whole_experts_once_and_gathers_none)
{
    const struct plan *plan =
        tiny_plan_of("tp 2; ep 4; dp 2; etp 1; experts 8; top_k 2; tp_overlap yes; kv_heads 4", 3);

    const char *from = strstr(list_roles(plan, PHASE_FORWARD, 1), "mlp norm,");
    cr_assert_not_null(from);
    cr_assert_str_eq(from, "mlp norm,router,route,token count exchange,dispatch,read token counts,dispatch exchange,"
                           "dispatch exchange,fc1,fc1,activation,activation,fc2,output exchange,fc2,output exchange,"
                           "combine");
    cr_assert_str_eq(until(list_roles(plan, PHASE_BACKWARD, 1), ",dispatch gradient"),
                     "combine gradient,output gradient exchange,output gradient exchange,route gradient,"
                     "router weight gradient,router data gradient,"
                     "fc2 data gradient,fc2 weight gradient,activation gradient,fc1 data gradient,"
                     "input gradient exchange,fc1 weight gradient,"
                     "fc2 data gradient,fc2 weight gradient,activation gradient,fc1 data gradient,"
                     "input gradient exchange,fc1 weight gradient");
    const struct op         *exchange = &plan->ops[find_op(plan, "dispatch exchange", 1, 0)];
    const struct plan_group *group    = &plan->groups[exchange->shape.communication.group];
    cr_expect_eq(group->axes, 1u << AXIS_TP | 1u << AXIS_EP);
    cr_expect_eq(group->size, 4);
    cr_expect_eq(group->index, 3);
    const struct weight *last = &plan->weights[plan->weight_count - 1];    // the head, after the experts
    for (; strstr(last->part[0].name, "experts.7.w2") == NULL; last--) {
        cr_assert_neq(last, plan->weights, "the last owner has not the last expert");
    }
    cr_expect_eq(last->part[0].local_columns, last->part[0].columns);
}

// Each rank has 16 tokens, 2 sequences of 8, which choose 2 of four experts.
Test(plan_experts, gives_an_expert_as_many_slots_as_it_may_need)
{
    static const struct {
        const char *row;
        int64_t     capacity, taken;
    } rows[] = {
        {"capacity_factor 0", 16, 16},
        {"capacity_factor 1", 8, 8},
        {"capacity_factor 1.3", 11, 11},
        {"capacity_factor 9", 16, 16},
        {"capacity_factor 0; capacity_scope sequence", 16, 8},
        {"capacity_factor 1; capacity_scope sequence", 8, 4},
        {"capacity_factor 0; routing balanced", 8, 16},
        {"capacity_factor 1; routing balanced", 8, 8},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan *plan  = tiny_plan_of(line_of("experts 4; top_k 2; auxiliary_loss 0.05; %s", rows[i].row), 0);
        const struct op   *route = &plan->ops[find_op(plan, "route", 0, 0)];
        cr_expect_eq(route->shape.routing.capacity, rows[i].capacity, "%s", rows[i].row);
        cr_expect_eq(route->shape.routing.taken, rows[i].taken, "%s", rows[i].row);
    }
}

Test(plan_experts, counts_a_microbatch_that_is_routed_again_once)
{
    const struct plan *plan = tiny_plan_of("experts 4; top_k 2; auxiliary_loss 0.05; recompute full", 0);

    int counted = 0, routed = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        routed += op->kind == OP_ROUTE_FORWARD;
        counted += op->kind == OP_ROUTE_FORWARD && op->operand[ROUTE_STATISTICS] >= 0;
    }
    cr_expect_eq(routed, 2 * 2);
    cr_expect_eq(counted, 2);
}

// Returns the bytes that the all-to-alls of a step move, without the exchange of token counts.
static double moved_bytes(const struct plan *plan)
{
    double bytes = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        bytes += op->kind == OP_ALL_TO_ALL && strcmp(op->tag.role, "token count exchange") != 0
                     ? plan_op_bytes(plan, op)
                     : 0;
    }
    return bytes;
}

// Each of 2 layers moves rows of 16 fp32 elements for dispatch and combine, forward and backward.
Test(plan_experts, expects_to_move_a_row_to_each_of_its_experts_and_not_to_all)
{
    static const struct {
        const char *row;
        double      rows;
    } rows[] = {{"experts 8; top_k 2; dp 2; ep 2", 2 * 16},
                {"experts 8; top_k 2; dp 4; ep 4", 2 * 16},
                {"experts 8; top_k 3; dp 8; ep 8", 3 * 16},
                {"experts 16; top_k 1; dp 2; ep 2", 1 * 16},
                {"experts 8; top_k 2; dp 2; ep 2; capacity_factor 1000", 8 * 16},
                {"experts 8; top_k 2; dp 2; ep 2; capacity_factor 1", 2 * 16}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan *plan  = tiny_plan_of(rows[i].row, 0);
        double             gemms = 0, bytes = moved_bytes(plan);
        cr_expect_eq(bytes, 2 * 4 * rows[i].rows * 16 * 4, "%s: %g", rows[i].row, bytes);
        for (int32_t op = 0; op < plan->op_count; op++) {
            gemms += strncmp(plan->ops[op].tag.role, "fc", 2) == 0 ? op_flops(&plan->ops[op]) : 0;
        }
        cr_expect_eq(gemms, 2 * 3 * 2.0 * rows[i].rows * 16 * (2 + 1) * 24, "%s: %g", rows[i].row, gemms);
    }
}

// The step counts rows only if their number depends on routing. A capacity factor or balanced routing fixes it. If tp
// shards the matrices of experts, the step moves and computes the worst-case number of rows instead.
Test(plan_experts, counts_rows_where_nothing_else_bounds_them)
{
    static const struct {
        const char *layout;
        bool        counts;
    } rows[] = {{"experts 4; top_k 2", true},
                {"dp 4; ep 2; experts 4; top_k 2; capacity_scope sequence", true},
                {"dp 2; ep 2; cp 2; pp 2; experts 4; top_k 2; recompute full", true},
                {"experts 4; top_k 2; capacity_factor 1.25", false},
                {"dp 2; ep 2; experts 4; top_k 2; routing balanced", false},
                {"dp 2; ep 2; tp 2; experts 4; top_k 2", false},
                {"dp 2; ep 4; tp 2; etp 1; experts 4; top_k 2", true},
                {"dp 2; ep 4; tp 2; etp 1; experts 4; top_k 2; capacity_factor 1.25", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan *plan = tiny_plan_of(rows[i].layout, 0);
        cr_expect_eq(plan->row_count_total > 0, rows[i].counts, "%s", rows[i].layout);
        cr_expect_eq(count_ops(plan, OP_READ_TOKEN_COUNTS, ANY) > 0, rows[i].counts, "%s", rows[i].layout);
    }
}

// Ranks exchange token counts once per microbatch and layer. The backward pass and recompute use the same counts.
Test(plan_experts, recomputes_with_the_rows_that_were_counted_before)
{
    const struct plan *plan =
        tiny_plan_of("dp 2; ep 2; experts 4; top_k 2; recompute full; accumulation 2; micro_batch 1", 0);

    cr_expect_eq(count_ops(plan, OP_READ_TOKEN_COUNTS, ANY), 2 * 2);
    cr_expect_eq(count_ops(plan, OP_READ_TOKEN_COUNTS, PHASE_FORWARD), 2 * 2);
    cr_expect_eq(plan->row_count_total, 2 * 2 * 2 * 2);
    int reader = find_op(plan, "read token counts", 1, 1), followers = 0;
    for (int32_t i = find_op(plan, "fc1", 1, 1); i < plan->op_count; i++) {
        const struct op        *op        = &plan->ops[i];
        const struct row_count *row_count = plan_op_row_count(plan, op);
        followers += op->kind == OP_GEMM && row_count != NULL && row_count->reader == reader;
    }
    cr_expect_eq(followers, 2 * (2 + 2 + 4), "%d", followers);    // forward, recompute, and two gradients each
}

// The first two of 8 experts have 2.4 times the mean load, and each other expert (8 - 2 x 2.4) / 6 of it. The experts
// are on two ranks. An all-to-all takes the time of the rank with the maximum number of rows.
Test(plan_experts, loads_the_first_experts_of_skewed_routing)
{
    for (int rank = 0; rank < 2; rank++) {
        const struct plan *plan = tiny_plan_of(
            "experts 8; top_k 2; routing skewed; routing_skew 2.4; dp 2; ep 2; sequence 64; micro_batch 15", rank);
        int first = find_op(plan, "fc1", 1, 0), exchange = find_op(plan, "dispatch exchange", 1, 0);
        for (int local = 0; local < 4; local++) {
            const struct op *gemm = &plan->ops[first + local], *moved = &plan->ops[exchange + local];
            struct op        loaded = plan_op_of_load(plan, gemm), busy = plan_op_of_load(plan, moved);
            double           hot = local < 2 ? 2.4 : 3.2 / 6;
            cr_expect_eq(gemm->shape.gemm.m, 480);
            cr_expect_eq(loaded.shape.gemm.m, rank == 0 ? llround(480 * hot) : 256, "%d %d: %ld", rank, local,
                         (long)loaded.shape.gemm.m);
            cr_expect_eq(busy.shape.communication.elements * 480,
                         moved->shape.communication.elements * llround(480 * hot), "%d %d", rank, local);
        }
    }
}
