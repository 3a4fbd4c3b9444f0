// SPDX-License-Identifier: MIT
// A block's forward ops in order, which of their outputs the recompute policy keeps, and what is computed again.
#include "internal.h"

#define BIT(value) (1u << (value))

// One forward op of a block: what it reads and makes.
struct forward_step {
    void (*append)(struct block *block);
    uint32_t reads, makes;
};

// clang-format off
static const struct forward_step forward_steps[] = {
    { attention_norm,       BIT(VALUE_X),                  BIT(VALUE_N1) | BIT(VALUE_STATISTICS1) },
    { attention_qkv,        BIT(VALUE_N1),                 BIT(VALUE_QKV) },
    { attention_rope,       BIT(VALUE_QKV),                BIT(VALUE_Q) | BIT(VALUE_KV) },
    { attention_core,       BIT(VALUE_Q) | BIT(VALUE_KV),  BIT(VALUE_O) | BIT(VALUE_LSE) },
    { attention_projection, BIT(VALUE_O),                  BIT(VALUE_A) },
    { mlp_norm,             BIT(VALUE_X) | BIT(VALUE_A),   BIT(VALUE_X2) | BIT(VALUE_N2) | BIT(VALUE_STATISTICS2) },
    { mlp_fc1,              BIT(VALUE_N2),                 BIT(VALUE_FC1) },
    { mlp_activation,       BIT(VALUE_FC1),                BIT(VALUE_S) },
    { mlp_fc2,              BIT(VALUE_S),                  BIT(VALUE_FC2) },
};
// clang-format on
enum { FORWARD_STEPS = sizeof(forward_steps) / sizeof(forward_steps[0]) };

static const uint32_t needed_by_backward = BIT(VALUE_X) | BIT(VALUE_STATISTICS1) | BIT(VALUE_N1) | BIT(VALUE_Q) |
                                           BIT(VALUE_KV) | BIT(VALUE_O) | BIT(VALUE_LSE) | BIT(VALUE_X2) |
                                           BIT(VALUE_STATISTICS2) | BIT(VALUE_N2) | BIT(VALUE_FC1) | BIT(VALUE_S);

// What each name of [train] recompute_save keeps.
static const uint32_t kept_by_name[OUTPUT_COUNT] = {
    [OUTPUT_NORM] = BIT(VALUE_N1) | BIT(VALUE_STATISTICS1) | BIT(VALUE_X2) | BIT(VALUE_N2) | BIT(VALUE_STATISTICS2),
    [OUTPUT_QKV]  = BIT(VALUE_Q) | BIT(VALUE_KV),
    [OUTPUT_ATTENTION]  = BIT(VALUE_O) | BIT(VALUE_LSE),
    [OUTPUT_PROJECTION] = BIT(VALUE_A),
    [OUTPUT_FC1]        = BIT(VALUE_FC1),
    [OUTPUT_ACTIVATION] = BIT(VALUE_S),
    [OUTPUT_FC2]        = 0,
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
        forward_steps[step].append(&block);
    }
    builder->tag.layer = -1;
}

// Forgets what the policy does not keep, and appends again the forward ops that lead to what backward needs.
static void recompute(struct block *block, uint32_t kept)
{
    uint32_t wanted = needed_by_backward & ~kept;
    bool     again[FORWARD_STEPS];
    for (int step = FORWARD_STEPS - 1; step >= 0; step--) {
        again[step] = (forward_steps[step].makes & wanted) != 0;
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

    builder->tag.layer = (int16_t)layer;
    recompute(&block, kept_values(&builder->plan->train, layer));
    gradient           = mlp_backward(&block, gradient);
    gradient           = attention_backward(&block, gradient);
    builder->tag.layer = -1;
    return gradient;
}
