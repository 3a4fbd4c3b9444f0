// SPDX-License-Identifier: MIT
// Fingerprints the ops that each stream executes, to detect an op that is skipped, repeated or out of order. A graph
// replay takes the fingerprint of its capture.
#include "internal.h"

void course_add(struct course *course, const struct queue_entry *entry)
{
    const uint64_t prime = 0x100000001b3;
    course->count++;
    course->print = (course->print ^ (uint64_t)entry->number) * prime;
}

void courses_begin(struct lanes *lanes, bool is_replay)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        lanes->queues[lane].course = is_replay ? lanes->queues[lane].captured : (struct course){0};
    }
}

bool step_followed_plan(const struct step *step, struct step_departure *departure)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        const struct queue *queue   = &step->lanes.queues[lane];
        struct course       planned = {0};
        for (int32_t i = 0; i < queue->count; i++) {
            course_add(&planned, queue->entries[i]);
        }
        if (queue->course.count != planned.count || queue->course.print != planned.print) {
            *departure = (struct step_departure){lane, queue->course.count, planned.count};
            return false;
        }
    }
    return true;
}
