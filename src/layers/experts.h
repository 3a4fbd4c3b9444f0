// SPDX-License-Identifier: MIT
// Declares the values, weights and helpers of a mixture-of-experts (MoE) sublayer.
#pragma once

#include "gswbench/layer_kind.h"

enum {
    WEIGHT_ROUTER = WEIGHT_OWN,
    WEIGHT_EXPERTS,       // fc1 of the first local expert, followed by its fc2, fc1 of the next, ...
    WEIGHT_SHARED_FC1,    // of the shared experts; -1: none
    WEIGHT_SHARED_FC2,
    WEIGHT_DOWN,
    WEIGHT_UP,    // projections to and from the width of the experts; -1: none
};
enum {
    VALUE_LOGITS = VALUE_OWN,    // router logits [rows, experts] of the ranks that share a capacity
    VALUE_CHOICES,               // VALUE_CHOICES to VALUE_COUNTS: outputs of OP_ROUTE_FORWARD
    VALUE_SLOTS,
    VALUE_GATES,
    VALUE_SOURCES,
    VALUE_COUNTS,
    VALUE_EXPERT_IN,    // VALUE_EXPERT_IN, VALUE_FC1, VALUE_S: in expert_values of experts.c
    VALUE_FC1,
    VALUE_S,
    VALUE_EXPERT_OUT,      // [slots, width of experts], after the all-to-all back to the tokens' ranks
    VALUE_TOKEN_COUNTS,    // dropless: number of tokens that this rank sends to each expert
    VALUE_RECEIVED,        // dropless: the same from all ranks, for the local experts; -1: no other ranks
    VALUE_SHARED_FC1,      // of the shared experts
    VALUE_SHARED_S,
    VALUE_DOWN,              // tokens projected to expert_hidden; unused without projections
    VALUE_COMBINED,          // sums of the routed experts' outputs, at that width; unused without projections
    VALUE_GATE_GRADIENTS,    // VALUE_GATE_GRADIENTS, VALUE_SLOT_GRADIENTS: only during the backward pass
    VALUE_SLOT_GRADIENTS,    // gradient of the dispatched rows
};

// experts_shared.c: the shared experts. Without them, these functions append no op and return -1.
bool    experts_are_shared(const struct sublayer *sublayer);
void    experts_shared_declare(struct declarations *declarations, int32_t *weights);
void    experts_shared_append_fc1(struct sublayer *sublayer);
void    experts_shared_append_activation(struct sublayer *sublayer);
int32_t experts_shared_append_fc2(struct sublayer *sublayer);
int32_t experts_shared_backward(struct sublayer *sublayer, int32_t gradient);    // returns the gradient of their input

// routing.c: router and token counts.
void experts_append_logits(struct sublayer *sublayer);
void experts_append_route(struct sublayer *sublayer);
// Dropless: appends the op with which the host reads the token counts, except in recompute. Returns the index of the
// first row count, or -1.
int32_t experts_append_row_counts(struct sublayer *sublayer);
// Appends the router's backward pass. Adds its input gradient to the tensor `other`, or to a new tensor if other is -1,
// and returns the tensor.
int32_t experts_router_backward(struct sublayer *sublayer, int32_t gates, int32_t other);

// Rows of tokens in slots of experts, [slots, width of experts].
int32_t experts_new_slots(struct builder *builder, const char *name);
// Fills slots with rows of in, times their gates (-1: not scaled).
void experts_fill_slots(struct sublayer *sublayer, const char *role, int32_t in, int32_t gates, int32_t slots);
// Sums the slots of each row's choices, times their gates (-1: not scaled), into out; adds: accumulates.
void experts_sum_choices(struct sublayer *sublayer, const char *role, int32_t slots, int32_t gates, int32_t out,
                         bool adds);
// Gradient of the gates: dot product of each choice's row and slot. scaled receives the rows times their gates, in
// slots (-1: not needed).
int32_t experts_gate_gradients(struct sublayer *sublayer, const char *role, int32_t rows, int32_t slots,
                               int32_t scaled);
