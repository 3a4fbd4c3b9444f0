// SPDX-License-Identifier: MIT
// Runs a step without its optimizer, and single ops and copies, for src/validate.
#include "gswbench/step_verify.h"

#include <stdlib.h>

#include "gswbench/arena.h"
#include "check.h"

bool step_is_model_state(const struct plan *plan, int32_t tensor)
{
    int32_t whole = plan->tensors[tensor].whole;
    bool    is    = plan->tensors[whole].storage == STORAGE_WEIGHT;
    for (int32_t i = 0; i < plan->unit_count && !is; i++) {
        const struct plan_unit *unit = &plan->units[i];
        is = whole == unit->master || whole == unit->first_moment || whole == unit->second_moment;
    }
    return is;
}

bool step_op_updates(const struct plan *plan, int32_t op)
{
    const struct op *checked = &plan->ops[op];
    bool             updates = false;
    for (int slot = 0; slot < checked->operand_count && checked->tag.phase == PHASE_OPTIMIZER && !updates; slot++) {
        updates = checked->operand[slot] >= 0 && (checked->access[slot] & ACCESS_WRITE) &&
                  step_is_model_state(plan, checked->operand[slot]);
    }
    return updates;
}

void step_rehearse(struct step *step)
{
    bool *left_out = memory_allocate((size_t)step->plan->op_count * sizeof(*left_out));
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        left_out[i] = step_op_updates(step->plan, i);
    }
    step->lanes.left_out = left_out;
    step_run(step);
    step->lanes.left_out = NULL;
    if (step->lanes.check != NULL) {
        step->lanes.check->step--;    // not a step of the run
    }
    free(left_out);
}

void step_remake_weights(struct step *step)
{
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        const struct queue_entry *entry = &step->entries[i];
        if (entry->op->kind == OP_ADAMW || !step_op_updates(step->plan, i)) {
            continue;
        }
        if (entry->group == NULL) {
            step_run_op(step, i);
            continue;
        }
        entry_transfer(&step->lanes, entry);
        if (step->lanes.streams != NULL) {
            step->lanes.streams->synchronize(step->backend, entry->op->lane);
        }
    }
}

// A sum of two values does not depend on their order, so groups of two never vary.
bool step_op_varies(const struct step *step, int32_t op, bool is_mixed)
{
    const struct queue_entry *entry = &step->entries[op];
    if (entry->group == NULL) {
        return entry->prepared != NULL && entry->prepared->varies;
    }
    bool adds = entry->op->kind == OP_ALL_REDUCE || entry->op->kind == OP_REDUCE_SCATTER;
    return is_mixed && adds && step->comm->ops->sums_vary &&
           step->plan->groups[entry->op->shape.transfer.group].size > 2;
}

bool step_is_captured(const struct step *step)
{
    return step->is_captured;
}

void step_run_elsewhere(struct step *step, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    step->backend->ops->run[op->kind](step->backend, op, buffers);
    if (step->lanes.streams != NULL) {
        step->lanes.streams->synchronize(step->backend, op->lane);
    }
}

void step_digest(const struct step *step, int32_t tensor, struct digest *digest)
{
    struct buffer buffer = step_buffer(step, tensor);
    step_digest_buffer(step, &buffer, digest);
}

void step_digest_buffer(const struct step *step, const struct buffer *buffer, struct digest *digest)
{
    step->backend->ops->digest(step->backend, buffer, digest);
}

void step_copy(const struct step *step, void *to, const void *from, int64_t bytes)
{
    step->backend->ops->upload(step->backend, to, from, bytes);
}

void step_write_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, const void *from)
{
    step_copy(step, (char *)step_buffer(step, tensor).data + offset, from, bytes);
}

struct buffer step_storage(const struct step *step, enum storage storage)
{
    // E8M0 has one byte per element, so elements are bytes.
    return (struct buffer){step->storage[storage], step->storage_bytes[storage], FORMAT_E8M0};
}

void *step_allocate_host(const struct step *step, int64_t bytes)
{
    return step->lanes.streams != NULL ? step->lanes.streams->allocate_host(step->backend, bytes)
                                       : memory_allocate((size_t)bytes);
}

void step_release_host(const struct step *step, void *data)
{
    if (step->lanes.streams != NULL) {
        step->lanes.streams->release_host(step->backend, data);
    } else {
        free(data);
    }
}
