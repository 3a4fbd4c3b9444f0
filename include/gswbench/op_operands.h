// SPDX-License-Identifier: MIT
// Operands of each kind of op: slots, shapes and access. Matrices are row-major and contiguous. T: tokens of a
// microbatch on this rank; r, w, rw: read, written, updated; d X: the gradient of X.
#pragma once

enum access { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_UPDATE = 3 };

// clang-format off
// Operand slots by kind; the description follows each enum. An absent optional operand is tensor -1.
enum { EMBEDDING_TOKENS, EMBEDDING_TABLE, EMBEDDING_OUT };
// forward: i32 [T] r, [vocab, columns] r, [T, columns] w, or rw if it accumulates (position embedding).
enum { EMBEDDING_GRADIENT_TOKENS, EMBEDDING_GRADIENT_OUT, EMBEDDING_GRADIENT_TABLE };
// backward: i32 [T] r, d out [T, columns] r, d table w, or rw if it accumulates.
enum { NORM_IN, NORM_BRANCH, NORM_WEIGHT, NORM_BIAS, NORM_SUM, NORM_OUT, NORM_STATISTICS };
// forward: x = IN r (+ BRANCH r; SUM w stores x), OUT w = norm(x), all [T, columns]. WEIGHT r [columns], BIAS r
// [columns] (layer norms). STATISTICS w f32 [T, 2]: mean (0 for RMS norms) and 1 / deviation.
enum { NORM_GRADIENT_OUT, NORM_GRADIENT_X, NORM_GRADIENT_WEIGHT_IN, NORM_GRADIENT_STATISTICS, NORM_GRADIENT_RESIDUAL,
       NORM_GRADIENT_IN, NORM_GRADIENT_WEIGHT, NORM_GRADIENT_BIAS };
// backward: d OUT r, x r (SUM, or IN without a branch), weight r, STATISTICS r, RESIDUAL r (optional, added to d x), d
// x w, d WEIGHT and d BIAS w or rw (optional; absent if frozen).
enum { GEMM_A, GEMM_B, GEMM_C, GEMM_INVERSE_SCALE_A, GEMM_INVERSE_SCALE_B, GEMM_BIAS, GEMM_TENSOR_SCALE_A,
       GEMM_TENSOR_SCALE_B, GEMM_ADDEND };
// C [m, n] = op(A) op(B), or += if it accumulates. BIAS r [n], optional: added to each row of C. ADDEND r [m, n],
// optional, in the format of C, not with accumulation: C += shape.addend ADDEND. INVERSE_SCALE_A, INVERSE_SCALE_B r
// f32: of FP8 operands (op_shape.h says how many); absent if A and B are not FP8. TENSOR_SCALE_A, TENSOR_SCALE_B r f32
// [1]: inverse scales of the tensors, with NV scaling only; C is multiplied by both. Low-precision GEMMs always have A
// as stored and B transposed, because devices multiply them row by row.
enum { ROPE_TABLE, ROPE_PACKED, ROPE_QUERY, ROPE_KEY_VALUE, ROPE_SCALE, ROPE_PACKED_IN, ROPE_SCALE_GRADIENT };
// forward: TABLE r f32 [sequence, rotary/2, 2] (cos, sin), PACKED r [T, heads + 2 kv_heads, head_dim] (q, k, v), QUERY
// w [T, heads, head_dim], KEY_VALUE w [T, 2, kv_heads, head_dim]. backward: QUERY and KEY_VALUE r are gradients, PACKED
// w.
// SCALE r [2, head_dim], optional: weights of an RMS norm of each head, one row for q and one for k, applied before the
// rotation. Its backward pass also reads PACKED_IN (the forward input) and makes d SCALE, w or rw (optional; absent if
// frozen).
enum { SPLIT_IN, SPLIT_FIRST, SPLIT_REST };                      // [rows, columns] r; first valid_columns w, others w
enum { JOIN_FIRST, JOIN_REST, JOIN_OUT };                        // inverse of a split: r, r, w
enum { REGROUP_IN, REGROUP_OUT };
// [rows, parts, columns / parts] r, [parts, rows, ...] w, in the order of enum regroup.
enum { LATENT_ROPE_TABLE, LATENT_ROPE_QUERY_UP, LATENT_ROPE_KEY_VALUE_UP, LATENT_ROPE_SHARED_KEY, LATENT_ROPE_QUERY,
       LATENT_ROPE_KEY_VALUE };
// Latent attention: the last elements of each query and key head rotate, and all key heads share one copy, SHARED_KEY.
// forward: TABLE r f32 [sequence, rotary/2, 2], QUERY_UP r [T, heads, head_dim], KEY_VALUE_UP r [T, heads, head_dim -
// rotary + value_dim] (key, value), SHARED_KEY r [T, rotary], QUERY and KEY_VALUE w in attention's layout. backward:
// QUERY and KEY_VALUE r are gradients, the three inputs w; d SHARED_KEY is summed over the heads.
enum { ATTENTION_QUERY, ATTENTION_KEY_VALUE, ATTENTION_OUT, ATTENTION_STATISTICS };
// forward: QUERY r [T, heads, head_dim], KEY_VALUE r [T, kv_heads (head_dim + value_dim)] (per token all key heads,
// then all value heads), OUT w [T, heads, value_dim], STATISTICS w f32 [batch, heads, sequence]: log-sum-exp of the
// scaled scores.
enum { ATTENTION_GRADIENT_OUT, ATTENTION_GRADIENT_QUERY_IN, ATTENTION_GRADIENT_KEY_VALUE_IN, ATTENTION_GRADIENT_OUT_IN,
       ATTENTION_GRADIENT_STATISTICS, ATTENTION_GRADIENT_QUERY, ATTENTION_GRADIENT_KEY_VALUE };
// backward: d OUT r, q r, kv r, OUT r, STATISTICS r; d q w, or rw if the shape adds_query; d kv w or rw.
enum { ATTENTION_MERGE_OUT, ATTENTION_MERGE_STATISTICS, ATTENTION_MERGE_PART, ATTENTION_MERGE_PART_STATISTICS };
// Merges partial attention of the same queries over other keys: OUT rw [T, heads, value_dim] and STATISTICS rw take in
// PART r and PART_STATISTICS r.
enum { SINK_SINKS, SINK_OUT, SINK_STATISTICS };
// Attention sinks. forward: SINKS r [heads], a score per head that joins every query's softmax and has no value. OUT rw
// [T, heads, head_dim] and STATISTICS rw [batch, heads, sequence] cover only the keys before this op.
enum { SINK_GRADIENT_SINKS, SINK_GRADIENT_OUT, SINK_GRADIENT_OUT_IN, SINK_GRADIENT_STATISTICS, SINK_GRADIENT_SINK };
// backward: SINKS r, d OUT r, OUT r, STATISTICS r; d SINKS w or rw. The attention gradient needs no other change.
// Mamba-2. PACKED [T, packed]: output of the input projection (struct mamba_shape); each op accesses some columns.
enum { CONVOLUTION_PACKED, CONVOLUTION_WEIGHT, CONVOLUTION_BIAS, CONVOLUTION_OUT };
// forward: PACKED r (x, B, C), WEIGHT r [channels, taps], BIAS r [channels], OUT w [T, channels]: SiLU of the causal
// convolution of each channel; the last tap multiplies the current position.
enum { CONVOLUTION_GRADIENT_OUT, CONVOLUTION_GRADIENT_PACKED_IN, CONVOLUTION_GRADIENT_WEIGHT_IN,
       CONVOLUTION_GRADIENT_BIAS_IN, CONVOLUTION_GRADIENT_PACKED, CONVOLUTION_GRADIENT_WEIGHT,
       CONVOLUTION_GRADIENT_BIAS };
// backward: d OUT r, PACKED r, WEIGHT r, BIAS r; d PACKED rw: writes x, B and C; d WEIGHT and d BIAS w or rw.
enum { SCAN_CONVOLVED, SCAN_PACKED, SCAN_STEP_BIAS, SCAN_DECAY, SCAN_SKIP, SCAN_OUT };
// forward: CONVOLVED r [T, channels] (x, B, C), PACKED r (dt); STEP_BIAS, DECAY and SKIP r [heads]; OUT w [T, heads,
// head_dim]. Per head, with dt = softplus(dt + STEP_BIAS) and a = -exp(DECAY):
// S = exp(dt a) S + dt x B^T, OUT = S C + SKIP x. All heads of a group have the same B and C.
enum { SCAN_GRADIENT_OUT, SCAN_GRADIENT_CONVOLVED_IN, SCAN_GRADIENT_PACKED_IN, SCAN_GRADIENT_STEP_BIAS_IN,
       SCAN_GRADIENT_DECAY_IN, SCAN_GRADIENT_SKIP_IN, SCAN_GRADIENT_CONVOLVED, SCAN_GRADIENT_PACKED,
       SCAN_GRADIENT_STEP_BIAS, SCAN_GRADIENT_DECAY, SCAN_GRADIENT_SKIP };
// backward: d OUT r and the forward inputs r; d CONVOLVED w; d PACKED rw: writes dt; the gradients of the three vectors
// w or rw.
enum { GATED_NORM_IN, GATED_NORM_PACKED, GATED_NORM_WEIGHT, GATED_NORM_OUT, GATED_NORM_STATISTICS };
// forward: IN r [T, inner], PACKED r (z), WEIGHT r [inner], OUT w [T, inner] = WEIGHT * v / rms(v) with v = IN *
// silu(z) and the rms of each group. STATISTICS w f32 [T, groups]: 1 / rms.
enum { GATED_NORM_GRADIENT_OUT, GATED_NORM_GRADIENT_IN_IN, GATED_NORM_GRADIENT_PACKED_IN, GATED_NORM_GRADIENT_WEIGHT_IN,
       GATED_NORM_GRADIENT_STATISTICS, GATED_NORM_GRADIENT_IN, GATED_NORM_GRADIENT_PACKED, GATED_NORM_GRADIENT_WEIGHT };
// backward: d OUT r, the forward inputs r, STATISTICS r; d IN w; d PACKED w: z, and zeros in all other columns;
// d WEIGHT w or rw.
enum { ACTIVATION_IN, ACTIVATION_OUT };                          // [T, 2 columns] (gate, up) or [T, columns] r; w
enum { ACTIVATION_GRADIENT_OUT, ACTIVATION_GRADIENT_IN_IN, ACTIVATION_GRADIENT_IN };    // d OUT r, IN r, d IN w
// Expert routing. A token's choices are the top_k experts by score + BIAS (f32 [experts] r, optional); its gates follow
// from the scores alone. A choice beyond the capacity of its expert is dropped: its slot is -1. The source of a slot is
// its choice (row * top_k + choice), or -1.
enum { ROUTE_LOGITS, ROUTE_CHOICES, ROUTE_SLOTS, ROUTE_GATES, ROUTE_SOURCES, ROUTE_COUNTS, ROUTE_STATISTICS,
       ROUTE_TOKEN_COUNTS, ROUTE_BIAS };
// forward: LOGITS f32 [total, experts] r. For the rank's own rows: CHOICES i32 [rows, top_k] w, SLOTS i32 [rows, top_k]
// w, GATES f32 [rows, top_k] w. SOURCES i32 [slots] w. COUNTS f32 [sequences, experts] w: rows that have the expert
// among their top_k scores, without bias, groups and capacity. STATISTICS f32 [experts + 2] w or rw, optional: adds own
// choices per expert, own dropped choices, and the weighted auxiliary loss of own rows. TOKEN_COUNTS i32 [experts] w,
// only with packed slots: slots in use per expert.
enum { ROUTE_GRADIENT_LOGITS_IN, ROUTE_GRADIENT_CHOICES, ROUTE_GRADIENT_GATES_IN, ROUTE_GRADIENT_COUNTS,
       ROUTE_GRADIENT_GATES, ROUTE_GRADIENT_LOGITS };
// backward: d GATES f32 [rows, top_k] r, d LOGITS w [rows, experts], others r
enum { READ_TOKEN_COUNTS_OWN, READ_TOKEN_COUNTS_RECEIVED };
// i32 [experts] r by the host: own TOKEN_COUNTS; received, optional
enum { DISPATCH_IN, DISPATCH_SOURCES, DISPATCH_OUT, DISPATCH_GATES };
// [rows, columns] r, r, [slots, columns] w (unused slots zero), gates r or absent (all 1)
enum { COMBINE_IN, COMBINE_SLOTS, COMBINE_GATES, COMBINE_OUT };
// [slots, columns] r, r, gates r or absent (all 1), sums w or rw
enum { COMBINE_GRADIENT_OUT, COMBINE_GRADIENT_IN_IN, COMBINE_GRADIENT_SLOTS, COMBINE_GRADIENT_SOURCES,
       COMBINE_GRADIENT_GATES_IN, COMBINE_GRADIENT_IN, COMBINE_GRADIENT_GATES };
// backward: d OUT r, IN r, SLOTS r, SOURCES r, GATES r, d IN w (unused slots zero) or absent, d GATES w (dropped
// choices zero).
enum { BALANCE_LOADS, BALANCE_BIAS, BALANCE_SCALE };
// f32 [layers, ...]: STATISTICS r, BIAS rw, SCALE [1] r (clip scale). Raises the bias of experts below the mean load
// and lowers it above; a SCALE of NaN leaves BIAS unchanged.
enum { LOGIT_STATISTICS_LOGITS, LOGIT_STATISTICS_TARGETS, LOGIT_STATISTICS_OUT };
// LOGITS r, TARGETS r i32 [T]; OUT w f32 [T, 3]: largest logit, sum of exp(logit - largest), the target's logit or 0.
enum { CROSS_ENTROPY_LOGITS, CROSS_ENTROPY_TARGETS, CROSS_ENTROPY_LOSS, CROSS_ENTROPY_STATISTICS };
// LOGITS rw [T, columns]: overwritten by scale * d loss / d logits. TARGETS r i32 [T]. LOSS w f32 [T]: unscaled loss
// per token. STATISTICS r f32 [parts, T, 3]: LOGIT_STATISTICS of every vocabulary shard; absent if the vocabulary is
// not sharded.
enum { LOSS_SUM_IN, LOSS_SUM_OUT };                              // f32 [rows] r; f32 [1] w or rw: += scale * sum
enum { COLUMN_SUM_IN, COLUMN_SUM_OUT };                          // [rows, columns] r; [columns] w, rw if it accumulates
enum { CAST_IN, CAST_OUT };                                      // [elements] r, w; rw if it accumulates: OUT += IN
enum { CLEAR_OUT };                                      // [elements] w: zeros
// Quantization to FP8 or FP4, and the upkeep of scales.
enum { QUANTIZE_IN, QUANTIZE_OUT, QUANTIZE_TRANSPOSED, QUANTIZE_INVERSE_SCALE, QUANTIZE_TRANSPOSED_INVERSE_SCALE,
       QUANTIZE_SCALE, QUANTIZE_AMAX, QUANTIZE_TENSOR_SCALE, QUANTIZE_TRANSPOSED_TENSOR_SCALE, QUANTIZE_HYPER };
// IN r [rows, columns]. OUT w [rows, columns] and TRANSPOSED w [columns, rows] are low-precision copies of IN * scale;
// one of them may be absent.
// Per-tensor scaling: both copies share one scale. SCALE r f32 [1] is that scale (delayed scaling); if absent, the op
// computes scale = largest number of the format / largest magnitude of IN (current scaling). INVERSE_SCALE w f32 [1] is
// 1 / scale and may be absent if SCALE is given; TRANSPOSED_INVERSE_SCALE is absent. AMAX rw f32 [1], optional: raised
// to the largest magnitude of IN.
// Other scalings (1x128, 128x128, MX blocks, rows): the op computes a scale for each part. INVERSE_SCALE w has the
// inverse scales of OUT, TRANSPOSED_INVERSE_SCALE w the inverse scales of TRANSPOSED; SCALE and AMAX are absent.
// NV scaling: the same, and TENSOR_SCALE and TRANSPOSED_TENSOR_SCALE w f32 [1] have the inverse scale of each copy. If
// the shape transforms, TRANSPOSED is made from the transformed input. HYPER r, only with stochastic rounding.
// Fused: NORM_FORWARD, ACTIVATION_FORWARD and ACTIVATION_BACKWARD can quantize their own output. The slots of
// OP_QUANTIZE then start at OP_FUSED. The copies are made from the output as rounded for storage; the output itself may
// be absent.
enum { TRANSPOSE_IN, TRANSPOSE_OUT };                            // FP8 [rows, columns] r, [columns, rows] w
enum { MAGNITUDE_IN, MAGNITUDE_AMAX };                           // [elements] r; f32 [1] rw: raised to the maximum
enum { RESCALE_AMAX, RESCALE_HISTORY, RESCALE_SCALE, RESCALE_FACTOR };
// AMAX rw f32 [slots]: largest magnitudes of the step, reset to 0. HISTORY rw f32 [slots, history], optional: AMAX is
// pushed to the front of each row. SCALE rw f32 [slots]: target / largest magnitude in HISTORY (or AMAX), unchanged if
// that is 0 or not finite. FACTOR w f32 [slots]: 1 / SCALE.
enum { SQUARE_SUM_IN, SQUARE_SUM_OUT };                          // [elements] r; f32 [1] w, or rw if it accumulates
enum { CLIP_PARTIALS, CLIP_NORM, CLIP_SCALE };                   // f32 [elements] r; f32 [1] w; f32 [1] w
enum { ADAMW_HYPER, ADAMW_SCALE, ADAMW_GRADIENT, ADAMW_MASTER, ADAMW_FIRST, ADAMW_SECOND, ADAMW_WEIGHT,
       ADAMW_AMAX };
// HYPER r f32 [HYPER_COUNT], SCALE r f32 [1], GRADIENT r, MASTER rw f32 (absent: WEIGHT is rw), m rw, v rw, WEIGHT w
// (optional if there is a MASTER). AMAX rw f32 [1], optional: raised to the largest magnitude of WEIGHT. A SCALE of NaN
// skips the update but still raises AMAX.
// Muon: momentum, then Newton-Schulz iterations as GEMMs, then the update.
enum { MOMENTUM_SCALE, MOMENTUM_GRADIENT, MOMENTUM_FIRST, MOMENTUM_OUT };
// SCALE r f32 [1] (clip scale), GRADIENT r, FIRST rw, OUT w f32: with g = SCALE GRADIENT, FIRST += (1 - factor)(g -
// FIRST), OUT = g + factor (FIRST - g). A SCALE of NaN leaves FIRST unchanged and clears OUT.
enum { NORMALIZE_IN, NORMALIZE_SUM, NORMALIZE_OUT };             // f32 r; f32 [1] r: sum of squares; IN / root of SUM w
enum { MUON_HYPER, MUON_SCALE, MUON_UPDATE, MUON_MASTER, MUON_WEIGHT };
// HYPER r, SCALE r f32 [1], UPDATE r, MASTER rw f32 (absent: WEIGHT is rw), WEIGHT w: W -= learning rate (decay W +
// factor UPDATE). A SCALE of NaN skips the update.
enum { HYPER_LEARNING_RATE, HYPER_BETA1, HYPER_BETA2, HYPER_EPSILON, HYPER_DECAY,
       HYPER_CORRECTION1, HYPER_CORRECTION2, HYPER_KEY_LOW, HYPER_KEY_HIGH,
       HYPER_COUNT };      // corrections: 1 - beta^step; key of stochastic rounding: two numbers of 24 bits
enum { COMMUNICATION_IN, COMMUNICATION_OUT };
// ALL_REDUCE, ALL_REDUCE_MAXIMUM (f32): OUT rw. ALL_GATHER: IN r [n], OUT w [size * n]. REDUCE_SCATTER: IN r [size *
// n], OUT w [n]. ALL_TO_ALL: IN r, OUT w [size * n]. ROTATE: a ring shift; OUT w receives IN of the member whose index
// is lower by peer. SEND: IN r. RECEIVE: OUT w. BROADCAST: OUT rw, from the root (peer).
// clang-format on
enum { OP_FUSED = NORM_STATISTICS + 1, OP_OPERANDS = OP_FUSED + QUANTIZE_AMAX + 1 };
