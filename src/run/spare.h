// SPDX-License-Identifier: MIT
// Shares a device's SMs between NCCL and GEMMs (SM margin).
#ifndef GSWBENCH_RUN_SPARE_H
#define GSWBENCH_RUN_SPARE_H

#include "gswbench/place.h"
#include "gswbench/plan.h"

// transfer: maximum CTAs per NCCL operation (0: as planned); spared: GEMMs' SM margin.
struct spare_way {
    int transfer, spared;
};

// With run.spared_processors = auto and NCCL: times some settings and applies the best to later ops. Fails if NCCL
// could then occupy a whole device. Collective.
status spare_choose(struct place *place, const struct plan *plan, const struct run_config *run);

// Index of the shortest time, or 0 if none is noticeably shorter than the first.
int spare_best(const double seconds[], int count);

#endif
