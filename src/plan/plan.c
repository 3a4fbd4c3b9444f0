// SPDX-License-Identifier: MIT
// Answers queries on a finished plan: sequence positions, bytes, names of ops and tensors.
#include "gswbench/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/op_table.h"

int64_t plan_position(const struct plan *plan, int64_t index)
{
    int64_t ranks = mesh_group_size(&plan->mesh, 1u << AXIS_CP);
    int64_t rank  = mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_CP);
    if (ranks == 1) {
        return index;
    }
    int64_t length = plan->train.sequence / (2 * ranks);
    int64_t chunk  = index < length ? rank : 2 * ranks - 1 - rank;
    return chunk * length + index % length;
}

int64_t plan_total_bytes(const struct plan *plan)
{
    int64_t bytes = 0;
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        bytes += plan->storage_bytes[storage];
    }
    return bytes;
}

static double operand_bytes(const struct plan *plan, const struct op *op, int slot)
{
    if (op->operand[slot] < 0) {
        return 0.0;
    }
    double elements = (double)op_operand_elements(op, slot);
    if (slot < OP_SLOTS && op_table[op->kind].slots[slot].is_table) {    // the op reads one row per token
        elements = fmin(elements, (double)op->shape.rows.rows * (double)op->shape.rows.columns);
    }
    const struct op_size *touched = slot < OP_SLOTS ? op_table[op->kind].slots[slot].touched : NULL;
    if (touched != NULL) {
        return (double)format_bytes(plan->tensors[op->operand[slot]].format, touched->elements(op));
    }
    double passes = op->access[slot] == ACCESS_UPDATE || op_operand_is_read_twice(op, slot) ? 2.0 : 1.0;
    return passes * (double)format_bytes(plan->tensors[op->operand[slot]].format, (int64_t)elements);
}

double plan_op_bytes(const struct plan *plan, const struct op *op)
{
    if (op_is_communication((enum op_kind)op->kind)) {
        int32_t operand =
            op->operand[COMMUNICATION_IN] >= 0 ? op->operand[COMMUNICATION_IN] : op->operand[COMMUNICATION_OUT];
        return (double)format_bytes(plan->tensors[operand].format, op->shape.communication.elements);
    }
    double bytes = 0.0;
    for (int slot = 0; slot < op->operand_count; slot++) {
        bytes += operand_bytes(plan, op, slot);
    }
    if (op_is_fused(op)) {    // fused quantization reads the stored output again
        bytes += operand_bytes(plan, op, op_fused_output((enum op_kind)op->kind));
    }
    return bytes;
}

void plan_free(struct plan *plan)
{
    free(plan->tensors);
    free(plan->ops);
    free(plan->weights);
    free(plan->groups);
    free(plan->row_counts);
    arena_free(&plan->arena);
    *plan = (struct plan){.tensors = NULL};
}

int64_t plan_group_nodes(const struct plan_group *group, int64_t ranks_per_node)
{
    int64_t nodes = 1;
    for (int64_t i = 1; i < group->size; i++) {
        nodes += group->ranks[i] / ranks_per_node != group->ranks[i - 1] / ranks_per_node;
    }
    return nodes;
}

bool plan_group_is_apart(const struct plan_group *group, int64_t peer, int64_t ranks_per_node)
{
    return group->ranks[group->index] / ranks_per_node != group->ranks[peer] / ranks_per_node;
}

// clang-format off
#define STORAGE(key, storage) [storage] = JSON_PLACE(JSON_FIELD_INTEGER, key, storage, sizeof(int64_t))
const struct json_field plan_storage_fields[] = {
    STORAGE("weights", STORAGE_WEIGHT),
    STORAGE("gradients", STORAGE_GRADIENT),
    STORAGE("optimizer", STORAGE_OPTIMIZER),
    STORAGE("inputs", STORAGE_INPUT),
    STORAGE("results", STORAGE_RESULT),
    STORAGE("activations", STORAGE_ACTIVATION),
    [STORAGE_COUNT] = JSON_END
};
// clang-format on

const char *plan_storage_name(enum storage storage)
{
    return plan_storage_fields[storage].key;
}

enum { PLACE_BYTES = 64 };

static int add_place(char text[PLACE_BYTES], int used, const char *name, int number)
{
    return number < 0 ? used : used + snprintf(text + used, (size_t)(PLACE_BYTES - used), ", %s %d", name, number);
}

// Writes ", layer 3, microbatch 0, chunk 1". Fields that are -1 are left out.
static const char *place_name(char text[PLACE_BYTES], int layer, int microbatch, int chunk)
{
    text[0] = '\0';
    add_place(text, add_place(text, add_place(text, 0, "layer", layer), "microbatch", microbatch), "chunk", chunk);
    return text;
}

const char *plan_tensor_name(const struct plan *plan, int32_t tensor, char *text, size_t bytes)
{
    const struct tensor *named = &plan->tensors[tensor];
    char                 place[PLACE_BYTES];
    snprintf(text, bytes, "%s%s", named->name, place_name(place, named->layer, named->microbatch, -1));
    return text;
}

const char *plan_op_name(const struct plan *plan, int32_t op, char *text, size_t bytes)
{
    const struct op *named = &plan->ops[op];
    char             place[PLACE_BYTES];
    snprintf(text, bytes, "op %d %s \"%s\", %s%s", op, op_name((enum op_kind)named->kind), named->tag.role,
             op_phase_name((enum phase)named->tag.phase),
             place_name(place, named->tag.layer, named->tag.microbatch, named->tag.chunk));
    return text;
}
