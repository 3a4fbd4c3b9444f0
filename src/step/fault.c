// SPDX-License-Identifier: MIT
// Injects faults to test error detection, at an op or tensor found by name.
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gswbench/clock.h"
#include "check.h"

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
    fault->kind    = (enum fault_kind)config->kind;
    fault->element = config->element;
    fault->bit     = config->bit;
    fault->amount  = config->amount;
    return OK;
}

static void sleep_for(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    while (nanosleep(&left, &left) != 0) {
    }
}

// In fp32, bf16 and FP8, an element with all bits set below the sign is a NaN.
void fault_poke(const struct lanes *lanes, const struct buffer *buffer, int64_t element)
{
    const struct step_fault *fault   = lanes->fault;
    int64_t                  size    = format_bytes(buffer->format, 1);
    char                    *address = (char *)buffer->data + size * (element % buffer->elements);
    uint32_t                 bits    = 0;
    if (fault->kind != FAULT_NAN && fault->kind != FAULT_FLIP) {
        return;
    }
    lanes->backend->ops->download(lanes->backend, &bits, address, size);
    bits = fault->kind == FAULT_FLIP ? bits ^ (uint32_t)1 << (fault->bit % (8 * size)) : 0x7fffffffu;
    if (fault->kind == FAULT_NAN && size < 4) {
        bits = size == 2 ? 0x7fffu : 0x7fu;
    }
    lanes->backend->ops->upload(lanes->backend, address, &bits, size);
}

bool fault_before(const struct lanes *lanes, const struct queue_entry *entry)
{
    const struct step_fault *fault = lanes->fault;
    if (entry != lanes->faulty) {
        return true;
    }
    switch (fault->kind) {
    case FAULT_DELAY:
        sleep_for(fault->amount);
        return true;
    case FAULT_STOP:
        raise(SIGSTOP);
        return true;
    case FAULT_SPIN:
        for (volatile int forever = 1; forever;) {
        }
        return true;
    case FAULT_SKIP:
        return false;
    case FAULT_NONE:
    case FAULT_NAN:
    case FAULT_FLIP:
    case FAULT_SLOW:
        return true;
    }
    return true;
}

static bool is_output(const struct queue_entry *entry, int slot)
{
    return (entry->op->access[slot] & ACCESS_WRITE) && entry->buffers[slot].data != NULL;
}

// fault->element counts through all output tensors, in operand order.
static void poke_output(const struct lanes *lanes, const struct queue_entry *entry)
{
    int64_t elements = 0;
    for (int slot = 0; slot < entry->op->operand_count; slot++) {
        elements += is_output(entry, slot) ? entry->buffers[slot].elements : 0;
    }
    int64_t element = elements > 0 ? lanes->fault->element % elements : 0;
    for (int slot = 0; slot < entry->op->operand_count; slot++) {
        const struct buffer *buffer = &entry->buffers[slot];
        if (is_output(entry, slot) && element < buffer->elements) {
            if (lanes->streams != NULL) {
                lanes->streams->synchronize(lanes->backend, entry->op->lane);
            }
            fault_poke(lanes, buffer, element);
            return;
        }
        element -= is_output(entry, slot) ? buffer->elements : 0;
    }
}

void fault_after(const struct lanes *lanes, const struct queue_entry *entry, double began)
{
    const struct step_fault *fault = lanes->fault;
    if (fault->kind == FAULT_SLOW && entry->group == NULL) {
        if (lanes->streams != NULL) {
            lanes->streams->synchronize(lanes->backend, entry->op->lane);
        }
        double until = clock_seconds() + (clock_seconds() - began) * fault->amount / 100;
        while (clock_seconds() < until) {
        }
    }
    if (entry == lanes->faulty) {
        poke_output(lanes, entry);
    }
}
