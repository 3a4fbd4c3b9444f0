// SPDX-License-Identifier: MIT
// Options of a rank's backend, and the location of the device it would use.
#ifndef GSWBENCH_BACKEND_SETUP_H
#define GSWBENCH_BACKEND_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Options that backend_open takes in addition to the name.
struct backend_setup {
    int         local_rank;           // index of the rank on its host
    int         threads;              // CPU threads
    bool        is_deterministic;     // no selection by timing
    bool        is_fp32;              // activations are fp32
    int64_t     attention;            // enum attention_choice
    int         spared_processors;    // SM margin: SMs that GEMMs leave to communication
    int         processors;           // number of SMs the built-in kernels assume, for tests; 0: all of the device
    const char *cache;                // cache folder that outlives a run; NULL or "": the user's cache folder
};

// Writes the PCI id of the device that backend_open would select for this name; "" for the host CPU, or if no device
// can be opened.
void backend_locate(const char *name, const struct backend_setup *setup, char *text, size_t bytes);

#endif
