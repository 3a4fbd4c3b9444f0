// SPDX-License-Identifier: MIT
// Draws model, layout and batch until they are compatible.
#include "drawn_layout.h"

#include <stdio.h>
#include <string.h>

#include "gswbench/plan_build.h"
#include "gswbench/random.h"

// State of the random number generator. Each attempt of a seed draws another sequence of numbers.
struct draws {
    uint64_t seed, attempt, count;
};

static int64_t below(struct draws *draws, int64_t bound)
{
    return (int64_t)random_below(draws->seed, draws->attempt, draws->count++, (uint32_t)bound);
}

#define PICK(draws, ...)                                                                                               \
    (((const int64_t[]){__VA_ARGS__})[below(draws, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))])

static void draw_model(struct draws *draws, struct model_config *model)
{
    model->hidden         = PICK(draws, 16, 24, 32);
    model->heads          = PICK(draws, 4, 8);
    model->kv_heads       = PICK(draws, 1, 2, 4, 4);
    model->head_dim       = PICK(draws, 4, 6, 8);
    model->ffn            = 8 * (1 + below(draws, 4));
    model->vocab          = 33 + below(draws, 16);
    model->vocab_multiple = PICK(draws, 1, 4);
    model->activation     = below(draws, ACTIVATION_COUNT);
    model->norm           = below(draws, NORM_COUNT);
    model->rope_fraction  = (double)PICK(draws, 0, 1, 1);
    model->tied           = below(draws, 3) == 0;
    model->qk_norm        = below(draws, 3) == 0;
    model->experts        = PICK(draws, 0, 4, 8);
    model->top_k          = model->experts > 0 ? PICK(draws, 1, 2) : 0;
    if (model->experts > 0) {
        // Sets no capacity factor, so experts drop no tokens. Otherwise rounding would decide which of two tokens with
        // nearly equal probabilities is dropped.
        model->auxiliary_loss = (double)below(draws, 2) * 0.01;
    }
    snprintf(model->family, sizeof(model->family), "gswbench");
}

static void draw_parallel(struct draws *draws, struct parallel_config *parallel)
{
    parallel->tp                         = PICK(draws, 1, 1, 2, 4);
    parallel->cp                         = PICK(draws, 1, 1, 2, 2, 4);
    parallel->fsdp                       = PICK(draws, 1, 1, 2, 4);
    parallel->dp                         = PICK(draws, 1, 1, 2, 3);
    parallel->pp                         = PICK(draws, 1, 1, 2, 3);
    parallel->vp                         = parallel->pp > 1 ? PICK(draws, 1, 2) : 1;
    parallel->ep                         = PICK(draws, 1, 2, 4, 4);
    parallel->sequence_parallel          = below(draws, 3) > 0;
    parallel->zero                       = below(draws, 2);
    parallel->zero_gather                = PICK(draws, ZERO_GATHER_OPTIMIZER, ZERO_GATHER_FORWARD);
    parallel->prefetch                   = below(draws, 4);
    parallel->reshard                    = PICK(draws, RESHARD_ALWAYS, RESHARD_EXCEPT_LAST, RESHARD_NEVER);
    parallel->context                    = PICK(draws, CONTEXT_RING, CONTEXT_GATHER);
    parallel->tp_overlap                 = parallel->sequence_parallel && below(draws, 2);
    parallel->layers_per_chunk_embedding = below(draws, 2);
    parallel->deferred_head_gradients    = below(draws, 4);
    parallel->shard_over_cp              = below(draws, 2);
    parallel->ep_over_cp                 = below(draws, 2);
}

static void draw_train(struct draws *draws, struct train_config *train)
{
    train->sequence         = PICK(draws, 8, 16, 24);
    train->micro_batch      = PICK(draws, 1, 1, 2);
    train->accumulation     = PICK(draws, 1, 2, 3);
    train->recompute        = below(draws, RECOMPUTE_MODULES);
    train->recompute_every  = 1 + below(draws, 3);
    train->recompute_save   = below(draws, 1 << OUTPUT_COUNT);
    train->recompute_layers = below(draws, 3);
    train->capacity_scope   = CAPACITY_SEQUENCE;
    train->learning_rate    = 5e-4;
    train->epsilon          = 1e-3;    // otherwise rounding decides the sign of an update without gradient
}

struct plan_sections drawn_layout_sections(const struct training *training)
{
    return (struct plan_sections){.model     = &training->tiny.model,
                                  .parallel  = &training->tiny.parallel,
                                  .train     = &training->tiny.train,
                                  .precision = &training->tiny.precision,
                                  .world     = training->ranks};
}

// Returns whether the layout meets the rules of job_check.
static bool is_divisible(const struct tiny *tiny)
{
    const struct parallel_config *parallel = &tiny->parallel;
    const struct model_config    *model    = &tiny->model;
    int64_t                       chunks   = parallel->cp > 1 ? 2 * parallel->cp : 1;
    int64_t                       experts  = model->experts > 0 ? model->experts : 1;
    return model->heads % parallel->tp == 0 &&
           (model->kv_heads % parallel->tp == 0 || parallel->tp % model->kv_heads == 0) &&
           model->ffn % parallel->tp == 0 && experts % parallel->ep == 0 && tiny->train.sequence % chunks == 0;
}

bool drawn_layout_is_planned(const struct training *training)
{
    struct plan_sections sections = drawn_layout_sections(training);
    struct plan_request  request;
    struct plan          plan  = {.tensors = NULL};
    status               built = plan_check(&sections);
    built                      = failed(&built) ? built : plan_resolve(&request, &sections);
    built                      = failed(&built) ? built : plan_build(&plan, &request);
    plan_free(&plan);
    return !failed(&built);
}

// Sets etp 1, so that experts are not sharded over tp.
static void draw_whole_experts(struct draws *draws, struct training *training)
{
    struct parallel_config *parallel = &training->tiny.parallel;
    parallel->etp                    = 1;
    parallel->ep                     = parallel->tp * PICK(draws, 1, parallel->cp, 2 * parallel->cp);
    parallel->sequence_parallel      = true;
    parallel->ep_over_cp             = false;
}

static void draw_biases(struct draws *draws, struct training *training)
{
    struct model_config *model = &training->tiny.model;
    // Without RoPE, a key bias adds the same value to all scores of a query, so its gradient is only rounding error.
    // The same is true for a router bias with top-1 experts, which always have gate 1.
    bool rotates          = model->positions == POSITIONS_ROTARY && model->rope_fraction > 0.0;
    model->attention_bias = rotates && below(draws, 3) > 0;
    model->mlp_bias       = below(draws, 2);
    model->router_offset  = model->top_k > 1 && below(draws, 2);
}

static void draw_latent_attention(struct draws *draws, struct training *training)
{
    struct model_config *model = &training->tiny.model;
    model->kv_heads            = model->heads;
    model->kv_rank             = PICK(draws, 5, 12);
    model->q_rank              = PICK(draws, 0, 10);
    model->rope_dim            = PICK(draws, 2, 6);
    model->value_dim           = PICK(draws, 0, 5, 9);
    model->qk_norm             = 0;
    model->rope_fraction       = 1.0;
    model->norm                = NORM_RMS;
}

static void draw_routing(struct draws *draws, struct training *training)
{
    struct model_config *model = &training->tiny.model;
    model->router_score        = below(draws, ROUTER_SIGMOID + 1);
    model->router_normalise    = below(draws, 2);
    model->router_gates        = below(draws, GATES_INPUT + 1);
    model->router_scale        = (double)PICK(draws, 1, 2);
    model->router_bias_rate    = (double)PICK(draws, 0, 2) * 0.01;
    model->router_groups       = PICK(draws, 0, model->experts / 2);
    model->router_top_groups   = model->router_groups > 0 ? 1 + below(draws, model->router_groups) : 0;
    model->shared_ffn          = PICK(draws, 0, 8, 16);
    model->expert_hidden       = model->router_gates == GATES_OUTPUT ? PICK(draws, 0, 6) : 0;
}

// Draws a pattern whose first layers differ from the others. A ring over cp does not support sliding windows.
static void draw_pattern(struct draws *draws, struct training *training)
{
    static const char *const layers[] = {"dense", "window_attention + mlp", "experts", "window_attention + experts"};
    struct model_config     *model    = &training->tiny.model;
    int64_t kinds = model->experts > 0 ? 4 : 2, first = below(draws, kinds), last = below(draws, kinds);
    snprintf(model->pattern, sizeof(model->pattern), "%s, %s", layers[first], layers[last]);
    model->window = strstr(model->pattern, "window") != NULL ? PICK(draws, 3, 8) : 0;
    if (model->window > 0 && training->tiny.parallel.context == CONTEXT_RING) {
        training->tiny.parallel.context = CONTEXT_GATHER;
    }
}

// Appends the layers of each MTP module to a pattern of letters. Without them, a module is like the last layer.
static void draw_modules_of_letters(struct draws *draws, struct model_config *model)
{
    static const char *const modules[] = {"", "/-", "/*-", "/*E"};
    const char              *module    = modules[below(draws, model->experts > 0 ? 4 : 3)];
    size_t                   length    = strspn(model->pattern, "M*-E");
    bool                     is_free   = length > 0 && model->pattern[length] == '\0';
    for (int64_t i = 0; is_free && i < model->predicted_tokens; i++) {
        strcat(model->pattern, module);
    }
}

// Prepends Mamba-2 layers to the drawn pattern, or draws a pattern of letters: each kind once, then random ones. cp
// does not support Mamba-2.
static void draw_hybrid(struct draws *draws, struct training *training)
{
    struct model_config    *model    = &training->tiny.model;
    struct parallel_config *parallel = &training->tiny.parallel;
    char                    layers[sizeof(model->pattern)];
    int64_t                 kinds = model->experts > 0 ? 4 : 3, first = below(draws, 4);
    model->layers = model->layers < kinds ? kinds : model->layers;
    if (model->pattern[0] != '\0') {
        snprintf(layers, sizeof(layers), "%s", model->pattern);
        snprintf(model->pattern, sizeof(model->pattern), "%s, %.64s", below(draws, 2) ? "mamba" : "mamba + mlp",
                 layers);
    } else {
        for (int64_t i = 0; i < model->layers; i++) {
            model->pattern[(first + i) % model->layers] = "M*-E"[i < kinds ? i : below(draws, kinds)];
        }
        model->pattern[model->layers] = '\0';
        draw_modules_of_letters(draws, model);
    }
    training->ranks /= (int)parallel->cp;
    parallel->cp          = 1;
    model->mamba_groups   = parallel->tp * PICK(draws, 1, 2);
    model->mamba_heads    = model->mamba_groups * PICK(draws, 1, 2);
    model->mamba_head_dim = PICK(draws, 4, 6);
    model->mamba_state    = PICK(draws, 3, 6);
    model->mamba_conv     = PICK(draws, 2, 4);
    model->mamba_chunk    = PICK(draws, 3, 5, 128);
    model->norm_epsilon   = 0.01;    // otherwise the gated norm of a small group amplifies rounding
}

static void draw_sinks(struct draws *draws, struct training *training)
{
    (void)draws;
    training->tiny.model.attention_sinks = 1;
}

static void draw_positions(struct draws *draws, struct training *training)
{
    struct model_config *model = &training->tiny.model;
    model->positions           = 1 + below(draws, POSITIONS_COUNT - 1);
    model->max_positions       = model->positions == POSITIONS_LEARNED ? training->tiny.train.sequence + 3 : 0;
    model->attention_bias      = 0;    // without RoPE, the gradient of a key bias is only rounding error
}

static void draw_scales(struct draws *draws, struct training *training)
{
    training->tiny.model.embedding_scale = (double)PICK(draws, 1, 3) * 0.5;
    training->tiny.model.logit_scale     = (double)PICK(draws, 1, 3) * 0.5;
}

static void draw_predictions(struct draws *draws, struct training *training)
{
    training->tiny.model.predicted_tokens  = PICK(draws, 1, 2);
    training->tiny.model.repeat_prediction = below(draws, 2);
    draw_modules_of_letters(draws, &training->tiny.model);
}

static void draw_last_chunk(struct draws *draws, struct training *training)
{
    training->tiny.parallel.last_chunk_layers          = 1 + below(draws, 2);
    training->tiny.parallel.layers_per_chunk_embedding = 0;
}

// With one expert per token the gate is constant, so the gradient of the router is only rounding error, which Muon
// enlarges.
static void draw_muon(struct draws *draws, struct training *training)
{
    struct parallel_config *parallel = &training->tiny.parallel;
    training->ranks /= (int)parallel->fsdp;
    parallel->fsdp                  = 1;
    parallel->shard_over_cp         = 0;
    training->tiny.train.optimizer  = OPTIMIZER_MUON;
    training->tiny.train.muon_split = below(draws, 2);
    training->tiny.model.top_k      = training->tiny.model.experts > 0 ? 2 : 0;
}

static void draw_modules(struct draws *draws, struct training *training)
{
    training->tiny.train.recompute         = RECOMPUTE_MODULES;
    training->tiny.train.recompute_modules = below(draws, 1 << MODULE_COUNT);
}

static void draw_exchange(struct draws *draws, struct training *training)
{
    struct model_config *model      = &training->tiny.model;
    training->tiny.parallel.context = CONTEXT_EXCHANGE;
    model->kv_heads                 = PICK(draws, model->kv_heads, model->heads);
}

// Lets two microbatches overlap, if experts need all-to-alls.
static void draw_overlap(struct draws *draws, struct training *training)
{
    training->tiny.train.overlap_microbatches   = true;
    training->tiny.train.delay_weight_gradients = below(draws, 2);
}

static void draw_gradient_reduce(struct draws *draws, struct training *training)
{
    (void)draws;
    training->tiny.parallel.gradient_reduce         = GRADIENT_REDUCE_MICROBATCH;
    training->tiny.parallel.deferred_head_gradients = 0;
}

// Draws adapters of low rank with a large scale, so that their output matters.
static void draw_adapters(struct draws *draws, struct training *training)
{
    training->tiny.model.adapters                   = (struct adapters_config){.rank    = 1 + below(draws, 3),
                                                                               .alpha   = (double)PICK(draws, 5, 12),
                                                                               .targets = 1 + below(draws, (1 << LINEAR_KINDS) - 1)};
    training->tiny.parallel.deferred_head_gradients = 0;
}

// Optional features of a model or layout, with the number of draws in 8 that try them. A feature that is incompatible
// with the earlier ones is dropped, so each draw starts with another feature.
static void draw_parts(struct draws *draws, struct training *training)
{
    static const struct {
        void (*draw)(struct draws *, struct training *);
        int64_t often;
    } parts[] = {
        {draw_positions, 5},  {draw_exchange, 5},    {draw_latent_attention, 4}, {draw_sinks, 4},    {draw_pattern, 4},
        {draw_routing, 5},    {draw_predictions, 3}, {draw_whole_experts, 4},    {draw_biases, 6},   {draw_modules, 6},
        {draw_overlap, 3},    {draw_scales, 3},      {draw_gradient_reduce, 3},  {draw_adapters, 4}, {draw_hybrid, 6},
        {draw_last_chunk, 4}, {draw_muon, 3},
    };
    enum { PARTS = sizeof(parts) / sizeof(parts[0]) };
    int64_t first = below(draws, PARTS);
    for (int64_t i = 0; i < PARTS; i++) {
        int64_t         part     = (first + i) % PARTS;
        struct training without  = *training;
        bool            is_drawn = below(draws, 8) < parts[part].often;
        if (is_drawn) {
            parts[part].draw(draws, training);
        }
        if (is_drawn && !(is_divisible(&training->tiny) && drawn_layout_is_planned(training))) {
            *training = without;
        }
    }
}

// Half of the pipelines that can delay weight gradients use the zero-bubble schedule.
static void draw_schedule(struct draws *draws, struct training *training)
{
    struct parallel_config *parallel = &training->tiny.parallel;
    struct training         without  = *training;
    if (parallel->pp == 1 || below(draws, 2)) {
        return;
    }
    parallel->schedule                = PIPELINE_ZERO_BUBBLE;
    parallel->deferred_head_gradients = 0;
    if (!drawn_layout_is_planned(training)) {
        *training = without;
    }
}

struct training drawn_layout(uint64_t seed)
{
    struct draws draws = {.seed = random_key(seed, 1)};
    for (;; draws.attempt++) {
        struct training               training = {.threads = 1, .seed = seed};
        struct tiny                  *tiny     = &training.tiny;
        const struct parallel_config *parallel = &tiny->parallel;
        tiny_init(tiny);
        draw_model(&draws, &tiny->model);
        draw_parallel(&draws, &tiny->parallel);
        draw_train(&draws, &tiny->train);
        tiny->model.layers = parallel->pp * parallel->vp + below(&draws, 3);
        training.ranks     = (int)(parallel->tp * parallel->cp * parallel->fsdp * parallel->dp * parallel->pp);
        if (training.ranks <= DRAWN_RANKS_MAX && is_divisible(tiny) && drawn_layout_is_planned(&training)) {
            draw_parts(&draws, &training);
            draw_schedule(&draws, &training);
            tiny->parallel.context = parallel->cp > 1 ? parallel->context : CONTEXT_GATHER;
            return training;
        }
    }
}

struct training drawn_low_precision(uint64_t seed)
{
    struct draws             draws       = {.seed = random_key(seed, 2)};
    struct training          training    = drawn_layout(seed);
    struct precision_config *precision   = &training.tiny.precision;
    training.decided                     = training.tiny.model.experts > 0;
    training.tiny.model.router_bias_rate = training.decided ? 0.001 : 0;
    do {
        precision->recipe  = PICK(&draws, RECIPE_DELAYED, RECIPE_DELAYED, RECIPE_DELAYED, RECIPE_CURRENT, RECIPE_BLOCK,
                                  RECIPE_MXFP8, RECIPE_ROWS, RECIPE_NVFP4);
        precision->compute = precision->recipe == RECIPE_NVFP4 ? COMPUTE_FP4 : COMPUTE_FP8;
        precision->fp8_weights          = precision->recipe < RECIPE_BLOCK && below(&draws, 2);
        precision->fp8_history          = PICK(&draws, 1, 2, 1024);
        precision->fp8_fused            = below(&draws, 2);
        precision->fp8_weight_gradients = below(&draws, 4) > 0;
        precision->bf16_prediction      = !precision->fp8_weights && below(&draws, 2);
    } while (!drawn_layout_is_planned(&training));
    return training;
}
