// SPDX-License-Identifier: MIT
// Which cores lie beside a rank's device. Define _GNU_SOURCE before all includes.
#ifndef GSWBENCH_RUN_BINDING_H
#define GSWBENCH_RUN_BINDING_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

// What the launcher has left to do: nothing is known of the device or its node; nothing; to choose among several nodes;
// it has chosen, and none of the device's cores.
enum binding_state { BINDING_UNKNOWN, BINDING_FITS, BINDING_OPEN, BINDING_ELSEWHERE };

struct binding {
    enum binding_state state;
    int                device_node, node;    // NUMA nodes: the device's; the first one of the cores that are allowed
    cpu_set_t          cores;                // those of the allowed ones that are on the device's node
};

// Of the device with that PCI id ("0000:9B:00.0"; "": there is none) on the machine that the files below root/sys
// describe; root is "" but in tests.
struct binding binding_find(const char *root, const char *pci, const cpu_set_t *allowed);

// Binds the calling thread, and what it starts from now on; or all threads of the process. False where it may not.
bool binding_apply(const cpu_set_t *cores, bool whole_process);

#endif
