// SPDX-License-Identifier: MIT
// CPU binding: finds the cores on the NUMA node of a rank's device. Define _GNU_SOURCE before all includes.
#pragma once

#include <sched.h>
#include <stdbool.h>

// How the cores on which the launcher allows a rank compare with the NUMA node of its device. UNKNOWN: the device or
// its node is unknown. FITS: all allowed cores are on that node. OPEN: some are on it, so the rank can bind itself.
// ELSEWHERE: none is on it.
enum binding_state { BINDING_UNKNOWN, BINDING_FITS, BINDING_OPEN, BINDING_ELSEWHERE };

struct binding {
    enum binding_state state;
    int                device_node, node;    // NUMA nodes of the device and of the first allowed core
    cpu_set_t          cores;                // allowed cores on the device's node
};

// Finds the binding for the device with this PCI id ("0000:9B:00.0"; "": no device). Reads files under root/sys; root
// is "" except in tests.
struct binding binding_find(const char *root, const char *pci, const cpu_set_t *allowed);

// Binds the calling thread and threads that it starts later to the cores; with whole_process, all threads of the
// process. Returns false if the system does not permit it.
bool binding_apply(const cpu_set_t *cores, bool whole_process);
