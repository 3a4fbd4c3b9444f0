// SPDX-License-Identifier: MIT
// A turn of the pipeline's schedule: one microbatch through one chunk of the model, forward or back, in parts that end
// where tokens travel to experts or back.
#ifndef GSWBENCH_LAYERS_TURN_H
#define GSWBENCH_LAYERS_TURN_H

#include "kind.h"

// A turn and what its chunk is: its place in the model, and its blocks.
struct turn {
    enum schedule_action action;
    int64_t              microbatch, place, first_layer, end_layer;
    bool                 is_first, is_last;
    struct op_tag        tag;
};

// How far the ops of a turn are appended.
struct walk {
    struct turn    turn;
    int32_t        received;
    struct stream *end;    // what the model's last chunk leaves to the head
    bool           has_begun;
    int64_t        place;    // of the block that is next, and its part
    int            part;
    struct stream  stream;      // forward: at the block's entry
    int32_t        gradient;    // backward: what the part before returned
};

// Whether the embedding's table is read where the model ends.
bool turn_ends_with_embedding(const struct plan *plan);
// Appends a turn's ops as far as tokens travel; returns whether these were the last.
bool turn_advance(struct builder *builder, struct walk *walk);
// The head's gradients that were left until the stages before this one have the rest of the backward pass to do.
void turn_append_deferred(struct builder *builder);

#endif
