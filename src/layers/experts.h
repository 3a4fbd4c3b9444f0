// SPDX-License-Identifier: MIT
// The values and weights of experts, and their router.
#ifndef GSWBENCH_LAYERS_EXPERTS_H
#define GSWBENCH_LAYERS_EXPERTS_H

#include "kind.h"

enum {
    WEIGHT_ROUTER = WEIGHT_OWN,
    WEIGHT_EXPERTS,    // fc1 of the first expert here; its fc2 and those of the next follow
};
enum {
    VALUE_LOGITS = VALUE_OWN,    // of the router, of all rows that compete [rows, experts]
    VALUE_CHOICES,               // this and the next: as routing makes them
    VALUE_SLOTS,
    VALUE_GATES,
    VALUE_SOURCES,
    VALUE_COUNTS,
    VALUE_EXPERT_IN,    // this and the next two: in each expert's own values
    VALUE_FC1,
    VALUE_S,
    VALUE_EXPERT_OUT,    // [slots, hidden], back on the ranks of the tokens
};

// routing.c: who gets a token.
uint32_t experts_row_axes(const struct builder *builder);    // whose ranks have other rows of the same sequences
struct routing_shape experts_routing(const struct builder *builder);
struct op            experts_routing_op(const struct builder *builder, enum op_kind kind, const char *role);
void                 experts_append_logits(struct sublayer *sublayer);
void                 experts_append_route(struct sublayer *sublayer);
// Returns the part of the input's gradient that comes through the router.
int32_t experts_router_backward(struct sublayer *sublayer, int32_t gates);

#endif
