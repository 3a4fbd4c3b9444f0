// SPDX-License-Identifier: MIT
// CPU binding: which cores are on the NUMA node of a rank's device. Define _GNU_SOURCE before all includes.
#pragma once

#include <sched.h>
#include <stdbool.h>

// How the launcher bound the rank. UNKNOWN: device or node unknown; FITS: only to cores of the device's node; OPEN: to
// cores of several nodes, so the rank can choose; ELSEWHERE: to no core of the device's node.
enum binding_state { BINDING_UNKNOWN, BINDING_FITS, BINDING_OPEN, BINDING_ELSEWHERE };

struct binding {
    enum binding_state state;
    int                device_node, node;    // NUMA nodes: of the device; of the first allowed core
    cpu_set_t          cores;                // allowed cores on the device's node
};

// For the device with this PCI id ("0000:9B:00.0"; "": none), from files below root/sys; root is "" except in tests.
struct binding binding_find(const char *root, const char *pci, const cpu_set_t *allowed);

// Binds the calling thread and its future children, or all threads. Returns false if not permitted.
bool binding_apply(const cpu_set_t *cores, bool whole_process);
