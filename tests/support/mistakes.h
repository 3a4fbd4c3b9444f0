// SPDX-License-Identifier: MIT
// Mutations of a sound plan at one op, each an error that a plan builder could make.
#ifndef GSWBENCH_TESTS_MISTAKES_H
#define GSWBENCH_TESTS_MISTAKES_H

#include "faulty.h"
#include "plan_edit.h"

// Order: of the op, of its whole lane, of the first op that waits for it.
plant_fn forget_waits, forget_lane, let_it_not_wait, wait_for_the_op_before, wait_for_a_later_op;
plant_fn swap_with_the_next, move_behind_its_reader, remove_what_waits;

// Participants of a transfer.
plant_fn use_another_lane, use_another_group, use_another_channel, list_a_stranger, leave_the_group;
plant_fn send_further, send_home, turn_round, be_a_broadcast, be_a_sum;

// Size of a transfer. shrink also shrinks the operands, so that the rank's own plan is sound.
plant_fn shrink, shrink_alone, shrink_what_waits, narrow_output;

// Token counts.
plant_fn follow_another_layer, follow_the_next_expert, plan_a_row_more, have_places_for_the_expected;

// Offsets in the arena.
plant_fn write_over_the_input, leave_the_arena, write_over_a_saved_value, write_over_its_end;

// Operands and shapes.
plant_fn lack_an_operand, lack_a_factor, lack_the_other_factor, lack_factors, have_a_factor, read_along_columns;
plant_fn read_numbers_as_indices, copy_nothing, scale_squares_by_squares, be_too_deep, be_too_wide, have_a_head_more;
plant_fn overwrite_instead_of_adding, say_that_it_adds, add_to_what_is_not_there;

#endif
