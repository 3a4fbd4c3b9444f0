// SPDX-License-Identifier: MIT
// Warm-up: runs each distinct compute op once, alone, before the first step.
//
// CUDA loads a kernel at its first launch, which may wait for running kernels. In a step that could be a collective
// waiting for another rank, a deadlock. CUDA_MODULE_LOADING=EAGER would also load thousands of library kernels, which
// take memory. The warm-up always runs, whether or not results are validated. Operands hold zeros, or the output of an
// earlier op in the same memory; only indices and counts are filled first.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "opening.h"

// Compares all properties that select an op's kernels.
static bool are_alike(const struct queue_entry *one, const struct queue_entry *other)
{
    const struct op *a = one->op, *b = other->op;
    bool alike = a->kind == b->kind && one->prepared == other->prepared && a->accumulates == b->accumulates &&
                 a->sums_fast == b->sums_fast && a->fused_scaling == b->fused_scaling &&
                 a->operand_count == b->operand_count && memcmp(&a->shape, &b->shape, sizeof(a->shape)) == 0;
    for (int slot = 0; slot < a->operand_count && alike; slot++) {
        alike = (a->operand[slot] < 0) == (b->operand[slot] < 0) &&
                one->buffers[slot].format == other->buffers[slot].format;
    }
    return alike;
}

static bool is_new(const struct step *step, const struct queue_entry *entry, const int32_t *run, int32_t count)
{
    bool is = entry->group == NULL;
    for (int32_t i = 0; i < count && is; i++) {
        is = !are_alike(entry, &step->entries[run[i]]);
    }
    return is;
}

// Sets indices and counts that no op has written yet to rows that exist, or to none. Plan verification ensures that
// every integer operand declares its content.
static void fill_indices(const struct step *step, const struct queue_entry *entry)
{
    for (int slot = 0; slot < entry->op->operand_count; slot++) {
        const struct buffer *buffer  = &entry->buffers[slot];
        enum op_content      content = op_operand_content(entry->op, slot);
        if (buffer->data != NULL && content != OP_HOLDS_VALUES) {
            int64_t bytes  = format_bytes(buffer->format, buffer->elements);
            void   *filled = memory_allocate((size_t)bytes);
            memset(filled, content == OP_HOLDS_PLACES ? 0xff : 0, (size_t)bytes);    // -1: no row
            step->backend->ops->upload(step->backend, buffer->data, filled, bytes);
            free(filled);
        }
    }
}

void step_warm(struct step *step)
{
    int32_t *run = memory_allocate((size_t)step->plan->op_count * sizeof(*run)), count = 0;
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        const struct queue_entry *entry = &step->entries[i];
        if (is_new(step, entry, run, count)) {
            fill_indices(step, entry);
            backend_run(step->backend, entry->prepared, entry->op, entry->buffers);
            step->lanes.streams->synchronize(step->backend, entry->op->lane);
            run[count++] = i;
        }
    }
    free(run);
    storages_clear(step);
}
