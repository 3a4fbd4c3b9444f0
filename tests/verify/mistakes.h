// SPDX-License-Identifier: MIT
// Mistakes that a builder of plans could make, each as a change of a sound plan at one of its ops.
#ifndef GSWBENCH_TESTS_MISTAKES_H
#define GSWBENCH_TESTS_MISTAKES_H

#include "faulty.h"

static inline int32_t output_slot(const struct op *op)
{
    int32_t slot = op->operand_count - 1;
    while ((op->access[slot] & ACCESS_WRITE) == 0) {
        slot--;
    }
    return slot;
}

static inline struct tensor *output_of(struct plan *plan, int32_t op)
{
    return &plan->tensors[plan->ops[op].operand[output_slot(&plan->ops[op])]];
}

static inline void follow_waits(struct plan *plan, int32_t (*map)(int32_t, int32_t, int32_t), int32_t from, int32_t to)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        for (int w = 0; w < plan->ops[i].wait_count; w++) {
            plan->ops[i].wait[w] = map(plan->ops[i].wait[w], from, to);
        }
    }
}

static inline int32_t map_moved(int32_t wait, int32_t from, int32_t to)
{
    return wait == from ? to : wait > from && wait <= to ? wait - 1 : wait;
}

// Moves an op to a later place in the list; waits follow.
static inline void move_op(struct plan *plan, int32_t from, int32_t to)
{
    struct op moved = plan->ops[from];
    memmove(&plan->ops[from], &plan->ops[from + 1], (size_t)(to - from) * sizeof(moved));
    plan->ops[to] = moved;
    follow_waits(plan, map_moved, from, to);
}

static inline void drop_wait(struct op *op, int32_t awaited)
{
    int kept = 0;
    for (int w = 0; w < op->wait_count; w++) {
        op->wait[kept] = op->wait[w];
        kept += op->wait[w] != awaited;
    }
    op->wait_count = (uint8_t)kept;
}

static inline void forget_waits(struct plan *plan, int32_t op)
{
    plan->ops[op].wait_count = 0;
}

// No op waits for it or for an op of its lane.
static inline void forget_lane(struct plan *plan, int32_t op)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        for (int w = plan->ops[i].wait_count - 1; w >= 0; w--) {
            if (plan->ops[plan->ops[i].wait[w]].lane == plan->ops[op].lane) {
                drop_wait(&plan->ops[i], plan->ops[i].wait[w]);
            }
        }
    }
}

static inline void wait_for_the_op_before(struct plan *plan, int32_t op)
{
    int32_t *wait = &plan->ops[op].wait[0], earlier = *wait - 1;
    while (plan->ops[earlier].lane != plan->ops[*wait].lane) {
        earlier--;
    }
    *wait = earlier;
}

static inline void wait_for_a_later_op(struct plan *plan, int32_t op)
{
    plan->ops[op].wait[0] = op + 1;
}

static inline void remove_op(struct plan *plan, int32_t op)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        drop_wait(&plan->ops[i], op);
    }
    move_op(plan, op, plan->op_count - 1);
    plan->op_count--;
}

static inline void insert_copy(struct plan *plan, int32_t op)
{
    plan->ops                 = memory_resize(plan->ops, (size_t)(plan->op_count + 1) * sizeof(*plan->ops));
    plan->ops[plan->op_count] = plan->ops[op];
    plan->op_count++;
    // Backwards through the list to the place before the first, where it is awaited with it.
    for (int32_t i = plan->op_count - 2; i >= op; i--) {
        move_op(plan, i, i + 1);
    }
}

static inline int32_t next_on_lane(const struct plan *plan, int32_t op)
{
    int32_t next = op + 1;
    while (plan->ops[next].lane != plan->ops[op].lane) {
        next++;
    }
    return next;
}

static inline void swap_with_the_next(struct plan *plan, int32_t op)
{
    move_op(plan, op, next_on_lane(plan, op));
}

static inline bool waits_for(const struct op *op, int32_t awaited)
{
    for (int w = 0; w < op->wait_count; w++) {
        if (op->wait[w] == awaited) {
            return true;
        }
    }
    return false;
}

static inline int32_t first_that_waits(const struct plan *plan, int32_t awaited)
{
    int32_t waiting = awaited + 1;
    while (!waits_for(&plan->ops[waiting], awaited)) {
        waiting++;
    }
    return waiting;
}

static inline void move_behind_its_reader(struct plan *plan, int32_t op)
{
    int32_t reader = first_that_waits(plan, op);
    drop_wait(&plan->ops[reader], op);
    move_op(plan, op, reader);
}

static inline void use_another_lane(struct plan *plan, int32_t op)
{
    plan->ops[op].lane = LANE_EXPERT;
}

static inline void use_another_group(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.group = (plan->ops[op].shape.transfer.group + 1) % plan->group_count;
}

static inline void list_a_stranger(struct plan *plan, int32_t op)
{
    plan->groups[plan->ops[op].shape.transfer.group].ranks[1] = 3;
}

static inline void leave_the_group(struct plan *plan, int32_t op)
{
    struct plan_group *group = &plan->groups[plan->ops[op].shape.transfer.group];
    group->ranks[0]          = 1;
    group->ranks[1]          = 2;
}

static inline void send_further(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.peer++;
}

static inline void send_home(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.peer = (int32_t)plan->groups[plan->ops[op].shape.transfer.group].index;
}

static inline void use_another_channel(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.channel++;
}

static inline void turn_round(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.peer *= -1;
}

static inline void be_a_broadcast(struct plan *plan, int32_t op)
{
    plan->ops[op].kind                 = OP_BROADCAST;
    plan->ops[op].operand[TRANSFER_IN] = -1;
    plan->ops[op].access[TRANSFER_OUT] = ACCESS_UPDATE;
    plan->ops[op].shape.transfer.peer  = 0;
}

// Operands and transfer alike, so that the rank's own plan is sound.
static inline void shrink(struct plan *plan, int32_t op)
{
    struct op *shrunk = &plan->ops[op];
    plan->tensors = memory_resize(plan->tensors, (size_t)(plan->tensor_count + OP_OPERANDS) * sizeof(*plan->tensors));
    for (int slot = 0; slot < shrunk->operand_count; slot++) {
        if (shrunk->operand[slot] >= 0) {
            struct tensor part  = plan->tensors[shrunk->operand[slot]];
            int64_t       fewer = 8 * part.elements / shrunk->shape.transfer.elements;
            part.elements -= fewer;
            part.bytes -= format_bytes(part.format, fewer);
            plan->tensors[plan->tensor_count] = part;
            shrunk->operand[slot]             = plan->tensor_count++;
        }
    }
    shrunk->shape.transfer.elements -= 8;
}

static inline void shrink_what_waits(struct plan *plan, int32_t op)
{
    shrink(plan, first_that_waits(plan, op));
}

static inline void remove_what_waits(struct plan *plan, int32_t op)
{
    remove_op(plan, first_that_waits(plan, op));
}

static inline void let_it_not_wait(struct plan *plan, int32_t op)
{
    forget_waits(plan, first_that_waits(plan, op));
}

static inline void shrink_alone(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.elements -= 8;
}

static inline void narrow_output(struct plan *plan, int32_t op)
{
    output_of(plan, op)->format = FORMAT_BF16;
}

static inline void write_over_the_input(struct plan *plan, int32_t op)
{
    output_of(plan, op)->offset = plan->tensors[plan->ops[op].operand[0]].offset;
}

static inline void leave_the_arena(struct plan *plan, int32_t op)
{
    output_of(plan, op)->offset = plan->storage_bytes[STORAGE_ACTIVATION];
}

// Puts the output where the end of a tensor lies that was written before and is read later; shared: so many bytes of
// it.
static inline void overlap(struct plan *plan, int32_t op, int64_t shared)
{
    struct tensor *output = output_of(plan, op);
    for (int32_t t = 0; t < plan->tensor_count; t++) {
        const struct tensor *saved  = &plan->tensors[t];
        int64_t              offset = saved->offset + (saved->bytes > shared ? saved->bytes - shared : 0);
        if (saved->storage == STORAGE_ACTIVATION && saved->first_op >= 0 && saved->first_op < op - 8 &&
            saved->last_op > op + 8 && offset + output->bytes <= plan->storage_bytes[STORAGE_ACTIVATION]) {
            output->offset = offset;
            return;
        }
    }
    FATAL(EXIT_INTERNAL, "nothing is saved over op %d", op);
}

static inline void write_over_a_saved_value(struct plan *plan, int32_t op)
{
    overlap(plan, op, INT64_MAX);
}

static inline void write_over_its_end(struct plan *plan, int32_t op)
{
    overlap(plan, op, 4);
}

static inline void lack_an_operand(struct plan *plan, int32_t op)
{
    plan->ops[op].operand[0] = -1;
}

static inline void lack_a_factor(struct plan *plan, int32_t op)
{
    plan->ops[op].operand[GEMM_FACTOR_A] = -1;
}

static inline void lack_the_other_factor(struct plan *plan, int32_t op)
{
    plan->ops[op].operand[GEMM_FACTOR_B] = -1;
}

static inline void have_a_factor(struct plan *plan, int32_t op)
{
    plan->ops[op].operand_count          = GEMM_FACTOR_A + 1;
    plan->ops[op].operand[GEMM_FACTOR_A] = plan->loss;
    plan->ops[op].access[GEMM_FACTOR_A]  = ACCESS_READ;
}

static inline void read_along_columns(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.gemm.transpose_a = true;
}

// Where the operands of OP_QUANTIZE begin.
static inline int first_of_quantize(const struct plan *plan, int32_t op)
{
    return op_is_fused(&plan->ops[op]) ? OP_FUSED : 0;
}

static inline void copy_nothing(struct plan *plan, int32_t op)
{
    int32_t *operand             = plan->ops[op].operand + first_of_quantize(plan, op);
    operand[QUANTIZE_OUT]        = -1;
    operand[QUANTIZE_TRANSPOSED] = -1;
}

static inline void lack_factors(struct plan *plan, int32_t op)
{
    plan->ops[op].operand[first_of_quantize(plan, op) + QUANTIZE_TRANSPOSED_FACTOR] = -1;
}

static inline void scale_squares_by_squares(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.gemm.scaling_a   = SCALING_SQUARES;
    plan->ops[op].operand[GEMM_FACTOR_A] = plan->ops[op].operand[GEMM_FACTOR_B];
}

static inline void be_a_sum(struct plan *plan, int32_t op)
{
    plan->ops[op].kind = OP_ALL_REDUCE;
}

static inline void be_too_deep(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.gemm.k++;
}

static inline void be_too_wide(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.rows.columns++;
}

static inline void have_a_head_more(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.attention.heads++;
}

static inline void overwrite_instead_of_adding(struct plan *plan, int32_t op)
{
    plan->ops[op].accumulates                         = false;
    plan->ops[op].access[output_slot(&plan->ops[op])] = ACCESS_WRITE;
}

static inline void say_that_it_adds(struct plan *plan, int32_t op)
{
    plan->ops[op].accumulates = true;
}

static inline void add_to_what_is_not_there(struct plan *plan, int32_t op)
{
    plan->ops[op].accumulates                         = true;
    plan->ops[op].access[output_slot(&plan->ops[op])] = ACCESS_UPDATE;
}

#endif
