// SPDX-License-Identifier: MIT
// The values and weights of experts, and their router.
#ifndef GSWBENCH_LAYERS_EXPERTS_H
#define GSWBENCH_LAYERS_EXPERTS_H

#include "kind.h"

enum {
    WEIGHT_ROUTER = WEIGHT_OWN,
    WEIGHT_EXPERTS,       // fc1 of the first expert here; its fc2 and those of the next follow
    WEIGHT_SHARED_FC1,    // of the shared experts; -1: there are none
    WEIGHT_SHARED_FC2,
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
    VALUE_TALLIES,       // where rows are counted: slots of each expert, own and those that other ranks have for the
    VALUE_RECEIVED,      // experts here; -1: there are no others
    VALUE_SHARED_FC1,    // of the shared experts
    VALUE_SHARED_S,
    VALUE_GATE_GRADIENTS,    // this and the next: while the backward pass goes through the sublayer
    VALUE_SLOT_GRADIENTS,    // of what was dispatched
};

// experts_weights.c
int64_t            experts_here(const struct plan *plan);    // on this rank
struct layer_count experts_count(const struct model_config *model);
void               experts_check(const struct model_config *model, status *errors);
void               experts_declare(struct declarations *declarations, int32_t *weights);

// routing.c: who gets a token.
bool     experts_counts_rows(const struct builder *builder);    // they are moved and computed as far as they are there
uint32_t experts_row_axes(const struct builder *builder);       // whose ranks have other rows of the same sequences
struct routing_shape experts_routing(const struct builder *builder);
struct op            experts_routing_op(const struct builder *builder, enum op_kind kind, const char *role);
void                 experts_append_logits(struct sublayer *sublayer);
void                 experts_append_route(struct sublayer *sublayer);
// The host reads how many rows there are, if they are counted and not known yet. Returns the first of the tallies, or
// -1.
int32_t experts_append_tallies(struct sublayer *sublayer);
// Adds the part of the input's gradient that comes through the router to another part, or returns it if there is none
// (-1).
int32_t experts_router_backward(struct sublayer *sublayer, int32_t gates, int32_t other);
// After a step's last microbatch: moves what experts are chosen with against their loads, where the model asks for it.
void experts_append_balance(struct builder *builder);

// shared.c: the experts that all tokens share. -1 is returned where there are none.
void    shared_declare(struct declarations *declarations, int32_t *weights);
void    shared_append_fc1(struct sublayer *sublayer);
void    shared_append_activation(struct sublayer *sublayer);
int32_t shared_append_fc2(struct sublayer *sublayer);
int32_t shared_backward(struct sublayer *sublayer, int32_t gradient);

// experts_slots.c: tokens in slots of experts, [slots, hidden].
int32_t experts_new_slots(struct builder *builder, const char *name);
// The rows of in, times the gates of the choices that slots hold, or (-1) as they are.
void experts_fill_slots(struct sublayer *sublayer, const char *role, int32_t in, int32_t gates, int32_t slots);
// Adds up the slots of a row's choices, times their gates or (-1) as they are; to out or in place of it.
void experts_sum_choices(struct sublayer *sublayer, const char *role, int32_t slots, int32_t gates, int32_t out,
                         bool adds);
// The gradient of gates: of each choice the product of its row and its slot. scaled receives the rows times the gates,
// in slots; -1: nothing does.
int32_t experts_gate_gradients(struct sublayer *sublayer, const char *role, int32_t rows, int32_t slots,
                               int32_t scaled);

#endif
