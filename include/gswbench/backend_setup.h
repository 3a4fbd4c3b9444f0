// SPDX-License-Identifier: MIT
// What a rank asks of its backend, and where the device is that it would get.
#ifndef GSWBENCH_BACKEND_SETUP_H
#define GSWBENCH_BACKEND_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Beside the backend's name.
struct backend_setup {
    int         local_rank;           // its place among the ranks of its host
    int         threads;              // of the processor
    bool        is_deterministic;     // no choice by measured time
    bool        is_fp32;              // activations are fp32
    int64_t     attention;            // enum attention_choice
    int         spared_processors;    // multiprocessors of the device that GEMMs leave to transfers
    int         processors;           // multiprocessors that our kernels count on, for tests; 0: all of the device
    const char *cache;                // folder of files that outlive a run; NULL or "": the user's
};

// The PCI id of the device that backend_open would take with this name; "" for the host, and where nothing can be
// opened.
void backend_locate(const char *name, const struct backend_setup *setup, char *text, size_t bytes);

#endif
