// SPDX-License-Identifier: MIT
// Every op in shapes that a model has and in odd ones, where kernels have ends to get wrong.
#ifndef GSWBENCH_TESTS_OP_CASES_H
#define GSWBENCH_TESTS_OP_CASES_H

#include "gswbench/model.h"
#include "gswbench/op.h"

struct op_case {
    const char *name;
    // A letter a slot: f fp32, b bf16, 4 E4M3, 5 E5M2, i i32, - absent; F and B: large, and some infinite; z and Z:
    // fp32 next to zero, bf16 zeros.
    const char *operands;
    struct op   op;    // kind, accumulates and shape
};

// clang-format off
#define EMBEDDING(rows_, columns_, vocabulary, first_, total_) \
    .shape.rows = {.rows = rows_, .columns = columns_, .valid_columns = vocabulary, .first = first_, .total = total_}
#define ROWS(rows_, columns_, variant_) \
    .shape.rows = {.rows = rows_, .columns = columns_, .epsilon = 1e-5f, .variant = variant_}
#define LOSS(rows_, columns_, valid, first_, total_, parts_) \
    .shape.rows = {.rows = rows_, .columns = columns_, .valid_columns = valid, .first = first_, .total = total_, .parts = parts_, .scale = 0.125f}
#define GEMM(m_, n_, k_, turns_a, turns_b) \
    .shape.gemm = {.m = m_, .n = n_, .k = k_, .transpose_a = turns_a, .transpose_b = turns_b}
#define FP8_GEMM(m_, n_, k_, fast) \
    .sums_fast = fast, .shape.gemm = {.m = m_, .n = n_, .k = k_, .transpose_b = true}
#define PART_GEMM(m_, n_, k_, of_a, of_b) \
    .shape.gemm = {.m = m_, .n = n_, .k = k_, .transpose_b = true, .scaling_a = of_a, .scaling_b = of_b}
#define HEADS(batch_, sequence_, heads_, kv_heads_, head_dim_, ...) \
    .shape.attention = {.batch = batch_, .sequence = sequence_, .heads = heads_, .kv_heads = kv_heads_, .head_dim = head_dim_, .scale = 0.1f, __VA_ARGS__}
#define ROUTE(rows_, columns_, first_, total_, sequences_, run, experts_, top_k_, owners_, capacity_, taken_) \
    .shape.routing = {.rows = rows_, .columns = columns_, .first = first_, .total = total_, .sequences = sequences_, .sequence_rows = run, \
                      .experts = experts_, .top_k = top_k_, .owners = owners_, .capacity = capacity_, .taken = taken_, .auxiliary = 0.02f}
#define MATRIX(rows_, columns_) .shape.quantize = {.rows = rows_, .columns = columns_}
#define PARTS(rows_, columns_, by) .shape.quantize = {.rows = rows_, .columns = columns_, .scaling = by}
#define HISTORY(slots_, history_) .shape.rescale = {.slots = slots_, .history = history_, .target = 224.0f}
#define ELEMENTS(count) .shape.elements = {.elements = count, .limit = 1.0f}
#define ADDS .accumulates = true
#define BY_RUNS .fused_scaling = SCALING_RUNS

static const struct op_case op_cases[] = {
    {"embedding", "ibb", {.kind = OP_EMBEDDING_FORWARD, EMBEDDING(37, 64, 50, 0, 50)}},
    {"embedding, a part", "iff", {.kind = OP_EMBEDDING_FORWARD, EMBEDDING(37, 13, 20, 10, 50)}},
    {"embedding gradient", "ibf", {.kind = OP_EMBEDDING_BACKWARD, EMBEDDING(300, 72, 20, 0, 20)}},
    {"embedding gradient, a part", "ibb", {.kind = OP_EMBEDDING_BACKWARD, ADDS, EMBEDDING(100, 19, 20, 15, 50)}},
    {"embedding gradient, one token", "iff", {.kind = OP_EMBEDDING_BACKWARD, EMBEDDING(65, 8, 1, 0, 1)}},
    {"rms norm", "bbb-bbf", {.kind = OP_NORM_FORWARD, ROWS(70, 1024, NORM_RMS)}},
    {"rms norm, odd", "b-b--bf", {.kind = OP_NORM_FORWARD, ROWS(5, 4107, NORM_RMS)}},
    {"layer norm", "fffffff", {.kind = OP_NORM_FORWARD, ROWS(9, 18432, NORM_LAYER)}},
    {"layer norm 1p, odd", "bbbbbbf", {.kind = OP_NORM_FORWARD, ROWS(33, 131, NORM_LAYER_1P)}},
    {"rms norm gradient", "bbbfbbf", {.kind = OP_NORM_BACKWARD, ADDS, ROWS(100, 2048, NORM_RMS)}},
    {"rms norm gradient, odd", "ffff-ff", {.kind = OP_NORM_BACKWARD, ROWS(11, 301, NORM_RMS)}},
    {"layer norm gradient", "bbbfbbbb", {.kind = OP_NORM_BACKWARD, ROWS(40, 96, NORM_LAYER)}},
    {"layer norm 1p gradient, wide", "bbbf-bff", {.kind = OP_NORM_BACKWARD, ADDS, ROWS(7, 18432, NORM_LAYER_1P)}},
    {"layer norm 1p gradient, odd", "bbbfbbff", {.kind = OP_NORM_BACKWARD, ROWS(50, 77, NORM_LAYER_1P)}},
    {"gemm 256 x 512 x 384, nn", "bbb", {.kind = OP_GEMM, GEMM(256, 512, 384, false, false)}},
    {"gemm 256 x 512 x 384, nt", "bbb", {.kind = OP_GEMM, GEMM(256, 512, 384, false, true)}},
    {"gemm 256 x 512 x 384, tn", "bbb", {.kind = OP_GEMM, GEMM(256, 512, 384, true, false)}},
    {"gemm 256 x 512 x 384, tt", "bbb", {.kind = OP_GEMM, GEMM(256, 512, 384, true, true)}},
    {"gemm 256 x 512 x 384, nt", "bbf", {.kind = OP_GEMM, GEMM(256, 512, 384, false, true)}},
    {"gemm 256 x 512 x 384, tn, added", "bbf", {.kind = OP_GEMM, ADDS, GEMM(256, 512, 384, true, false)}},
    {"gemm 256 x 512 x 384, tn, added", "bbb", {.kind = OP_GEMM, ADDS, GEMM(256, 512, 384, true, false)}},
    {"gemm 136 x 72 x 200, tn", "bbf", {.kind = OP_GEMM, GEMM(136, 72, 200, true, false)}},
    {"gemm 129 x 71 x 203, nn", "bbb", {.kind = OP_GEMM, GEMM(129, 71, 203, false, false)}},
    {"gemm 129 x 71 x 203, nt", "bbf", {.kind = OP_GEMM, GEMM(129, 71, 203, false, true)}},
    {"gemm 129 x 71 x 203, tn, added", "bbf", {.kind = OP_GEMM, ADDS, GEMM(129, 71, 203, true, false)}},
    {"gemm 7 x 5 x 3, tt", "bbb", {.kind = OP_GEMM, GEMM(7, 5, 3, true, true)}},
    {"gemm 1 x 1 x 1, nn", "bbf", {.kind = OP_GEMM, GEMM(1, 1, 1, false, false)}},
    {"gemm 1 x 4096 x 64, nt", "bbb", {.kind = OP_GEMM, GEMM(1, 4096, 64, false, true)}},
    {"gemm 64 x 48 x 80, nn", "fff", {.kind = OP_GEMM, GEMM(64, 48, 80, false, false)}},
    {"gemm 64 x 48 x 80, nt, added", "fff", {.kind = OP_GEMM, ADDS, GEMM(64, 48, 80, false, true)}},
    {"gemm 33 x 17 x 65, tn, added", "fff", {.kind = OP_GEMM, ADDS, GEMM(33, 17, 65, true, false)}},
    {"gemm 33 x 17 x 65, tt", "fff", {.kind = OP_GEMM, GEMM(33, 17, 65, true, true)}},
    {"gemm 32 x 48 x 80 in fp8", "44bff", {.kind = OP_GEMM, FP8_GEMM(32, 48, 80, true)}},
    {"gemm 256 x 128 x 384 in fp8, of a gradient", "54bff", {.kind = OP_GEMM, FP8_GEMM(256, 128, 384, false)}},
    {"gemm 48 x 16 x 32 in fp8, by a gradient, added", "45fff", {.kind = OP_GEMM, ADDS, FP8_GEMM(48, 16, 32, false)}},
    {"gemm 16 x 16 x 16 in fp8, added and rounded", "44bff", {.kind = OP_GEMM, ADDS, FP8_GEMM(16, 16, 16, true)}},
    {"gemm 48 x 160 x 400 in fp8 by runs and squares", "44bff", {.kind = OP_GEMM, PART_GEMM(48, 160, 400, SCALING_RUNS, SCALING_SQUARES)}},
    {"gemm 272 x 32 x 144 in fp8 by squares and runs", "44fff", {.kind = OP_GEMM, PART_GEMM(272, 32, 144, SCALING_SQUARES, SCALING_RUNS)}},
    {"gemm 144 x 64 x 256 in fp8 by runs, added", "54fff", {.kind = OP_GEMM, ADDS, PART_GEMM(144, 64, 256, SCALING_RUNS, SCALING_RUNS)}},
    {"rope", "fbbb", {.kind = OP_ROPE_FORWARD, HEADS(2, 9, 8, 2, 128, .rotary = 128)}},
    {"rope, half", "fbbb", {.kind = OP_ROPE_FORWARD, HEADS(1, 5, 6, 2, 192, .rotary = 96)}},
    {"rope, odd", "ffff", {.kind = OP_ROPE_FORWARD, HEADS(2, 7, 3, 1, 22, .rotary = 10)}},
    {"rope gradient", "fbbb", {.kind = OP_ROPE_BACKWARD, HEADS(2, 9, 8, 2, 128, .rotary = 128)}},
    {"rope gradient, odd", "fbbb", {.kind = OP_ROPE_BACKWARD, HEADS(1, 7, 4, 4, 24, .rotary = 12)}},
    {"rope gradient, none rotates", "fbbb", {.kind = OP_ROPE_BACKWARD, HEADS(1, 7, 2, 1, 40, .rotary = 0)}},
    {"attention", "bbbf", {.kind = OP_ATTENTION_FORWARD, HEADS(1, 128, 2, 1, 64, .causal = true)}},
    {"attention to all keys", "bbbf", {.kind = OP_ATTENTION_FORWARD, HEADS(2, 100, 4, 2, 64, .causal = false)}},
    {"attention, head 128", "bbbf", {.kind = OP_ATTENTION_FORWARD, HEADS(1, 130, 2, 2, 128, .causal = true)}},
    {"attention after others, head 40", "bbbf", {.kind = OP_ATTENTION_FORWARD, HEADS(2, 65, 2, 1, 40, .causal = true, .earlier = 33)}},
    {"attention to all and others, head 13", "bbbf", {.kind = OP_ATTENTION_FORWARD, HEADS(2, 37, 3, 1, 13, .causal = false, .earlier = 64)}},
    {"attention after others, head 200", "bbbf", {.kind = OP_ATTENTION_FORWARD, HEADS(1, 50, 1, 1, 200, .causal = true, .earlier = 50)}},
    {"attention of one query", "bbbf", {.kind = OP_ATTENTION_FORWARD, HEADS(3, 1, 2, 1, 64, .causal = true, .earlier = 64)}},
    {"attention, a part", "bbff", {.kind = OP_ATTENTION_FORWARD, HEADS(1, 70, 2, 1, 64, .causal = true)}},
    {"attention to all and others, a part", "bbff", {.kind = OP_ATTENTION_FORWARD, HEADS(2, 37, 3, 3, 21, .causal = false, .earlier = 40)}},
    {"attention gradient, of parts", "bbbbfff", {.kind = OP_ATTENTION_BACKWARD, ADDS, HEADS(1, 70, 2, 1, 64, .causal = true, .adds_query = true)}},
    {"attention gradient to all and others, of parts, head 21", "bbbbfff", {.kind = OP_ATTENTION_BACKWARD, ADDS, HEADS(2, 37, 3, 3, 21, .causal = false, .adds_query = true, .earlier = 40)}},
    {"attention gradient", "bbbbfbb", {.kind = OP_ATTENTION_BACKWARD, HEADS(1, 128, 2, 1, 64, .causal = true)}},
    {"attention gradient to all keys, added", "bbbbfbb", {.kind = OP_ATTENTION_BACKWARD, ADDS, HEADS(2, 100, 4, 2, 64, .causal = false)}},
    {"attention gradient, head 128", "bbbbfbb", {.kind = OP_ATTENTION_BACKWARD, HEADS(1, 70, 2, 2, 128, .causal = true, .adds_query = true)}},
    {"attention gradient after others, head 40", "bbbbfbb", {.kind = OP_ATTENTION_BACKWARD, ADDS, HEADS(2, 65, 2, 1, 40, .causal = true, .adds_query = true, .earlier = 33)}},
    {"attention gradient to all and others, head 13", "bbbbfbb", {.kind = OP_ATTENTION_BACKWARD, HEADS(2, 37, 3, 1, 13, .causal = false, .earlier = 64)}},
    {"attention gradient after others, head 200", "bbbbfbb", {.kind = OP_ATTENTION_BACKWARD, HEADS(1, 50, 1, 1, 200, .causal = true, .earlier = 50)}},
    {"attention gradient of one query", "bbbbfbb", {.kind = OP_ATTENTION_BACKWARD, HEADS(3, 1, 2, 1, 64, .causal = true, .earlier = 64)}},
    {"attention merge", "ffff", {.kind = OP_ATTENTION_MERGE, HEADS(2, 9, 3, 1, 128, .causal = true)}},
    {"attention merge, odd", "ffff", {.kind = OP_ATTENTION_MERGE, HEADS(1, 5, 3, 1, 21, .causal = true)}},
    {"swiglu", "bb", {.kind = OP_ACTIVATION_FORWARD, ROWS(20, 2304, ACTIVATION_SWIGLU)}},
    {"geglu, odd", "ff", {.kind = OP_ACTIVATION_FORWARD, ROWS(7, 51, ACTIVATION_GEGLU)}},
    {"gelu", "ff", {.kind = OP_ACTIVATION_FORWARD, ROWS(7, 56, ACTIVATION_GELU)}},
    {"squared relu, odd", "bb", {.kind = OP_ACTIVATION_FORWARD, ROWS(9, 29, ACTIVATION_RELU2)}},
    {"swiglu gradient", "bbb", {.kind = OP_ACTIVATION_BACKWARD, ROWS(20, 2304, ACTIVATION_SWIGLU)}},
    {"geglu gradient", "fff", {.kind = OP_ACTIVATION_BACKWARD, ROWS(7, 48, ACTIVATION_GEGLU)}},
    {"gelu gradient, odd", "bbb", {.kind = OP_ACTIVATION_BACKWARD, ROWS(7, 51, ACTIVATION_GELU)}},
    {"squared relu gradient", "fff", {.kind = OP_ACTIVATION_BACKWARD, ROWS(7, 40, ACTIVATION_RELU2)}},
    {"route", "fiififf", {.kind = OP_ROUTE_FORWARD, ROUTE(64, 0, 0, 64, 1, 64, 8, 2, 1, 20, 20)}},
    {"route, a part of two sequences", "fiififf", {.kind = OP_ROUTE_FORWARD, ADDS, ROUTE(60, 0, 60, 120, 2, 15, 6, 2, 3, 40, 9)}},
    {"route, many experts", "fiifif", {.kind = OP_ROUTE_FORWARD, ROUTE(300, 0, 0, 300, 1, 300, 36, 6, 4, 45, 45)}},
    {"route, many tokens", "fiifif", {.kind = OP_ROUTE_FORWARD, ROUTE(1200, 0, 0, 1200, 1, 1200, 2, 1, 1, 520, 520)}},
    {"route gradient", "fifffb", {.kind = OP_ROUTE_BACKWARD, ROUTE(60, 0, 60, 120, 2, 15, 6, 2, 3, 40, 9)}},
    {"route gradient, many experts", "fiffff", {.kind = OP_ROUTE_BACKWARD, ROUTE(20, 0, 0, 20, 1, 20, 72, 6, 8, 110, 110)}},
    {"dispatch", "bib", {.kind = OP_DISPATCH, ROUTE(30, 64, 0, 30, 1, 30, 8, 2, 1, 9, 9)}},
    {"dispatch, odd", "fif", {.kind = OP_DISPATCH, ROUTE(30, 21, 0, 30, 1, 30, 8, 2, 1, 9, 9)}},
    {"combine", "bifb", {.kind = OP_COMBINE, ROUTE(30, 64, 0, 30, 1, 30, 8, 2, 1, 9, 9)}},
    {"combine without gates, odd", "bi-b", {.kind = OP_COMBINE, ADDS, ROUTE(30, 21, 0, 30, 1, 30, 8, 6, 1, 20, 20)}},
    {"combine gradient", "bbiifbf", {.kind = OP_COMBINE_BACKWARD, ROUTE(30, 2112, 0, 30, 1, 30, 8, 2, 1, 9, 9)}},
    {"combine gradient, odd", "ffiifff", {.kind = OP_COMBINE_BACKWARD, ROUTE(30, 21, 0, 30, 1, 30, 8, 2, 1, 9, 9)}},
    {"logit statistics", "bif", {.kind = OP_LOGIT_STATISTICS, LOSS(6, 1024, 1003, 500, 4000, 2)}},
    {"logit statistics of padding", "bif", {.kind = OP_LOGIT_STATISTICS, LOSS(3, 64, 0, 500, 500, 2)}},
    {"cross entropy", "bif", {.kind = OP_CROSS_ENTROPY, LOSS(2, 128256, 128256, 0, 128256, 1)}},
    {"cross entropy, odd", "fif", {.kind = OP_CROSS_ENTROPY, LOSS(5, 517, 501, 0, 501, 1)}},
    {"cross entropy, a part", "biff", {.kind = OP_CROSS_ENTROPY, LOSS(9, 504, 501, 250, 1000, 3)}},
    {"loss sum", "ff", {.kind = OP_LOSS_SUM, LOSS(1000, 1, 1, 0, 1, 1)}},
    {"loss sum, added", "ff", {.kind = OP_LOSS_SUM, ADDS, LOSS(3, 1, 1, 0, 1, 1)}},
    {"cast", "fb", {.kind = OP_CAST, ELEMENTS(70003)}},
    {"cast, added", "bf", {.kind = OP_CAST, ADDS, ELEMENTS(1001)}},
    {"cast, added and rounded", "fb", {.kind = OP_CAST, ADDS, ELEMENTS(5)}},
    {"copy", "bb", {.kind = OP_CAST, ELEMENTS(1000)}},
    {"sum", "bb", {.kind = OP_CAST, ADDS, ELEMENTS(1003)}},
    {"quantize", "b44f", {.kind = OP_QUANTIZE, MATRIX(256, 384)}},
    {"quantize many tiles", "b44f", {.kind = OP_QUANTIZE, MATRIX(656, 784)}},
    {"quantize in e5m2", "f55f", {.kind = OP_QUANTIZE, MATRIX(144, 80)}},
    {"quantize rows, odd", "b5-f", {.kind = OP_QUANTIZE, MATRIX(33, 77)}},
    {"quantize columns, odd", "f-4f", {.kind = OP_QUANTIZE, MATRIX(131, 201)}},
    {"quantize an odd number of rows", "b44f", {.kind = OP_QUANTIZE, MATRIX(27, 160)}},
    {"quantize one element", "b44f", {.kind = OP_QUANTIZE, MATRIX(1, 1)}},
    {"quantize by a scale", "b44f-ff", {.kind = OP_QUANTIZE, MATRIX(128, 272)}},
    {"quantize by a scale, odd", "f55f-ff", {.kind = OP_QUANTIZE, MATRIX(150, 13)}},
    {"quantize columns by a scale that saturates", "B-4f-ff", {.kind = OP_QUANTIZE, MATRIX(48, 64)}},
    {"quantize zeros", "Z44f", {.kind = OP_QUANTIZE, MATRIX(16, 32)}},
    {"quantize the smallest", "z44f", {.kind = OP_QUANTIZE, MATRIX(16, 32)}},
    {"quantize large and infinite values", "F55f--f", {.kind = OP_QUANTIZE, MATRIX(40, 300)}},
    {"quantize by a scale whose factor is known", "b44--ff", {.kind = OP_QUANTIZE, MATRIX(32, 64)}},
    {"quantize by runs", "b44ff", {.kind = OP_QUANTIZE, PARTS(656, 784, SCALING_RUNS)}},
    {"quantize by runs, odd", "f55ff", {.kind = OP_QUANTIZE, PARTS(150, 133, SCALING_RUNS)}},
    {"quantize by runs, no transpose", "f4-f-", {.kind = OP_QUANTIZE, PARTS(33, 272, SCALING_RUNS)}},
    {"quantize by runs, only the transpose", "b-4-f", {.kind = OP_QUANTIZE, PARTS(272, 48, SCALING_RUNS)}},
    {"quantize zeros by runs", "Z44ff", {.kind = OP_QUANTIZE, PARTS(32, 144, SCALING_RUNS)}},
    {"quantize large and infinite values by runs", "F55ff", {.kind = OP_QUANTIZE, PARTS(32, 144, SCALING_RUNS)}},
    {"quantize by squares", "b44ff", {.kind = OP_QUANTIZE, PARTS(656, 784, SCALING_SQUARES)}},
    {"quantize by squares, odd", "f44ff", {.kind = OP_QUANTIZE, PARTS(133, 259, SCALING_SQUARES)}},
    {"quantize by squares, only the transpose", "b-5-f", {.kind = OP_QUANTIZE, PARTS(257, 300, SCALING_SQUARES)}},
    {"quantize by squares, no transpose", "b4-f-", {.kind = OP_QUANTIZE, PARTS(128, 128, SCALING_SQUARES)}},
    {"rms norm in fp8", "bbb-b-f-44--ff", {.kind = OP_NORM_FORWARD, ROWS(272, 1040, NORM_RMS)}},
    {"rms norm in fp8 and bf16", "bbb-bbf-4---ff", {.kind = OP_NORM_FORWARD, ROWS(20, 272, NORM_RMS)}},
    {"layer norm 1p in fp8, odd", "b-bb--f-55f-f", {.kind = OP_NORM_FORWARD, ROWS(133, 131, NORM_LAYER_1P)}},
    {"layer norm in fp8 by runs", "bbbbb-f-44ff", {.kind = OP_NORM_FORWARD, BY_RUNS, ROWS(144, 400, NORM_LAYER)}},
    {"rms norm in fp8 by runs, odd", "b-b---f--4-f", {.kind = OP_NORM_FORWARD, BY_RUNS, ROWS(150, 77, NORM_RMS)}},
    {"swiglu in fp8", "b-------44--ff", {.kind = OP_ACTIVATION_FORWARD, ROWS(144, 272, ACTIVATION_SWIGLU)}},
    {"geglu in fp8 by runs", "b-------44ff", {.kind = OP_ACTIVATION_FORWARD, BY_RUNS, ROWS(272, 400, ACTIVATION_GEGLU)}},
    {"gelu in fp8 by runs, odd", "b-------4-f", {.kind = OP_ACTIVATION_FORWARD, BY_RUNS, ROWS(133, 77, ACTIVATION_GELU)}},
    {"squared relu in fp8, odd", "b--------5--f", {.kind = OP_ACTIVATION_FORWARD, ROWS(45, 13, ACTIVATION_RELU2)}},
    {"swiglu gradient in fp8", "bb------55--ff", {.kind = OP_ACTIVATION_BACKWARD, ROWS(144, 200, ACTIVATION_SWIGLU)}},
    {"swiglu gradient in fp8 by runs", "bb------44ff", {.kind = OP_ACTIVATION_BACKWARD, BY_RUNS, ROWS(272, 200, ACTIVATION_SWIGLU)}},
    {"geglu gradient in fp8 by runs, odd", "bb------55ff", {.kind = OP_ACTIVATION_BACKWARD, BY_RUNS, ROWS(45, 77, ACTIVATION_GEGLU)}},
    {"gelu gradient in fp8 and bf16", "bbb-----5---ff", {.kind = OP_ACTIVATION_BACKWARD, ROWS(48, 80, ACTIVATION_GELU)}},
    {"squared relu gradient in fp8", "bb------55--ff", {.kind = OP_ACTIVATION_BACKWARD, ROWS(144, 272, ACTIVATION_RELU2)}},
    {"transpose", "44", {.kind = OP_TRANSPOSE, ROWS(784, 656, 0)}},
    {"transpose, odd", "55", {.kind = OP_TRANSPOSE, ROWS(33, 77, 0)}},
    {"magnitude", "bf", {.kind = OP_MAGNITUDE, ELEMENTS(70003)}},
    {"magnitude of large and infinite values", "Ff", {.kind = OP_MAGNITUDE, ELEMENTS(77)}},
    {"magnitude of the smallest", "zf", {.kind = OP_MAGNITUDE, ELEMENTS(1000)}},
    {"rescale", "ffff", {.kind = OP_RESCALE, HISTORY(50, 1024)}},
    {"rescale by a short history", "ffff", {.kind = OP_RESCALE, HISTORY(3, 300)}},
    {"rescale by a history of one", "ffff", {.kind = OP_RESCALE, HISTORY(3, 1)}},
    {"rescale without history", "f-ff", {.kind = OP_RESCALE, HISTORY(30, 1)}},
    {"rescale by large and infinite values", "F-ff", {.kind = OP_RESCALE, HISTORY(40, 1)}},
    {"rescale by zeros", "zzff", {.kind = OP_RESCALE, HISTORY(4, 3)}},
    {"clear", "b", {.kind = OP_CLEAR, ELEMENTS(1001)}},
    {"square sum", "ff", {.kind = OP_SQUARE_SUM, ELEMENTS(100007)}},
    {"square sum of few", "bf", {.kind = OP_SQUARE_SUM, ELEMENTS(3)}},
    {"clip", "fff", {.kind = OP_CLIP, ELEMENTS(83)}},
    {"adamw", "ffffffb", {.kind = OP_ADAMW, ELEMENTS(50001)}},
    {"adamw in bf16", "ffb-bbb", {.kind = OP_ADAMW, ELEMENTS(1003)}},
    {"adamw in fp32", "fff-fff", {.kind = OP_ADAMW, ELEMENTS(77)}},
};
// clang-format on
enum { OP_CASES = sizeof(op_cases) / sizeof(*op_cases) };

#endif
