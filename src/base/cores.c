// SPDX-License-Identifier: MIT
// Counts the usable CPU cores.
#define _GNU_SOURCE    // sched_getaffinity
#include "gswbench/cores.h"

#include <sched.h>

int cores_usable(void)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}
