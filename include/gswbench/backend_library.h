// SPDX-License-Identifier: MIT
// What a backend's device computes with, by name and version: ranks of one job had better have it alike.
#ifndef GSWBENCH_BACKEND_LIBRARY_H
#define GSWBENCH_BACKEND_LIBRARY_H

enum { BACKEND_LIBRARIES = 4 };
struct backend_library {
    char name[24], version[128];
};

#endif
