// SPDX-License-Identifier: MIT
// What goes wrong on purpose, so that an alarm can be seen.
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "gswbench/clock.h"
#include "check.h"

static void sleep_for(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    while (nanosleep(&left, &left) != 0) {
    }
}

// A NaN of any format has all bits of its exponent; those of all bits are one in each that has NaNs.
void fault_poke(const struct lanes *lanes, const struct buffer *buffer)
{
    const struct step_fault *fault   = lanes->fault;
    int64_t                  size    = format_bytes(buffer->format, 1);
    char                    *address = (char *)buffer->data + size * (fault->element % buffer->elements);
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

static void poke_output(const struct lanes *lanes, const struct queue_entry *entry)
{
    for (int slot = 0; slot < entry->op->operand_count; slot++) {
        if ((entry->op->access[slot] & ACCESS_WRITE) && entry->buffers[slot].data != NULL) {
            if (lanes->streams != NULL) {
                lanes->streams->synchronize(lanes->backend, entry->op->lane);
            }
            fault_poke(lanes, &entry->buffers[slot]);
            return;
        }
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
