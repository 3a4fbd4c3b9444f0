// SPDX-License-Identifier: MIT
// Lists the weight parts to export, with their order and shard.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/plan_build.h"
#include "internal.h"
#include "slices.h"

static struct safetensor describe(const struct weight_part *part, enum format format)
{
    struct safetensor tensor = {.format = format, .dims = part->is_vector ? 1 : 2, .dim = {part->rows, part->columns}};
    if (part->is_vector) {
        tensor.dim[0] = part->columns;
    }
    snprintf(tensor.name, sizeof(tensor.name), "%s", part->name);
    return tensor;
}

// Format of the list's tensors, and its last file.
struct filling {
    enum format format;
    int64_t     shard_bytes, bytes_used;    // maximum and current data bytes of that file
};

static void append(struct export_list *list, const struct weight_part *part, const struct plan_unit *unit,
                   struct filling *filling)
{
    int64_t bytes = format_bytes(filling->format, part->rows * part->columns);
    if (list->shards == 0 || filling->bytes_used + bytes > filling->shard_bytes) {
        list->shards++;
        filling->bytes_used = 0;
    }
    filling->bytes_used += bytes;
    list->total_bytes += bytes;
    int32_t tensors = list->count;
    LIST_APPEND(list->tensors, tensors, describe(part, filling->format));
    LIST_APPEND(list->exports, list->count,
                (struct export){.part             = part,
                                .shard            = list->shards - 1,
                                .is_low_precision = unit->is_low_precision,
                                .is_frozen        = unit->is_frozen,
                                .is_muon          = unit->is_muon});
}

static int64_t owners_of(const struct plan *plan)
{
    return mesh_group_size(&plan->mesh, plan->mesh.owner_axes);
}

// Different weights are held by one rank per pipeline stage and expert-parallel rank.
static void declare_holders(struct export_list *list, const struct plan *plan)
{
    int64_t *ranks = memory_allocate((size_t)list->holder_count * sizeof(*ranks));
    mesh_group_ranks(&plan->mesh, plan->rank, 1u << AXIS_PP | plan->mesh.owner_axes, ranks);
    list->holders = memory_allocate((size_t)list->holder_count * sizeof(*list->holders));
    for (int64_t holder = 0; holder < list->holder_count; holder++) {
        plan_declare(&list->holders[holder], plan, ranks[holder]);
    }
    free(ranks);
}

// Lists expert weights of every expert-parallel rank, others once per stage, and tied weights only at the original.
static bool is_listed(const struct plan *plan, int64_t holder, const struct plan_unit *unit)
{
    return !unit->is_copy && (unit->is_experts || holder % owners_of(plan) == 0);
}

int32_t exports_name_bias(const struct plan *plan, int32_t index, char name[SAFETENSORS_NAME_BYTES])
{
    const struct model_family *family = model_family_of(&plan->model);
    if (family == NULL || !family->has_latent_attention) {
        snprintf(name, SAFETENSORS_NAME_BYTES, ROUTER_BIAS);
        return 1;
    }
    snprintf(name, SAFETENSORS_NAME_BYTES, "model.layers.%d.mlp.gate.e_score_correction_bias",
             (int)layers_expert_layer(&plan->model, index));
    return (int32_t)layers_with_experts(&plan->model);
}

static void append_biases(struct export_list *list, const struct plan *plan)
{
    const struct tensor *tensor = &plan->tensors[plan->router_bias];
    struct safetensor    bias   = {.format = FORMAT_F32, .dims = 2, .dim = {tensor->dim[0], tensor->dim[1]}};
    list->bias_count            = exports_name_bias(plan, 0, bias.name);
    list->total_bytes += tensor->bytes;
    list->tensors = memory_resize(list->tensors, (size_t)(list->count + list->bias_count) * sizeof(*list->tensors));
    if (strcmp(bias.name, ROUTER_BIAS) != 0) {
        bias.dims   = 1;
        bias.dim[0] = tensor->dim[1];
    }
    for (int32_t i = 0; i < list->bias_count; i++) {
        exports_name_bias(plan, i, bias.name);
        list->tensors[list->count + i] = bias;
    }
}

// Appends the weights of a holder's units at this place of the model.
static void append_place(struct export_list *list, const struct plan *plan, int64_t holder, int64_t place,
                         struct filling *filling)
{
    const struct plan *of = list->holders != NULL ? &list->holders[holder] : plan;
    for (int32_t i = 0; i < of->weight_count; i++) {
        const struct weight    *weight = &of->weights[i];
        const struct plan_unit *unit   = &of->units[weight->unit];
        for (int32_t j = 0; j < weight->part_count && unit->place == place && is_listed(of, holder, unit); j++) {
            append(list, &weight->part[j], unit, filling);
        }
    }
}

struct export_list exports_list(const struct plan *plan, enum format format, int64_t shard_bytes)
{
    struct export_list list    = {.holder_count = plan->mesh.size[AXIS_PP] * owners_of(plan)};
    struct filling     filling = {.format = format, .shard_bytes = shard_bytes};
    if (list.holder_count > 1) {
        declare_holders(&list, plan);
    }
    for (int64_t place = 0; place < 4 * model_all_layers(&plan->model) + 2; place++) {
        for (int64_t holder = 0; holder < list.holder_count; holder++) {
            append_place(&list, plan, holder, place, &filling);
        }
    }
    if (plan->router_bias >= 0) {
        append_biases(&list, plan);
    }
    return list;
}

void exports_free(struct export_list *list)
{
    for (int64_t holder = 0; list->holders != NULL && holder < list->holder_count; holder++) {
        plan_free(&list->holders[holder]);
    }
    free(list->holders);
    free(list->exports);
    free(list->tensors);
}

struct part_place exports_find(const struct plan *plan, const struct export *export)
{
    for (int32_t i = 0; i < plan->weight_count; i++) {
        for (int32_t j = 0; j < plan->weights[i].part_count; j++) {
            if (strcmp(plan->weights[i].part[j].name, export->part->name) == 0) {
                return (struct part_place){&plan->weights[i], &plan->weights[i].part[j]};
            }
        }
    }
    return (struct part_place){NULL, NULL};
}
