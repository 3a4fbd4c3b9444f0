// SPDX-License-Identifier: MIT
// What a proof of a step's numbers does with it, between steps: runs all of it but the optimizer, ops on other memory,
// and takes digests of tensors.
#ifndef GSWBENCH_STEP_VERIFY_H
#define GSWBENCH_STEP_VERIFY_H

#include "gswbench/step.h"

// Whether a tensor is weights, masters or moments: all that is large and that the optimizer alone changes.
bool step_is_model_state(const struct plan *plan, int32_t tensor);
// Whether the op changes such tensors after the backward pass: AdamW, and what makes weights of its results.
bool step_op_updates(const struct plan *plan, int32_t op);

// Runs the step without these ops, issued op by op. Called by all ranks.
void step_rehearse(struct step *step);
// Runs those ops again that make weights of what AdamW has left, and would write the same. Called by all ranks.
void step_remake_weights(struct step *step);

// Whether the op may leave other bits when it runs again on the same operands. is_mixed: once issued, once replayed.
bool step_op_varies(const struct step *step, int32_t op, bool is_mixed);
bool step_is_captured(const struct step *step);

// Runs an op that computes on buffers of the caller's, alone, and waits for it.
void step_run_elsewhere(struct step *step, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

void step_digest(const struct step *step, int32_t tensor, struct digest *digest);
void step_digest_buffer(const struct step *step, const struct buffer *buffer, struct digest *digest);

// Copies between any two of the host's and the device's memories.
void step_copy(const struct step *step, void *to, const void *from, int64_t bytes);
void step_write_run(const struct step *step, int32_t tensor, int64_t offset, int64_t bytes, const void *from);

// The memory of a storage, which for activations nobody uses between steps.
struct buffer step_storage(const struct step *step, enum storage storage);

// Memory of the host that a device copies from and to at full speed; zeroed.
void *step_allocate_host(const struct step *step, int64_t bytes);
void  step_release_host(const struct step *step, void *data);

#endif
