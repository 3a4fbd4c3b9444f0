// SPDX-License-Identifier: MIT
// How transfers and GEMMs share the multiprocessors of a device.
#ifndef GSWBENCH_RUN_SPARE_H
#define GSWBENCH_RUN_SPARE_H

#include "gswbench/place.h"
#include "gswbench/plan.h"

// The most that a transfer takes, 0 being as many as the plan allows it, and what GEMMs leave.
struct spare_way {
    int transfer, spared;
};

// With run.spared_processors = auto, and devices that a library connects: times a few ways and takes the best of them,
// for all that is prepared and opened from now on. Fails where transfers could then hold all of a device. Collective.
status spare_choose(struct place *place, const struct plan *plan, const struct run_config *run);

// Which of these takes the least, or 0 where none takes noticeably less than the first.
int spare_best(const double seconds[], int count);

#endif
