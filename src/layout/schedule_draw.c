// SPDX-License-Identifier: MIT
// Draws a pipeline as text: a row per stage, a column per time slot.
#include "gswbench/schedule.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gswbench/arena.h"

enum { CELL_BYTES = 48 };

// Time slots of each pass. A backward pass takes two slots, or one if weight gradients are a separate action of one
// slot.
static const int64_t whole_slots[SCHEDULE_PARTS] = {[SCHEDULE_FORWARD] = 1, [SCHEDULE_BACKWARD] = 2};
static const int64_t split_slots[SCHEDULE_PARTS] = {1, 1, 1};

struct drawing {
    struct schedule_assignment assignment;
    struct schedule_shape      shape;
    struct schedule_action    *actions;    // [stages][actions]
    int64_t                   *begins;     // [stages][actions]
    const int64_t             *slots;      // [SCHEDULE_PARTS]: duration of each pass
    int64_t                    length;
    int                        width;    // characters per time slot
    FILE                      *file;
};

// Formats an action: "F3" for the forward pass of microbatch 3, or "F3.1" through chunk 1 if stages have several
// chunks.
static int name_action(const struct drawing *drawing, const struct schedule_action *action, char cell[CELL_BYTES])
{
    char pass = "FBW"[action->pass];
    return drawing->shape.chunks == 1
               ? snprintf(cell, CELL_BYTES, "%c%" PRId64, pass, action->microbatch)
               : snprintf(cell, CELL_BYTES, "%c%" PRId64 ".%" PRId64, pass, action->microbatch, action->chunk);
}

static void print_layers(const struct drawing *drawing, int64_t chunk)
{
    struct schedule_layers layers = schedule_layers(&drawing->assignment, chunk);
    const char            *comma  = "";
    if (chunk == 0) {
        fprintf(drawing->file, "embedding");
        comma = ", ";
    }
    if (layers.count == 1) {
        fprintf(drawing->file, "%slayer %" PRId64, comma, layers.first);
        comma = ", ";
    } else if (layers.count > 1) {
        fprintf(drawing->file, "%slayers %" PRId64 " to %" PRId64, comma, layers.first,
                layers.first + layers.count - 1);
        comma = ", ";
    }
    if (chunk == drawing->assignment.chunks - 1) {
        fprintf(drawing->file, "%shead", comma);
    }
}

static void print_chunks(const struct drawing *drawing)
{
    for (int64_t stage = 0; stage < drawing->shape.stages; stage++) {
        fprintf(drawing->file, "  stage %-4" PRId64, stage);
        for (int64_t chunk = 0; chunk < drawing->shape.chunks; chunk++) {
            fprintf(drawing->file, "%s", chunk == 0 ? "" : " | ");
            print_layers(drawing, chunk * drawing->shape.stages + stage);
        }
        fprintf(drawing->file, "\n");
    }
}

static void print_row(const struct drawing *drawing, int64_t stage)
{
    int64_t slot = 0, count = schedule_actions(&drawing->shape);
    fprintf(drawing->file, "%4" PRId64 "  ", stage);
    for (int64_t i = stage * count; i < (stage + 1) * count; i++) {
        const struct schedule_action *action = &drawing->actions[i];
        char                          cell[CELL_BYTES];
        for (; slot < drawing->begins[i]; slot++) {
            fprintf(drawing->file, "%-*s", drawing->width, ".");
        }
        name_action(drawing, action, cell);
        fprintf(drawing->file, "%-*s", drawing->width, cell);
        for (slot++; slot < drawing->begins[i] + drawing->slots[action->pass]; slot++) {
            fprintf(drawing->file, "%-*s", drawing->width, "=");
        }
    }
    for (; slot < drawing->length; slot++) {
        fprintf(drawing->file, "%-*s", drawing->width, ".");
    }
    fprintf(drawing->file, "\n");
}

static void print_drawing(const struct drawing *drawing)
{
    const struct schedule_shape *shape = &drawing->shape;
    const int64_t               *slots = drawing->slots;
    int64_t                      busy  = shape->chunks * shape->microbatches *
                   (slots[SCHEDULE_FORWARD] + slots[SCHEDULE_BACKWARD] + slots[SCHEDULE_WEIGHTS]);
    print_chunks(drawing);
    fprintf(drawing->file, "\nF3%s: microbatch 3 forward%s, 1 slot; B: backward, %" PRId64 " slot%s; .: idle\n",
            shape->chunks > 1 ? ".1" : "", shape->chunks > 1 ? " through the stage's chunk 1" : "",
            slots[SCHEDULE_BACKWARD], slots[SCHEDULE_BACKWARD] == 1 ? "" : "s");
    if (shape->kind == SCHEDULE_ZERO_BUBBLE) {
        fprintf(drawing->file, "W: weight gradients, 1 slot\n");
    }
    if (shape->kind == SCHEDULE_OVERLAPPED) {
        fprintf(drawing->file, "an F and the B after it overlap, in the slots of both\n");
    }
    for (int64_t stage = 0; stage < shape->stages; stage++) {
        print_row(drawing, stage);
    }
    fprintf(drawing->file,
            "\n%" PRId64 " slots, each stage is busy in %" PRId64 ": the bubble is %.2f %% of the busy slots\n",
            drawing->length, busy, 100.0 * (double)(drawing->length - busy) / (double)busy);
}

status schedule_draw(const struct schedule_assignment *assignment, const struct schedule_shape *shape, FILE *file)
{
    struct drawing drawing = {.assignment = *assignment, .shape = *shape, .file = file};
    drawing.slots          = shape->kind == SCHEDULE_ZERO_BUBBLE ? split_slots : whole_slots;
    TRY(schedule_check(&drawing.assignment));
    int64_t count   = schedule_actions(&drawing.shape);
    drawing.actions = memory_allocate((size_t)(count * drawing.shape.stages) * sizeof(*drawing.actions));
    drawing.begins  = memory_allocate((size_t)(count * drawing.shape.stages) * sizeof(*drawing.begins));
    for (int64_t stage = 0; stage < drawing.shape.stages; stage++) {
        schedule_build(&drawing.shape, stage, drawing.actions + stage * count);
    }
    drawing.length = schedule_simulate(&drawing.shape, drawing.actions, drawing.slots, drawing.begins);

    struct schedule_action widest = {.microbatch = drawing.shape.microbatches - 1, .chunk = drawing.shape.chunks - 1};
    char                   cell[CELL_BYTES];
    drawing.width = name_action(&drawing, &widest, cell) + 1;
    print_drawing(&drawing);
    free(drawing.begins);
    free(drawing.actions);
    return OK;
}
