// SPDX-License-Identifier: MIT
// Operands of the ops that quantize to FP8 and maintain scales, in the notation of op_operands.h.
#ifndef GSWBENCH_OP_QUANTIZE_H
#define GSWBENCH_OP_QUANTIZE_H

// clang-format off
enum { QUANTIZE_IN, QUANTIZE_OUT, QUANTIZE_TRANSPOSED, QUANTIZE_FACTOR, QUANTIZE_TRANSPOSED_FACTOR, QUANTIZE_SCALE,
       QUANTIZE_AMAX };
// IN r [rows, columns]. OUT w [rows, columns] and TRANSPOSED w [columns, rows] are FP8 copies of IN * scale; one of
// them may be absent.
// Per-tensor scaling: both copies share one scale. SCALE r f32 [1] is that scale (delayed scaling); if absent, the op
// computes scale = largest number of the format / largest magnitude of IN (current scaling). FACTOR w f32 [1] is 1 /
// scale and may be absent if SCALE is given; TRANSPOSED_FACTOR is absent. AMAX rw f32 [1], optional: raised to the
// largest magnitude of IN.
// Other scalings (1x128, 128x128, MX blocks, rows): the op computes a scale for each part. FACTOR w has the inverse
// scales of OUT, TRANSPOSED_FACTOR w those for TRANSPOSED; SCALE and AMAX are absent.
// Fused: NORM_FORWARD, ACTIVATION_FORWARD and ACTIVATION_BACKWARD can quantize their own output. The slots of
// OP_QUANTIZE then start at OP_FUSED. The copies are made from the output as rounded for storage; the output itself may
// be absent.
enum { TRANSPOSE_IN, TRANSPOSE_OUT };                            // FP8 [rows, columns] r, [columns, rows] w
enum { MAGNITUDE_IN, MAGNITUDE_AMAX };                           // [elements] r; f32 [1] rw: raised to the maximum
enum { RESCALE_AMAX, RESCALE_HISTORY, RESCALE_SCALE, RESCALE_FACTOR };
// AMAX rw f32 [slots]: largest magnitudes of the step, reset to 0. HISTORY rw f32 [slots, history], optional: AMAX is
// pushed to the front of each row. SCALE rw f32 [slots]: target / largest magnitude in HISTORY (or AMAX), unchanged if
// that is 0 or not finite. FACTOR w f32 [slots]: 1 / SCALE.
// clang-format on

#endif
