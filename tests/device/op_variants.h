// SPDX-License-Identifier: MIT
// Varies the test cases of ops so that every template of a kernel runs: other formats, row widths, alignments, windows,
// activation functions and scalings.
#pragma once

#include <stdio.h>
#include <string.h>

#include "gswbench/op_operands.h"
#include "op_cases.h"

enum {
    VARY_TYPE     = 1,
    VARY_COLUMNS  = 2,
    VARY_FORMAT   = 4,
    VARY_SCALING  = 8,
    VARY_ADDRESS  = 16,
    VARY_WINDOW   = 32,
    VARY_FUNCTION = 64,
    VARIANTS      = 256
};

struct op_variant {
    struct op_case test;
    char           name[200], operands[OP_OPERANDS + 1];
    int            beside;    // operands are misaligned by this number of elements
};

static inline bool vary_letter(char *at, char from, char to)
{
    bool is = *at == from;
    *at     = is ? to : *at;
    return is;
}

static inline bool is_cast_to_fp4(const struct op *op)
{
    return op->kind == OP_QUANTIZE && scaling_is_nv((enum scaling)op->shape.quantize.scaling);
}

// Changes the row width, so that rows that started at multiples of 16 bytes no longer do, or the reverse. Rows that are
// cast to FP4 must stay multiples of 16 elements.
static inline bool vary_columns(struct op *op)
{
    int64_t *columns = NULL;
    if (is_cast_to_fp4(op)) {
        op->shape.quantize.columns += SCALING_NV_BLOCK;
        return true;
    }
    switch ((int)op->kind) {
    case OP_NORM_FORWARD:
    case OP_NORM_BACKWARD:
    case OP_ACTIVATION_FORWARD:
    case OP_ACTIVATION_BACKWARD:
    case OP_TRANSPOSE:
    case OP_EMBEDDING_FORWARD:
    case OP_EMBEDDING_BACKWARD:
        columns = &op->shape.rows.columns;
        break;
    case OP_ATTENTION_FORWARD:
    case OP_ATTENTION_BACKWARD:
        columns = &op->shape.attention.head_dim;
        break;
    case OP_QUANTIZE:
        columns = &op->shape.quantize.columns;
        break;
    case OP_SQUARE_SUM:
    case OP_MAGNITUDE:
    case OP_CAST:
    case OP_ADAMW:
    case OP_MOMENTUM:
    case OP_NORMALIZE:
    case OP_MUON:
        columns = &op->shape.elements.elements;
        break;
    default:
        return false;
    }
    *columns = *columns % 8 == 0 ? *columns + 5 : (*columns + 7) / 8 * 8;
    return true;
}

static inline bool vary_formats(const struct op *op, char *operands, int how)
{
    bool varies = false, is_plain = strlen(operands) <= OP_FUSED + 1;    // false for fused ops
    for (int i = 0; operands[i] != '\0'; i++) {
        if ((how & VARY_TYPE) && is_plain && op->kind != OP_GEMM && op->kind != OP_ATTENTION_FORWARD &&
            op->kind != OP_ATTENTION_BACKWARD) {
            varies = vary_letter(&operands[i], 'b', 'f') || varies;
        }
        // FP4 tensors ('2') are left out, since their scales are always E4M3.
        if ((how & VARY_FORMAT) && strchr(operands, '2') == NULL) {
            varies = vary_letter(&operands[i], '4', '5') || vary_letter(&operands[i], '5', '4') || varies;
        }
    }
    return varies;
}

// Exchanges 1x128 and MX scaling. Their scales have different formats (fp32 and a power of two).
static inline bool vary_scaling(struct op *op, char *operands)
{
    int   scaling = op->kind == OP_QUANTIZE ? (int)op->shape.quantize.scaling : (int)op->fused_scaling;
    char *end     = operands + strlen(operands) - 1;
    bool  is_runs = scaling == SCALING_1X128;
    if (!is_runs && scaling != SCALING_MX) {
        return false;
    }
    for (char *at = end; at >= end - 1; at--) {
        vary_letter(at, is_runs ? 'f' : '8', is_runs ? '8' : 'f');
    }
    if (op->kind == OP_QUANTIZE) {
        op->shape.quantize.scaling = is_runs ? SCALING_MX : SCALING_1X128;
    } else {
        op->fused_scaling = is_runs ? SCALING_MX : SCALING_1X128;
    }
    return true;
}

// Misaligns the operands. GEMMs need multiples of 16 bytes, which all tensors of real steps have. GEMMs and casts of
// FP4 and attention cannot be misaligned.
static inline bool vary_address(struct op_variant *made, int how)
{
    enum op_kind kind = (enum op_kind)made->test.op.kind;
    made->beside      = kind == OP_GEMM ? 16 : 1;
    return (kind != OP_GEMM || made->operands[GEMM_A] != '2') && kind != OP_ATTENTION_FORWARD &&
           kind != OP_ATTENTION_BACKWARD && !is_cast_to_fp4(&made->test.op) &&
           (how & ~(VARY_TYPE | VARY_FORMAT | VARY_ADDRESS)) == 0;
}

// Adds a window to ALiBi attention, or removes it.
static inline bool vary_window(struct op *op)
{
    struct attention_shape *shape = &op->shape.attention;
    bool is_sloped = (op->kind == OP_ATTENTION_FORWARD || op->kind == OP_ATTENTION_BACKWARD) && shape->sloped_heads > 0;
    if (is_sloped && shape->causal) {
        shape->window = shape->window > 0 ? 0 : 37;
    }
    return is_sloped && shape->causal;
}

// Varies a case in the ways that the bits of `how` select. Returns whether this variant exists.
static inline bool vary_case(struct op_variant *made, const struct op_case *from, int how)
{
    int functions = how / VARY_FUNCTION;    // how far to advance in enum activation
    made->test    = *from;
    snprintf(made->operands, sizeof(made->operands), "%s", from->operands);
    snprintf(made->name, sizeof(made->name), "%s, variant %d", from->name, how);
    struct op *op       = &made->test.op;
    bool       is_there = true;
    made->beside        = 0;
    for (int one = VARY_TYPE; one <= VARY_WINDOW; one *= 2) {
        if ((how & one) != 0) {
            is_there = is_there && (one == VARY_COLUMNS   ? vary_columns(op)
                                    : one == VARY_SCALING ? vary_scaling(op, made->operands)
                                    : one == VARY_ADDRESS ? vary_address(made, how)
                                    : one == VARY_WINDOW  ? vary_window(op)
                                                          : vary_formats(op, made->operands, one));
        }
    }
    if (functions > 0) {
        is_there               = is_there && (op->kind == OP_ACTIVATION_FORWARD || op->kind == OP_ACTIVATION_BACKWARD);
        op->shape.rows.variant = (op->shape.rows.variant + functions) % ACTIVATION_COUNT;
    }
    made->test.name     = made->name;
    made->test.operands = made->operands;
    return is_there;
}
