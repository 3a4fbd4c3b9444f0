// SPDX-License-Identifier: MIT
// The machine that results are set against: peaks, memory, links.
#ifndef GSWBENCH_HARDWARE_H
#define GSWBENCH_HARDWARE_H

#include <stdint.h>

#include "gswbench/option.h"

// [hardware]
struct hardware_config {
    char    profile[64];    // configs/hardware/NAME.ini, or "none"
    int64_t gpus_per_node;
    double  memory_gb;              // of one device; 0: unknown
    double  peak_bf16, peak_fp8;    // dense FLOP/s of one device; 0: unknown
};
extern const struct option hardware_options[];

#endif
