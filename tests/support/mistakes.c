// SPDX-License-Identifier: MIT
// Each mutation changes only one property of the plan.
#include "mistakes.h"

#include "gswbench/arena.h"
#include "gswbench/fatal.h"

void forget_waits(struct plan *plan, int32_t op)
{
    plan->ops[op].wait_count = 0;
}

// No op waits for this op or its lane.
void forget_lane(struct plan *plan, int32_t op)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        for (int w = plan->ops[i].wait_count - 1; w >= 0; w--) {
            if (plan->ops[plan->ops[i].wait[w]].lane == plan->ops[op].lane) {
                drop_wait(&plan->ops[i], plan->ops[i].wait[w]);
            }
        }
    }
}

void wait_for_the_op_before(struct plan *plan, int32_t op)
{
    int32_t *wait = &plan->ops[op].wait[0], earlier = *wait - 1;
    while (plan->ops[earlier].lane != plan->ops[*wait].lane) {
        earlier--;
    }
    *wait = earlier;
}

void wait_for_a_later_op(struct plan *plan, int32_t op)
{
    plan->ops[op].wait[0] = op + 1;
}

void swap_with_the_next(struct plan *plan, int32_t op)
{
    move_op(plan, op, next_on_lane(plan, op));
}

void move_behind_its_reader(struct plan *plan, int32_t op)
{
    int32_t reader = first_that_waits(plan, op);
    drop_wait(&plan->ops[reader], op);
    move_op(plan, op, reader);
}

void use_another_lane(struct plan *plan, int32_t op)
{
    plan->ops[op].lane = LANE_EXPERT;
}

void use_another_group(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.group = (plan->ops[op].shape.transfer.group + 1) % plan->group_count;
}

void list_a_stranger(struct plan *plan, int32_t op)
{
    plan->groups[plan->ops[op].shape.transfer.group].ranks[1] = 3;
}

void leave_the_group(struct plan *plan, int32_t op)
{
    struct plan_group *group = &plan->groups[plan->ops[op].shape.transfer.group];
    group->ranks[0]          = 1;
    group->ranks[1]          = 2;
}

void send_further(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.peer++;
}

void send_home(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.peer = (int32_t)plan->groups[plan->ops[op].shape.transfer.group].index;
}

void use_another_channel(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.channel++;
}

void turn_round(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.peer *= -1;
}

void be_a_broadcast(struct plan *plan, int32_t op)
{
    plan->ops[op].kind                 = OP_BROADCAST;
    plan->ops[op].operand[TRANSFER_IN] = -1;
    plan->ops[op].access[TRANSFER_OUT] = ACCESS_UPDATE;
    plan->ops[op].shape.transfer.peer  = 0;
}

void shrink(struct plan *plan, int32_t op)
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

void shrink_what_waits(struct plan *plan, int32_t op)
{
    shrink(plan, first_that_waits(plan, op));
}

void remove_what_waits(struct plan *plan, int32_t op)
{
    remove_op(plan, first_that_waits(plan, op));
}

void let_it_not_wait(struct plan *plan, int32_t op)
{
    forget_waits(plan, first_that_waits(plan, op));
}

void shrink_alone(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.transfer.elements -= 8;
}

void narrow_output(struct plan *plan, int32_t op)
{
    output_of(plan, op)->format = FORMAT_BF16;
}

// Declares the op's index input as floating-point.
void read_numbers_as_indices(struct plan *plan, int32_t op)
{
    for (int slot = 0; slot < plan->ops[op].operand_count; slot++) {
        struct tensor *tensor = &plan->tensors[plan->ops[op].operand[slot]];
        tensor->format        = tensor->format == FORMAT_I32 ? FORMAT_F32 : tensor->format;
    }
}

void write_over_the_input(struct plan *plan, int32_t op)
{
    output_of(plan, op)->offset = plan->tensors[plan->ops[op].operand[0]].offset;
}

void leave_the_arena(struct plan *plan, int32_t op)
{
    output_of(plan, op)->offset = plan->storage_bytes[STORAGE_ACTIVATION];
}

// Places the output at the end of a tensor that is live across the op. shared: number of overlapping bytes.
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

void write_over_a_saved_value(struct plan *plan, int32_t op)
{
    overlap(plan, op, INT64_MAX);
}

void write_over_its_end(struct plan *plan, int32_t op)
{
    overlap(plan, op, 4);
}

void lack_an_operand(struct plan *plan, int32_t op)
{
    plan->ops[op].operand[0] = -1;
}

void lack_a_factor(struct plan *plan, int32_t op)
{
    plan->ops[op].operand[GEMM_FACTOR_A] = -1;
}

void lack_the_other_factor(struct plan *plan, int32_t op)
{
    plan->ops[op].operand[GEMM_FACTOR_B] = -1;
}

void have_a_factor(struct plan *plan, int32_t op)
{
    plan->ops[op].operand_count          = GEMM_FACTOR_A + 1;
    plan->ops[op].operand[GEMM_FACTOR_A] = plan->loss;
    plan->ops[op].access[GEMM_FACTOR_A]  = ACCESS_READ;
}

void read_along_columns(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.gemm.transpose_a = true;
}

// First operand of OP_QUANTIZE, which may be fused.
static int first_of_quantize(const struct plan *plan, int32_t op)
{
    return op_is_fused(&plan->ops[op]) ? OP_FUSED : 0;
}

void copy_nothing(struct plan *plan, int32_t op)
{
    int32_t *operand             = plan->ops[op].operand + first_of_quantize(plan, op);
    operand[QUANTIZE_OUT]        = -1;
    operand[QUANTIZE_TRANSPOSED] = -1;
}

void lack_factors(struct plan *plan, int32_t op)
{
    plan->ops[op].operand[first_of_quantize(plan, op) + QUANTIZE_TRANSPOSED_FACTOR] = -1;
}

void scale_squares_by_squares(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.gemm.scaling_a   = SCALING_SQUARES;
    plan->ops[op].operand[GEMM_FACTOR_A] = plan->ops[op].operand[GEMM_FACTOR_B];
}

void be_a_sum(struct plan *plan, int32_t op)
{
    plan->ops[op].kind = OP_ALL_REDUCE;
}

void be_too_deep(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.gemm.k++;
}

void be_too_wide(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.rows.columns++;
}

void have_a_head_more(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.attention.heads++;
}

void overwrite_instead_of_adding(struct plan *plan, int32_t op)
{
    plan->ops[op].accumulates                         = false;
    plan->ops[op].access[output_slot(&plan->ops[op])] = ACCESS_WRITE;
}

void say_that_it_adds(struct plan *plan, int32_t op)
{
    plan->ops[op].accumulates = true;
}

void add_to_what_is_not_there(struct plan *plan, int32_t op)
{
    plan->ops[op].accumulates                         = true;
    plan->ops[op].access[output_slot(&plan->ops[op])] = ACCESS_UPDATE;
}

void follow_another_layer(struct plan *plan, int32_t op)
{
    struct tensor *tensor = &plan->tensors[plan->ops[op].operand[0]];
    tensor->tally         = tensor->tally > plan->tally_count / 2 ? 1 : plan->tally_count;
}

void follow_the_next_expert(struct plan *plan, int32_t op)
{
    plan->tensors[plan->ops[op].operand[0]].tally += 2;
}

void plan_a_row_more(struct plan *plan, int32_t op)
{
    plan->ops[op].shape.gemm.m++;
}

void have_places_for_the_expected(struct plan *plan, int32_t op)
{
    struct tensor *output = output_of(plan, op);
    int64_t        rows   = plan->tallies[output->tally - 1].expected;
    output->elements      = output->elements / output->dim[0] * rows;
    output->dim[0]        = rows;
}
