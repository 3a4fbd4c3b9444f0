// SPDX-License-Identifier: MIT
// Adds the declared weights of a block (a layer, MTP module, embedding or head) to the plan: assigns them to FSDP
// units, and sets their names, random streams and offsets.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/linear.h"
#include "block.h"

// Initial weights come from numbered random streams. Outside experts and adapters, the stream of a matrix or vector is
// RANDOM_FIRST + (layer + 1) * RANDOM_LAYER + its number in the layer. From streams_of_experts on, each expert has
// RANDOM_EXPERT streams; from streams_of_adapters on, the adapters of each layer have RANDOM_LAYER streams.
enum { RANDOM_FIRST = 1 << 20, RANDOM_LAYER = 64, RANDOM_EXPERT = 4, EXPERTS_MAX = 1024 };
static const int64_t streams_of_experts  = INT64_C(1) << 40;
static const int64_t streams_of_adapters = INT64_C(1) << 42;

// Order of weights in an FSDP unit. Weights that are replicated over tp come first, so that one all-reduce can sum
// their gradients. ORDER_OF_HEADS has the norms of single heads: a rank's gradient covers only its own heads, so it is
// summed even without sequence parallelism. Linears, adapters and experts can form separate units.
enum order {
    ORDER_OF_HEADS,
    ORDER_REPLICATED,
    ORDER_REPLICATED_LINEAR,
    ORDER_SHARED,
    ORDER_LINEAR,
    ORDER_ADAPTER_REPLICATED,
    ORDER_ADAPTER,
    ORDER_EXPERT_REPLICATED,
    ORDER_EXPERT_BIAS,
    ORDER_EXPERT,
    ORDER_COUNT
};
enum { OTHERS = 1u << ORDER_OF_HEADS | 1u << ORDER_REPLICATED | 1u << ORDER_SHARED };
enum { LINEARS = 1u << ORDER_REPLICATED_LINEAR | 1u << ORDER_LINEAR };
enum { ADAPTERS = 1u << ORDER_ADAPTER_REPLICATED | 1u << ORDER_ADAPTER };
enum { EXPERTS = 1u << ORDER_EXPERT_REPLICATED | 1u << ORDER_EXPERT_BIAS | 1u << ORDER_EXPERT };

static int64_t stream_of(const struct declarations *declarations, const struct declaration *declaration, int64_t number)
{
    int64_t layer = declarations->block->layer;
    if (declaration->adapter_of >= 0) {
        return streams_of_adapters + layer * RANDOM_LAYER + number;
    }
    return declaration->expert < 0
               ? RANDOM_FIRST + (layer + 1) * RANDOM_LAYER + number
               : streams_of_experts + (layer * EXPERTS_MAX + declaration->expert) * RANDOM_EXPERT + number;
}

static void fill_parts(struct weight *weight, const struct declarations *declarations,
                       const struct declaration *declaration)
{
    int64_t offset = 0;
    for (int i = 0; i < declaration->parts; i++) {
        struct weight_part    *part = &weight->part[i];
        const struct exported *as   = declaration->as[i];
        *part                       = declaration->part[i];
        part->stream                = stream_of(declarations, declaration, as->stream);
        part->offset                = offset;
        part->is_vector             = declaration->is_vector;
        part->deviation             = declaration->deviation;
        part->constant              = declaration->constant;
        // The format string is not a literal: it is the exported name with %d for layer and expert.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(part->name, sizeof(part->name), as->name, (int)declarations->block->layer, (int)declaration->expert);
#pragma GCC diagnostic pop
        offset += part->local_rows * part->local_columns;
    }
    weight->part_count = declaration->parts;
}

static void add_weight(struct plan *plan, const struct declarations *declarations, struct declaration *declaration,
                       int64_t *first)
{
    bool is_low_precision = declaration->linear >= 0 &&
                            (plan->precision.low_precision_linears >> declaration->gemm & 1u) != 0 &&
                            precision_covers(&plan->precision, plan->model.layers, declarations->block->layer);
    struct weight weight = {.name     = declaration->name,
                            .unit     = plan->unit_count - 1,
                            .first    = *first,
                            .rows     = declaration->rows,
                            .columns  = declaration->columns,
                            .bias     = -1,
                            .adapter  = {-1, -1},
                            .tensor   = -1,
                            .gradient = -1,
                            .linear   = is_low_precision ? (int32_t)declaration->linear : -1};
    fill_parts(&weight, declarations, declaration);
    *first += unit_align(plan, declaration->rows * declaration->columns, 1);
    if (declaration->is_replicated) {
        plan->units[weight.unit].replicated = *first;
    }
    if (declaration->is_of_heads) {
        plan->units[weight.unit].of_heads = *first;
    }
    declaration->place = plan->weight_count;
    if (declaration->index != NULL) {
        *declaration->index = plan->weight_count;
    }
    LIST_APPEND(plan->weights, plan->weight_count, weight);
    plan->units[weight.unit].weight_count++;
}

// Returns whether Muon updates this weight although it belongs to no linear: a matrix of a layer that is replicated
// over tp, such as the router's.
static bool is_router(const struct declarations *declarations, const struct declaration *declaration)
{
    return muon_is_used(declarations->builder->plan) && declarations->block->layer >= 0 && declaration->is_replicated &&
           !declaration->is_of_heads && !declaration->is_vector;
}

static enum order order_of(const struct declarations *declarations, const struct declaration *declaration)
{
    if (declaration->adapter_of >= 0) {
        return declaration->is_replicated ? ORDER_ADAPTER_REPLICATED : ORDER_ADAPTER;
    }
    if (declaration->expert >= 0) {
        return declaration->linear >= 0     ? ORDER_EXPERT
               : declaration->is_replicated ? ORDER_EXPERT_REPLICATED
                                            : ORDER_EXPERT_BIAS;
    }
    bool is_linear = declaration->linear >= 0 || is_router(declarations, declaration);
    return is_linear                    ? (declaration->is_replicated ? ORDER_REPLICATED_LINEAR : ORDER_LINEAR)
           : declaration->is_of_heads   ? ORDER_OF_HEADS
           : declaration->is_replicated ? ORDER_REPLICATED
                                        : ORDER_SHARED;
}

// Adds an FSDP unit with all declared weights of the classes in `orders`, a mask of enum order such as LINEARS. Adds
// none if there are no such weights.
static void add_unit(struct builder *builder, const struct declarations *declarations, struct plan_unit described,
                     uint32_t orders)
{
    struct plan *plan = builder->plan;
    for (int32_t i = 0; i < declarations->count; i++) {
        const struct declaration *declaration = &declarations->list[i];
        bool                      is_here     = (orders >> order_of(declarations, declaration) & 1u) != 0;
        described.elements += is_here ? unit_align(plan, declaration->rows * declaration->columns, 1) : 0;
    }
    if (described.elements == 0) {
        return;
    }
    described.is_frozen = model_is_frozen(&plan->model) && (orders & ADAPTERS) == 0;
    unit_create(builder, &described);
    int64_t used = 0;
    for (enum order order = 0; order < ORDER_COUNT; order++) {
        for (int32_t i = 0; i < declarations->count; i++) {
            if ((orders >> order & 1u) != 0 && order_of(declarations, &declarations->list[i]) == order) {
                add_weight(plan, declarations, &declarations->list[i], &used);
            }
        }
    }
    int32_t index = plan->unit_count - 1;
    for (int32_t i = 0; i < plan->units[index].weight_count && described.is_low_precision && described.is_frozen; i++) {
        quantize_store(builder, plan->units[index].first_weight + i);
    }
    if (plan->units[index].kept.elements == plan->units[index].elements) {
        unit_point_weights(builder, index, plan->units[index].weight);
    }
    if (!unit_reduces_each(builder, index)) {
        unit_point_gradients(builder, index, plan->units[index].gradient);
    }
}

static void declare_sublayers(struct declarations *declarations, struct block *block)
{
    const struct model_config *model = &declarations->builder->plan->model;
    for (int32_t i = 0; i < block->count; i++) {
        const struct layer_kind *kind = block->kinds[i];
        for (int weight = 0; weight < SUBLAYER_WEIGHTS; weight++) {
            block->weights[i][weight] = -1;
        }
        if (kind->norm != NULL) {
            declare_norm(declarations, kind->norm, block->weights[i]);
        }
        kind->declare(declarations, block->weights[i]);
        declarations->first_linear += kind->count(model).linears;
    }
}

static void declare_block(struct builder *builder, int64_t place)
{
    struct plan  *plan  = builder->plan;
    struct block *block = &builder->blocks[place];
    if (block->is_repeat) {
        memcpy(block->weights, block[-1].weights, sizeof(block->weights));
        block->first_unit = block[-1].first_unit;
        block->unit_count = block[-1].unit_count;
        return;
    }
    bool                is_muon      = muon_is_used(plan) && block->layer >= 0;
    bool                is_low       = plan->precision.has_low_precision_weights;
    bool                is_apart     = is_low || is_muon;
    struct declarations declarations = {.builder      = builder,
                                        .block        = block,
                                        .share        = {.size  = mesh_group_size(&plan->mesh, 1u << AXIS_TP),
                                                         .index = mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_TP)},
                                        .first_linear = block->first_linear};
    declare_sublayers(&declarations, block);

    block->first_unit           = plan->unit_count;
    builder->assembly.tag.layer = (int16_t)block->layer;
    add_unit(builder, &declarations, (struct plan_unit){.place = place}, is_apart ? OTHERS : OTHERS | LINEARS);
    if (is_apart) {
        add_unit(builder, &declarations,
                 (struct plan_unit){.place            = unit_place_of_linears(builder, block->layer),
                                    .is_low_precision = is_low,
                                    .is_muon          = is_muon},
                 LINEARS);
    }
    add_unit(builder, &declarations, (struct plan_unit){.place = unit_place_of_adapters(builder, block->layer)},
             ADAPTERS);
    add_unit(builder, &declarations,
             (struct plan_unit){.place            = unit_place_of_experts(builder, block->expert_layer),
                                .is_experts       = true,
                                .is_low_precision = is_low,
                                .is_muon          = is_muon},
             EXPERTS);
    for (int32_t i = 0; i < declarations.count; i++) {
        const struct declaration *declaration = &declarations.list[i];
        if (declaration->bias_of >= 0) {
            plan->weights[declarations.list[declaration->bias_of].place].bias = declaration->place;
        }
        if (declaration->adapter_of >= 0) {
            struct weight *adapted                 = &plan->weights[declarations.list[declaration->adapter_of].place];
            adapted->adapter[declaration->adapter] = declaration->place;
        }
    }
    builder->assembly.tag.layer = -1;
    block->unit_count           = plan->unit_count - block->first_unit;
    free(declarations.list);
}

void weights_declare(struct builder *builder)
{
    struct plan               *plan       = builder->plan;
    struct schedule_assignment assignment = plan->assignment;
    size_t                     units      = (size_t)unit_places(builder);

    plan->units     = arena_allocate(&plan->arena, units * sizeof(*plan->units));
    builder->states = arena_allocate(&builder->scratch, units * sizeof(*builder->states));
    for (int64_t chunk = pipeline_stage(plan); chunk < assignment.chunks; chunk += plan->mesh.size[AXIS_PP]) {
        struct schedule_layers held = schedule_layers(&assignment, chunk);
        if (chunk == 0) {
            declare_block(builder, 0);
        }
        for (int64_t layer = held.first; layer < held.first + held.count; layer++) {
            declare_block(builder, block_place(&plan->model, layer));
        }
        if (chunk == assignment.chunks - 1) {
            if (pipeline_copies_embedding(plan)) {
                declare_block(builder, 0);
                plan->units[plan->unit_count - 1].is_copy = true;
            }
            for (int64_t place = block_head(&plan->model); place < block_places(&plan->model); place++) {
                declare_block(builder, place);
            }
        }
    }
    if (muon_is_used(plan)) {
        muon_assign_owners(builder);
    }
}
