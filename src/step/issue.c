// SPDX-License-Identifier: MIT
// One thread enqueues the list in order. Dependencies come earlier in the list, so their events are already recorded.
#include "pauses.h"

void issue_open(struct issue *issue, struct lanes *lanes, struct queue_entry *entries, int32_t count)
{
    *issue       = (struct issue){.lanes = lanes, .entries = entries, .count = count};
    issue->begin = lanes->streams->event_open(lanes->backend, false);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (lane != LANE_COMPUTE && lanes->queues[lane].count > 0) {
            issue->ends[lane] = lanes->streams->event_open(lanes->backend, false);
        }
    }
}

// All streams fork from the compute stream and join it at the end, so that one capture includes them all.
void issue_run(const struct issue *issue)
{
    struct lanes                 *lanes   = issue->lanes;
    struct backend               *backend = lanes->backend;
    const struct backend_streams *streams = lanes->streams;
    streams->record(backend, LANE_COMPUTE, issue->begin);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (issue->ends[lane] != NULL) {
            streams->wait(backend, lane, issue->begin);
        }
    }
    for (int32_t i = 0; i < issue->count; i++) {
        entry_run(lanes, &issue->entries[i]);
    }
    if (lanes->pauses != NULL) {
        pauses_finish(lanes);
    }
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (issue->ends[lane] != NULL) {
            streams->record(backend, lane, issue->ends[lane]);
            streams->wait(backend, LANE_COMPUTE, issue->ends[lane]);
        }
    }
}

void issue_close(struct issue *issue)
{
    const struct backend_streams *streams = issue->lanes->streams;
    streams->event_close(issue->begin);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (issue->ends[lane] != NULL) {
            streams->event_close(issue->ends[lane]);
        }
    }
}
