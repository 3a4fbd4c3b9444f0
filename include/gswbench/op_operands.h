// SPDX-License-Identifier: MIT
// Documents the operands of each kind of op: slots, shapes and access. Matrices are row-major and contiguous. tokens:
// tokens of a microbatch on this rank.
#pragma once

enum access { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_UPDATE = 3 };

// clang-format off
// Each enum has the operand slots of an op kind, and the comment after it describes them. An absent operand has tensor
// index -1.
enum { EMBEDDING_TOKENS, EMBEDDING_TABLE, EMBEDDING_OUT };
// EMBEDDING_FORWARD: reads TOKENS i32 [tokens] and TABLE [vocab, columns]. Writes OUT [tokens, columns], or adds to it
// if the op accumulates (position embedding).
enum { EMBEDDING_GRADIENT_TOKENS, EMBEDDING_GRADIENT_OUT, EMBEDDING_GRADIENT_TABLE };
// EMBEDDING_BACKWARD: reads TOKENS i32 [tokens] and the gradient of OUT [tokens, columns]. Writes the gradient of
// TABLE, or adds to it if the op accumulates.
enum { NORM_IN, NORM_BRANCH, NORM_WEIGHT, NORM_BIAS, NORM_SUM, NORM_OUT, NORM_STATISTICS };
// NORM_FORWARD: OUT = norm(x) with x = IN + BRANCH, or x = IN without a BRANCH, all [tokens, columns]. Reads IN,
// BRANCH, WEIGHT and BIAS [columns]. Writes OUT, SUM (x; absent without a BRANCH), and STATISTICS f32 [tokens, 2]: mean
// (0 for RMS norms) and 1 / deviation.
enum { NORM_GRADIENT_OUT, NORM_GRADIENT_X, NORM_GRADIENT_WEIGHT_IN, NORM_GRADIENT_STATISTICS, NORM_GRADIENT_RESIDUAL,
       NORM_GRADIENT_IN, NORM_GRADIENT_WEIGHT, NORM_GRADIENT_BIAS };
// NORM_BACKWARD: reads the gradient of OUT, x (SUM, or IN without a BRANCH), WEIGHT, STATISTICS and RESIDUAL
// (optional). Writes the gradient of x, plus RESIDUAL. Writes or updates the gradients of WEIGHT and BIAS (absent if
// frozen).
enum { GEMM_A, GEMM_B, GEMM_C, GEMM_INVERSE_SCALE_A, GEMM_INVERSE_SCALE_B, GEMM_BIAS, GEMM_TENSOR_SCALE_A,
       GEMM_TENSOR_SCALE_B, GEMM_ADDEND };
// GEMM: writes C [m, n] = op(A) op(B), or adds this to C if it accumulates. Reads BIAS [n], optional: added to each row
// of C. Reads ADDEND [m, n], optional, in the format of C, not with accumulation: C += shape.addend * ADDEND. FP8
// operands have inverse scales f32: INVERSE_SCALE_A and INVERSE_SCALE_B, with scaling_inverses() elements. With NV
// scaling, C is multiplied by TENSOR_SCALE_A and TENSOR_SCALE_B f32 [1], the inverse scales of the tensors.
// Low-precision GEMMs always read A as stored and B transposed: both are then contiguous along k, as GPUs need them.
enum { ROPE_TABLE, ROPE_PACKED, ROPE_QUERY, ROPE_KEY_VALUE, ROPE_SCALE, ROPE_PACKED_IN, ROPE_SCALE_GRADIENT };
// ROPE_FORWARD: reads TABLE f32 [sequence, rotary/2, 2] (cos, sin) and PACKED [tokens, heads + 2 kv_heads, head_dim]
// (q, k, v). Writes QUERY [tokens, heads, head_dim] and KEY_VALUE [tokens, 2, kv_heads, head_dim]. ROPE_BACKWARD: reads
// gradients in QUERY and KEY_VALUE, and writes PACKED.
// SCALE [2, head_dim], optional: weights of an RMS norm of each head before the rotation, one row for q and one for k.
// The backward pass then also reads PACKED_IN (the forward input) and writes or updates the gradient of SCALE (absent
// if frozen).
enum { SPLIT_IN, SPLIT_FIRST, SPLIT_REST };
// SPLIT: copies the first valid_columns columns of IN [rows, columns] to FIRST, and the other columns to REST.
enum { JOIN_FIRST, JOIN_REST, JOIN_OUT };
// JOIN: the inverse of SPLIT. Concatenates the columns of FIRST and REST in OUT.
enum { REGROUP_IN, REGROUP_OUT };
// REGROUP: transposes IN [rows, parts, columns / parts] to OUT [parts, rows, ...]. Variants: enum regroup.
enum { LATENT_ROPE_TABLE, LATENT_ROPE_QUERY_UP, LATENT_ROPE_KEY_VALUE_UP, LATENT_ROPE_SHARED_KEY, LATENT_ROPE_QUERY,
       LATENT_ROPE_KEY_VALUE };
// LATENT_ROPE_FORWARD (latent attention): rotates the last elements of each query head, and SHARED_KEY, which becomes
// the last elements of every key head. Reads TABLE f32 [sequence, rotary/2, 2], QUERY_UP [tokens, heads, head_dim],
// KEY_VALUE_UP [tokens, heads, head_dim - rotary + value_dim] (key, value) and SHARED_KEY [tokens, rotary]. Writes
// QUERY and KEY_VALUE for attention. LATENT_ROPE_BACKWARD: reads gradients in QUERY and KEY_VALUE; writes the gradients
// of the three inputs, for SHARED_KEY summed over the heads.
enum { ATTENTION_QUERY, ATTENTION_KEY_VALUE, ATTENTION_OUT, ATTENTION_STATISTICS };
// ATTENTION_FORWARD: reads QUERY [tokens, heads, head_dim] and KEY_VALUE [tokens, kv_heads (head_dim + value_dim)] (per
// token all key heads, then all value heads). Writes OUT [tokens, heads, value_dim] and STATISTICS f32 [batch, heads,
// sequence]: log-sum-exp of the scaled scores.
enum { ATTENTION_GRADIENT_OUT, ATTENTION_GRADIENT_QUERY_IN, ATTENTION_GRADIENT_KEY_VALUE_IN, ATTENTION_GRADIENT_OUT_IN,
       ATTENTION_GRADIENT_STATISTICS, ATTENTION_GRADIENT_QUERY, ATTENTION_GRADIENT_KEY_VALUE };
// ATTENTION_BACKWARD: reads the gradient of OUT, and QUERY, KEY_VALUE, OUT and STATISTICS. Writes the gradient of
// QUERY, or adds to it if the shape has adds_query. Writes the gradient of KEY_VALUE, or adds to it if the op
// accumulates.
enum { ATTENTION_MERGE_OUT, ATTENTION_MERGE_STATISTICS, ATTENTION_MERGE_PART, ATTENTION_MERGE_PART_STATISTICS };
// ATTENTION_MERGE: combines attention of the same queries over two sets of keys. Reads PART and PART_STATISTICS, the
// attention over one set. Updates OUT [tokens, heads, value_dim] and STATISTICS from the attention over the other set
// to the attention over both.
enum { SINK_SINKS, SINK_OUT, SINK_STATISTICS };
// SINK_FORWARD: reads SINKS [heads], a score per head that joins the softmax of every query like a key, but without a
// value vector. Updates OUT [tokens, heads, head_dim] and STATISTICS [batch, heads, sequence], which so far cover only
// the keys.
enum { SINK_GRADIENT_SINKS_IN, SINK_GRADIENT_OUT, SINK_GRADIENT_OUT_IN, SINK_GRADIENT_STATISTICS, SINK_GRADIENT_SINKS };
// SINK_BACKWARD: reads SINKS, the gradient of OUT, OUT and STATISTICS; writes or updates the gradient of SINKS.

// The following ops are for Mamba-2. PACKED [tokens, packed] is the output of the input projection (struct
// mamba_shape); each op accesses some of its columns.
enum { CONVOLUTION_PACKED, CONVOLUTION_WEIGHT, CONVOLUTION_BIAS, CONVOLUTION_OUT };
// CONVOLUTION_FORWARD: writes OUT [tokens, channels], the SiLU of a causal convolution of each channel. Reads x, B and
// C in PACKED, WEIGHT [channels, taps] (the last tap multiplies the current position) and BIAS [channels].
enum { CONVOLUTION_GRADIENT_OUT, CONVOLUTION_GRADIENT_PACKED_IN, CONVOLUTION_GRADIENT_WEIGHT_IN,
       CONVOLUTION_GRADIENT_BIAS_IN, CONVOLUTION_GRADIENT_PACKED, CONVOLUTION_GRADIENT_WEIGHT,
       CONVOLUTION_GRADIENT_BIAS };
// CONVOLUTION_BACKWARD: reads the gradient of OUT, PACKED, WEIGHT and BIAS. Writes the columns x, B and C of the
// gradient of PACKED. Writes or updates the gradients of WEIGHT and BIAS.
enum { SCAN_CONVOLVED, SCAN_PACKED, SCAN_STEP_BIAS, SCAN_DECAY, SCAN_SKIP, SCAN_OUT };
// SCAN_FORWARD: reads CONVOLVED [tokens, channels] (x, B, C), dt in PACKED, and STEP_BIAS, DECAY and SKIP [heads].
// Writes OUT [tokens, heads, head_dim]. Per head, with dt = softplus(dt + STEP_BIAS), a = -exp(DECAY) and state S: S =
// exp(dt a) S + dt x B^T, OUT = S C + SKIP x. All heads of a group have the same B and C.
enum { SCAN_GRADIENT_OUT, SCAN_GRADIENT_CONVOLVED_IN, SCAN_GRADIENT_PACKED_IN, SCAN_GRADIENT_STEP_BIAS_IN,
       SCAN_GRADIENT_DECAY_IN, SCAN_GRADIENT_SKIP_IN, SCAN_GRADIENT_CONVOLVED, SCAN_GRADIENT_PACKED,
       SCAN_GRADIENT_STEP_BIAS, SCAN_GRADIENT_DECAY, SCAN_GRADIENT_SKIP };
// SCAN_BACKWARD: reads the gradient of OUT and the forward inputs. Writes the gradient of CONVOLVED, and dt in the
// gradient of PACKED. Writes or updates the gradients of STEP_BIAS, DECAY and SKIP.
enum { GATED_NORM_IN, GATED_NORM_PACKED, GATED_NORM_WEIGHT, GATED_NORM_OUT, GATED_NORM_STATISTICS };
// GATED_NORM_FORWARD: reads IN [tokens, inner], z in PACKED and WEIGHT [inner]. Writes OUT [tokens, inner] = WEIGHT * v
// / rms(v) with v = IN * silu(z) and the rms of each group, and STATISTICS f32 [tokens, groups]: 1 / rms.
enum { GATED_NORM_GRADIENT_OUT, GATED_NORM_GRADIENT_IN_IN, GATED_NORM_GRADIENT_PACKED_IN, GATED_NORM_GRADIENT_WEIGHT_IN,
       GATED_NORM_GRADIENT_STATISTICS, GATED_NORM_GRADIENT_IN, GATED_NORM_GRADIENT_PACKED, GATED_NORM_GRADIENT_WEIGHT };
// GATED_NORM_BACKWARD: reads the gradient of OUT, the forward inputs and STATISTICS. Writes the gradients of IN and of
// PACKED (zero in all columns but z). Writes or updates the gradient of WEIGHT.
enum { ACTIVATION_IN, ACTIVATION_OUT };
// ACTIVATION_FORWARD: reads IN [tokens, 2 columns] (gate, up) or [tokens, columns]. Writes OUT [tokens, columns].
enum { ACTIVATION_GRADIENT_OUT, ACTIVATION_GRADIENT_IN_IN, ACTIVATION_GRADIENT_IN };
// ACTIVATION_BACKWARD: reads the gradient of OUT, and IN. Writes the gradient of IN.

// The following ops route tokens to experts. A choice is a pair of a token and one of its top_k experts, numbered row *
// top_k + j with j in 0 .. top_k - 1. A token chooses experts by score + BIAS (f32 [experts], optional); its gates are
// computed from the scores without BIAS. A slot is a row of the experts' input. A choice beyond the capacity of its
// expert is dropped: its slot is -1. The source of a slot is the choice that fills it, or -1.
enum { ROUTE_LOGITS, ROUTE_CHOICES, ROUTE_SLOTS, ROUTE_GATES, ROUTE_SOURCES, ROUTE_COUNTS, ROUTE_STATISTICS,
       ROUTE_TOKEN_COUNTS, ROUTE_BIAS };
// ROUTE_FORWARD: reads LOGITS f32 [total, experts]. For the rank's own rows, writes CHOICES i32, SLOTS i32 and GATES
// f32 [rows, top_k]. Writes SOURCES i32 [slots], and COUNTS f32 [sequences, experts]: number of rows that have the
// expert among their top_k scores, without bias, groups and capacity. With packed slots, writes TOKEN_COUNTS i32
// [experts]: slots of each expert, with padding. Writes or updates STATISTICS f32 [experts + 2], optional: choices of
// each expert, dropped choices, and weighted auxiliary loss, each summed over the rank's own rows.
enum { ROUTE_GRADIENT_LOGITS_IN, ROUTE_GRADIENT_CHOICES, ROUTE_GRADIENT_GATES_IN, ROUTE_GRADIENT_COUNTS,
       ROUTE_GRADIENT_GATES, ROUTE_GRADIENT_LOGITS };
// ROUTE_BACKWARD: reads the gradient of GATES f32 [rows, top_k], and LOGITS, CHOICES, GATES and COUNTS. Writes the
// gradient of LOGITS [rows, experts].
enum { READ_TOKEN_COUNTS_OWN, READ_TOKEN_COUNTS_RECEIVED };
// READ_TOKEN_COUNTS: copies token counts to the host. OWN i32 [experts]: TOKEN_COUNTS of this rank. RECEIVED i32
// [experts], optional: the counts that other ranks have sent for the experts of this rank.
enum { DISPATCH_IN, DISPATCH_SOURCES, DISPATCH_OUT, DISPATCH_GATES };
// DISPATCH: copies rows of IN [rows, columns] to OUT [slots, columns] as SOURCES says, times GATES (absent: 1). Unused
// slots are set to zero.
enum { COMBINE_IN, COMBINE_SLOTS, COMBINE_GATES, COMBINE_OUT };
// COMBINE: for each token, sums the rows of IN [slots, columns] at its SLOTS, times GATES (absent: 1). Writes the sums
// to OUT [rows, columns], or adds them if the op accumulates.
enum { COMBINE_GRADIENT_OUT, COMBINE_GRADIENT_IN_IN, COMBINE_GRADIENT_SLOTS, COMBINE_GRADIENT_SOURCES,
       COMBINE_GRADIENT_GATES_IN, COMBINE_GRADIENT_IN, COMBINE_GRADIENT_GATES };
// COMBINE_BACKWARD: reads the gradient of OUT, IN, SLOTS, SOURCES and GATES. Writes the gradient of IN (optional; zero
// in unused slots) and the gradient of GATES (zero for dropped choices).
enum { BALANCE_LOADS, BALANCE_BIAS, BALANCE_SCALE };
// BALANCE: reads LOADS f32 [layers, experts + 2] (STATISTICS of ROUTE_FORWARD) and SCALE f32 [1] (SCALE of CLIP), and
// updates BIAS f32 [layers, experts]. Raises the bias of experts below the mean load, and lowers it for experts above
// the mean load. If SCALE is NaN, BIAS stays unchanged.
enum { LOGIT_STATISTICS_LOGITS, LOGIT_STATISTICS_TARGETS, LOGIT_STATISTICS_OUT };
// LOGIT_STATISTICS: reads LOGITS and TARGETS i32 [tokens]. Writes OUT f32 [tokens, 3]: largest logit, sum of exp(logit
// - largest), and the target's logit, or 0 if another vocabulary shard has it.
enum { CROSS_ENTROPY_LOGITS, CROSS_ENTROPY_TARGETS, CROSS_ENTROPY_LOSS, CROSS_ENTROPY_STATISTICS };
// CROSS_ENTROPY: reads LOGITS [tokens, columns] and overwrites them by scale * d loss / d logits. Reads TARGETS i32
// [tokens]. Writes LOSS f32 [tokens]: unscaled loss per token. Reads STATISTICS f32 [parts, tokens, 3]:
// LOGIT_STATISTICS of every vocabulary shard; absent if the vocabulary is not sharded.
enum { LOSS_SUM_IN, LOSS_SUM_OUT };
// LOSS_SUM: writes scale * (sum of IN f32 [rows]) to OUT f32 [1], or adds it if the op accumulates.
enum { COLUMN_SUM_IN, COLUMN_SUM_OUT };
// COLUMN_SUM: sums the rows of IN [rows, columns]. Writes the sum to OUT [columns], or adds it if the op accumulates.
enum { CAST_IN, CAST_OUT };
// CAST: converts IN [elements] to the format of OUT and writes it to OUT, or adds it if the op accumulates.
enum { CLEAR_OUT };
// CLEAR: sets OUT [elements] to zero.

// The following ops quantize to FP8 or FP4 and compute scales.
enum { QUANTIZE_IN, QUANTIZE_OUT, QUANTIZE_TRANSPOSED, QUANTIZE_INVERSE_SCALE, QUANTIZE_TRANSPOSED_INVERSE_SCALE,
       QUANTIZE_SCALE, QUANTIZE_AMAX, QUANTIZE_TENSOR_SCALE, QUANTIZE_TRANSPOSED_TENSOR_SCALE, QUANTIZE_HYPER };
// QUANTIZE: reads IN [rows, columns]. Writes low-precision copies of IN * scale to OUT [rows, columns] and TRANSPOSED
// [columns, rows]; one of them may be absent.
// Per-tensor scaling: both copies share one scale. The op reads it from SCALE f32 [1] (delayed scaling); if SCALE is
// absent, it computes scale = largest number of the format / largest magnitude of IN (current scaling). It writes 1 /
// scale to INVERSE_SCALE f32 [1], which may be absent if SCALE is given; TRANSPOSED_INVERSE_SCALE is absent. It raises
// AMAX f32 [1], optional, to the largest magnitude of IN.
// Other scalings (1x128, 128x128, MX blocks, rows): the op computes a scale for each block or row. It writes the
// inverse scales of OUT to INVERSE_SCALE, and the inverse scales of TRANSPOSED to TRANSPOSED_INVERSE_SCALE. SCALE and
// AMAX are absent.
// NV scaling: like the other scalings above, but the op also writes an inverse scale per copy to TENSOR_SCALE and
// TRANSPOSED_TENSOR_SCALE f32 [1]. If the shape has transforms, TRANSPOSED is made from the Hadamard transform of the
// input. Stochastic rounding reads HYPER.
// Fused: NORM_FORWARD, ACTIVATION_FORWARD and ACTIVATION_BACKWARD can quantize their own output. The slots of
// OP_QUANTIZE then start at OP_FUSED. The copies are made from the output as rounded for storage; the output itself may
// be absent.
enum { TRANSPOSE_IN, TRANSPOSE_OUT };
// TRANSPOSE: reads IN [rows, columns] in FP8 and writes OUT [columns, rows].
enum { MAGNITUDE_IN, MAGNITUDE_AMAX };
// MAGNITUDE: sets AMAX f32 [1] to the maximum of AMAX and the largest magnitude of IN [elements].
enum { RESCALE_AMAX, RESCALE_HISTORY, RESCALE_SCALE, RESCALE_FACTOR };
// RESCALE: operands are f32 [slots], one element per scale. Pushes AMAX, the largest magnitudes of the step, to the
// front of each row of HISTORY [slots, history] (optional), and resets AMAX to 0. Sets SCALE to target / m, where m is
// the largest magnitude in the row of HISTORY (without HISTORY, in AMAX). If m is 0 or not finite, SCALE stays
// unchanged. Writes FACTOR: 1 / SCALE.
enum { SQUARE_SUM_IN, SQUARE_SUM_OUT };
// SQUARE_SUM: writes the sum of squares of IN [elements] to OUT f32 [1], or adds it if the op accumulates.
enum { CLIP_PARTIALS, CLIP_NORM, CLIP_SCALE };
// CLIP: reads PARTIALS f32 [elements], sums of squares of gradients. Writes NORM f32 [1], the gradient norm, and SCALE
// f32 [1], the factor that clips gradients. SCALE is NaN if the norm is not finite.
enum { ADAMW_HYPER, ADAMW_SCALE, ADAMW_GRADIENT, ADAMW_MASTER, ADAMW_FIRST, ADAMW_SECOND, ADAMW_WEIGHT,
       ADAMW_AMAX };
// ADAMW: reads HYPER f32 [HYPER_COUNT], SCALE f32 [1] (SCALE of CLIP) and GRADIENT. Multiplies GRADIENT by SCALE, and
// updates the moments FIRST and SECOND and the weights with the product. If MASTER f32 is present, it has the weights,
// and the op copies them to WEIGHT, if present. Otherwise WEIGHT has the weights. Raises AMAX f32 [1], optional, to the
// largest magnitude in WEIGHT. If SCALE is NaN, it updates nothing, but still raises AMAX.

// The following ops are the optimizer Muon: MOMENTUM, NORMALIZE, Newton-Schulz iterations as GEMMs, then MUON.
enum { MOMENTUM_SCALE, MOMENTUM_GRADIENT, MOMENTUM_FIRST, MOMENTUM_OUT };
// MOMENTUM: reads SCALE f32 [1] (SCALE of CLIP) and GRADIENT. With g = SCALE * GRADIENT and d = elements_shape.factor,
// updates FIRST += (1 - d) * (g - FIRST), then writes OUT f32 = g + d * (FIRST - g). If SCALE is NaN, it leaves FIRST
// unchanged and clears OUT.
enum { NORMALIZE_IN, NORMALIZE_SUM, NORMALIZE_OUT };
// NORMALIZE: reads IN f32 and SUM f32 [1], its sum of squares. Writes OUT = IN / sqrt(SUM).
enum { MUON_HYPER, MUON_SCALE, MUON_UPDATE, MUON_MASTER, MUON_WEIGHT };
// MUON: reads HYPER, SCALE f32 [1] and UPDATE, the orthogonalized momentum. Subtracts learning rate * (decay * weight +
// elements_shape.factor * UPDATE) from each weight. MASTER and WEIGHT are as in ADAMW. If SCALE is NaN, it updates
// nothing. Otherwise SCALE has no effect; MOMENTUM has applied it.
enum { HYPER_LEARNING_RATE, HYPER_BETA1, HYPER_BETA2, HYPER_EPSILON, HYPER_DECAY,
       HYPER_CORRECTION1, HYPER_CORRECTION2, HYPER_KEY_LOW, HYPER_KEY_HIGH,
       HYPER_COUNT };
// HYPER: hyperparameters of a step. CORRECTION1 and 2: 1 - beta^step of Adam. KEY_LOW and KEY_HIGH: 24 bits each of the
// key of stochastic rounding.
enum { COMMUNICATION_IN, COMMUNICATION_OUT };
// size: number of members of the group. ALL_REDUCE, ALL_REDUCE_MAXIMUM (f32): update OUT. ALL_GATHER: IN [n] to OUT
// [size * n]. REDUCE_SCATTER: IN [size * n] to OUT [n]. ALL_TO_ALL: IN to OUT, both [size * n]. ROTATE, a ring shift:
// OUT receives IN of the member whose index is lower by peer. SEND: reads IN. RECEIVE: writes OUT. BROADCAST: updates
// OUT, from the root (peer).
enum { OP_FUSED = NORM_STATISTICS + 1, OP_OPERANDS = OP_FUSED + QUANTIZE_AMAX + 1 };
