// SPDX-License-Identifier: MIT
// Plain loops over rows, heads and tokens, which are slow and easy to check.
#include "reference.h"

#include <math.h>
#include <string.h>

void reference_gemm(const struct gemm_shape *shape, const double *a, const double *b, double *c)
{
    for (int64_t i = 0; i < shape->m; i++) {
        for (int64_t j = 0; j < shape->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < shape->k; k++) {
                sum += (shape->transpose_a ? a[k * shape->m + i] : a[i * shape->k + k]) *
                       (shape->transpose_b ? b[j * shape->k + k] : b[k * shape->n + j]);
            }
            c[i * shape->n + j] = (double)gemm_scale(shape) * sum;
        }
    }
}

void reference_norm(const struct rows_shape *shape, const double *x, const double *weight, const double *bias,
                    double *out)
{
    for (int64_t row = 0; row < shape->rows; row++, x += shape->columns, out += shape->columns) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < shape->columns && shape->variant != NORM_RMS; i++) {
            mean += x[i] / (double)shape->columns;
        }
        for (int64_t i = 0; i < shape->columns; i++) {
            variance += (x[i] - mean) * (x[i] - mean) / (double)shape->columns;
        }
        for (int64_t i = 0; i < shape->columns; i++) {
            double factor = weight[i] + (shape->variant == NORM_LAYER_1P ? 1 : 0);
            out[i]        = (x[i] - mean) / sqrt(variance + (double)shape->epsilon) * factor;
            out[i] += shape->variant == NORM_RMS ? 0 : bias[i];
        }
    }
}

double reference_gate(double x, int32_t variant)
{
    switch (variant) {
    case ACTIVATION_SWIGLU:
        return x / (1 + exp(-x));
    case ACTIVATION_RELU2:
        return x > 0 ? x * x : 0;
    default:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    }
}

bool reference_is_gated(int32_t variant)
{
    return variant == ACTIVATION_SWIGLU || variant == ACTIVATION_GEGLU;
}

void reference_activation(const struct rows_shape *shape, const double *in, double *out)
{
    int64_t width = reference_is_gated(shape->variant) ? 2 * shape->columns : shape->columns;
    for (int64_t row = 0; row < shape->rows; row++) {
        for (int64_t i = 0; i < shape->columns; i++) {
            const double *x               = in + row * width + i;
            double        up              = width > shape->columns ? x[shape->columns] : 1;
            out[row * shape->columns + i] = reference_gate(*x, shape->variant) * up;
        }
    }
}

// Applies RMS norm to a head. `scale` is the row of norm weights for queries or for keys.
static void normalise_head(const struct attention_shape *shape, const double *scale, double *head)
{
    double sum = 0;
    for (int64_t i = 0; i < shape->head_dim; i++) {
        sum += head[i] * head[i];
    }
    for (int64_t i = 0; i < shape->head_dim; i++) {
        head[i] *= scale[i] / sqrt(sum / (double)shape->head_dim + (double)shape->epsilon);
    }
}

void reference_rope(const struct attention_shape *shape, const double *table, const double *scale, const double *packed,
                    double *query, double *key_value)
{
    int64_t heads = shape->heads + 2 * shape->kv_heads, half = shape->rotary / 2, width = shape->head_dim;
    for (int64_t token = 0; token < shape->batch * shape->sequence; token++) {
        for (int64_t head = 0; head < heads; head++) {
            const double *in  = packed + (token * heads + head) * width;
            double       *out = head < shape->heads ? query + (token * shape->heads + head) * width
                                                    : key_value + (token * 2 * shape->kv_heads + head - shape->heads) * width;
            memcpy(out, in, sizeof(*out) * (size_t)width);
            if (scale != NULL && head < shape->heads + shape->kv_heads) {
                normalise_head(shape, head < shape->heads ? scale : scale + width, out);
            }
            for (int64_t i = 0; i < half && head < shape->heads + shape->kv_heads; i++) {
                const double *angle = table + (token % shape->sequence * half + i) * 2;
                double        a = out[i], b = out[i + half];
                out[i]        = a * angle[0] - b * angle[1];
                out[i + half] = a * angle[1] + b * angle[0];
            }
        }
    }
}

// Returns the ALiBi slope of a head (Press et al.). Slopes are a geometric series whose first element is its ratio. If
// the number of heads is no power of two, the additional heads get every second element of the series for twice as many
// heads.
static double slope_of(int64_t head, int64_t heads)
{
    int64_t power = 1 << (int)floor(log2((double)heads));
    if (power < heads) {
        return head < power ? slope_of(head, power) : slope_of(2 * (head - power), 2 * power);
    }
    double first = pow(2, -pow(2, 3 - log2((double)heads)));
    return first * pow(first, (double)head);
}

void reference_attention(const struct attention_shape *shape, const double *query, const double *key_value, double *out,
                         double *statistics)
{
    int64_t width = shape->head_dim, of_value = attention_value_dim(shape), group = shape->heads / shape->kv_heads;
    for (int64_t i = 0; i < shape->batch * shape->heads * shape->sequence; i++) {
        int64_t       position = i % shape->sequence, head = i / shape->sequence % shape->heads;
        int64_t       start    = i / shape->sequence / shape->heads * shape->sequence;
        int64_t       seen     = shape->causal ? position + 1 : shape->sequence;
        int64_t       begin    = shape->window > 0 && seen > shape->window ? seen - shape->window : 0;
        int64_t       of_model = shape->sloped_heads;
        double        slope    = of_model > 0 ? slope_of(shape->first_head + head, of_model) : 0;
        const double *q        = query + ((start + position) * shape->heads + head) * width;
        double       *o        = out + ((start + position) * shape->heads + head) * of_value;
        double        sum      = 0;
        memset(o, 0, sizeof(*o) * (size_t)of_value);
        for (int64_t j = begin; j < seen; j++) {
            const double *pair  = key_value + (start + j) * shape->kv_heads * (width + of_value);
            const double *key   = pair + head / group * width;
            const double *value = pair + shape->kv_heads * width + head / group * of_value;
            double        score = -slope * (double)(shape->distance + position - j);
            for (int64_t d = 0; d < width; d++) {
                score += q[d] * key[d] * (double)shape->scale;
            }
            sum += exp(score);
            for (int64_t d = 0; d < of_value; d++) {
                o[d] += exp(score) * value[d];
            }
        }
        for (int64_t d = 0; d < of_value; d++) {
            o[d] /= sum;
        }
        if (statistics != NULL) {
            statistics[i] = log(sum);
        }
    }
}

void reference_cross_entropy(const struct rows_shape *shape, const double *logits, const double *targets,
                             double *losses)
{
    for (int64_t row = 0; row < shape->rows; row++) {
        const double *x   = logits + row * shape->columns;
        double        sum = 0;
        for (int64_t i = 0; i < shape->valid_columns; i++) {
            sum += exp((double)shape->multiplier * x[i]);
        }
        losses[row] = log(sum) - (double)shape->multiplier * x[(int64_t)targets[row]];
    }
}
