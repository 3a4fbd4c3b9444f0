// SPDX-License-Identifier: MIT
// What each kind of op reads and writes: the slots of its operands. Matrices are row-major and contiguous.
// T: tokens of a microbatch on this rank.
#ifndef GSWBENCH_OP_OPERANDS_H
#define GSWBENCH_OP_OPERANDS_H

#include "gswbench/op_quantize.h"

enum access { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_UPDATE = 3 };

// clang-format off
// Operand slots by kind; an absent optional operand is tensor -1. [shape] and access stand beside each slot.
enum { EMBEDDING_TOKENS, EMBEDDING_TABLE, EMBEDDING_OUT };       // forward: i32 [T] r, [vocab, columns] r, [T, columns] w
                                                                // or, when it accumulates, rw; of positions: rows of theirs
enum { EMBEDDING_GRADIENT_TOKENS, EMBEDDING_GRADIENT_OUT,        // backward: i32 [T] r, d out [T, columns] r,
       EMBEDDING_GRADIENT_TABLE };                               //           d table w, or rw when it accumulates
enum { NORM_IN, NORM_BRANCH, NORM_WEIGHT, NORM_BIAS, NORM_SUM, NORM_OUT, NORM_STATISTICS };
// forward: x = IN r [T, columns] (+ BRANCH r, then SUM w receives x); OUT w = normalised x; WEIGHT r [columns]; BIAS r
// (layer norms); STATISTICS w f32 [T, 2]: mean (0 for RMS) and 1/deviation. All [T, columns] but those named.
enum { NORM_GRADIENT_OUT, NORM_GRADIENT_X, NORM_GRADIENT_WEIGHT_IN, NORM_GRADIENT_STATISTICS, NORM_GRADIENT_RESIDUAL,
       NORM_GRADIENT_IN, NORM_GRADIENT_WEIGHT, NORM_GRADIENT_BIAS };
// backward: d OUT r, x r (SUM, or IN without a branch), weight r, STATISTICS r, RESIDUAL r (added to the result, may be
// absent), d x w, d WEIGHT and d BIAS w or rw.
enum { GEMM_A, GEMM_B, GEMM_C, GEMM_FACTOR_A, GEMM_FACTOR_B, GEMM_BIAS };   // C [m, n] = op(A) op(B), or += when it accumulates;
// FACTOR_A, FACTOR_B r f32: what FP8 numbers of A and B are multiplied by, as many as the scaling says; absent where A and
// B are not FP8. FP8 GEMMs are always of A as it is and B transposed: devices multiply rows of one by rows of the other.
// BIAS r [n], or absent: added to each row of C.
enum { ROPE_TABLE, ROPE_PACKED, ROPE_QUERY, ROPE_KEY_VALUE, ROPE_SCALE, ROPE_PACKED_IN, ROPE_SCALE_GRADIENT };
// forward: TABLE r f32 [sequence, rotary/2, 2] (cos, sin), PACKED r [T, heads + 2 kv_heads, head_dim] (q, k, v), QUERY w
// [T, heads, head_dim], KEY_VALUE w [T, 2, kv_heads, head_dim]. backward: QUERY, KEY_VALUE r hold gradients, PACKED w.
// SCALE r [2, head_dim], or absent: each head of q and k is normalised before it rotates, as by an RMS norm, and
// multiplied by the row for q or that for k. Then backward: PACKED_IN r is what forward read, d SCALE w or rw.
enum { SPLIT_IN, SPLIT_FIRST, SPLIT_REST };                      // [rows, columns] r, [rows, valid_columns] w, the other columns w
enum { JOIN_FIRST, JOIN_REST, JOIN_OUT };                        // the way back: r, r, w
enum { REGROUP_IN, REGROUP_OUT };                                // [rows, parts, columns / parts] r, [parts, rows, ...] w: variant is
                                                                 // enum regroup
enum { LATENT_ROPE_TABLE, LATENT_ROPE_QUERY_UP, LATENT_ROPE_KEY_VALUE_UP, LATENT_ROPE_SHARED_KEY, LATENT_ROPE_QUERY,
       LATENT_ROPE_KEY_VALUE };
// Heads of queries and keys end in the elements that rotate, of which the keys have one copy for all heads. forward:
// TABLE r f32 [sequence, rotary/2, 2], QUERY_UP r [T, heads, head_dim], KEY_VALUE_UP r [T, heads, head_dim - rotary +
// value_dim] (key, value), SHARED_KEY r [T, rotary], QUERY w, KEY_VALUE w as attention reads them. backward: QUERY and
// KEY_VALUE r hold gradients, the three others w; d SHARED_KEY is the sum over these heads.
enum { ATTENTION_QUERY, ATTENTION_KEY_VALUE, ATTENTION_OUT, ATTENTION_STATISTICS };
// forward: [T, heads, head_dim] r, [T, kv_heads (head_dim + value_dim)] r: of a token all heads of keys, then all of values,
// w [T, heads, value_dim], w f32 [batch, heads, sequence]: log-sum-exp of the scaled scores.
enum { ATTENTION_GRADIENT_OUT, ATTENTION_GRADIENT_QUERY_IN, ATTENTION_GRADIENT_KEY_VALUE_IN, ATTENTION_GRADIENT_OUT_IN,
       ATTENTION_GRADIENT_STATISTICS, ATTENTION_GRADIENT_QUERY, ATTENTION_GRADIENT_KEY_VALUE };
// backward: d OUT r, q r, kv r, OUT r, STATISTICS r; d q w, or added to when the shape adds_query; d kv w or rw.
enum { ATTENTION_MERGE_OUT, ATTENTION_MERGE_STATISTICS, ATTENTION_MERGE_PART, ATTENTION_MERGE_PART_STATISTICS };
// OUT rw [T, heads, value_dim] and STATISTICS rw take in the PART r of the same queries over other keys, and its r.
enum { SINK_SINKS, SINK_OUT, SINK_STATISTICS };
// forward: SINKS r [heads]: a score of each head that every query has besides those of its keys, and that no value belongs to;
// OUT rw [T, heads, head_dim] and STATISTICS rw [batch, heads, sequence] are of the keys alone before.
enum { SINK_GRADIENT_SINKS, SINK_GRADIENT_OUT, SINK_GRADIENT_OUT_IN, SINK_GRADIENT_STATISTICS, SINK_GRADIENT_SINK };
// backward: SINKS r, d OUT r, OUT r, STATISTICS r; d SINKS w or rw. That of scores needs no other attention gradient.
enum { ACTIVATION_IN, ACTIVATION_OUT };                          // [T, 2 columns] (gate, up) or [T, columns] r; w
enum { ACTIVATION_GRADIENT_OUT, ACTIVATION_GRADIENT_IN_IN, ACTIVATION_GRADIENT_IN };    // d OUT r, IN r, d IN w
// Experts: a token's choices are the top_k largest of its scores and BIAS (f32 [experts] r, or absent), its gates follow from the
// scores. A choice beyond the slots of its expert is dropped: -1. A slot's source is the choice (row * top_k + choice), or -1.
enum { ROUTE_LOGITS, ROUTE_CHOICES, ROUTE_SLOTS, ROUTE_GATES, ROUTE_SOURCES, ROUTE_COUNTS, ROUTE_STATISTICS, ROUTE_TALLIES, ROUTE_BIAS };
// forward: LOGITS f32 [total, experts] r; of the own rows: CHOICES i32 [rows, top_k] w (experts), SLOTS i32 [rows, top_k] w,
// GATES f32 [rows, top_k] w; SOURCES i32 [slots] w; COUNTS f32 [sequences, experts] w: the top_k largest scores of all rows;
// STATISTICS f32 [experts + 2] w or rw, or absent: += own choices by expert, own dropped choices, own auxiliary
// loss with its weight; TALLIES i32 [experts] w, or absent: slots that each expert has where they are packed.
enum { ROUTE_GRADIENT_LOGITS_IN, ROUTE_GRADIENT_CHOICES, ROUTE_GRADIENT_GATES_IN, ROUTE_GRADIENT_COUNTS, ROUTE_GRADIENT_GATES,
       ROUTE_GRADIENT_LOGITS };    // backward: d GATES f32 [rows, top_k] r, d LOGITS w [rows, experts], others r
enum { READ_TALLIES_OWN, READ_TALLIES_RECEIVED };    // i32 [experts] r, by the step: TALLIES; those for the experts here, or absent
enum { DISPATCH_IN, DISPATCH_SOURCES, DISPATCH_OUT, DISPATCH_GATES };
// [rows, columns] r, r, [slots, columns] w: empty slots zero; r or absent (all 1)
enum { COMBINE_IN, COMBINE_SLOTS, COMBINE_GATES, COMBINE_OUT };  // [slots, columns] r, r, r or absent (all 1), sums w or rw
enum { COMBINE_GRADIENT_OUT, COMBINE_GRADIENT_IN_IN, COMBINE_GRADIENT_SLOTS, COMBINE_GRADIENT_SOURCES,
       COMBINE_GRADIENT_GATES_IN, COMBINE_GRADIENT_IN, COMBINE_GRADIENT_GATES };
// backward: d OUT r, IN r, SLOTS r, SOURCES r, GATES r, d IN w (empty slots zero) or absent, d GATES w (dropped choices
// zero).
enum { BALANCE_LOADS, BALANCE_BIAS, BALANCE_SCALE };
// f32: STATISTICS of layers r, BIAS of them rw: up by scale where below the mean load; SCALE [1] r: NaN leaves all as it is.
enum { LOGIT_STATISTICS_LOGITS, LOGIT_STATISTICS_TARGETS, LOGIT_STATISTICS_OUT };
// LOGITS r, TARGETS r i32 [T]; OUT w f32 [T, 3]: largest logit, sum of exp(logit - largest), the target's logit or 0.
enum { CROSS_ENTROPY_LOGITS, CROSS_ENTROPY_TARGETS, CROSS_ENTROPY_LOSS, CROSS_ENTROPY_STATISTICS };
// LOGITS rw [T, columns]: replaced by scale * d loss / d logits; TARGETS r i32 [T]; LOSS w f32 [T]: unscaled, a token.
// STATISTICS r f32 [parts, T, 3]: of every part of a vocabulary that is shared out; absent when all of it is here.
enum { LOSS_SUM_IN, LOSS_SUM_OUT };                              // f32 [rows] r; f32 [1] w or rw: += scale * sum
enum { COLUMN_SUM_IN, COLUMN_SUM_OUT };                          // [rows, columns] r; [columns] w, or rw: += when it accumulates
enum { CAST_IN, CAST_OUT };                                      // [elements] r, w; or rw: OUT += IN when it accumulates
enum { CLEAR_OUT };                                      // [elements] w: zeros
enum { SQUARE_SUM_IN, SQUARE_SUM_OUT };                          // [elements] r; f32 [1] w, or rw: += when it accumulates
enum { CLIP_PARTIALS, CLIP_NORM, CLIP_SCALE };                   // f32 [elements] r; f32 [1] w: norm; f32 [1] w: factor
enum { ADAMW_HYPER, ADAMW_SCALE, ADAMW_GRADIENT, ADAMW_MASTER, ADAMW_FIRST, ADAMW_SECOND, ADAMW_WEIGHT,
       ADAMW_AMAX };
// HYPER r f32 [HYPER_COUNT], SCALE r f32 [1], GRADIENT r, MASTER rw f32 (absent: WEIGHT is rw), m rw, v rw, WEIGHT w, or
// absent beside a MASTER. AMAX rw f32 [1]: raised to the largest magnitude of WEIGHT, or absent. A SCALE of NaN leaves all
// as it is but AMAX, which is raised all the same.
enum { HYPER_LEARNING_RATE, HYPER_BETA1, HYPER_BETA2, HYPER_EPSILON, HYPER_DECAY,
       HYPER_CORRECTION1, HYPER_CORRECTION2, HYPER_COUNT };      // corrections: 1 - beta^step
enum { TRANSFER_IN, TRANSFER_OUT };
// ALL_REDUCE, ALL_REDUCE_MAXIMUM (f32): OUT rw. ALL_GATHER: IN r [n], OUT w [size * n]. REDUCE_SCATTER: IN r [size * n], OUT w [n].
// ALL_TO_ALL: IN r, OUT w [size * n]. ROTATE: the group is a ring, in which OUT w receives the IN r of the member that is
// peer places before. SEND: IN r. RECEIVE: OUT w. BROADCAST: OUT rw, from the group's root.
// clang-format on
enum { OP_FUSED = NORM_STATISTICS + 1, OP_OPERANDS = OP_FUSED + QUANTIZE_AMAX + 1 };

#endif
