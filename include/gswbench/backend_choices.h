// SPDX-License-Identifier: MIT
// Exchange of autotuning results between ranks: one rank times the candidates of a problem, and all others use its
// choice. The problem name contains the library version and the device model.
#ifndef GSWBENCH_BACKEND_CHOICES_H
#define GSWBENCH_BACKEND_CHOICES_H

#include "gswbench/gemm.h"

struct backend;
struct buffer;

struct backend_choices {
    // Writes the name of the problem that prepare would time or has timed for this op; "" if none.
    void (*name)(struct backend *backend, const struct op *op, const struct buffer *buffers,
                 char problem[GEMM_PROBLEM_BYTES]);
    const struct gemm_choice *(*find)(struct backend *backend, const char *problem);    // NULL: not selected yet
    // call before the op is prepared
    void (*take)(struct backend *backend, const struct gemm_choice *choice);
    // writes the cache file for later runs
    void (*keep)(struct backend *backend);
};

#endif
