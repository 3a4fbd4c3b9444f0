// SPDX-License-Identifier: MIT
// A pipeline action: forward or backward pass of one microbatch through one model chunk, appended in parts that end at
// expert all-to-alls.
#ifndef GSWBENCH_BUILD_TURN_H
#define GSWBENCH_BUILD_TURN_H

#include "gswbench/layer_kind.h"

// An action and its chunk: place is the chunk's index in the model.
struct turn {
    enum schedule_action action;
    int64_t              microbatch, place, first_layer, end_layer;
    bool                 is_first, is_last;
    struct op_tag        tag;
};

// Progress of appending an action.
struct walk {
    struct turn    turn;
    int32_t        received;
    struct stream *end;    // output of the model's last chunk, input of the head
    bool           has_begun;
    int64_t        place;    // of the next block; part: of its next part
    int            part;
    struct stream  stream;      // forward: input of the block
    int32_t        gradient;    // backward: result of the previous part
};

// Whether the last stage reads the embedding table (tied head or MTP modules).
bool turn_ends_with_embedding(const struct plan *plan);
// Appends ops up to the next expert all-to-all. Returns whether the action is complete.
bool turn_advance(struct builder *builder, struct walk *walk);
// Appends the head's deferred weight gradients, while earlier stages finish their backward pass.
void turn_append_deferred(struct builder *builder);

#endif
