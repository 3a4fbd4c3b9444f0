// SPDX-License-Identifier: MIT
// Declares pipeline schedules: the layers of each chunk, and the order in which a stage runs forward and backward
// passes of microbatches. Chunk c of stage s is chunk c * stages + s of the model.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/status.h"

// SCHEDULE_OVERLAPPED: the forward pass of one microbatch overlaps with the backward pass of another.
// SCHEDULE_ZERO_BUBBLE: ZB-H1, with one chunk per stage.
enum schedule_kind { SCHEDULE_1F1B, SCHEDULE_OVERLAPPED, SCHEDULE_ZERO_BUBBLE };

struct schedule_shape {
    int64_t            stages, chunks, microbatches;    // chunks: number per stage
    enum schedule_kind kind;
};

// The forward and the backward pass of a microbatch go through all stages. A zero-bubble schedule moves weight
// gradients out of the backward pass into a separate action, which depends on no other stage.
enum schedule_pass {
    SCHEDULE_FORWARD,
    SCHEDULE_BACKWARD,
    SCHEDULE_PASSES,
    SCHEDULE_WEIGHTS = SCHEDULE_PASSES,
    SCHEDULE_PARTS
};

struct schedule_action {
    enum schedule_pass pass;
    int64_t            microbatch, chunk;    // chunk: index in the stage
    bool               is_beside;            // overlaps with the next action in the list
};

// Returns the number of actions per stage: one of each pass per microbatch and chunk.
int64_t schedule_actions(const struct schedule_shape *shape);

// Lists the actions of a stage: 1F1B, or interleaved 1F1B with several chunks or overlapped actions. Within a chunk,
// microbatches run in order. An interleaved schedule takes microbatches in groups of `stages`; a partial last group
// keeps the order of a full group. Its warm-up has two forward passes per later stage, in addition to the passes of the
// first group through all chunks but the last. Overlapped actions send their outputs only when both have ended, so
// their warm-up has one more forward pass.
//
// ZB-H1 (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241) has the forward and backward passes of 1F1B.
// Stage s computes the weight gradients of a microbatch s microbatches later than its backward pass, and the last ones
// at the end.
void schedule_build(const struct schedule_shape *shape, int64_t stage, struct schedule_action *actions);

// Returns the maximum number of microbatches of a chunk in flight: from the forward pass to the end of the backward
// pass, or of the weight gradients if they are separate.
int64_t schedule_in_flight(const struct schedule_shape *shape, const struct schedule_action *actions);

// Computes the start of each action in time slots, without communication time. actions and begins: [stages][actions].
// slots: duration of each kind of pass. Returns the length of the schedule in slots; 0 if the stages deadlock.
int64_t schedule_simulate(const struct schedule_shape *shape, const struct schedule_action *actions,
                          const int64_t slots[SCHEDULE_PARTS], int64_t *begins);

// How layers are assigned to pipeline chunks. Each chunk gets an equal number. Remaining layers go to the chunks after
// the first, one each, then to the first. The last chunk gets none of them, because it also has the head.
// counts_embedding: embedding and head count as one layer each, so a chunk may hold only one of them. last: number of
// layers of the last chunk; the other layers are assigned evenly to the chunks before it. 0: no special number.
struct schedule_assignment {
    int64_t layers, chunks;    // numbers in the whole model
    bool    counts_embedding;
    int64_t last;
};
struct schedule_layers {
    int64_t first, count;
};
status                 schedule_check(const struct schedule_assignment *assignment);
struct schedule_layers schedule_layers(const struct schedule_assignment *assignment, int64_t chunk);

// Draws the pipeline as text: the layers of each chunk, then a row per stage with a column per time slot.
status schedule_draw(const struct schedule_assignment *assignment, const struct schedule_shape *shape, FILE *file);
