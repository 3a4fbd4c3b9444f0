// SPDX-License-Identifier: MIT
// Lower bound of a pipeline's time from the cost of each pass. A pass starts when its stage has finished the passes
// before it and its input from another stage is ready.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

// Progress of the stages.
struct timetable {
    const struct schedule_shape *shape;
    const struct sweep_turn     *turns;
    double *made;    // [action][microbatch][chunk of the model]: when its output is ready; 0: not yet
    double *free;    // [stage]: end of its latest pass
};

void sweep_take_least(struct sweep_turn *least, const struct sweep_turn *turn)
{
    least->before  = fmin(least->before, turn->before);
    least->through = fmin(least->through, turn->through);
    least->after   = fmin(least->after, turn->after);
}

// Accumulation starts with the second microbatch, so the first one is cheaper.
int64_t sweep_place_turn(const struct schedule_shape *shape, const struct schedule_turn *turn, int64_t chunk)
{
    int64_t later = turn->microbatch > 0;
    return (later * SCHEDULE_ACTIONS + turn->action) * shape->stages * shape->chunks + chunk;
}

static double *made_by(const struct timetable *timetable, const struct schedule_turn *turn, int64_t chunk)
{
    const struct schedule_shape *shape = timetable->shape;
    return &timetable
                ->made[(turn->action * shape->microbatches + turn->microbatch) * shape->stages * shape->chunks + chunk];
}

// Runs the stage's passes from next until one lacks its input. Returns the next pass.
static int64_t advance(const struct timetable *timetable, int64_t stage, const struct schedule_turn *turns,
                       int64_t next)
{
    const struct schedule_shape *shape  = timetable->shape;
    int64_t                      chunks = shape->stages * shape->chunks;
    for (; next < schedule_turns(shape); next++) {
        const struct schedule_turn *turn  = &turns[next];
        int64_t                     chunk = turn->chunk * shape->stages + stage;
        int64_t                     from  = turn->action == SCHEDULE_FORWARD ? chunk - 1 : chunk + 1;
        const struct sweep_turn    *takes = &timetable->turns[sweep_place_turn(shape, turn, chunk)];
        double                      begin = timetable->free[stage] + takes->before;
        if (from >= 0 && from < chunks) {
            double input = *made_by(timetable, turn, from);
            if (input == 0.0) {
                break;
            }
            begin = fmax(begin, input);
        }
        // A pass without cost must still count as done.
        *made_by(timetable, turn, chunk) = fmax(begin + takes->through, 1e-12);
        timetable->free[stage]           = begin + takes->through + takes->after;
    }
    return next;
}

double sweep_walk_turns(const struct schedule_shape *shape, const struct sweep_turn *turns, const double *rest)
{
    int64_t               count     = schedule_turns(shape);
    struct schedule_turn *all       = memory_allocate((size_t)(count * shape->stages) * sizeof(*all));
    int64_t              *next      = memory_allocate((size_t)shape->stages * sizeof(*next));
    struct timetable      timetable = {.shape = shape,
                                       .turns = turns,
                                       .made  = memory_allocate((size_t)(count * shape->stages) * sizeof(double)),
                                       .free  = memory_allocate((size_t)shape->stages * sizeof(double))};
    for (int64_t stage = 0; stage < shape->stages; stage++) {
        schedule_build(shape, stage, &all[stage * count]);
    }
    double end      = 0.0;
    bool   has_gone = true;
    while (has_gone) {
        has_gone = false;
        for (int64_t stage = 0; stage < shape->stages; stage++) {
            int64_t before = next[stage];
            next[stage]    = advance(&timetable, stage, &all[stage * count], before);
            has_gone |= next[stage] > before;
            end = fmax(end, timetable.free[stage] + rest[stage]);
        }
    }
    free(all);
    free(next);
    free(timetable.made);
    free(timetable.free);
    return end;
}
