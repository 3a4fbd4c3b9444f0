// SPDX-License-Identifier: MIT
// Allocates the step's storages. The communicator allocates those that communication ops use, if it can; otherwise the
// backend does.
#include <string.h>

#include "opening.h"

static bool is_moved(const struct plan *plan, const struct op *op, int storage)
{
    bool is = false;
    for (int slot = 0; slot < op->operand_count && op_is_transfer((enum op_kind)op->kind); slot++) {
        is |= op->operand[slot] >= 0 && (int)plan->tensors[op->operand[slot]].storage == storage;
    }
    return is;
}

static bool has_transfers(const struct plan *plan, int storage)
{
    bool has = false;
    for (int32_t i = 0; i < plan->op_count && !has; i++) {
        has = is_moved(plan, &plan->ops[i], storage);
    }
    return has;
}

void storages_open(struct step *step)
{
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        int64_t bytes                = step->plan->storage_bytes[storage];
        step->storage_bytes[storage] = bytes;
        step->is_lent[storage]       = bytes > 0 && step->comm->memory != NULL && has_transfers(step->plan, storage);
        if (step->is_lent[storage]) {
            step->storage[storage] = step->comm->memory->allocate(step->comm, bytes);
            backend_adopt(step->backend, step->storage[storage], bytes);
        } else if (bytes > 0) {
            step->storage[storage] = backend_allocate(step->backend, bytes);
        }
    }
}

void storages_close(struct step *step)
{
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        if (step->is_lent[storage]) {
            step->comm->memory->release(step->comm, step->storage[storage]);
            backend_disown(step->backend, step->storage_bytes[storage]);
        } else if (step->storage[storage] != NULL) {
            backend_release(step->backend, step->storage[storage], step->storage_bytes[storage]);
        }
    }
}

void storages_clear(struct step *step)
{
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        if (step->storage[storage] != NULL && step->backend->ops->clear != NULL) {
            step->backend->ops->clear(step->backend, step->storage[storage], step->storage_bytes[storage]);
        } else if (step->storage[storage] != NULL) {
            memset(step->storage[storage], 0, (size_t)step->storage_bytes[storage]);
        }
    }
}
