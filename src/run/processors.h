// SPDX-License-Identifier: MIT
// What the machine's processors did from begin to end of the measured steps, by the file that Linux keeps in
// /proc/stat.
#ifndef GSWBENCH_RUN_PROCESSORS_H
#define GSWBENCH_RUN_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/result.h"

enum { PROCESSORS_MAX = 1024 };
struct processors {
    bool   is_begun;
    double wall_seconds, own_seconds;    // own: of this process, on all processors
    double busy_seconds[PROCESSORS_MAX];
};
void processors_begin(struct processors *processors, const char *path);
void processors_end(struct processors *processors, const char *path);    // nothing, where it has not begun
// Sets processors and foreign. Ranks with equal numbers are on one machine. Collective.
void processors_gather(const struct processors *processors, struct comm *comm, uint64_t machine,
                       struct result_rank *own);

#endif
