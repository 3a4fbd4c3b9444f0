// SPDX-License-Identifier: MIT
// Checks that warm-up can run an op alone, before a step has written its operands. Warm-up fills only indices,
// positions and counts. So every integer operand must declare which of these it holds, and filling one must not
// overwrite another.
#include "findings.h"

static bool is_filled(const struct op *op, int slot)
{
    return op->operand[slot] >= 0 && op_operand_content(op, slot) != OP_HOLDS_VALUES;
}

static bool share_bytes(const struct tensor *one, const struct tensor *other)
{
    return one->storage == other->storage && one->offset < other->offset + other->bytes &&
           other->offset < one->offset + one->bytes;
}

void findings_check_warm(struct findings *findings, int32_t op)
{
    const struct op     *checked = &findings->plan->ops[op];
    const struct tensor *tensors = findings->plan->tensors;
    for (int slot = 0; slot < checked->operand_count && !op_is_transfer((enum op_kind)checked->kind); slot++) {
        int32_t tensor = checked->operand[slot];
        bool    reads  = tensor >= 0 && (checked->access[slot] & ACCESS_READ);
        if (reads && is_filled(checked, slot) != (tensors[tensor].format == FORMAT_I32)) {
            findings_add(findings, op, tensor, "would run in warm-up on indices that nobody fills:", -1);
        }
        for (int other = slot + 1; other < checked->operand_count && reads && is_filled(checked, slot); other++) {
            if (is_filled(checked, other) && checked->operand[other] != tensor &&
                share_bytes(&tensors[tensor], &tensors[checked->operand[other]])) {
                findings_add(findings, op, tensor, "would run in warm-up on indices that are filled twice:", -1);
            }
        }
    }
}
