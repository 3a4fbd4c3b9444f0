// SPDX-License-Identifier: MIT
// Compares the gradients of every weight of complete models with central finite differences of the loss, in fp32.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/random.h"
#include "layouts.h"
#include "success.h"
#include "training.h"

// A model on one rank, whose step is ready to run.
struct probe {
    struct tiny       tiny;
    struct local_hub *hub;
    struct comm       comm;
    struct backend    backend;
    struct step      *step;
};

// Mamba-2 is initialised with time steps of about 0.01, for which the loss hardly depends on states. Sets time steps of
// about 1 and wider filters.
static void enlarge_states(struct probe *probe)
{
    const struct {
        const char *weight;
        float       factor, offset;
    } changes[] = {{"step bias", 1, 5}, {"decay", 1, -2}, {"filters", 6, 0}};
    for (int32_t w = 0; w < probe->tiny.plan.weight_count; w++) {
        int32_t tensor   = probe->tiny.plan.weights[w].tensor;
        int64_t elements = probe->tiny.plan.tensors[tensor].elements;
        float  *values   = memory_allocate((size_t)elements * sizeof(*values));
        step_read(probe->step, tensor, values);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
            for (int64_t j = 0; j < elements && strcmp(probe->tiny.plan.weights[w].name, changes[i].weight) == 0; j++) {
                values[j] = values[j] * changes[i].factor + changes[i].offset;
            }
        }
        step_write(probe->step, tensor, values);
        free(values);
    }
}

// Adapters start with B = 0, which makes the gradient of A zero. Sets B to random numbers.
static void move_adapters(const struct probe *probe)
{
    const struct plan *plan = &probe->tiny.plan;
    for (int32_t w = 0; w < plan->weight_count; w++) {
        int32_t b = plan->weights[w].adapter[ADAPTER_B];
        if (b < 0) {
            continue;
        }
        int32_t tensor = plan->weights[b].tensor;
        float  *values = memory_allocate((size_t)plan->tensors[tensor].bytes);
        for (int64_t i = 0; i < plan->tensors[tensor].elements; i++) {
            values[i] = 0.2F * random_normal(random_key(7, (uint64_t)b), (uint64_t)i);
        }
        step_write(probe->step, tensor, values);
        free(values);
    }
}

static void probe_open(struct probe *probe)
{
    // The learning rate is 0, so that the loss can be evaluated repeatedly. The gradient norm is measured but never
    // clipped.
    probe->tiny.train.learning_rate = 0;
    probe->tiny.train.weight_decay  = 0;
    tiny_plan(&probe->tiny);
    probe->hub = local_hub_open(1);
    comm_open_local(&probe->comm, probe->hub, 0);
    REQUIRE(backend_open(&probe->backend, "host", &(struct backend_setup){.threads = 1}));
    REQUIRE(step_open(&probe->step, &probe->tiny.plan, &probe->backend, &probe->comm));
    data_initialise(probe->step, &probe->tiny.plan, 3);
    enlarge_states(probe);
    data_fill(probe->step, &probe->tiny.plan, DATA_UNIFORM, 3, 0);
    move_adapters(probe);
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

// Measures the slope of the loss along a unit vector by fourth-order differences. Their truncation error is small even
// for points so far apart that rounding of the loss in fp32 does not matter.
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

// Direction 0 is the gradient. Other directions have random signs, which exposes missing or misplaced parts of the
// gradient.
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

static void check_weight(struct probe *probe, const struct weight *weight, const char *model)
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
    cr_expect_gt(length, 1e-3, "%s: %s has no gradient to speak of", model, weight->part[0].name);

    for (int number = 0; number < 5; number++) {
        double expected = 0;
        choose_direction(number, gradient, direction, elements);
        for (int64_t i = 0; i < elements; i++) {
            expected += (double)gradient[i] * direction[i];
        }
        double measured = measured_slope(probe, weight->tensor, value, direction, 0.01 / sqrt(length));
        cr_expect_lt(fabs(measured - expected), 1e-3 * length,
                     "%s: %s direction %d: slope %.8f, gradient says %.8f, of %.8f", model, weight->part[0].name,
                     number, measured, expected, length);
    }
    free(value);
    free(gradient);
    free(direction);
}

// Routing is balanced or skewed, so experts of a token do not depend on weights and a finite difference cannot change
// them.
// clang-format off
static const char *const models[] = {
    "",    // SwiGLU, RMSNorm, grouped-query attention
    "activation geglu; tied yes; kv_heads 4; accumulation 2",
    "activation relu2; norm layernorm1p; rope_fraction 0.5; kv_heads 1",
    "activation gelu; norm layernorm; vocab 37; vocab_multiple 16; recompute full",
    "activation gelu; ffn 1",    // a matrix with one row still uses GEMMs
    "experts 3; top_k 2; pattern dense, experts, attention + mlp; layers 3; expert_ffn 10; routing balanced; "
    "recompute block_every",
    // as the routers of DeepSeek-V3 and Llama 4
    "experts 4; top_k 2; routing skewed; routing_skew 1.5; router_scale 2.5; router_bias_rate 0.01; router_score sigmoid",
    "experts 4; top_k 2; routing skewed; routing_skew 1.5; router_scale 2.5; router_bias_rate 0.01; router_score sigmoid; "
    "router_normalise no",
    "experts 4; top_k 2; routing skewed; routing_skew 1.5; router_scale 2.5; router_bias_rate 0.01; router_normalise no",
    "experts 4; top_k 2; routing skewed; routing_skew 1.5; router_scale 2.5; router_bias_rate 0.01; router_normalise no; "
    "router_gates input",
    // the norm of a block adds the gradients of routed experts, router and shared experts
    "experts 3; top_k 2; expert_ffn 10; shared_ffn 14; routing balanced; accumulation 2; recompute full",
    // as in GPT-OSS: a window in every second layer, attention sinks, biases in linears and router
    "experts 3; top_k 2; pattern window_attention + experts, dense; window 3; attention_sinks yes; attention_bias yes; "
    "mlp_bias yes; router_offset yes; expert_ffn 10; shared_ffn 6; routing balanced; accumulation 2; recompute full",
    // as in GPT-3: a position table longer than the sequence, and tied token embeddings
    "positions learned; max_positions 11; tied yes; norm layernorm; activation gelu; accumulation 2",
    "positions alibi; heads 6; kv_heads 3; recompute full",
    "embedding_scale 3.5; logit_scale 0.6",
    "embedding_scale 3.5; logit_scale 0.6; tied yes",
    "kv_heads 4; kv_rank 7; q_rank 9; rope_dim 6; value_dim 5",
    "kv_heads 4; kv_rank 7; rope_dim 2; recompute full",
    // as in Nemotron-H and Nemotron 3 Nano: one sublayer per layer; the last chunk of the scan is shorter.
    // A large epsilon keeps the gated norm of small rows smooth
    "norm_epsilon 0.1; pattern MM*; layers 3; activation relu2; positions none; mamba_heads 4; mamba_head_dim 6; mamba_state 5; "
    "mamba_groups 2; mamba_chunk 3; accumulation 2",
    "norm_epsilon 0.1; pattern MEM*; layers 4; activation relu2; positions none; experts 3; top_k 2; expert_ffn 10; shared_ffn 6; "
    "routing balanced; mamba_heads 3; mamba_head_dim 4; mamba_state 4; mamba_groups 1; mamba_conv 2; recompute full",
    // as in Nemotron 3 Super: experts between projections, and MTP modules with the same weights
    "pattern E*; layers 2; activation relu2; experts 3; top_k 2; expert_ffn 10; expert_hidden 4; shared_ffn 6; routing balanced; "
    "accumulation 2",
    "pattern -/*E/*E; layers 1; predicted_tokens 2; repeat_prediction yes; prediction_weight 1.5; experts 3; top_k 2; "
    "expert_ffn 10; expert_hidden 5; shared_ffn 6; routing balanced",
    "norm_epsilon 0.1; pattern mamba + mlp, 1 x attention + mlp; norm layernorm; mamba_heads 4; mamba_head_dim 4; mamba_state 4; mamba_groups 4",
    "norm_epsilon 0.1; pattern MM-/*-/*-; layers 3; predicted_tokens 2; mamba_heads 2; mamba_head_dim 6; mamba_groups 2; mamba_state 3",
    // MTP with experts, and a loss weight that exposes a missing factor
    "experts 3; top_k 2; pattern dense, experts; predicted_tokens 1; expert_ffn 10; shared_ffn 6; routing balanced; "
    "prediction_weight 0.7; accumulation 2",
    "norm layernorm; activation gelu; tied yes; embedding_scale 2; logit_scale 1.5; predicted_tokens 2; "
    "prediction_weight 1.5; recompute full",
    // adapters: on every matrix, on the last one of a layer only, and beside frozen norms, biases, sinks and experts
    "rank 3; alpha 5; accumulation 2",
    "rank 2; alpha 3; targets fc2; norm layernorm; activation gelu; attention_bias yes; mlp_bias yes; tied yes; recompute full",
    "rank 2; alpha 3; targets projection; kv_heads 4; kv_rank 7; rope_dim 2; recompute full",
    "rank 2; alpha 3; qk_norm yes; attention_sinks yes; experts 3; top_k 2; expert_ffn 10; shared_ffn 14; router_offset yes; "
    "routing balanced; accumulation 2",
    "rank 2; alpha 4; targets qkv, fc1; predicted_tokens 1; prediction_weight 0.7; recompute attention",
    "rank 2; alpha 4; predicted_tokens 3; repeat_prediction yes; prediction_weight 0.7",
};
// clang-format on

Test(gradient, is_right_for_every_weight_of_each_model, .timeout = 300)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct probe probe = {.tiny = tiny_of(models[i])};
        probe_open(&probe);
        int checked = 0;
        for (int32_t w = 0; w < probe.tiny.plan.weight_count; w++) {
            if (probe.tiny.plan.weights[w].gradient >= 0) {
                check_weight(&probe, &probe.tiny.plan.weights[w], models[i]);
                checked++;
            }
        }
        cr_expect_gt(checked, 0, "%s", models[i]);
        probe_close(&probe);
    }
}
