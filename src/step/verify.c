// SPDX-License-Identifier: MIT
// Runs a step without its optimizer, and single ops and copies, for the validation of results (src/validate).
#include "gswbench/step.h"

#include "internal.h"

bool step_is_model_state(const struct plan *plan, int32_t tensor)
{
    int32_t whole    = plan->tensors[tensor].whole;
    bool    is_state = plan->tensors[whole].storage == STORAGE_WEIGHT;
    for (int32_t i = 0; i < plan->unit_count && !is_state; i++) {
        const struct plan_unit *unit = &plan->units[i];
        is_state = whole == unit->master || whole == unit->first_moment || whole == unit->second_moment;
    }
    return is_state;
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

static bool is_kept(struct streams *streams, const struct queued_op *queued, void *left_out)
{
    (void)streams;
    return !((const bool *)left_out)[queued->number - 1];
}

void step_rehearse(struct step *step)
{
    static const struct op_hooks hooks    = {.before = is_kept};
    bool                        *left_out = memory_allocate((size_t)step->plan->op_count * sizeof(*left_out));
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        left_out[i] = step_op_updates(step->plan, i);
    }
    observers_set(&step->streams, OBSERVER_SKIP, &hooks, left_out);
    step_run(step);
    observers_set(&step->streams, OBSERVER_SKIP, NULL, NULL);
    if (step->check != NULL) {
        step->check->step--;    // this step does not count as a step of the run
    }
    free(left_out);
}

void step_remake_weights(struct step *step)
{
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        if (!op_is_optimizer((enum op_kind)step->plan->ops[i].kind) && step_op_updates(step->plan, i)) {
            queued_op_run_alone(step, &step->ops[i]);
        }
    }
}

// In a collective over two ranks the result never varies, because a sum of two values does not depend on their order.
bool step_op_varies(const struct step *step, int32_t op, bool is_mixed)
{
    const struct queued_op *queued = &step->ops[op];
    if (queued->group == NULL) {
        return queued->prepared != NULL && queued->prepared->varies;
    }
    bool adds = queued->op->kind == OP_ALL_REDUCE || queued->op->kind == OP_REDUCE_SCATTER;
    return is_mixed && adds && step->comm->ops->sums_vary &&
           step->plan->groups[queued->op->shape.communication.group].size > 2;
}

bool step_is_captured(const struct step *step)
{
    return step->is_captured;
}

void step_run_elsewhere(struct step *step, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    step->backend->ops->run[op->kind](step->backend, op, buffers);
    streams_synchronize(&step->streams, op->stream);
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
    // Declares the storage as E8M0, which has one byte per element, so that the number of elements is the number of
    // bytes.
    return (struct buffer){step->storage[storage], step->storage_bytes[storage], FORMAT_E8M0};
}

void *step_allocate_host(const struct step *step, int64_t bytes)
{
    return step->streams.device_streams != NULL ? step->streams.device_streams->allocate_host(step->backend, bytes)
                                                : memory_allocate((size_t)bytes);
}

void step_release_host(const struct step *step, void *data)
{
    if (step->streams.device_streams != NULL) {
        step->streams.device_streams->release_host(step->backend, data);
    } else {
        free(data);
    }
}
