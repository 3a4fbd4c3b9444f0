// SPDX-License-Identifier: MIT
// Appends the forward and backward pass of a block: a layer, an MTP module, the embedding or the head. The recompute
// policy determines which forward values are kept; missing values are recomputed before the backward pass.
#include "block.h"

#include <string.h>

#include "gswbench/fatal.h"
#include "gswbench/linear.h"

enum { NORM_MAKES = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_N) };

static void describe(struct builder *builder, int64_t place, const struct layer_run *run)
{
    struct block *block  = &builder->blocks[place];
    int64_t       layer  = block_layer(&builder->plan->model, place);
    bool          sparse = false;
    *block               = (struct block){.layer = layer, .count = run->count, .first_linear = builder->linears};
    memcpy(block->kinds, run->kinds, sizeof(run->kinds));
    for (int32_t i = 0; i < block->count; i++) {
        block->linears += block->kinds[i]->count(&builder->plan->model).linears;
        sparse |= block->kinds[i]->has_experts;
    }
    block->expert_layer = sparse ? builder->expert_layers++ : -1;
    builder->linears += block->linears;
}

// Finds the first sublayer with a trained weight, at which the backward pass ends. It is the embedding or, if the model
// is frozen, the first sublayer with adapters.
static void find_first_trained(struct builder *builder)
{
    const struct model_config *model = &builder->plan->model;
    bool                       found = !model_is_frozen(model);
    for (int64_t place = 1; place < block_head(model) && !found; place++) {
        for (int32_t i = 0; i < builder->blocks[place].count && !found; i++) {
            found                           = builder->blocks[place].kinds[i]->count(model).adapters > 0;
            builder->first_trained_place    = place;
            builder->first_trained_sublayer = i;
        }
    }
}

void block_describe_all(struct builder *builder)
{
    const struct model_config *model = &builder->plan->model;
    struct layer_pattern       pattern;
    status                     result = pattern_read(&pattern, model);
    if (failed(&result)) {
        FATAL(EXIT_INTERNAL, "a pattern that was not checked: %s", result.text);
    }
    builder->blocks = arena_allocate(&builder->scratch, (size_t)block_places(model) * sizeof(*builder->blocks));
    int64_t place   = 0;
    describe(builder, place++, &(struct layer_run){.count = 1, .kinds = {&embedding_kind}});
    for (int run = 0; run < pattern.count; run++) {
        for (int64_t i = 0; i < pattern.runs[run].layers; i++) {
            describe(builder, place++, &pattern.runs[run]);
        }
    }
    describe(builder, place++, &(struct layer_run){.count = 1, .kinds = {&head_kind}});
    for (int64_t i = 0; i < pattern.prediction.layers; i++) {
        describe(builder, place, &pattern.prediction);
        builder->blocks[place++].is_repeat = model->repeat_prediction != 0 && i > 0;
    }
    find_first_trained(builder);
}

static uint32_t needed_of(const struct plan *plan, const struct layer_kind *kind)
{
    const struct model_config *model  = &plan->model;
    uint32_t                   needed = kind->needed;
    for (int linear = 0; linear < LINEAR_KINDS; linear++) {
        bool is_trained = !model_is_frozen(model) || model_adapts(model, (enum linear_kind)linear);
        needed |= is_trained ? kind->inputs[linear] : 0;
    }
    return needed | (kind->needed_also != NULL ? kind->needed_also(model) : 0);
}

// Returns a mask of the values of a sublayer that the recompute policy keeps from the forward to the backward pass. The
// input of the block is always kept. With recompute_layers = n, only the first n layers of a chunk recompute anything.
static uint32_t kept_by_policy(const struct plan *plan, const struct block *block, int32_t index)
{
    const struct train_config *train  = &plan->train;
    const struct layer_kind   *kind   = block->kinds[index];
    uint32_t                   needed = needed_of(plan, kind);
    uint32_t                   kept = index == 0 ? BIT(VALUE_X) : 0, saved = 0, attention = 0, recomputed = 0;
    bool                       keeps_all = train->recompute_layers > 0 && block->in_chunk >= train->recompute_layers;
    if (keeps_all || kind->ends) {    // kind->ends: the backward pass follows immediately
        return needed;
    }
    if (train->recompute_save >> OUTPUT_NORM & 1) {
        saved = NORM_MAKES;
    }
    if (train->recompute_modules >> MODULE_NORMS & 1) {
        recomputed = BIT(VALUE_N);
    }
    for (const struct forward_step *step = kind->steps; step->append != NULL; step++) {
        saved |= (step->saved_as & (uint32_t)train->recompute_save) != 0 ? step->makes : 0;
        recomputed |= (step->modules & (uint32_t)train->recompute_modules) != 0 ? step->makes : 0;
        attention |= (step->saved_as & 1u << OUTPUT_ATTENTION) != 0 ? step->makes : 0;
    }
    switch ((enum recompute)train->recompute) {
    case RECOMPUTE_NONE:
        return needed;
    case RECOMPUTE_ATTENTION:
        return needed & ~attention;
    case RECOMPUTE_FULL:
        return kept;
    case RECOMPUTE_BLOCK_EVERY:
        return block->layer % train->recompute_every == 0 ? kept : needed;
    case RECOMPUTE_MODULES:
        return ~recomputed;
    case RECOMPUTE_SELECTIVE:
        break;
    }
    return kept | saved;
}

// Returns a sublayer with its tensors for the current microbatch. Each microbatch in flight has a slot in
// builder->values.
static struct sublayer sublayer_of(struct builder *builder, int64_t place, int32_t index)
{
    struct block *block = &builder->blocks[place];
    int64_t       slot  = block->own * builder->in_flight + builder->assembly.tag.microbatch % builder->in_flight;
    return (struct sublayer){.builder = builder,
                             .kind    = block->kinds[index],
                             .weights = block->weights[index],
                             .values  = &builder->values[slot].sublayer[index],
                             .in      = {.x = -1, .branch = -1},
                             .is_first_trained =
                                 place <= builder->first_trained_place && index <= builder->first_trained_sublayer};
}

static struct residual_stream out_of(const struct sublayer *sublayer)
{
    const int32_t *values = sublayer->values->tensor;
    return sublayer->kind->begins ? (struct residual_stream){.x = values[VALUE_OUT], .branch = -1}
           : sublayer->kind->ends ? (struct residual_stream){.x = values[VALUE_N], .branch = -1}
                                  : (struct residual_stream){.x = values[VALUE_X], .branch = values[VALUE_OUT]};
}

static struct norm_values norm_of(const struct sublayer *sublayer)
{
    return (struct norm_values){.x          = sublayer->in.x,
                                .branch     = sublayer->in.branch,
                                .weight     = sublayer->weights[WEIGHT_NORM],
                                .bias       = sublayer->weights[WEIGHT_NORM_BIAS],
                                .sum        = sublayer->values->tensor[VALUE_X],
                                .out        = sublayer->values->tensor[VALUE_N],
                                .statistics = sublayer->values->tensor[VALUE_STATISTICS]};
}

static void append_norm(struct sublayer *sublayer)
{
    struct norm_values norm = norm_of(sublayer);
    assembly_set_part(&sublayer->builder->assembly, sublayer->kind->norm->part);
    norm_forward(sublayer->builder, sublayer->kind->norm->forward, &norm);
    sublayer->values->tensor[VALUE_X]          = norm.sum;
    sublayer->values->tensor[VALUE_N]          = norm.out;
    sublayer->values->tensor[VALUE_STATISTICS] = norm.statistics;
}

// Returns whether the step is an expert all-to-all. A pass of a block is divided there, so that ops of another
// microbatch can overlap with the all-to-all.
static bool is_all_to_all(const struct layer_kind *kind, const struct forward_step *step)
{
    return (step->makes & kind->exchanged) != 0;
}

int block_parts(const struct builder *builder, int64_t place)
{
    const struct block *block = &builder->blocks[place];
    int                 parts = 1;
    for (int32_t i = 0; i < block->count; i++) {
        for (const struct forward_step *step = block->kinds[i]->steps; step->append != NULL; step++) {
            parts += is_all_to_all(block->kinds[i], step);
        }
    }
    return parts;
}

static void append_step(struct sublayer *sublayer, const struct forward_step *step)
{
    assembly_set_part(&sublayer->builder->assembly, step->part);
    step->append(sublayer);
}

static void begin_forward(struct sublayer *sublayer)
{
    for (int value = 0; value < VALUES_MAX; value++) {
        sublayer->values->tensor[value] = -1;
    }
    if (sublayer->kind->norm != NULL) {
        append_norm(sublayer);
    }
}

struct residual_stream block_forward(struct builder *builder, int64_t place, struct residual_stream in, int part)
{
    const struct block *block   = &builder->blocks[place];
    int                 at      = 0;    // the part that the loop has reached
    builder->assembly.tag.layer = (int16_t)block->layer;
    for (int32_t i = 0; i < block->count; i++) {
        struct sublayer sublayer = sublayer_of(builder, place, i);
        sublayer.in              = in;
        if (at == part) {
            begin_forward(&sublayer);
        }
        for (const struct forward_step *step = sublayer.kind->steps; step->append != NULL; step++) {
            if (at == part) {
                append_step(&sublayer, step);
            }
            at += is_all_to_all(sublayer.kind, step);
        }
        in = out_of(&sublayer);
    }
    builder->assembly.tag.layer = -1;
    return in;
}

// The forward ops of a sublayer that are recomputed: its norm, and the steps of its kind whose bits are set in `steps`.
struct recomputed {
    bool     norm;
    bool     is_entered;    // the norm's input was kept, so no earlier sublayer is recomputed for it
    uint32_t steps;
};

// Finds the forward steps that must be repeated if the backward pass reads the `wanted` values and only the `kept` ones
// exist. Then sets `wanted` to the values that these steps read from the previous sublayer.
static struct recomputed find_recomputed(const struct layer_kind *kind, uint32_t *wanted, uint32_t kept)
{
    struct recomputed recomputed = {.is_entered = (kept & BIT(VALUE_X)) != 0};
    int               count      = 0;
    while (kind->steps[count].append != NULL) {
        count++;
    }
    uint32_t missing = *wanted & ~kept;
    for (int step = count - 1; step >= 0; step--) {
        if ((kind->steps[step].makes & missing) != 0) {
            recomputed.steps |= 1u << step;
            missing |= kind->steps[step].reads & ~kept;
        }
    }
    recomputed.norm = kind->norm != NULL && (missing & NORM_MAKES) != 0;
    *wanted         = recomputed.norm && !recomputed.is_entered ? BIT(VALUE_X) | BIT(VALUE_OUT) : 0;
    return recomputed;
}

// Appends the ops that recompute the forward values that the backward pass reads and the recompute policy has not kept.
static void recompute(struct builder *builder, int64_t place)
{
    const struct block *block  = &builder->blocks[place];
    uint32_t            before = 0;
    struct recomputed   recomputed[BLOCK_SUBLAYERS];
    for (int32_t i = block->count - 1; i >= 0; i--) {
        bool     is_run = place > builder->first_trained_place || i >= builder->first_trained_sublayer;
        uint32_t wanted = before | (is_run ? needed_of(builder->plan, block->kinds[i]) : 0);
        uint32_t kept   = kept_by_policy(builder->plan, block, i) & ~block->kinds[i]->dropped;
        recomputed[i]   = find_recomputed(block->kinds[i], &wanted, kept);
        before          = wanted;
    }
    int16_t                phase = builder->assembly.tag.phase;
    struct residual_stream in    = {.x = -1, .branch = -1};
    builder->assembly.tag.phase  = PHASE_RECOMPUTE;
    for (int32_t i = 0; i < block->count; i++) {
        struct sublayer sublayer = sublayer_of(builder, place, i);
        sublayer.in              = recomputed[i].is_entered
                                       ? (struct residual_stream){.x = sublayer.values->tensor[VALUE_X], .branch = -1}
                                       : in;
        if (recomputed[i].norm) {
            append_norm(&sublayer);
        }
        for (int step = 0; sublayer.kind->steps[step].append != NULL; step++) {
            if ((recomputed[i].steps >> step & 1u) != 0) {
                append_step(&sublayer, &sublayer.kind->steps[step]);
            }
        }
        in = out_of(&sublayer);
    }
    builder->assembly.tag.phase = phase;
}

// Appends the end of a sublayer's backward pass, which includes its norm. Returns the gradient of the sublayer's input.
static int32_t end_backward(struct sublayer *sublayer, const struct block *block, int32_t gradient)
{
    struct builder    *builder = sublayer->builder;
    struct norm_values norm    = norm_of(sublayer);
    if (sublayer->kind->has_experts && !block->is_repeat) {
        // Reduces the experts' gradients now, to overlap with the remaining backward pass of the block.
        unit_end_gradients(builder, block->first_unit + block->unit_count - 1);
    }
    if (sublayer->kind->norm == NULL) {
        return gradient;
    }
    if (sublayer->is_first_trained) {
        return -1;
    }
    assembly_set_part(&builder->assembly, sublayer->kind->norm->part);
    return norm_backward(builder, sublayer->kind->norm->backward, &norm, gradient, sublayer->values->gradient);
}

int32_t block_backward(struct builder *builder, int64_t place, int32_t gradient, int part)
{
    const struct block *block   = &builder->blocks[place];
    int                 at      = 0;    // the part that the loop has reached
    builder->assembly.tag.layer = (int16_t)block->layer;
    if (part == 0) {
        recompute(builder, place);
    }
    int32_t first = place > builder->first_trained_place ? 0 : builder->first_trained_sublayer;
    for (int32_t i = block->count - 1; i >= first; i--) {
        struct sublayer sublayer = sublayer_of(builder, place, i);
        if (at == part) {
            sublayer.values->gradient = sublayer.kind->begins || sublayer.kind->ends ? -1 : gradient;
        }
        for (int own = 0; own < BACKWARD_PARTS && sublayer.kind->backward[own] != NULL; own++) {
            at += own > 0;
            if (at == part) {
                gradient = sublayer.kind->backward[own](&sublayer, gradient);
            }
        }
        if (at == part) {
            gradient = end_backward(&sublayer, block, gradient);
        }
    }
    builder->assembly.tag.layer = -1;
    return gradient;
}

void block_begin_gradients(struct builder *builder, int64_t place)
{
    const struct block *block = &builder->blocks[place];
    for (int32_t unit = block->first_unit; unit < block->first_unit + block->unit_count; unit++) {
        unit_begin_gradients(builder, unit);
    }
}

void block_end_gradients(struct builder *builder, int64_t place)
{
    const struct block *block = &builder->blocks[place];
    int32_t             count = block->unit_count - (block->expert_layer >= 0);
    for (int32_t unit = block->first_unit; unit < block->first_unit + count; unit++) {
        unit_end_gradients(builder, unit);
    }
}
