// SPDX-License-Identifier: MIT
// Appends the ops of adapters of frozen matrices (LoRA): y = W x + scale B A x with A [rank, in] and B [out, rank]. t =
// scale x A^T is kept from the forward to the backward pass. The backward pass computes dB = dy^T t, dt = scale dy B,
// dA = dt^T x, and adds dt A to dx.
//
// With tp, B of a column-parallel matrix and A of a row-parallel one are sharded like the matrix. The matrix that is
// not sharded is replicated, and its gradient is summed over tp with the other replicated gradients of its FSDP unit.
// Adapters need no collective of partial sums: B t of a row-parallel matrix is reduced together with W x, and dt A of a
// column-parallel matrix together with dx.
#include "gswbench/linear.h"

bool adapter_exists(const struct builder *builder, int32_t weight)
{
    return weight >= 0 && builder->plan->weights[weight].adapter[ADAPTER_A] >= 0;
}

bool weight_is_frozen(const struct builder *builder, int32_t weight)
{
    const struct plan *plan = builder->plan;
    return plan->units[plan->weights[weight].unit].is_frozen;
}

bool linear_is_trained(const struct builder *builder, int32_t weight)
{
    return !weight_is_frozen(builder, weight) || adapter_exists(builder, weight);
}

// Returns the entry of builder->adapted that keeps t = scale x A^T of the current microbatch. Each MTP module has an
// entry, even if modules share weights.
static int32_t *place_of(struct builder *builder, int32_t weight)
{
    const struct plan *plan   = builder->plan;
    int64_t            layer  = builder->assembly.tag.layer;
    int64_t            module = layer > plan->model.layers ? layer - plan->model.layers : 0;
    return &builder->adapted[(module * plan->weight_count + weight) * builder->in_flight +
                             builder->assembly.tag.microbatch % builder->in_flight];
}

static const char *role_of(struct builder *builder, int32_t weight, const char *pass)
{
    return arena_format(&builder->plan->arena, "%s %s", builder->plan->weights[weight].name, pass);
}

static float scale_of(const struct builder *builder)
{
    const struct adapters_config *adapters = &builder->plan->model.adapters;
    return (float)(adapters->alpha / (double)adapters->rank);
}

// Returns the gradient of t = scale x A^T, which is dt = scale dy B. Further calls with the same dy return the same
// tensor.
static int32_t input_gradient(struct builder *builder, int32_t weight, int32_t dy)
{
    struct adapter_input *input = &builder->adapter_inputs[weight];
    int32_t               b     = builder->plan->weights[weight].adapter[ADAPTER_B];
    if (input->output_gradient != dy) {
        struct linear linear = {
            .role = role_of(builder, b, "data gradient"), .weight = b, .is_gradient = true, .is_whole = true};
        *input = (struct adapter_input){dy, linear_gemm_scaled(builder, &linear, dy, scale_of(builder))};
    }
    return input->gradient;
}

void adapter_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out)
{
    if (!adapter_exists(builder, linear->weight)) {
        return;
    }
    int32_t a = builder->plan->weights[linear->weight].adapter[ADAPTER_A];
    int32_t b = builder->plan->weights[linear->weight].adapter[ADAPTER_B];
    if (linear->is_gradient) {
        struct linear down_gradient = {
            .role = role_of(builder, a, "data gradient"), .weight = a, .is_gradient = true, .is_whole = true};
        linear_append(builder, &down_gradient, input_gradient(builder, linear->weight, x), out, true);
        return;
    }
    struct linear down                 = {.role = builder->plan->weights[a].name, .weight = a, .is_whole = true};
    int32_t       t                    = linear_gemm_scaled(builder, &down, x, scale_of(builder));
    *place_of(builder, linear->weight) = t;
    linear_append(builder, &(struct linear){.role = builder->plan->weights[b].name, .weight = b, .is_whole = true}, t,
                  out, true);
}

void adapter_weight_gradients(struct builder *builder, int32_t dy, int32_t x, int32_t weight)
{
    if (!adapter_exists(builder, weight)) {
        return;
    }
    int32_t a  = builder->plan->weights[weight].adapter[ADAPTER_A];
    int32_t b  = builder->plan->weights[weight].adapter[ADAPTER_B];
    int32_t dt = input_gradient(builder, weight, dy);
    linear_weight_gradient(builder, role_of(builder, b, "weight gradient"), dy, *place_of(builder, weight), b);
    linear_weight_gradient(builder, role_of(builder, a, "weight gradient"), dt, x, a);
}
