// SPDX-License-Identifier: MIT
// Looks up the access and size of an op's operands in the op table. Slots from OP_FUSED on are operands of a fused
// OP_QUANTIZE.
#include "gswbench/op_table.h"

int op_fused_output(enum op_kind kind)
{
    return op_table[kind].fused_output > 0 ? op_table[kind].fused_output : -1;
}

bool op_is_fused(const struct op *op)
{
    return op->operand_count > OP_FUSED + QUANTIZE_OUT && op_table[op->kind].fused_output > 0;
}

struct op op_quantize_of(const struct op *op)
{
    struct op quantize = *op;
    if (op->kind == OP_QUANTIZE) {
        return quantize;
    }
    int     output          = op_fused_output((enum op_kind)op->kind);
    int64_t rows            = op->shape.rows.rows;
    int64_t columns         = rows > 0 ? op_operand_elements(op, output) / rows : 0;
    quantize.kind           = OP_QUANTIZE;
    quantize.operand_count  = (uint8_t)(op->operand_count - OP_FUSED);
    quantize.shape.quantize = (struct quantize_shape){.rows = rows, .columns = columns, .scaling = op->fused_scaling};
    for (int slot = QUANTIZE_IN; slot <= QUANTIZE_HYPER; slot++) {
        bool has               = slot <= QUANTIZE_AMAX;
        quantize.operand[slot] = slot == QUANTIZE_IN ? op->operand[output] : has ? op->operand[OP_FUSED + slot] : -1;
        quantize.access[slot]  = slot == QUANTIZE_IN ? ACCESS_READ : has ? op->access[OP_FUSED + slot] : 0;
    }
    return quantize;
}

bool op_finds_scale(const struct op *op)
{
    if (op->kind != OP_QUANTIZE && !op_is_fused(op)) {
        return false;
    }
    struct op    quantize = op_quantize_of(op);
    enum scaling scaling  = (enum scaling)quantize.shape.quantize.scaling;
    return (scaling == SCALING_WHOLE && quantize.operand[QUANTIZE_SCALE] < 0) || scaling_is_nv(scaling);
}

// Returns whether the slot is an operand of a fused OP_QUANTIZE.
static bool is_fused_operand(const struct op *op, int slot)
{
    return slot > OP_FUSED && op_table[op->kind].fused_output > 0;
}

// Returns the table entry of a slot, or an unused entry if the kind has no such slot.
static const struct op_slot *slot_of(const struct op *op, int slot)
{
    static const struct op_slot none = {.use = OP_USE_NONE, .need = OP_NEED_NEVER};
    bool                        has  = slot < OP_SLOTS && op_table[op->kind].slots[slot].use != OP_USE_NONE;
    return has ? &op_table[op->kind].slots[slot] : &none;
}

bool op_operand_is_read_twice(const struct op *op, int slot)
{
    bool is_stored = !op_is_fused(op) || op->operand[op_table[op->kind].fused_output] >= 0;
    switch ((enum op_twice)slot_of(op, slot)->twice) {
    case OP_TWICE_NEVER:
        return false;
    case OP_TWICE_TO_SCALE:
        return op_finds_scale(op) || op->shape.quantize.scaling == SCALING_ROWS;
    case OP_TWICE_TO_COPY:
        return !is_stored;
    case OP_TWICE_TO_REPEAT:
        return !is_stored && op_finds_scale(op);
    }
    return false;
}

enum access op_operand_access(const struct op *op, int slot)
{
    if (is_fused_operand(op, slot)) {
        struct op quantize = op_quantize_of(op);
        return op_operand_access(&quantize, slot - OP_FUSED);
    }
    switch ((enum op_use)slot_of(op, slot)->use) {
    case OP_USE_NONE:
        return 0;
    case OP_USE_READ:
        return ACCESS_READ;
    case OP_USE_WRITE:
        return ACCESS_WRITE;
    case OP_USE_UPDATE:
        return ACCESS_UPDATE;
    case OP_USE_ADD:
        return op->accumulates ? ACCESS_UPDATE : ACCESS_WRITE;
    case OP_USE_ADD_QUERY:
        return op->shape.attention.adds_query ? ACCESS_UPDATE : ACCESS_WRITE;
    case OP_USE_UNLESS_MASTER:
        return op->operand[ADAMW_MASTER] < 0 ? ACCESS_UPDATE : ACCESS_WRITE;
    }
    return 0;
}

bool op_operand_is_optional(const struct op *op, int slot)
{
    if (is_fused_operand(op, slot) && op_is_fused(op)) {
        struct op quantize = op_quantize_of(op);
        return op_operand_is_optional(&quantize, slot - OP_FUSED);
    }
    if (op_is_fused(op) && slot == op_table[op->kind].fused_output) {
        return true;
    }
    switch ((enum op_need)slot_of(op, slot)->need) {
    case OP_NEED_ALWAYS:
        return false;
    case OP_NEED_NEVER:
        return true;
    case OP_NEED_OWN_SCALE:
        return !op_finds_scale(op) || scaling_is_nv((enum scaling)op->shape.quantize.scaling);
    case OP_NEED_NO_MASTER:
        return op->operand[ADAMW_MASTER] >= 0;
    }
    return false;
}

enum op_content op_operand_content(const struct op *op, int slot)
{
    return is_fused_operand(op, slot) ? OP_HOLDS_VALUES : (enum op_content)slot_of(op, slot)->holds;
}

int64_t op_communication_elements(const struct op *op, int slot, int64_t ranks)
{
    const struct op_size *size = slot_of(op, slot)->size;
    return op->shape.communication.elements / (size != NULL && size->is_share ? ranks : 1);
}

int64_t op_operand_elements(const struct op *op, int slot)
{
    if (is_fused_operand(op, slot)) {
        struct op quantize = op_quantize_of(op);
        return op_operand_elements(&quantize, slot - OP_FUSED);
    }
    const struct op_size *size = slot_of(op, slot)->size;
    return size == NULL ? -1 : size->elements(op);
}
