// SPDX-License-Identifier: MIT
// A block's forward ops in order, which of their outputs the recompute policy keeps, and what is computed again.
#include "internal.h"

#define BIT(value) (1u << (value))

// One forward op of a block: what it reads and makes.
struct forward_step {
    enum { EVERY_BLOCK, DENSE_BLOCK, EXPERT_BLOCK } where;
    void (*append)(struct block *block);
    uint32_t reads, makes;
};

// What routing decides.
enum { ROUTED = BIT(VALUE_CHOICES) | BIT(VALUE_SLOTS) | BIT(VALUE_GATES) | BIT(VALUE_SOURCES) | BIT(VALUE_COUNTS) };

// clang-format off
static const struct forward_step forward_steps[] = {
    { EVERY_BLOCK,  attention_norm,       BIT(VALUE_X),                  BIT(VALUE_N1) | BIT(VALUE_STATISTICS1) },
    { EVERY_BLOCK,  attention_qkv,        BIT(VALUE_N1),                 BIT(VALUE_QKV) },
    { EVERY_BLOCK,  attention_rope,       BIT(VALUE_QKV),                BIT(VALUE_Q) | BIT(VALUE_KV) },
    { EVERY_BLOCK,  attention_core,       BIT(VALUE_Q) | BIT(VALUE_KV),  BIT(VALUE_O) | BIT(VALUE_LSE) },
    { EVERY_BLOCK,  attention_projection, BIT(VALUE_O),                  BIT(VALUE_A) },
    { EVERY_BLOCK,  mlp_norm,             BIT(VALUE_X) | BIT(VALUE_A),   BIT(VALUE_X2) | BIT(VALUE_N2) | BIT(VALUE_STATISTICS2) },
    { DENSE_BLOCK,  mlp_fc1,              BIT(VALUE_N2),                 BIT(VALUE_FC1) },
    { DENSE_BLOCK,  mlp_activation,       BIT(VALUE_FC1),                BIT(VALUE_S) },
    { DENSE_BLOCK,  mlp_fc2,              BIT(VALUE_S),                  BIT(VALUE_FC2) },
    { EXPERT_BLOCK, moe_logits,           BIT(VALUE_N2),                 BIT(VALUE_LOGITS) },
    { EXPERT_BLOCK, moe_route,            BIT(VALUE_LOGITS),             ROUTED },
    { EXPERT_BLOCK, moe_dispatch,         BIT(VALUE_N2) | ROUTED,        BIT(VALUE_EXPERT_IN) },
    { EXPERT_BLOCK, moe_fc1,              BIT(VALUE_EXPERT_IN),          BIT(VALUE_FC1) },
    { EXPERT_BLOCK, moe_activation,       BIT(VALUE_FC1),                BIT(VALUE_S) },
    { EXPERT_BLOCK, moe_fc2,              BIT(VALUE_S),                  BIT(VALUE_EXPERT_OUT) },
    { EXPERT_BLOCK, moe_combine,          BIT(VALUE_EXPERT_OUT) | ROUTED, BIT(VALUE_FC2) },
};
// clang-format on
enum { FORWARD_STEPS = sizeof(forward_steps) / sizeof(forward_steps[0]) };

static const uint32_t needed_by_backward = BIT(VALUE_X) | BIT(VALUE_STATISTICS1) | BIT(VALUE_N1) | BIT(VALUE_Q) |
                                           BIT(VALUE_KV) | BIT(VALUE_O) | BIT(VALUE_LSE) | BIT(VALUE_X2) |
                                           BIT(VALUE_STATISTICS2) | BIT(VALUE_N2) | BIT(VALUE_FC1) | BIT(VALUE_S) |
                                           BIT(VALUE_LOGITS) | ROUTED | BIT(VALUE_EXPERT_IN) | BIT(VALUE_EXPERT_OUT);

// What each name of [train] recompute_save keeps.
static const uint32_t kept_by_name[OUTPUT_COUNT] = {
    [OUTPUT_NORM] = BIT(VALUE_N1) | BIT(VALUE_STATISTICS1) | BIT(VALUE_X2) | BIT(VALUE_N2) | BIT(VALUE_STATISTICS2),
    [OUTPUT_QKV]  = BIT(VALUE_Q) | BIT(VALUE_KV),
    [OUTPUT_ATTENTION]  = BIT(VALUE_O) | BIT(VALUE_LSE),
    [OUTPUT_PROJECTION] = BIT(VALUE_A),
    [OUTPUT_FC1]        = BIT(VALUE_FC1),
    [OUTPUT_ACTIVATION] = BIT(VALUE_S),
    [OUTPUT_FC2]        = BIT(VALUE_EXPERT_OUT),
    [OUTPUT_DISPATCH]   = BIT(VALUE_LOGITS) | ROUTED | BIT(VALUE_EXPERT_IN),
};

// The values that stay from the forward to the backward pass. The block's entry always does.
static uint32_t kept_values(const struct train_config *train, int64_t layer)
{
    uint32_t kept = BIT(VALUE_X);
    switch ((enum recompute)train->recompute) {
    case RECOMPUTE_NONE:
        return needed_by_backward;
    case RECOMPUTE_ATTENTION:
        return needed_by_backward & ~kept_by_name[OUTPUT_ATTENTION];
    case RECOMPUTE_FULL:
        return kept;
    case RECOMPUTE_BLOCK_EVERY:
        return layer % train->recompute_every == 0 ? kept : needed_by_backward;
    case RECOMPUTE_SELECTIVE:
        break;
    }
    for (int name = 0; name < OUTPUT_COUNT; name++) {
        kept |= (train->recompute_save >> name & 1) ? kept_by_name[name] : 0;
    }
    return kept;
}

struct values *block_values(const struct builder *builder, int64_t layer)
{
    return &builder->values[builder->tag.microbatch % builder->in_flight * builder->plan->model.layers + layer];
}

static bool has_experts(const struct builder *builder)
{
    return builder->plan->model.experts > 0;
}

static bool belongs(const struct builder *builder, const struct forward_step *step)
{
    return step->where == EVERY_BLOCK || step->where == (has_experts(builder) ? EXPERT_BLOCK : DENSE_BLOCK);
}

int32_t block_unit(const struct builder *builder, int64_t layer)
{
    return builder->plan->weights[builder->weights.blocks[layer].norm1].unit;
}

int32_t block_units(const struct builder *builder)
{
    return 1 + builder->plan->precision.has_fp8_weights + has_experts(builder);
}

void block_forward(struct builder *builder, int64_t layer, int32_t x, int32_t branch)
{
    struct values *values = block_values(builder, layer);
    struct block   block  = {builder, &builder->weights.blocks[layer], values, branch};

    for (int value = 0; value < VALUE_COUNT; value++) {
        values->tensor[value] = -1;
    }
    values->tensor[VALUE_X] = x;
    builder->tag.layer      = (int16_t)layer;
    for (int step = 0; step < FORWARD_STEPS; step++) {
        if (belongs(builder, &forward_steps[step])) {
            forward_steps[step].append(&block);
        }
    }
    builder->tag.layer = -1;
}

// Forgets what the policy does not keep, and appends again the forward ops that lead to what backward needs.
static void recompute(struct block *block, uint32_t kept)
{
    uint32_t wanted = needed_by_backward & ~kept;
    bool     again[FORWARD_STEPS];
    for (int step = FORWARD_STEPS - 1; step >= 0; step--) {
        again[step] = belongs(block->builder, &forward_steps[step]) && (forward_steps[step].makes & wanted) != 0;
        wanted |= again[step] ? forward_steps[step].reads & ~kept : 0;
    }

    int16_t phase             = block->builder->tag.phase;
    block->builder->tag.phase = PHASE_RECOMPUTE;
    for (int step = 0; step < FORWARD_STEPS; step++) {
        if (again[step]) {
            forward_steps[step].append(block);
        }
    }
    block->builder->tag.phase = phase;
}

int32_t block_backward(struct builder *builder, int64_t layer, int32_t gradient)
{
    struct block block = {builder, &builder->weights.blocks[layer], block_values(builder, layer), -1};
    int32_t      unit  = block_unit(builder, layer);

    for (int32_t i = 0; i < block_units(builder); i++) {
        unit_begin_gradients(builder, unit + i);
    }
    builder->tag.layer = (int16_t)layer;
    recompute(&block, kept_values(&builder->plan->train, layer));
    int32_t d_norm;
    if (has_experts(builder)) {
        d_norm = moe_backward(&block, gradient);
        // Their reduction starts beside the rest of the block.
        unit_end_gradients(builder, unit + block_units(builder) - 1);
    } else {
        d_norm = mlp_backward(&block, gradient);
    }
    gradient           = mlp_norm_backward(&block, d_norm, gradient);
    gradient           = attention_backward(&block, gradient);
    builder->tag.layer = -1;
    for (int32_t i = 0; i < block_units(builder) - has_experts(builder); i++) {
        unit_end_gradients(builder, unit + i);
    }
    return gradient;
}
