// SPDX-License-Identifier: MIT
// What the ops that make FP8 copies and their scales read and write, as op_operands.h says it of all others.
#ifndef GSWBENCH_OP_QUANTIZE_H
#define GSWBENCH_OP_QUANTIZE_H

// clang-format off
enum { QUANTIZE_IN, QUANTIZE_OUT, QUANTIZE_TRANSPOSED, QUANTIZE_FACTOR, QUANTIZE_TRANSPOSED_FACTOR, QUANTIZE_SCALE,
       QUANTIZE_AMAX };
// IN r [rows, columns]; FP8 copies of IN * scale: OUT w [rows, columns] and TRANSPOSED w [columns, rows], of which one may
// be absent; FACTOR w f32 [1]: 1 / scale, by which both are to be multiplied; TRANSPOSED_FACTOR: absent. SCALE r f32 [1]:
// then FACTOR may be absent; or absent: scale = largest number of the format / largest magnitude of IN. AMAX rw f32 [1]:
// raised to the largest magnitude of IN, or absent. Scaled by runs or squares, each of which has a scale as its own
// magnitude demands: FACTOR w f32 those of OUT, TRANSPOSED_FACTOR w f32 those of TRANSPOSED; SCALE and AMAX absent.
// Fused: NORM_FORWARD, ACTIVATION_FORWARD and ACTIVATION_BACKWARD may make the FP8 copies of their output themselves, if
// its scales are known before it is, or are of parts. The slots behind OP_FUSED are then those of OP_QUANTIZE, the same
// number further on, and the copies are made of the output as it is stored; itself it may be absent.
enum { TRANSPOSE_IN, TRANSPOSE_OUT };                            // FP8 [rows, columns] r, [columns, rows] w
enum { MAGNITUDE_IN, MAGNITUDE_AMAX };                           // [elements] r; f32 [1] rw: raised to the largest magnitude
enum { RESCALE_AMAX, RESCALE_HISTORY, RESCALE_SCALE, RESCALE_FACTOR };
// AMAX rw f32 [slots]: of the step, becomes 0. HISTORY rw f32 [slots, history]: takes it in at the front of each row, whose
// oldest falls out; or absent. SCALE rw f32 [slots]: target / the largest there (or AMAX), kept where that is 0 or not
// finite; FACTOR w f32 [slots]: 1 / SCALE.
// clang-format on

#endif
