// SPDX-License-Identifier: MIT
// Injects the fault that [fault] describes at an op or tensor found by name, to test that errors are detected.
#include "internal.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "gswbench/clock.h"

static const char tensor_word[] = "tensor ";

static int32_t find_op(const struct plan *plan, const char *words)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        char name[240];
        if (strstr(plan_op_name(plan, i, name, sizeof(name)), words) != NULL) {
            return i;
        }
    }
    return -1;
}

static int32_t find_tensor(const struct plan *plan, const char *words)
{
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        char name[160];
        if (strcmp(plan_tensor_name(plan, i, name, sizeof(name)), words) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_output(const struct op *op, int slot)
{
    return op->operand[slot] >= 0 && (op->access[slot] & ACCESS_WRITE);
}

static bool has_nan(const struct plan *plan, int32_t tensor)
{
    enum format format = (enum format)plan->tensors[tensor].format;
    return format != FORMAT_E2M1 && format != FORMAT_I32;
}

// Returns the operand that has this element, and its index in that operand. Elements are counted over all operands;
// after the last one, counting starts again. -1: there is no element.
static int find_element(const int64_t elements[OP_OPERANDS], int64_t *element)
{
    int64_t sum = 0;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        sum += elements[slot];
    }
    *element = sum > 0 ? *element % sum : 0;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (*element < elements[slot]) {
            return slot;
        }
        *element -= elements[slot];
    }
    return -1;
}

// Returns whether the element that the fault changes has a format with NaNs.
static bool can_be_nan(const struct step_fault *fault, const struct plan *plan, int64_t element)
{
    int64_t elements[OP_OPERANDS] = {0};
    if (fault->op < 0) {
        return has_nan(plan, fault->tensor);
    }
    const struct op *op = &plan->ops[fault->op];
    for (int slot = 0; slot < op->operand_count; slot++) {
        elements[slot] = is_output(op, slot) ? plan->tensors[op->operand[slot]].elements : 0;
    }
    int slot = find_element(elements, &element);
    return slot < 0 || has_nan(plan, op->operand[slot]);
}

status step_find_fault(struct step_fault *fault, const struct plan *plan, const struct fault_config *config)
{
    bool is_tensor = strncmp(config->at, tensor_word, strlen(tensor_word)) == 0;
    *fault         = (struct step_fault){.op = -1, .tensor = -1};
    if (config->kind != FAULT_NONE && config->rank >= plan->mesh.world) {
        return fail("[fault] rank = %" PRId64 ": the job's last rank is %" PRId64, config->rank, plan->mesh.world - 1);
    }
    if (config->kind == FAULT_NONE || config->rank != plan->rank) {
        return OK;
    }
    if (is_tensor) {
        fault->tensor = find_tensor(plan, config->at + strlen(tensor_word));
    } else {
        fault->op = find_op(plan, config->at);
    }
    if (fault->op < 0 && fault->tensor < 0) {
        return fail("[fault] at = %s: no %s of rank %" PRId64 " has that name: gswbench plan --ops --rank %" PRId64
                    " prints them",
                    config->at, is_tensor ? "tensor" : "op", config->rank, config->rank);
    }
    if (config->kind == FAULT_NAN && !can_be_nan(fault, plan, config->element)) {
        return fail("[fault] kind = nan, at = %s: FP4 and integers have no NaN: choose another element, or kind = flip",
                    config->at);
    }
    fault->kind    = (enum fault_kind)config->kind;
    fault->element = config->element;
    fault->bit     = config->bit;
    fault->amount  = config->amount;
    return OK;
}

static bool is_poke(const struct step_fault *fault)
{
    return fault->kind == FAULT_NAN || fault->kind == FAULT_FLIP;
}

// Damages one element, by flipping a bit or writing a NaN. A NaN has all bits below the sign set; E8M0 has no sign, so
// all eight bits are set.
static void poke(const struct step_fault *fault, struct backend *backend, const struct buffer *buffer, int64_t element)
{
    int64_t  size = format_bytes(buffer->format, 1), width = format_table[buffer->format].bits;
    int64_t  bit     = element % buffer->elements * width;    // first bit of the element; a byte has two FP4 elements
    char    *address = (char *)buffer->data + bit / 8;
    uint32_t bits    = 0;
    backend->ops->download(backend, &bits, address, size);
    bits = fault->kind == FAULT_FLIP ? bits ^ (uint32_t)1 << (bit % 8 + fault->bit % width) : 0x7fffffffu;
    if (fault->kind == FAULT_NAN && size < 4) {
        bits = size == 2 ? 0x7fffu : buffer->format == FORMAT_E8M0 ? 0xffu : 0x7fu;
    }
    backend->ops->upload(backend, address, &bits, size);
}

static void poke_tensor(struct step *step, void *injection)
{
    const struct step_fault *fault = ((const struct injection *)injection)->fault;
    if (fault->op < 0 && fault->tensor >= 0 && is_poke(fault)) {
        struct buffer buffer = step_buffer(step, fault->tensor);
        poke(fault, step->backend, &buffer, fault->element);
    }
}

bool fault_before(struct streams *streams, const struct queued_op *queued, void *state)
{
    struct injection *injection = state;
    (void)streams;
    if (queued == injection->faulty) {
        switch (injection->fault->kind) {
        case FAULT_DELAY:
            clock_sleep_until(clock_seconds() + injection->fault->amount);
            break;
        case FAULT_STOP:
            raise(SIGSTOP);
            break;
        case FAULT_SPIN:
            for (volatile int forever = 1; forever;) {
            }
            break;
        case FAULT_SKIP:
            return false;
        case FAULT_NONE:
        case FAULT_NAN:
        case FAULT_FLIP:
        case FAULT_SLOW:
            break;
        }
    }
    if (queued->group == NULL) {    // a compute op; all of these run on one stream
        injection->began = clock_seconds();
    }
    return true;
}

// Damages an element of the op's output. fault->element is its index over all output tensors, in operand order.
static void poke_output(const struct step_fault *fault, const struct streams *streams, const struct queued_op *queued)
{
    int64_t elements[OP_OPERANDS] = {0}, element = fault->element;
    for (int slot = 0; slot < queued->op->operand_count; slot++) {
        elements[slot] = is_output(queued->op, slot) ? queued->buffers[slot].elements : 0;
    }
    int slot = find_element(elements, &element);
    if (slot >= 0 && queued->buffers[slot].data != NULL) {
        streams_synchronize(streams, queued->op->stream);
        poke(fault, streams->backend, &queued->buffers[slot], element);
    }
}

void fault_after(struct streams *streams, const struct queued_op *queued, void *state)
{
    const struct injection *injection = state;
    if (injection->fault->kind == FAULT_SLOW && queued->group == NULL) {
        streams_synchronize(streams, queued->op->stream);
        double now = clock_seconds(), until = now + (now - injection->began) * injection->fault->amount / 100;
        while (clock_seconds() < until) {
        }
    }
    if (queued == injection->faulty && is_poke(injection->fault)) {
        poke_output(injection->fault, streams, queued);
    }
}

void step_set_fault(struct step *step, const struct step_fault *fault)
{
    static const struct op_hooks hooks = {.before_step = poke_tensor, .before = fault_before, .after = fault_after};
    step->injection =
        (struct injection){.fault = fault, .faulty = fault != NULL && fault->op >= 0 ? &step->ops[fault->op] : NULL};
    observers_set(&step->streams, OBSERVER_FAULT, fault != NULL ? &hooks : NULL, &step->injection);
}
