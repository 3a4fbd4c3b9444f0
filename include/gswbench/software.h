// SPDX-License-Identifier: MIT
// The program that is predicted, where it is not this one: what its steps do otherwise than our plan says.
#ifndef GSWBENCH_SOFTWARE_H
#define GSWBENCH_SOFTWARE_H

#include <stdint.h>

#include "gswbench/option.h"

// [software]; its defaults are this program.
struct software_config {
    char profile[112];    // configs/software/NAME.ini, or a path, or "gswbench"
    // Shares of what the plan's ops take by their prices.
    struct quantity memory_bytes, cast_bytes;                 // other kernels fuse more
    struct quantity attention_forward, attention_backward;    // other kernels take longer: more than 1
    struct quantity reduction_parts;                          // transfers in place of one that reduces gradients
    struct quantity fp8_reduction_stall;    // share of their latency for which compute stands still with FP8
    // Seconds that the plan has not.
    struct quantity expert_gap;             // of the host, for half of a layer's experts on a rank and one, a pass
    struct quantity fp8_synchronization;    // of all ranks after each microbatch, with FP8
};
extern const struct option software_options[];

#endif
