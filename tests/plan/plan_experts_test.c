// SPDX-License-Identifier: MIT
// What a plan does for experts: which ops in which order, and how many slots an expert has.
#include "gswbench/plan.h"

#include <criterion/criterion.h>

#include "plan_ops.h"
#include "tiny.h"

Test(plan, sends_each_expert_its_tokens_while_the_one_before_works)
{
    struct tiny tiny;
    char        roles[1024];
    tiny_init(&tiny);
    tiny_set_experts(&tiny, 4, 2);
    tiny.parallel.dp = tiny.parallel.ep = 2;

    tiny_plan(&tiny);

    list_roles(&tiny.plan, PHASE_FORWARD, 1, roles);
    cr_assert_str_eq(roles, "attention norm,qkv,rope,attention,projection,mlp norm,router,route,dispatch,"
                            "dispatch exchange,dispatch exchange,fc1,fc1,activation,activation,"
                            "fc2,output exchange,fc2,output exchange,combine");
    list_roles(&tiny.plan, PHASE_BACKWARD, 1, roles);
    cr_assert_str_eq(roles, "combine gradient,output gradient exchange,output gradient exchange,route gradient,"
                            "router weight gradient,router data gradient,"
                            "fc2 data gradient,fc2 weight gradient,activation gradient,fc1 data gradient,"
                            "input gradient exchange,fc1 weight gradient,"
                            "fc2 data gradient,fc2 weight gradient,activation gradient,fc1 data gradient,"
                            "input gradient exchange,fc1 weight gradient,"
                            "dispatch gradient,mlp norm gradient,projection data gradient,"
                            "projection weight gradient,attention gradient,rope gradient,qkv data gradient,"
                            "qkv weight gradient,attention norm gradient");
    int first = find_op(&tiny.plan, "dispatch exchange", 1, 0), gemm = find_op(&tiny.plan, "fc1", 1, 0);
    cr_assert_eq(tiny.plan.ops[first].lane, LANE_EXPERT);
    cr_assert_eq(tiny.plan.ops[gemm].wait_count, 1);
    cr_assert_eq(tiny.plan.ops[gemm].wait[0], first);
    cr_assert_eq(tiny.plan.ops[gemm + 1].wait[0], first + 1);
    plan_free(&tiny.plan);
}

// 16 tokens: 2 sequences of 8. Four experts, of which a token uses 2.
Test(plan, gives_an_expert_as_many_slots_as_it_may_need)
{
    static const struct {
        double  factor;
        int64_t scope, routing, capacity, taken;
    } rows[] = {
        {0, CAPACITY_RANK, ROUTING_TOP_K, 16, 16},    {1, CAPACITY_RANK, ROUTING_TOP_K, 8, 8},
        {1.3, CAPACITY_RANK, ROUTING_TOP_K, 11, 11},  {9, CAPACITY_RANK, ROUTING_TOP_K, 16, 16},
        {0, CAPACITY_SEQUENCE, ROUTING_TOP_K, 16, 8}, {1, CAPACITY_SEQUENCE, ROUTING_TOP_K, 8, 4},
        {0, CAPACITY_RANK, ROUTING_BALANCED, 8, 16},  {1, CAPACITY_RANK, ROUTING_BALANCED, 8, 8},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tiny tiny;
        tiny_init(&tiny);
        tiny_set_experts(&tiny, 4, 2);
        tiny.model.capacity_factor = rows[i].factor;
        tiny.train.capacity_scope  = rows[i].scope;
        tiny.train.routing         = rows[i].routing;

        tiny_plan(&tiny);

        const struct op *route = &tiny.plan.ops[find_op(&tiny.plan, "route", 0, 0)];
        cr_expect_eq(route->shape.routing.capacity, rows[i].capacity, "row %d", (int)i);
        cr_expect_eq(route->shape.routing.taken, rows[i].taken, "row %d", (int)i);
        plan_free(&tiny.plan);
    }
}

Test(plan, counts_a_microbatch_that_is_routed_again_once)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_set_experts(&tiny, 4, 2);
    tiny.train.recompute = RECOMPUTE_FULL;

    tiny_plan(&tiny);

    int counted = 0, routed = 0;
    for (int32_t i = 0; i < tiny.plan.op_count; i++) {
        const struct op *op = &tiny.plan.ops[i];
        routed += op->kind == OP_ROUTE_FORWARD;
        counted += op->kind == OP_ROUTE_FORWARD && op->operand[ROUTE_STATISTICS] >= 0;
    }
    cr_expect_eq(routed, 2 * 2);
    cr_expect_eq(counted, 2);
    plan_free(&tiny.plan);
}
