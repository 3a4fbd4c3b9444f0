// SPDX-License-Identifier: MIT
// The kinds of ops. The name of a kind is part of its function's name in each backend (host_gemm, device_gemm).
// Operands are in op_operands.h, everything else in a row of src/op/op_table.c.
#ifndef GSWBENCH_OP_KIND_H
#define GSWBENCH_OP_KIND_H

// clang-format off
// Compute, executed by a backend.
#define OP_COMPUTE_KINDS(KIND)                        \
    KIND(OP_EMBEDDING_FORWARD, embedding_forward)     \
    KIND(OP_EMBEDDING_BACKWARD, embedding_backward)   \
    KIND(OP_NORM_FORWARD, norm_forward)               \
    KIND(OP_NORM_BACKWARD, norm_backward)             \
    KIND(OP_GEMM, gemm)                               \
    KIND(OP_ROPE_FORWARD, rope_forward)               \
    KIND(OP_ROPE_BACKWARD, rope_backward)             \
    KIND(OP_ATTENTION_FORWARD, attention_forward)     \
    KIND(OP_ATTENTION_BACKWARD, attention_backward)   \
    KIND(OP_ATTENTION_MERGE, attention_merge)         \
    KIND(OP_SINK_FORWARD, sink_forward)               \
    KIND(OP_SINK_BACKWARD, sink_backward)             \
    KIND(OP_SPLIT, split)                             \
    KIND(OP_JOIN, join)                               \
    KIND(OP_REGROUP, regroup)                         \
    KIND(OP_LATENT_ROPE_FORWARD, latent_rope_forward) \
    KIND(OP_LATENT_ROPE_BACKWARD, latent_rope_backward) \
    KIND(OP_ACTIVATION_FORWARD, activation_forward)   \
    KIND(OP_ACTIVATION_BACKWARD, activation_backward) \
    KIND(OP_ROUTE_FORWARD, route_forward)             \
    KIND(OP_ROUTE_BACKWARD, route_backward)           \
    KIND(OP_READ_TALLIES, read_tallies)               \
    KIND(OP_DISPATCH, dispatch)                       \
    KIND(OP_COMBINE, combine)                         \
    KIND(OP_COMBINE_BACKWARD, combine_backward)       \
    KIND(OP_BALANCE, balance)                         \
    KIND(OP_LOGIT_STATISTICS, logit_statistics)       \
    KIND(OP_CROSS_ENTROPY, cross_entropy)             \
    KIND(OP_LOSS_SUM, loss_sum)                       \
    KIND(OP_COLUMN_SUM, column_sum)                   \
    KIND(OP_CAST, cast)                               \
    KIND(OP_QUANTIZE, quantize)                       \
    KIND(OP_TRANSPOSE, transpose)                     \
    KIND(OP_MAGNITUDE, magnitude)                     \
    KIND(OP_RESCALE, rescale)                         \
    KIND(OP_CLEAR, clear)                             \
    KIND(OP_SQUARE_SUM, square_sum)                   \
    KIND(OP_CLIP, clip)                               \
    KIND(OP_ADAMW, adamw)

// Communication between ranks, executed by a communicator.
#define OP_TRANSFER_KINDS(KIND)                     \
    KIND(OP_ALL_REDUCE, all_reduce)                 \
    KIND(OP_ALL_REDUCE_MAXIMUM, all_reduce_maximum) \
    KIND(OP_ALL_GATHER, all_gather)                 \
    KIND(OP_REDUCE_SCATTER, reduce_scatter)         \
    KIND(OP_ALL_TO_ALL, all_to_all)                 \
    KIND(OP_ROTATE, rotate)                         \
    KIND(OP_SEND, send)                             \
    KIND(OP_RECEIVE, receive)                       \
    KIND(OP_BROADCAST, broadcast)

#define OP_ENUMERATOR(kind, name) kind,
#define OP_AND_ONE(kind, name) + 1
enum op_kind { OP_COMPUTE_KINDS(OP_ENUMERATOR) OP_TRANSFER_KINDS(OP_ENUMERATOR) OP_COUNT };
enum { OP_COMPUTE_COUNT = OP_COMPUTE_KINDS(OP_AND_ONE) };    // the first communication op

// "case OP_ANY_COMPUTE:" in switches over communication ops.
#define OP_AND_CASE(kind, name) kind: case
#define OP_ANY_COMPUTE OP_COMPUTE_KINDS(OP_AND_CASE) OP_COUNT
// clang-format on

#endif
