// SPDX-License-Identifier: MIT
// Operations that src/validate needs between steps: run a step without the optimizer, run ops on other buffers, and
// compute digests of tensors.
#pragma once

#include "gswbench/step.h"

// Whether a tensor holds weights, master weights or moments, which only the optimizer changes.
bool step_is_model_state(const struct plan *plan, int32_t tensor);
// Whether an op writes such tensors in the optimizer phase: AdamW, and ops that convert or gather its output.
bool step_op_updates(const struct plan *plan, int32_t op);

// Runs the step without these ops, one op at a time. Called by all ranks.
void step_rehearse(struct step *step);
// Repeats the ops that derive weights from AdamW's output; they write the same bits. Called by all ranks.
void step_remake_weights(struct step *step);

// Whether an op may produce different bits on the same operands. is_mixed: one run is issued, the other is a graph
// replay.
bool step_op_varies(const struct step *step, int32_t op, bool is_mixed);
bool step_is_captured(const struct step *step);

// Runs one compute op on the caller's buffers and waits for it.
void step_run_elsewhere(struct step *step, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

void step_digest(const struct step *step, int32_t tensor, struct digest *digest);
void step_digest_buffer(const struct step *step, const struct buffer *buffer, struct digest *digest);

// Copies between host and device memory, in any direction.
void step_copy(const struct step *step, void *to, const void *from, int64_t bytes);
void step_write_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, const void *from);

// Memory of a whole storage. Activations are unused between steps.
struct buffer step_storage(const struct step *step, enum storage storage);

// Zeroed host memory, pinned if the backend has a device.
void *step_allocate_host(const struct step *step, int64_t bytes);
void  step_release_host(const struct step *step, void *data);
