// SPDX-License-Identifier: MIT
// Declares the weights: their parts, exported names, random streams and places in the units' ranges.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

// Random streams: STREAM_FIRST + layer * STREAM_LAYER + place; the embedding and the head come before layer 0. Those of
// experts follow one another from streams_of_experts on, as many to a layer as a model may have.
enum { STREAM_FIRST = 1 << 20, STREAM_LAYER = 64, STREAM_EXPERT = 4, EXPERTS_MAX = 1024 };
static const int64_t streams_of_experts = INT64_C(1) << 40;
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
    PLACE_ROUTER,
    PLACE_EXPERT_GATE,
    PLACE_EXPERT_UP,
    PLACE_EXPERT_DOWN,
    PLACE_COUNT
};

// Names as Hugging Face's Llama, Nemotron and Mixtral have them; %d is the layer, and then the expert.
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
    [PLACE_ROUTER]          = "model.layers.%d.block_sparse_moe.gate.weight",
    [PLACE_EXPERT_GATE]     = "model.layers.%d.block_sparse_moe.experts.%d.w1.weight",
    [PLACE_EXPERT_UP]       = "model.layers.%d.block_sparse_moe.experts.%d.w3.weight",
    [PLACE_EXPERT_DOWN]     = "model.layers.%d.block_sparse_moe.experts.%d.w2.weight",
};

// A part as it is declared: a whole matrix or vector, and which of it is here.
struct declared_part {
    enum place place;
    int64_t    rows, columns;
    int64_t    first_row, local_rows;
    int64_t    first_column, local_columns;
};

// A weight as it is declared: up to three parts stacked by rows.
struct declaration {
    const char          *name;
    int64_t              layer;            // -1: none
    int64_t              expert;           // where the places are an expert's
    int64_t              rows, columns;    // here, padding included; columns 0: the model has no such weight
    struct declared_part part[3];
    int                  parts;
    bool                 is_vector;        // not a matrix of one row
    bool                 is_replicated;    // all ranks of tp hold it
    bool                 is_linear;        // of attention or an MLP: that one
    enum fp8_gemm        gemm;
    float                deviation, constant;
};

static int64_t stream_of(const struct declaration *declaration, enum place place)
{
    if (place < PLACE_EXPERT_GATE) {
        return STREAM_FIRST + (declaration->layer + 1) * STREAM_LAYER + place;
    }
    int64_t expert = declaration->layer * EXPERTS_MAX + declaration->expert;
    return streams_of_experts + expert * STREAM_EXPERT + place - PLACE_EXPERT_GATE;
}

static void fill_parts(struct weight *weight, const struct declaration *declaration)
{
    int64_t row = 0;
    for (int i = 0; i < declaration->parts; i++) {
        const struct declared_part *declared = &declaration->part[i];
        struct weight_part         *part     = &weight->part[i];

        *part = (struct weight_part){.stream        = stream_of(declaration, declared->place),
                                     .rows          = declared->rows,
                                     .columns       = declared->columns,
                                     .first_row     = declared->first_row,
                                     .local_rows    = declared->local_rows,
                                     .first_column  = declared->first_column,
                                     .local_columns = declared->local_columns,
                                     .offset        = row * declared->local_columns,
                                     .is_vector     = declaration->is_vector,
                                     .deviation     = declaration->deviation,
                                     .constant      = declaration->constant};
        // The format is a row of the table above.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(part->name, sizeof(part->name), names[declared->place], (int)declaration->layer,
                 (int)declaration->expert);
#pragma GCC diagnostic pop
        row += part->local_rows;
    }
    weight->part_count = declaration->parts;
}

int64_t weights_linears(const struct model_config *model)
{
    return FP8_FC1 + (FP8_GEMMS - FP8_FC1) * (model->experts > 0 ? model->experts : 1);
}

static int32_t linear_of(const struct plan *plan, const struct declaration *declaration)
{
    if (!declaration->is_linear || (plan->precision.fp8_gemms >> declaration->gemm & 1u) == 0) {
        return -1;
    }
    int64_t expert = declaration->gemm >= FP8_FC1 && declaration->expert > 0 ? declaration->expert : 0;
    return (int32_t)(declaration->layer * weights_linears(&plan->model) + declaration->gemm +
                     expert * (FP8_GEMMS - FP8_FC1));
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
                            .gradient = -1,
                            .linear   = linear_of(plan, declaration)};
    fill_parts(&weight, declaration);
    *first += unit_align(plan, declaration->rows * declaration->columns, 1);
    if (declaration->is_replicated) {
        plan->units[weight.unit].replicated = *first;
    }
    plan->weights[plan->weight_count] = weight;
    plan->units[weight.unit].weight_count++;
    return plan->weight_count++;
}

// The ranks of tp share out a matrix by rows (its outputs) or by columns (its inputs), in equal parts.
struct share {
    int64_t size, index;
};

static struct share share_of(const struct plan *plan)
{
    return (struct share){mesh_group_size(&plan->mesh, 1u << AXIS_TP),
                          mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_TP)};
}

static struct declaration vector(const char *name, int64_t layer, int64_t columns, enum place place)
{
    return (struct declaration){
        .name          = name,
        .layer         = layer,
        .rows          = 1,
        .columns       = columns,
        .part          = {{.place = place, .rows = 1, .columns = columns, .local_rows = 1, .local_columns = columns}},
        .parts         = 1,
        .is_vector     = true,
        .is_replicated = true};
}

// Appends a part of rows x columns of which this rank has an equal share of the rows.
static void add_rows(struct declaration *declaration, struct share share, enum place place, int64_t rows,
                     int64_t columns)
{
    int64_t local                           = rows / share.size;
    declaration->part[declaration->parts++] = (struct declared_part){.place         = place,
                                                                     .rows          = rows,
                                                                     .columns       = columns,
                                                                     .first_row     = share.index * local,
                                                                     .local_rows    = local,
                                                                     .local_columns = columns};
    declaration->rows += local;
    declaration->columns = columns;
}

static struct declaration by_columns(const char *name, int64_t layer, struct share share, struct declared_part part)
{
    part.local_rows    = part.rows;
    part.local_columns = part.columns / share.size;
    part.first_column  = share.index * part.local_columns;
    return (struct declaration){
        .name = name, .layer = layer, .rows = part.rows, .columns = part.local_columns, .part = {part}, .parts = 1};
}

// A table of the vocabulary: its padding lies behind the last row.
static struct declaration table(const struct plan *plan, const char *name, enum place place)
{
    struct share       share       = share_of(plan);
    int64_t            padded      = model_padded_vocab(&plan->model, share.size);
    struct declaration declaration = {.name = name, .layer = -1, .deviation = (float)plan->model.init_deviation};
    add_rows(&declaration, share, place, padded, plan->model.hidden);
    struct declared_part *part = &declaration.part[0];
    int64_t               left = plan->model.vocab - part->first_row;
    part->rows                 = plan->model.vocab;
    part->local_rows           = left < 0 ? 0 : left < part->local_rows ? left : part->local_rows;
    return declaration;
}

static float narrow_deviation(const struct model_config *model)
{
    return (float)(model->init_deviation / sqrt(2.0 * (double)model->layers));
}

// fc1 (gate, up) and fc2 of a layer's MLP, or of one expert of it. Projections that add to the residual stream are
// drawn narrower, so that its variance does not grow with depth.
static void describe_mlp(struct declaration mlp[2], const struct plan *plan, int64_t layer, int64_t expert)
{
    const struct model_config *model = &plan->model;
    struct share               share = share_of(plan);
    enum place                 gate  = expert < 0 ? PLACE_GATE : PLACE_EXPERT_GATE;
    enum place                 up    = expert < 0 ? PLACE_UP : PLACE_EXPERT_UP;
    enum place                 down  = expert < 0 ? PLACE_DOWN : PLACE_EXPERT_DOWN;

    mlp[0] = (struct declaration){.name = "fc1 weight", .layer = layer, .deviation = (float)model->init_deviation};
    if (model_is_gated(model)) {
        add_rows(&mlp[0], share, gate, model->ffn, model->hidden);
    }
    add_rows(&mlp[0], share, up, model->ffn, model->hidden);
    mlp[1]           = by_columns("fc2 weight", layer, share,
                                  (struct declared_part){.place = down, .rows = model->hidden, .columns = model->ffn});
    mlp[1].deviation = narrow_deviation(model);
    mlp[0].expert = mlp[1].expert = expert;
    mlp[0].is_linear = mlp[1].is_linear = true;
    mlp[0].gemm                         = FP8_FC1;
    mlp[1].gemm                         = FP8_FC2;
}

// Declares a unit's weights in order; indices are set to the weights' places, or -1 for those of no elements. No
// indices: the weights follow one another from the plan's next one on.
static void declare_unit(struct builder *builder, int64_t place, struct declaration *declarations,
                         int32_t *const indices[], int count)
{
    int64_t elements = 0;
    for (int i = 0; i < count; i++) {
        elements += unit_align(builder->plan, declarations[i].rows * declarations[i].columns, 1);
    }
    unit_create(builder, place, elements);
    int64_t first = 0;
    for (int i = 0; i < count; i++) {
        int32_t weight = declarations[i].columns == 0 ? -1 : declare(builder->plan, &declarations[i], &first);
        if (indices != NULL) {
            *indices[i] = weight;
        }
    }
    int32_t           index = builder->plan->unit_count - 1;
    struct plan_unit *unit  = &builder->plan->units[index];
    if (unit->kept.elements == unit->elements) {
        builder->tag.layer = builder->plan->tensors[unit->weight].layer;
        unit_point_weights(builder, index, unit->weight);
        unit_point_gradients(builder, index, unit->gradient);
        builder->tag.layer = -1;
    }
}

static float norm_constant(const struct model_config *model)
{
    return model->norm == NORM_LAYER_1P ? 0.0f : 1.0f;    // layer-norm-1p stores weight - 1
}

// What all ranks of tp hold alike comes first.
static void declare_block(struct builder *builder, int64_t layer)
{
    const struct model_config *model   = &builder->plan->model;
    struct block_weights      *weights = &builder->weights.blocks[layer];
    struct share               share   = share_of(builder->plan);
    int64_t                    h = model->hidden, q = model_query_width(model), kv = model_kv_width(model);
    int64_t                    bias      = model_norm_has_bias(model) ? h : 0;
    float                      deviation = (float)model->init_deviation;

    struct declaration declarations[] = {
        vector("norm1", layer, h, PLACE_NORM1),
        vector("norm1 bias", layer, bias, PLACE_NORM1_BIAS),
        vector("norm2", layer, h, PLACE_NORM2),
        vector("norm2 bias", layer, bias, PLACE_NORM2_BIAS),
        {.name = "router weight", .layer = layer, .deviation = deviation, .is_replicated = true},
        {.name = "qkv weight", .layer = layer, .deviation = deviation},
        by_columns("projection weight", layer, share,
                   (struct declared_part){.place = PLACE_PROJECTION, .rows = h, .columns = q}),
        {.columns = 0},
        {.columns = 0},
    };
    add_rows(&declarations[5], share, PLACE_Q, q, h);
    add_rows(&declarations[5], share, PLACE_K, kv, h);
    add_rows(&declarations[5], share, PLACE_V, kv, h);
    if (model->experts > 0) {
        add_rows(&declarations[4], (struct share){1, 0}, PLACE_ROUTER, model->experts, h);
    } else {
        describe_mlp(&declarations[7], builder->plan, layer, -1);
    }
    declarations[0].constant = declarations[2].constant = norm_constant(model);
    declarations[6].deviation                           = narrow_deviation(model);
    declarations[5].is_linear = declarations[6].is_linear = true;
    declarations[5].gemm                                  = FP8_QKV;
    declarations[6].gemm                                  = FP8_PROJECTION;

    int32_t *const indices[] = {&weights->norm1,      &weights->norm1_bias, &weights->norm2,
                                &weights->norm2_bias, &weights->router,     &weights->qkv,
                                &weights->proj,       &weights->fc1,        &weights->fc2};
    enum { COUNT = sizeof(indices) / sizeof(indices[0]), FIRST_LINEAR = 5 };
    if (builder->plan->precision.has_fp8_weights) {
        declare_unit(builder, layer + 1, declarations, indices, FIRST_LINEAR);
        declare_unit(builder, unit_place_of_linears(builder->plan, layer), declarations + FIRST_LINEAR,
                     indices + FIRST_LINEAR, COUNT - FIRST_LINEAR);
    } else {
        declare_unit(builder, layer + 1, declarations, indices, COUNT);
    }
}

// The layer's experts that are here.
static void declare_experts(struct builder *builder, int64_t layer)
{
    struct plan        *plan         = builder->plan;
    int64_t             count        = moe_experts_here(plan);
    int64_t             first        = mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_EP) * count;
    struct declaration *declarations = memory_allocate((size_t)(2 * count) * sizeof(*declarations));
    for (int64_t i = 0; i < count; i++) {
        describe_mlp(&declarations[2 * i], plan, layer, first + i);
    }
    builder->weights.blocks[layer].experts = plan->weight_count;
    declare_unit(builder, unit_place_of_experts(plan, layer), declarations, NULL, (int)(2 * count));
    free(declarations);
}

static void declare_embedding(struct builder *builder)
{
    struct declaration embedding = table(builder->plan, "embedding table", PLACE_EMBEDDING);
    declare_unit(builder, 0, &embedding, (int32_t *const[]){&builder->weights.embedding}, 1);
}

static void declare_head(struct builder *builder)
{
    const struct plan         *plan    = builder->plan;
    const struct model_config *model   = &plan->model;
    struct model_weights      *weights = &builder->weights;

    struct declaration head[] = {
        vector("final norm", -1, model->hidden, PLACE_FINAL_NORM),
        vector("final norm bias", -1, model_norm_has_bias(model) ? model->hidden : 0, PLACE_FINAL_NORM_BIAS),
        model->tied ? (struct declaration){.columns = 0} : table(plan, "head weight", PLACE_HEAD),
    };
    head[0].constant = norm_constant(model);
    declare_unit(builder, model->layers + 1, head,
                 (int32_t *const[]){&weights->final_norm, &weights->final_norm_bias, &weights->head}, 3);
    if (model->tied) {
        weights->head = weights->embedding;
    }
}

void weights_declare(struct builder *builder)
{
    struct plan         *plan   = builder->plan;
    struct schedule_deal deal   = pipeline_deal(plan);
    size_t               layers = (size_t)plan->model.layers, units = (size_t)unit_places(plan);

    builder->weights.blocks = arena_allocate(&plan->arena, layers * sizeof(*builder->weights.blocks));
    plan->units             = arena_allocate(&plan->arena, units * sizeof(*plan->units));
    builder->states         = arena_allocate(&plan->arena, units * sizeof(*builder->states));

    for (int64_t chunk = pipeline_stage(plan); chunk < deal.chunks; chunk += plan->mesh.size[AXIS_PP]) {
        struct schedule_layers held = schedule_layers(&deal, chunk);
        if (chunk == 0) {
            declare_embedding(builder);
        }
        for (int64_t layer = held.first; layer < held.first + held.count; layer++) {
            declare_block(builder, layer);
            if (plan->model.experts > 0) {
                declare_experts(builder, layer);
            }
        }
        if (chunk == deal.chunks - 1) {
            if (plan->model.tied && plan->mesh.size[AXIS_PP] > 1) {
                declare_embedding(builder);
                plan->units[plan->unit_count - 1].is_copy = true;
            }
            declare_head(builder);
        }
    }
}
