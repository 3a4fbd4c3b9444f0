// SPDX-License-Identifier: MIT
// Gradients of every weight of complete models, against central finite differences of the loss in fp32.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/random.h"
#include "training.h"

// A model on one rank, ready to run.
struct probe {
    struct tiny       tiny;
    struct local_hub *hub;
    struct comm       comm;
    struct backend    backend;
    struct step      *step;
};

static void probe_open(struct probe *probe)
{
    // No update, so that the loss can be evaluated repeatedly. The gradient norm is measured but never clipped.
    probe->tiny.train.learning_rate = 0;
    probe->tiny.train.weight_decay  = 0;
    tiny_plan(&probe->tiny);
    probe->hub = local_hub_open(1);
    comm_open_local(&probe->comm, probe->hub, 0);
    status result = backend_open(&probe->backend, "host", &(struct backend_setup){.threads = 1});
    cr_assert(!failed(&result), "%s", result.text);
    result = step_open(&probe->step, &probe->tiny.plan, &probe->backend, &probe->comm);
    cr_assert(!failed(&result), "%s", result.text);
    data_initialise(probe->step, &probe->tiny.plan, 3);
    data_fill(probe->step, &probe->tiny.plan, DATA_UNIFORM, 3, 0);
}

static void probe_close(struct probe *probe)
{
    step_close(probe->step);
    backend_close(&probe->backend);
    comm_close(&probe->comm);
    local_hub_close(probe->hub);
    plan_free(&probe->tiny.plan);
}

static double loss_of(struct probe *probe)
{
    float loss, further = 0;
    step_run(probe->step);
    step_read(probe->step, probe->tiny.plan.loss, &loss);
    if (probe->tiny.plan.prediction_loss >= 0) {
        step_read(probe->step, probe->tiny.plan.prediction_loss, &further);
    }
    return (double)loss + probe->tiny.train.prediction_weight * (double)further;
}

// Slope of the loss along a unit vector, by fourth-order differences. Their truncation error is small even at steps
// that are large compared with fp32 rounding of the loss.
static double measured_slope(struct probe *probe, int32_t tensor, const float *value, const double *direction,
                             double reach)
{
    enum { POINTS = 4 };
    static const double place[POINTS] = {-2, -1, 1, 2}, factor[POINTS] = {1, -8, 8, -1};
    int64_t             elements = probe->tiny.plan.tensors[tensor].elements;
    float              *moved    = memory_allocate((size_t)elements * sizeof(*moved));
    double              sum      = 0;
    for (int point = 0; point < POINTS; point++) {
        for (int64_t i = 0; i < elements; i++) {
            moved[i] = (float)((double)value[i] + place[point] * reach * direction[i]);
        }
        step_write(probe->step, tensor, moved);
        sum += factor[point] * loss_of(probe);
    }
    step_write(probe->step, tensor, value);
    free(moved);
    return sum / (12 * reach);
}

// Direction 0 is the gradient. The others have random signs, to detect missing or misplaced parts.
static void choose_direction(int number, const float *gradient, double *direction, int64_t elements)
{
    double square = 0;
    for (int64_t i = 0; i < elements; i++) {
        bool is_up   = random_below(99, (uint64_t)number, (uint64_t)i, 2) == 1;
        direction[i] = number == 0 ? (double)gradient[i] : is_up ? 1 : -1;
        square += direction[i] * direction[i];
    }
    for (int64_t i = 0; i < elements; i++) {
        direction[i] /= sqrt(square);
    }
}

static void check_weight(struct probe *probe, const struct weight *weight)
{
    int64_t elements = probe->tiny.plan.tensors[weight->tensor].elements;
    size_t  bytes    = (size_t)elements * sizeof(float);
    float  *value = memory_allocate(bytes), *gradient = memory_allocate(bytes);
    double *direction = memory_allocate(bytes * 2), length = 0;
    step_read(probe->step, weight->tensor, value);
    loss_of(probe);
    step_read(probe->step, weight->gradient, gradient);
    for (int64_t i = 0; i < elements; i++) {
        length += (double)gradient[i] * (double)gradient[i];
    }
    length = sqrt(length);
    cr_expect_gt(length, 1e-3, "%s has no gradient to speak of", weight->part[0].name);

    for (int number = 0; number < 5; number++) {
        double expected = 0;
        choose_direction(number, gradient, direction, elements);
        for (int64_t i = 0; i < elements; i++) {
            expected += (double)gradient[i] * direction[i];
        }
        double measured = measured_slope(probe, weight->tensor, value, direction, 0.01 / sqrt(length));
        cr_expect_lt(fabs(measured - expected), 1e-3 * length,
                     "%s direction %d: slope %.8f, gradient says %.8f, of %.8f", weight->part[0].name, number, measured,
                     expected, length);
    }
    free(value);
    free(gradient);
    free(direction);
}

static void check_model(struct tiny *tiny)
{
    struct probe probe = {.tiny = *tiny};
    probe_open(&probe);
    for (int32_t w = 0; w < probe.tiny.plan.weight_count; w++) {
        check_weight(&probe, &probe.tiny.plan.weights[w]);
    }
    probe_close(&probe);
}

Test(gradient, is_right_for_swiglu_rms_norm_and_grouped_queries)
{
    struct tiny tiny;
    tiny_init(&tiny);
    check_model(&tiny);
}

Test(gradient, is_right_for_geglu_tied_embeddings_and_accumulation)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.activation   = ACTIVATION_GEGLU;
    tiny.model.tied         = 1;
    tiny.model.kv_heads     = 4;
    tiny.train.accumulation = 2;
    check_model(&tiny);
}

Test(gradient, is_right_for_squared_relu_layer_norm_1p_and_partial_rope)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.activation    = ACTIVATION_RELU2;
    tiny.model.norm          = NORM_LAYER_1P;
    tiny.model.rope_fraction = 0.5;
    tiny.model.kv_heads      = 1;
    check_model(&tiny);
}

Test(gradient, is_right_for_gelu_layer_norm_and_padded_vocabulary)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.activation     = ACTIVATION_GELU;
    tiny.model.norm           = NORM_LAYER;
    tiny.model.vocab          = 37;
    tiny.model.vocab_multiple = 16;
    tiny.train.recompute      = RECOMPUTE_FULL;
    check_model(&tiny);
}

// A matrix with one row still uses GEMMs.
Test(gradient, is_right_for_an_mlp_of_one_element)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.activation = ACTIVATION_GELU;
    tiny.model.ffn        = 1;
    check_model(&tiny);
}

// Balanced routing, so that a difference step cannot change the experts of a token.
Test(gradient, is_right_for_dense_layers_among_layers_with_experts)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_set_experts(&tiny, 3, 2);
    snprintf(tiny.model.pattern, sizeof(tiny.model.pattern), "dense, experts, attention + mlp");
    tiny.model.layers         = 3;
    tiny.model.expert_ffn     = 10;
    tiny.model.auxiliary_loss = 0;
    tiny.train.routing        = ROUTING_BALANCED;
    tiny.train.recompute      = RECOMPUTE_BLOCK_EVERY;
    check_model(&tiny);
}

// DeepSeek-V3's router with groups. Skewed routing assigns experts, so a difference step cannot change them.
Test(gradient, is_right_for_gates_of_sigmoids)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_set_experts(&tiny, 4, 2);
    tiny.model.router_score     = ROUTER_SIGMOID;
    tiny.model.router_scale     = 2.5;
    tiny.model.router_bias_rate = 0.01;
    tiny.train.routing          = ROUTING_SKEWED;
    tiny.train.routing_skew     = 1.5;
    tiny.model.auxiliary_loss   = 0;
    check_model(&tiny);
    tiny.model.router_normalise = 0;
    check_model(&tiny);
    tiny.model.router_score = ROUTER_SOFTMAX;
    check_model(&tiny);
    tiny.model.router_gates = GATES_INPUT;
    check_model(&tiny);
}

// The block's norm sums the gradients of routed experts, router and shared experts.
Test(gradient, is_right_for_experts_beside_shared_ones)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_set_experts(&tiny, 3, 2);
    tiny.model.expert_ffn     = 10;
    tiny.model.shared_ffn     = 14;
    tiny.model.auxiliary_loss = 0;
    tiny.train.routing        = ROUTING_BALANCED;
    tiny.train.accumulation   = 2;
    tiny.train.recompute      = RECOMPUTE_FULL;
    check_model(&tiny);
}

// As in GPT-OSS: a window in every second layer, attention sinks, biases in linears and router.
Test(gradient, is_right_for_windows_sinks_and_biases)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_set_experts(&tiny, 3, 2);
    snprintf(tiny.model.pattern, sizeof(tiny.model.pattern), "window_attention + experts, dense");
    tiny.model.window          = 3;
    tiny.model.attention_sinks = 1;
    tiny.model.attention_bias  = 1;
    tiny.model.mlp_bias        = 1;
    tiny.model.router_offset   = 1;
    tiny.model.expert_ffn      = 10;
    tiny.model.shared_ffn      = 6;
    tiny.model.auxiliary_loss  = 0;
    tiny.train.routing         = ROUTING_BALANCED;
    tiny.train.accumulation    = 2;
    tiny.train.recompute       = RECOMPUTE_FULL;
    check_model(&tiny);
}

// As in GPT-3: a position table longer than the sequence, and tied token embeddings.
Test(gradient, is_right_for_learned_positions)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.positions     = POSITIONS_LEARNED;
    tiny.model.max_positions = tiny.train.sequence + 3;
    tiny.model.tied          = 1;
    tiny.model.norm          = NORM_LAYER;
    tiny.model.activation    = ACTIVATION_GELU;
    tiny.train.accumulation  = 2;
    check_model(&tiny);
}

// With tied and untied embeddings.
Test(gradient, is_right_for_embeddings_and_logits_that_are_multiplied)
{
    for (int64_t tied = 0; tied < 2; tied++) {
        struct tiny tiny;
        tiny_init(&tiny);
        tiny.model.tied            = tied;
        tiny.model.embedding_scale = 3.5;
        tiny.model.logit_scale     = 0.6;
        check_model(&tiny);
    }
}

Test(gradient, is_right_for_scores_that_fall_with_distance)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.positions = POSITIONS_ALIBI;
    tiny.model.heads     = 6;
    tiny.model.kv_heads  = 3;
    tiny.train.recompute = RECOMPUTE_FULL;
    check_model(&tiny);
}

Test(gradient, is_right_for_latent_attention)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.kv_heads  = 4;
    tiny.model.kv_rank   = 7;
    tiny.model.q_rank    = 9;
    tiny.model.rope_dim  = 6;
    tiny.model.value_dim = 5;
    check_model(&tiny);
}

Test(gradient, is_right_for_latent_attention_without_compressed_queries)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.kv_heads  = 4;
    tiny.model.kv_rank   = 7;
    tiny.model.rope_dim  = 2;
    tiny.train.recompute = RECOMPUTE_FULL;
    check_model(&tiny);
}

// MTP with experts, and a loss weight that exposes a missing factor.
Test(gradient, is_right_for_a_further_token)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny_set_experts(&tiny, 3, 2);
    snprintf(tiny.model.pattern, sizeof(tiny.model.pattern), "dense, experts");
    tiny.model.predicted_tokens  = 1;
    tiny.model.expert_ffn        = 10;
    tiny.model.shared_ffn        = 6;
    tiny.model.auxiliary_loss    = 0;
    tiny.train.routing           = ROUTING_BALANCED;
    tiny.train.prediction_weight = 0.7;
    tiny.train.accumulation      = 2;
    check_model(&tiny);
}

Test(gradient, is_right_for_two_further_tokens_multiplied_tied_embeddings_and_recompute)
{
    struct tiny tiny;
    tiny_init(&tiny);
    tiny.model.norm              = NORM_LAYER;
    tiny.model.activation        = ACTIVATION_GELU;
    tiny.model.tied              = 1;
    tiny.model.embedding_scale   = 2;
    tiny.model.logit_scale       = 1.5;
    tiny.model.predicted_tokens  = 2;
    tiny.train.prediction_weight = 1.5;
    tiny.train.recompute         = RECOMPUTE_FULL;
    check_model(&tiny);
}
