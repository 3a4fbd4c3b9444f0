// SPDX-License-Identifier: MIT
// Name and version of a library or driver that a backend computes with. A consistency check compares them between
// ranks.
#ifndef GSWBENCH_BACKEND_LIBRARY_H
#define GSWBENCH_BACKEND_LIBRARY_H

enum { BACKEND_LIBRARIES = 4 };
struct backend_library {
    char name[24], version[128];
};

#endif
