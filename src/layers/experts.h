// SPDX-License-Identifier: MIT
// Declares the values (activations), weights and helpers of a mixture-of-experts (MoE) sublayer.
#pragma once

#include "gswbench/layer_kind.h"

enum {
    WEIGHT_ROUTER = WEIGHT_OWN,
    WEIGHT_EXPERTS,       // fc1 of the first local expert; then its fc2, fc1 of the second, ...
    WEIGHT_SHARED_FC1,    // fc1 of the shared experts; -1: none
    WEIGHT_SHARED_FC2,
    WEIGHT_DOWN,
    WEIGHT_UP,    // WEIGHT_DOWN, WEIGHT_UP: projections to and from expert_hidden; -1: none
};
enum {
    // Router logits [rows, experts]; with capacity_scope = sequence, also of other ranks' rows of the same sequences.
    VALUE_LOGITS = VALUE_OWN,
    VALUE_CHOICES,    // VALUE_CHOICES to VALUE_COUNTS: outputs of the routing op, OP_ROUTE_FORWARD
    VALUE_SLOTS,
    VALUE_GATES,
    VALUE_SOURCES,
    VALUE_COUNTS,
    // VALUE_EXPERT_IN, VALUE_FC1 and VALUE_S only order the forward steps, and have no tensor. The tensors of each
    // expert are in struct expert_values.
    VALUE_EXPERT_IN,
    VALUE_FC1,
    VALUE_S,
    VALUE_EXPERT_OUT,      // expert outputs [slots, width of experts], after the all-to-all back to the tokens' ranks
    VALUE_TOKEN_COUNTS,    // dropless: number of tokens that this rank sends to each expert
    VALUE_RECEIVED,        // dropless: tokens that each local expert receives from each rank; -1: no expert parallelism
    VALUE_SHARED_FC1,      // output of fc1 of the shared experts
    VALUE_SHARED_S,
    VALUE_DOWN,              // tokens projected to expert_hidden; unused without projections
    VALUE_COMBINED,          // sums of the routed experts' outputs [rows, expert_hidden]; unused without projections
    VALUE_GATE_GRADIENTS,    // gradient of the gates; exists only during the backward pass
    VALUE_SLOT_GRADIENTS,    // gradient of the dispatched rows; exists only during the backward pass
};

// Shared experts (experts_shared.c). experts_are_shared returns whether the model has them. If it does not, the other
// functions append no op and return -1.
bool    experts_are_shared(const struct sublayer *sublayer);
void    experts_shared_declare(struct declarations *declarations, int32_t *weights);
void    experts_shared_append_fc1(struct sublayer *sublayer);
void    experts_shared_append_activation(struct sublayer *sublayer);
int32_t experts_shared_append_fc2(struct sublayer *sublayer);
// Returns the gradient of the shared experts' input.
int32_t experts_shared_backward(struct sublayer *sublayer, int32_t gradient);

// Append the router's GEMM, and the op that assigns tokens to experts (routing.c).
void experts_append_logits(struct sublayer *sublayer);
void experts_append_route(struct sublayer *sublayer);
// In a dropless layer, appends the op with which the host reads the token counts, and returns the index of the first
// row count. Returns -1 in other layers, and in recompute, which reuses the counts of the forward pass.
int32_t experts_append_row_counts(struct sublayer *sublayer);
// Appends the router's backward pass. Adds its input gradient to the tensor `other`, or to a new tensor if other is -1,
// and returns the tensor.
int32_t experts_router_backward(struct sublayer *sublayer, int32_t gates, int32_t other);

// Returns a new tensor [slots, width of experts]. A slot is a row of the send buffer: one token for one of its experts.
int32_t experts_new_slots(struct builder *builder, const char *name);
// Copies each token's row of `in` to the slots of the token's experts, times the gates (gates = -1: not scaled).
void experts_fill_slots(struct sublayer *sublayer, const char *role, int32_t in, int32_t gates, int32_t slots);
// Sums the slots of each token's experts, times the gates (gates = -1: not scaled), into `out`. adds: adds to `out`.
void experts_sum_choices(struct sublayer *sublayer, const char *role, int32_t slots, int32_t gates, int32_t out,
                         bool adds);
// Returns the gradient of the gates: for each expert that a token chooses, the dot product of the token's row and slot.
// `scaled` receives the rows times their gates, in the order of slots (-1: not needed).
int32_t experts_gate_gradients(struct sublayer *sublayer, const char *role, int32_t rows, int32_t slots,
                               int32_t scaled);
