// SPDX-License-Identifier: MIT
// Counts the parameters of a model, and its FLOPs by the conventions of published figures.
#include <math.h>

#include "gswbench/number.h"
#include "gswbench/plan_build.h"
#include "block.h"

static void add(struct layer_count *sum, const struct model_config *model, const struct layer_kind *kind,
                int64_t layers)
{
    struct layer_count count = kind->count(model);
    int64_t            norm  = kind->norm == NULL ? 0 : (model_norm_has_bias(model) ? 2 : 1) * model->hidden;
    sum->parameters += layers * (count.parameters + norm);
    sum->active += layers * (count.active + norm);
    sum->multiplied += layers * count.multiplied;
    sum->attended += layers * count.attended;
    sum->windowed += layers * count.windowed;
    sum->scanned += layers * count.scanned;
    sum->adapters += layers * count.adapters;
}

// Counts the parameters and FLOPs of the whole model. MTP modules that share weights count as one. All counts are zero
// if the layer pattern is invalid, which layers_check reports.
static struct layer_count sum_of(const struct model_config *model)
{
    struct layer_count   sum = {.parameters = 0};
    struct layer_pattern pattern;
    status               result = pattern_read(&pattern, model);
    if (failed(&result)) {
        return sum;
    }
    add(&sum, model, &embedding_kind, 1);
    for (int run = 0; run < pattern.count; run++) {
        for (int32_t i = 0; i < pattern.runs[run].count; i++) {
            add(&sum, model, pattern.runs[run].kinds[i], pattern.runs[run].layers);
        }
    }
    add(&sum, model, &head_kind, 1);
    int64_t modules = model->repeat_prediction != 0 ? number_min(1, model->predicted_tokens) : model->predicted_tokens;
    for (int32_t i = 0; i < pattern.prediction.count; i++) {
        add(&sum, model, pattern.prediction.kinds[i], modules);
    }
    return sum;
}

// Counts the whole model with every MTP module: modules that share weights each compute with these weights.
static struct layer_count work_of(const struct model_config *model)
{
    struct model_config unshared = *model;
    unshared.repeat_prediction   = 0;
    return sum_of(&unshared);
}

int64_t layers_parameters(const struct model_config *model)
{
    return sum_of(model).parameters;
}

int64_t layers_trained_parameters(const struct model_config *model)
{
    struct layer_count sum = sum_of(model);
    return model_is_frozen(model) ? sum.adapters : sum.parameters;
}

int64_t layers_active_parameters(const struct model_config *model)
{
    return sum_of(model).active;
}

// Returns the FLOPs of attention on one sequence: 2 per multiply-add, times 3 for forward and backward. square: counted
// fraction of the sequence^2 query-key pairs. With a sliding window, at most the pairs in the window count.
static double attention_flops(const struct model_config *model, double square, int64_t sequence)
{
    struct layer_count sum    = work_of(model);
    double             length = (double)sequence, window = fmin((double)model->window, length);
    double             all = square * length * length, seen = length * window - window * (window - 1.0) / 2.0;
    return 6.0 * ((double)sum.attended * all + (double)sum.windowed * fmin(all, seen));
}

// Returns the FLOPs per token of GEMMs with N = `parameters` weights: 6 N, or 4 N if the weights are frozen and have no
// gradient. Adapters are trained, so they count 6 per parameter.
static double linear_flops(const struct model_config *model, int64_t parameters, int64_t adapters)
{
    return (model_is_frozen(model) ? 4.0 : 6.0) * (double)parameters + 6.0 * (double)adapters;
}

// Returns the FLOPs of a sequence in GEMMs of layers and head, in attention and in Mamba-2 scans. Embedding, norms and
// activations do not count.
static double matrix_flops(const struct model_config *model, double square, int64_t sequence)
{
    struct layer_count sum = work_of(model);
    return (double)sequence * (linear_flops(model, sum.multiplied, sum.adapters) + 3.0 * (double)sum.scanned) +
           attention_flops(model, square, sequence);
}

// Returns the FLOPs of a sequence by the convention 6 N per token, plus attention. N are the active parameters. Without
// count_embedding, N leaves out the input embedding and learned positions, but includes a table that is tied to the
// head, because the head multiplies by it.
static double six_n_flops(const struct model_config *model, bool count_embedding, int64_t sequence)
{
    struct layer_count sum        = sum_of(model);
    int64_t            parameters = sum.active - sum.adapters;
    if (!count_embedding) {
        parameters -= embedding_kind.count(model).active - (model->tied ? model->vocab * model->hidden : 0);
    }
    return linear_flops(model, parameters, sum.adapters) * (double)sequence + attention_flops(model, 1.0, sequence);
}

static double published_flops(const struct model_config *model, const struct published_config *published,
                              int64_t sequence)
{
    if (published->convention == FLOPS_PUBLISHED) {
        return NAN;
    }
    struct model_config counted = *model;
    if (published->flop_kv_heads > 0) {
        counted.kv_heads = published->flop_kv_heads;
    }
    double flops = layers_flops(&counted, published, (enum flop_convention)published->convention, sequence);
    double unit  = pow(10.0, floor(log10(flops)) + 1.0 - (double)published->flop_digits);
    return published->flop_digits == 0 ? flops : round(flops / unit) * unit;
}

double layers_flops(const struct model_config *model, const struct published_config *published,
                    enum flop_convention convention, int64_t sequence)
{
    switch (convention) {
    case FLOPS_PUBLISHED:
        return published_flops(model, published, sequence);
    case FLOPS_FULL:
        return matrix_flops(model, 1.0, sequence);
    case FLOPS_CAUSAL:
        return matrix_flops(model, 0.5, sequence);
    case FLOPS_6N:
        return six_n_flops(model, published->count_embedding, sequence);
    case FLOPS_HARDWARE:
    case FLOPS_COUNT:
        break;
    }
    return NAN;
}

double layers_attention_share(const struct model_config *model, const struct published_config *published,
                              enum flop_convention convention, int64_t sequence)
{
    int64_t counted = convention == FLOPS_PUBLISHED ? published->convention : convention;
    return attention_flops(model, counted == FLOPS_CAUSAL ? 0.5 : 1.0, sequence) /
           layers_flops(model, published, convention, sequence);
}
