// SPDX-License-Identifier: MIT
// Mutations of a correct plan at one op. Each is an error that a plan builder could make, and changes only one
// property.
#pragma once

#include <string.h>

#include "faulty.h"
#include "gswbench/arena.h"
#include "gswbench/fatal.h"

static int32_t output_slot(const struct op *op)
{
    int32_t slot = op->operand_count - 1;
    while ((op->access[slot] & ACCESS_WRITE) == 0) {
        slot--;
    }
    return slot;
}

static struct tensor *output_of(struct plan *plan, int32_t op)
{
    return &plan->tensors[plan->ops[op].operand[output_slot(&plan->ops[op])]];
}

// Returns the index of an op after the op at `from` has moved to `to`, a later index.
static int32_t map_moved(int32_t index, int32_t from, int32_t to)
{
    return index == from ? to : index > from && index <= to ? index - 1 : index;
}

// Moves an op to a later index. Ops that wait for it still do.
static void move_op(struct plan *plan, int32_t from, int32_t to)
{
    struct op moved = plan->ops[from];
    memmove(&plan->ops[from], &plan->ops[from + 1], (size_t)(to - from) * sizeof(moved));
    plan->ops[to] = moved;
    for (int32_t i = 0; i < plan->op_count; i++) {
        for (int w = 0; w < plan->ops[i].wait_count; w++) {
            plan->ops[i].wait[w] = map_moved(plan->ops[i].wait[w], from, to);
        }
    }
    for (int32_t i = 0; i < plan->row_count_total; i++) {
        plan->row_counts[i].reader = map_moved(plan->row_counts[i].reader, from, to);
    }
}

static void drop_wait(struct op *op, int32_t awaited)
{
    int kept = 0;
    for (int w = 0; w < op->wait_count; w++) {
        op->wait[kept] = op->wait[w];
        kept += op->wait[w] != awaited;
    }
    op->wait_count = (uint8_t)kept;
}

static int32_t first_that_waits(const struct plan *plan, int32_t awaited)
{
    for (int32_t waiting = awaited + 1;; waiting++) {
        for (int w = 0; w < plan->ops[waiting].wait_count; w++) {
            if (plan->ops[waiting].wait[w] == awaited) {
                return waiting;
            }
        }
    }
}

static void remove_op(struct plan *plan, int32_t op)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        drop_wait(&plan->ops[i], op);
    }
    move_op(plan, op, plan->op_count - 1);
    plan->op_count--;
}

// Inserts a copy of the op before it. Ops that wait for the op then wait for both.
static void insert_copy(struct plan *plan, int32_t op)
{
    plan->ops                   = memory_resize(plan->ops, (size_t)(plan->op_count + 1) * sizeof(*plan->ops));
    plan->ops[plan->op_count++] = plan->ops[op];
    for (int32_t i = plan->op_count - 2; i >= op; i--) {
        move_op(plan, i, i + 1);
    }
}

// Removes all dependencies on ops of this op's stream, including the op itself.
static void forget_stream(struct plan *plan, int32_t op)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        for (int w = plan->ops[i].wait_count - 1; w >= 0; w--) {
            if (plan->ops[plan->ops[i].wait[w]].stream == plan->ops[op].stream) {
                drop_wait(&plan->ops[i], plan->ops[i].wait[w]);
            }
        }
    }
}

static void wait_for_the_op_before(struct plan *plan, int32_t op)
{
    int32_t *wait = &plan->ops[op].wait[0], earlier = *wait - 1;
    while (plan->ops[earlier].stream != plan->ops[*wait].stream) {
        earlier--;
    }
    *wait = earlier;
}

static void swap_with_the_next(struct plan *plan, int32_t op)
{
    int32_t next = op + 1;
    while (plan->ops[next].stream != plan->ops[op].stream) {
        next++;
    }
    move_op(plan, op, next);
}

static void move_behind_its_reader(struct plan *plan, int32_t op)
{
    int32_t reader = first_that_waits(plan, op);
    drop_wait(&plan->ops[reader], op);
    move_op(plan, op, reader);
}

// Removes 8 elements from a collective. Shrinks the op's operands as well, so that the plan of this rank stays correct.
static void shrink(struct plan *plan, int32_t op)
{
    struct op *shrunk = &plan->ops[op];
    plan->tensors = memory_resize(plan->tensors, (size_t)(plan->tensor_count + OP_OPERANDS) * sizeof(*plan->tensors));
    for (int slot = 0; slot < shrunk->operand_count; slot++) {
        if (shrunk->operand[slot] >= 0) {
            struct tensor part  = plan->tensors[shrunk->operand[slot]];
            int64_t       fewer = 8 * part.elements / shrunk->shape.communication.elements;
            part.elements -= fewer;
            part.bytes -= format_bytes(part.format, fewer);
            plan->tensors[plan->tensor_count] = part;
            shrunk->operand[slot]             = plan->tensor_count++;
        }
    }
    shrunk->shape.communication.elements -= 8;
}

// Gives the integer inputs of an op, which are indices, the format f32.
static void read_numbers_as_indices(struct plan *plan, int32_t op)
{
    for (int slot = 0; slot < plan->ops[op].operand_count; slot++) {
        struct tensor *tensor = &plan->tensors[plan->ops[op].operand[slot]];
        tensor->format        = tensor->format == FORMAT_I32 ? FORMAT_F32 : tensor->format;
    }
}

// Moves the op's output onto the last `shared` bytes of an activation that is still needed after the op.
static void overlap(struct plan *plan, int32_t op, int64_t shared)
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

static void have_places_for_the_expected(struct plan *plan, int32_t op)
{
    struct tensor *output = output_of(plan, op);
    int64_t        rows   = plan->row_counts[output->row_count - 1].expected;
    output->elements      = output->elements / output->dim[0] * rows;
    output->dim[0]        = rows;
}

// Returns the operands of a quantize op, or of the quantization that is fused into another op.
static int32_t *operands_of_quantize(struct op *op)
{
    return op->operand + (op_is_fused(op) ? OP_FUSED : 0);
}

// Defines a mutation as a function with these statements. `op` is the op at `index`.
#define MISTAKE(name, ...)                                                                                             \
    static void name(struct plan *plan, int32_t index)                                                                 \
    {                                                                                                                  \
        struct op *op = &plan->ops[index];                                                                             \
        (void)op;                                                                                                      \
        __VA_ARGS__;                                                                                                   \
    }

// clang-format off
// These mutations change the order of the op, or of the first op that waits for it.
MISTAKE(forget_waits, op->wait_count = 0)
MISTAKE(wait_for_a_later_op, op->wait[0] = index + 1)
MISTAKE(let_it_not_wait, forget_waits(plan, first_that_waits(plan, index)))
MISTAKE(remove_what_waits, remove_op(plan, first_that_waits(plan, index)))

// These mutations change the participants of a collective.
MISTAKE(use_another_stream, op->stream = STREAM_EXPERT)
MISTAKE(use_another_group, op->shape.communication.group = (op->shape.communication.group + 1) % plan->group_count)
MISTAKE(use_another_channel, op->shape.communication.channel++)
MISTAKE(list_a_stranger, plan->groups[op->shape.communication.group].ranks[1] = 3)
MISTAKE(leave_the_group, int64_t *ranks = plan->groups[op->shape.communication.group].ranks; ranks[0] = 1; ranks[1] = 2)
MISTAKE(send_further, op->shape.communication.peer++)
MISTAKE(send_home, op->shape.communication.peer = (int32_t)plan->groups[op->shape.communication.group].index)
MISTAKE(turn_round, op->shape.communication.peer *= -1)
MISTAKE(be_a_sum, op->kind = OP_ALL_REDUCE)
MISTAKE(be_a_broadcast, op->kind = OP_BROADCAST; op->operand[COMMUNICATION_IN] = -1;
                        op->access[COMMUNICATION_OUT] = ACCESS_UPDATE; op->shape.communication.peer = 0)

// These mutations change the size of a collective.
MISTAKE(shrink_alone, op->shape.communication.elements -= 8)
MISTAKE(shrink_what_waits, shrink(plan, first_that_waits(plan, index)))
MISTAKE(low_precision_output, output_of(plan, index)->format = FORMAT_BF16)

// These mutations change token counts.
MISTAKE(follow_another_layer, int32_t *row_count = &plan->tensors[op->operand[0]].row_count;
                              *row_count = *row_count > plan->row_count_total / 2 ? 1 : plan->row_count_total)
MISTAKE(follow_the_next_expert, plan->tensors[op->operand[0]].row_count += 2)
MISTAKE(plan_a_row_more, op->shape.gemm.m++)

// These mutations change offsets in the activation memory.
MISTAKE(write_over_the_input, output_of(plan, index)->offset = plan->tensors[op->operand[0]].offset)
MISTAKE(leave_the_arena, output_of(plan, index)->offset = plan->storage_bytes[STORAGE_ACTIVATION])
MISTAKE(write_over_a_saved_value, overlap(plan, index, INT64_MAX))
MISTAKE(write_over_its_end, overlap(plan, index, 4))

// These mutations change operands and shapes.
MISTAKE(lack_an_operand, op->operand[0] = -1)
MISTAKE(lack_a_factor, op->operand[GEMM_INVERSE_SCALE_A] = -1)
MISTAKE(lack_the_other_factor, op->operand[GEMM_INVERSE_SCALE_B] = -1)
MISTAKE(lack_factors, operands_of_quantize(op)[QUANTIZE_TRANSPOSED_INVERSE_SCALE] = -1)
MISTAKE(have_a_factor, op->operand_count = GEMM_INVERSE_SCALE_A + 1; op->operand[GEMM_INVERSE_SCALE_A] = plan->loss;
                       op->access[GEMM_INVERSE_SCALE_A] = ACCESS_READ)
MISTAKE(read_along_columns, op->shape.gemm.transpose_a = true)
MISTAKE(copy_nothing, operands_of_quantize(op)[QUANTIZE_OUT] = -1; operands_of_quantize(op)[QUANTIZE_TRANSPOSED] = -1)
MISTAKE(scale_squares_by_squares, op->shape.gemm.scaling_a = SCALING_128X128;
                                  op->operand[GEMM_INVERSE_SCALE_A] = op->operand[GEMM_INVERSE_SCALE_B])
MISTAKE(be_too_deep, op->shape.gemm.k++)
MISTAKE(be_too_wide, op->shape.rows.columns++)
MISTAKE(have_a_head_more, op->shape.attention.heads++)
MISTAKE(overwrite_instead_of_adding, op->accumulates = false; op->access[output_slot(op)] = ACCESS_WRITE)
MISTAKE(say_that_it_adds, op->accumulates = true)
MISTAKE(add_to_what_is_not_there, op->accumulates = true; op->access[output_slot(op)] = ACCESS_UPDATE)
// clang-format on
