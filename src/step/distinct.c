// SPDX-License-Identifier: MIT
// Selects distinct communication ops. A linear search suffices, since few differ.
#include "distinct.h"

#include <stdlib.h>

#include "gswbench/arena.h"

static enum format format_of(const struct plan *plan, const struct op *op)
{
    int32_t out = op->operand[TRANSFER_OUT];
    return plan->tensors[out >= 0 ? out : op->operand[TRANSFER_IN]].format;
}

static bool are_alike(const struct plan *plan, const struct op *first, const struct op *second)
{
    const struct transfer_shape *a = &first->shape.transfer, *b = &second->shape.transfer;
    return first->kind == second->kind && first->lane == second->lane && a->elements == b->elements &&
           a->group == b->group && a->peer == b->peer && a->channel == b->channel &&
           format_of(plan, first) == format_of(plan, second);
}

int64_t distinct_choose(const struct plan *plan, bool *is_chosen)
{
    int64_t  count  = 0;
    int32_t *chosen = memory_allocate((size_t)plan->op_count * sizeof(*chosen));
    for (int32_t i = 0; i < plan->op_count; i++) {
        bool is_new = op_is_transfer((enum op_kind)plan->ops[i].kind);
        for (int64_t j = 0; j < count && is_new; j++) {
            is_new = !are_alike(plan, &plan->ops[i], &plan->ops[chosen[j]]);
        }
        is_chosen[i] = is_new;
        if (is_new) {
            chosen[count++] = i;
        }
    }
    free(chosen);
    return count;
}
