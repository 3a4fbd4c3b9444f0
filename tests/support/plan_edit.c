// SPDX-License-Identifier: MIT
// Edits a plan's list of ops. Dependencies on a moved op move with it.
#include "plan_edit.h"

#include <string.h>

#include "gswbench/arena.h"

int32_t output_slot(const struct op *op)
{
    int32_t slot = op->operand_count - 1;
    while ((op->access[slot] & ACCESS_WRITE) == 0) {
        slot--;
    }
    return slot;
}

struct tensor *output_of(struct plan *plan, int32_t op)
{
    return &plan->tensors[plan->ops[op].operand[output_slot(&plan->ops[op])]];
}

static void follow_waits(struct plan *plan, int32_t (*map)(int32_t, int32_t, int32_t), int32_t from, int32_t to)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        for (int w = 0; w < plan->ops[i].wait_count; w++) {
            plan->ops[i].wait[w] = map(plan->ops[i].wait[w], from, to);
        }
    }
    for (int32_t i = 0; i < plan->tally_count; i++) {
        plan->tallies[i].reader = map(plan->tallies[i].reader, from, to);
    }
}

static int32_t map_moved(int32_t wait, int32_t from, int32_t to)
{
    return wait == from ? to : wait > from && wait <= to ? wait - 1 : wait;
}

void move_op(struct plan *plan, int32_t from, int32_t to)
{
    struct op moved = plan->ops[from];
    memmove(&plan->ops[from], &plan->ops[from + 1], (size_t)(to - from) * sizeof(moved));
    plan->ops[to] = moved;
    follow_waits(plan, map_moved, from, to);
}

void drop_wait(struct op *op, int32_t awaited)
{
    int kept = 0;
    for (int w = 0; w < op->wait_count; w++) {
        op->wait[kept] = op->wait[w];
        kept += op->wait[w] != awaited;
    }
    op->wait_count = (uint8_t)kept;
}

void remove_op(struct plan *plan, int32_t op)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        drop_wait(&plan->ops[i], op);
    }
    move_op(plan, op, plan->op_count - 1);
    plan->op_count--;
}

void insert_copy(struct plan *plan, int32_t op)
{
    plan->ops                 = memory_resize(plan->ops, (size_t)(plan->op_count + 1) * sizeof(*plan->ops));
    plan->ops[plan->op_count] = plan->ops[op];
    plan->op_count++;
    // Rotates the copy backwards to the position before the original; ops that wait for the original then also wait for
    // it.
    for (int32_t i = plan->op_count - 2; i >= op; i--) {
        move_op(plan, i, i + 1);
    }
}

int32_t next_on_lane(const struct plan *plan, int32_t op)
{
    int32_t next = op + 1;
    while (plan->ops[next].lane != plan->ops[op].lane) {
        next++;
    }
    return next;
}

static bool waits_for(const struct op *op, int32_t awaited)
{
    for (int w = 0; w < op->wait_count; w++) {
        if (op->wait[w] == awaited) {
            return true;
        }
    }
    return false;
}

int32_t first_that_waits(const struct plan *plan, int32_t awaited)
{
    int32_t waiting = awaited + 1;
    while (!waits_for(&plan->ops[waiting], awaited)) {
        waiting++;
    }
    return waiting;
}
