// SPDX-License-Identifier: MIT
// Reference forward passes: plain loops in double precision over the shapes of op.h.
#pragma once

#include "gswbench/op.h"

void   reference_gemm(const struct gemm_shape *shape, const double *a, const double *b, double *c);
void   reference_norm(const struct rows_shape *shape, const double *x, const double *weight, const double *bias,
                      double *out);
double reference_gate(double x, int32_t variant);
bool   reference_is_gated(int32_t variant);
void   reference_activation(const struct rows_shape *shape, const double *in, double *out);

// Splits the packed rows into queries, keys and values, and rotates pairs of elements as complex numbers by cosine + i
// sine.
void reference_rope(const struct attention_shape *shape, const double *table, const double *scale, const double *packed,
                    double *query, double *key_value);

// statistics may be NULL.
void reference_attention(const struct attention_shape *shape, const double *query, const double *key_value, double *out,
                         double *statistics);
void reference_cross_entropy(const struct rows_shape *shape, const double *logits, const double *targets,
                             double *losses);
