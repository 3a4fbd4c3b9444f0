// SPDX-License-Identifier: MIT
// Declares the weights: their parts, exported names, random streams and places in the units' ranges.
#include <math.h>
#include <stdio.h>

#include "internal.h"

// Every weight starts at a multiple of this many elements of its unit: 16 bytes of the narrowest type.
enum { WEIGHT_ALIGNMENT = 8 };

// Random streams: STREAM_FIRST + layer * STREAM_LAYER + place; the embedding and the head come before layer 0.
enum { STREAM_FIRST = 1 << 20, STREAM_LAYER = 64 };
enum place {
    PLACE_EMBEDDING,
    PLACE_FINAL_NORM,
    PLACE_FINAL_NORM_BIAS,
    PLACE_HEAD,
    PLACE_NORM1,
    PLACE_NORM1_BIAS,
    PLACE_Q,
    PLACE_K,
    PLACE_V,
    PLACE_PROJECTION,
    PLACE_NORM2,
    PLACE_NORM2_BIAS,
    PLACE_GATE,
    PLACE_UP,
    PLACE_DOWN,
    PLACE_COUNT
};

// Names as Hugging Face's Llama and Nemotron have them; %d is the layer.
static const char *const names[PLACE_COUNT] = {
    [PLACE_EMBEDDING]       = "model.embed_tokens.weight",
    [PLACE_FINAL_NORM]      = "model.norm.weight",
    [PLACE_FINAL_NORM_BIAS] = "model.norm.bias",
    [PLACE_HEAD]            = "lm_head.weight",
    [PLACE_NORM1]           = "model.layers.%d.input_layernorm.weight",
    [PLACE_NORM1_BIAS]      = "model.layers.%d.input_layernorm.bias",
    [PLACE_Q]               = "model.layers.%d.self_attn.q_proj.weight",
    [PLACE_K]               = "model.layers.%d.self_attn.k_proj.weight",
    [PLACE_V]               = "model.layers.%d.self_attn.v_proj.weight",
    [PLACE_PROJECTION]      = "model.layers.%d.self_attn.o_proj.weight",
    [PLACE_NORM2]           = "model.layers.%d.post_attention_layernorm.weight",
    [PLACE_NORM2_BIAS]      = "model.layers.%d.post_attention_layernorm.bias",
    [PLACE_GATE]            = "model.layers.%d.mlp.gate_proj.weight",
    [PLACE_UP]              = "model.layers.%d.mlp.up_proj.weight",
    [PLACE_DOWN]            = "model.layers.%d.mlp.down_proj.weight",
};

// A weight as it is declared: one matrix or vector made of up to three parts stacked by rows.
struct declaration {
    const char *name;
    int64_t     layer;    // -1: none
    int64_t     columns;
    int64_t     rows;    // of the tensor, padding included
    struct {
        enum place place;
        int64_t    rows;    // of the part
    } part[3];
    int   parts;
    float deviation, constant;
};

static int64_t align(int64_t elements)
{
    return (elements + WEIGHT_ALIGNMENT - 1) / WEIGHT_ALIGNMENT * WEIGHT_ALIGNMENT;
}

static void fill_parts(struct weight *weight, const struct declaration *declaration)
{
    int64_t row = 0;
    for (int i = 0; i < declaration->parts; i++) {
        struct weight_part *part  = &weight->part[i];
        enum place          place = declaration->part[i].place;
        *part = (struct weight_part){.stream     = STREAM_FIRST + (declaration->layer + 1) * STREAM_LAYER + place,
                                     .rows       = declaration->part[i].rows,
                                     .columns    = declaration->columns,
                                     .local_rows = declaration->part[i].rows,
                                     .offset     = row * declaration->columns,
                                     .is_vector  = declaration->rows == 1,
                                     .deviation  = declaration->deviation,
                                     .constant   = declaration->constant};
        // The format is a row of the table above.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(part->name, sizeof(part->name), names[place], (int)declaration->layer);
#pragma GCC diagnostic pop
        row += part->rows;
    }
    weight->part_count = declaration->parts;
}

static int32_t declare(struct plan *plan, const struct declaration *declaration, int64_t *first)
{
    plan->weights        = memory_resize(plan->weights, (size_t)(plan->weight_count + 1) * sizeof(*plan->weights));
    struct weight weight = {.name     = declaration->name,
                            .unit     = plan->unit_count - 1,
                            .first    = *first,
                            .rows     = declaration->rows,
                            .columns  = declaration->columns,
                            .tensor   = -1,
                            .gradient = -1};
    fill_parts(&weight, declaration);
    *first += align(declaration->rows * declaration->columns);
    plan->weights[plan->weight_count] = weight;
    plan->units[weight.unit].weight_count++;
    return plan->weight_count++;
}

static struct declaration vector(const char *name, int64_t layer, int64_t columns, enum place place)
{
    return (struct declaration){
        .name = name, .layer = layer, .columns = columns, .rows = 1, .part = {{place, 1}}, .parts = 1};
}

static struct declaration matrix(const char *name, int64_t layer, int64_t rows, int64_t columns, enum place place)
{
    return (struct declaration){
        .name = name, .layer = layer, .columns = columns, .rows = rows, .part = {{place, rows}}, .parts = 1};
}

// Declares a unit's weights in order; indices are set to the weights' places, or -1 for those of no elements.
static void declare_unit(struct builder *builder, int64_t layer, struct declaration *declarations,
                         int32_t *const indices[], int count)
{
    int64_t elements = 0;
    for (int i = 0; i < count; i++) {
        elements += align(declarations[i].rows * declarations[i].columns);
    }
    unit_create(builder, layer, elements);
    int64_t first = 0;
    for (int i = 0; i < count; i++) {
        bool is_absent = declarations[i].columns == 0;
        *indices[i]    = is_absent ? -1 : declare(builder->plan, &declarations[i], &first);
    }
    int32_t           index = builder->plan->unit_count - 1;
    struct plan_unit *unit  = &builder->plan->units[index];
    if (unit->kept.elements == unit->elements) {
        builder->tag.layer = (int16_t)layer;
        unit_point_weights(builder, index, unit->weight);
        unit_point_gradients(builder, index, unit->gradient);
        builder->tag.layer = -1;
    }
}

static float norm_constant(const struct model_config *model)
{
    return model->norm == NORM_LAYER_1P ? 0.0f : 1.0f;    // layer-norm-1p stores weight - 1
}

static void declare_block(struct builder *builder, int64_t layer)
{
    const struct model_config *model   = &builder->plan->model;
    struct block_weights      *weights = &builder->weights.blocks[layer];
    int64_t h = model->hidden, q = model_query_width(model), kv = model_kv_width(model), f = model->ffn;
    int64_t bias      = model_norm_has_bias(model) ? h : 0;
    float   deviation = (float)model->init_deviation;
    // Projections that add to the residual stream are drawn narrower, so that its variance does not grow with depth.
    float narrow = (float)(model->init_deviation / sqrt(2.0 * (double)model->layers));

    struct declaration declarations[] = {
        vector("norm1", layer, h, PLACE_NORM1),
        vector("norm1 bias", layer, bias, PLACE_NORM1_BIAS),
        {.name      = "qkv weight",
         .layer     = layer,
         .columns   = h,
         .rows      = q + 2 * kv,
         .part      = {{PLACE_Q, q}, {PLACE_K, kv}, {PLACE_V, kv}},
         .parts     = 3,
         .deviation = deviation},
        matrix("projection weight", layer, h, q, PLACE_PROJECTION),
        vector("norm2", layer, h, PLACE_NORM2),
        vector("norm2 bias", layer, bias, PLACE_NORM2_BIAS),
        {.name      = "fc1 weight",
         .layer     = layer,
         .columns   = h,
         .rows      = f,
         .part      = {{PLACE_UP, f}},
         .parts     = 1,
         .deviation = deviation},
        matrix("fc2 weight", layer, h, f, PLACE_DOWN),
    };
    if (model_is_gated(model)) {
        declarations[6].rows          = 2 * f;
        declarations[6].parts         = 2;
        declarations[6].part[0].place = PLACE_GATE;
        declarations[6].part[1].place = PLACE_UP;
        declarations[6].part[1].rows  = f;
    }
    declarations[0].constant = declarations[4].constant = norm_constant(model);
    declarations[3].deviation = declarations[7].deviation = narrow;

    int32_t *const indices[] = {&weights->norm1, &weights->norm1_bias, &weights->qkv, &weights->proj,
                                &weights->norm2, &weights->norm2_bias, &weights->fc1, &weights->fc2};
    declare_unit(builder, layer, declarations, indices, (int)(sizeof(indices) / sizeof(indices[0])));
}

void weights_declare(struct builder *builder)
{
    const struct model_config *model   = &builder->plan->model;
    struct model_weights      *weights = &builder->weights;
    int64_t                    padded  = model_padded_vocab(model, builder->plan->mesh.size[AXIS_TP]);

    weights->blocks      = arena_allocate(&builder->plan->arena, (size_t)model->layers * sizeof(*weights->blocks));
    int64_t units        = model->layers + 2;
    builder->plan->units = arena_allocate(&builder->plan->arena, (size_t)units * sizeof(*builder->plan->units));
    builder->states      = arena_allocate(&builder->plan->arena, (size_t)units * sizeof(*builder->states));

    struct declaration embedding = matrix("embedding table", -1, padded, model->hidden, PLACE_EMBEDDING);
    embedding.part[0].rows       = model->vocab;
    embedding.deviation          = (float)model->init_deviation;
    declare_unit(builder, -1, &embedding, (int32_t *const[]){&weights->embedding}, 1);

    for (int64_t layer = 0; layer < model->layers; layer++) {
        declare_block(builder, layer);
    }

    struct declaration head[] = {
        vector("final norm", -1, model->hidden, PLACE_FINAL_NORM),
        vector("final norm bias", -1, model_norm_has_bias(model) ? model->hidden : 0, PLACE_FINAL_NORM_BIAS),
        matrix("head weight", -1, padded, model->tied ? 0 : model->hidden, PLACE_HEAD),
    };
    head[0].constant     = norm_constant(model);
    head[2].part[0].rows = model->vocab;
    head[2].deviation    = (float)model->init_deviation;
    declare_unit(builder, -1, head, (int32_t *const[]){&weights->final_norm, &weights->final_norm_bias, &weights->head},
                 3);
    if (model->tied) {
        weights->head = weights->embedding;
    }
}
