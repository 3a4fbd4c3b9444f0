// SPDX-License-Identifier: MIT
// What a backend decides by timing, so that one rank does it and others take the same: by the name of the problem,
// which has the library's version and the kind of device in it.
#ifndef GSWBENCH_BACKEND_CHOICES_H
#define GSWBENCH_BACKEND_CHOICES_H

#include "gswbench/gemm.h"

struct backend;
struct buffer;

struct backend_choices {
    // What preparing the op would time, or remembers to have timed; "": nothing.
    void (*name)(struct backend *backend, const struct op *op, const struct buffer *buffers,
                 char problem[GEMM_PROBLEM_BYTES]);
    const struct gemm_choice *(*find)(struct backend *backend, const char *problem);    // NULL: nothing is chosen
    void (*take)(struct backend *backend, const struct gemm_choice *choice);            // before its op is prepared
    void (*keep)(struct backend *backend);                                              // for later runs
};

#endif
