// SPDX-License-Identifier: MIT
// Pipelines as data: which layers each chunk holds, and in which order a stage runs its chunks forward and backward.
// Chunk c of stage s is the model's chunk c * stages + s.
#ifndef GSWBENCH_SCHEDULE_H
#define GSWBENCH_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/status.h"

struct schedule_shape {
    int64_t stages, chunks, microbatches;    // chunks: of each stage
    bool    overlaps;                        // one microbatch goes forward beside another that goes backward
};

enum schedule_action { SCHEDULE_FORWARD, SCHEDULE_BACKWARD, SCHEDULE_ACTIONS };

struct schedule_turn {
    enum schedule_action action;
    int64_t              microbatch, chunk;    // chunk: of the stage
    bool                 is_beside;            // the turn behind it, side by side
};

// Turns of each stage: every microbatch of every chunk, forward and backward.
int64_t schedule_turns(const struct schedule_shape *shape);

// A stage's turns in order: 1F1B, or interleaved 1F1B with several chunks. A chunk's microbatches come in their order.
// Interleaved, microbatches go in groups of as many as there are stages; a last group that is not full takes the turns
// of a full one, less those of the microbatches that do not exist. Where turns go side by side a stage begins with one
// forward turn more, and without chunks, too, with two for each stage after it: what both turns make is there when both
// have ended.
void schedule_build(const struct schedule_shape *shape, int64_t stage, struct schedule_turn *turns);

// Microbatches of one chunk that are forward and not yet backward, at most.
int64_t schedule_in_flight(const struct schedule_shape *shape, const struct schedule_turn *turns);

// When each turn begins, in slots, if transfers take no time. turns and begins: [stages][turns]. Returns the slots
// until the last stage has ended; 0 when stages wait for each other for ever.
int64_t schedule_simulate(const struct schedule_shape *shape, const struct schedule_turn *turns,
                          const int64_t slots[SCHEDULE_ACTIONS], int64_t *begins);

// How the layers are dealt: equally; those left over go one each to the chunks after the first, then to the first, and
// never to the last, since these two hold embedding and head besides. counts_embedding: embedding and head each count
// as one layer, and so may be all that their chunk holds. last: the last chunk has so many, and the others are dealt to
// the chunks before it; 0: it is dealt to as said.
struct schedule_deal {
    int64_t layers, chunks;    // chunks: of all stages
    bool    counts_embedding;
    int64_t last;
};
struct schedule_layers {
    int64_t first, count;
};
status                 schedule_check(const struct schedule_deal *deal);
struct schedule_layers schedule_layers(const struct schedule_deal *deal, int64_t chunk);

// The pipeline as text: what each chunk holds, then a row for each stage with a column for each slot of time.
status schedule_draw(const struct schedule_deal *deal, const struct schedule_shape *shape, FILE *file);

#endif
