// SPDX-License-Identifier: MIT
// CPU time on this machine during the measured steps, from /proc/stat.
#ifndef GSWBENCH_RUN_PROCESSORS_H
#define GSWBENCH_RUN_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/result.h"

enum { PROCESSORS_MAX = 1024 };
struct processors {
    bool   is_begun;
    double wall_seconds, own_seconds;    // own: of this process, over all CPUs
    double busy_seconds[PROCESSORS_MAX];
};
void processors_begin(struct processors *processors, const char *path);
void processors_end(struct processors *processors, const char *path);    // no effect before begin
// Sets processors and foreign. machine is equal on ranks of one machine. Collective.
void processors_gather(const struct processors *processors, struct comm *comm, uint64_t machine,
                       struct result_rank *own);

#endif
